"""Addresses for downloading a log: each works once, for one log, and ends with its token."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ork.api.callers import link_purpose
from ork.api.tickets import TICKET_SECONDS, Tickets
from ork.api.tokens import digest_of
from ork.model.access import Role
from ork.model.ids import AttemptKey, TaskKey
from tests.unit.api.browser import Browser
from tests.unit.api.conftest import NOW, Bench, worked_on

PATH = "/api/v1/runs/00000000000a/tasks/extract/0/attempts"
LOG = b"caf\xc3\xa9 \x1b[31m<script>\n" * 50_000


async def with_logs(bench: Bench) -> None:
    run = await worked_on(bench)
    (bench.folder / "objects" / "runs" / run.id).mkdir(parents=True)
    for number in (1, 2):
        bench.objects.append_log(str(AttemptKey(run.id, TaskKey("extract"), number)), LOG)


async def test_a_session_gets_an_address_that_downloads_the_log_once(bench: Bench) -> None:
    await with_logs(bench)
    async with Browser(bench.app) as browser:
        await browser.sign_in(token=await bench.token(Role.VIEWER))
        answer = await browser.post(f"{PATH}/2/log/link", headers={"X-Ork-Session": browser.half})
        assert answer.status_code == 201
        path = answer.json()["path"]
        browser.headers.update({"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"})
        log = await browser.get(path)  # as a link on the page: with the cookie, without the header
        assert (log.status_code, log.content) == (200, LOG)
        assert log.headers["content-disposition"] == 'attachment; filename="00000000000a-extract-0-2.log"'
        assert (log.headers["content-length"], log.headers["content-type"]) == (
            str(len(LOG)),
            "text/plain; charset=utf-8",
        )
        again = await browser.get(path)
        assert (again.status_code, again.json()["detail"]) == (401, "this ticket was used before")


async def test_an_address_is_for_its_log_alone(bench: Bench) -> None:
    await with_logs(bench)
    async with await bench.client(Role.VIEWER) as client, await bench.client(None) as stranger:
        path = (await client.post(f"{PATH}/2/log/link")).json()["path"]
        query = path.partition("?")[2]
        for other in (f"{PATH}/1/log/download", f"{PATH}/2/log", "/api/v1/runs", "/api/v1/session"):
            assert (await stranger.get(f"{other}?{query}")).status_code == 401, other
        assert (await stranger.get(path.partition("?")[0])).status_code == 401
        assert (await stranger.get(path, headers={"Sec-Fetch-Site": "cross-site"})).status_code == 403
        assert (await stranger.get(path)).content == LOG
        assert (await client.get(f"{PATH}/2/log/download")).content == LOG  # with a token it needs no ticket


async def test_an_address_ends_after_a_minute_and_with_its_token(bench: Bench) -> None:
    await with_logs(bench)
    path, tickets = f"{PATH}/2/log/download", Tickets(bench.store)
    digest, now = digest_of(await bench.token(Role.VIEWER)), datetime.now(UTC)
    late = await tickets.make(link_purpose(path), digest, now - timedelta(seconds=TICKET_SECONDS))
    good = await tickets.make(link_purpose(path), digest, now)
    async with await bench.client(None) as client:
        assert (await client.get(f"{path}?ticket={late}")).status_code == 401
        (token,) = await bench.store.list_tokens()
        await bench.store.revoke_token(token.id, NOW)
        assert (await client.get(f"{path}?ticket={good}")).status_code == 401


async def test_an_attempt_that_is_not_there_has_no_address(bench: Bench) -> None:
    await with_logs(bench)
    async with await bench.client(Role.VIEWER) as client:
        assert (await client.post(f"{PATH}/9/log/link")).status_code == 404
