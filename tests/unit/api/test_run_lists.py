"""The list of runs with its filters, and what it counts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx
import pytest

from ork.api.routing import PREFIX
from ork.model.access import Role
from ork.model.ids import RunId
from ork.model.record import replaced
from ork.model.run import NewRun, RunStatus
from ork.model.workflow import Trigger
from ork.state.records import RunChanges
from ork.state.verbs import statements_of
from ork.status import run_search
from tests.unit.api.conftest import ANN, NOW, Bench
from tests.unit.api.test_run_reads import BOTH, at, failed_run, with_store


async def listed(client: httpx.AsyncClient, **query: Any) -> list[str]:
    answer = await client.get(f"{PREFIX}/runs", params=query)
    assert answer.status_code == 200, answer.text
    return [run["id"] for run in answer.json()["runs"]]


async def every_page(client: httpx.AsyncClient, **query: Any) -> list[str]:
    found, cursor = [], None
    while True:
        page = (await client.get(f"{PREFIX}/runs", params=query | ({"cursor": cursor} if cursor else {}))).json()
        found += [run["id"] for run in page["runs"]]
        cursor = page["cursor"]
        if cursor is None:
            return found


async def some_runs(bench: Bench) -> None:
    """Of two workflows, by several triggers; all of a workflow at the same time, so that only ids order them."""
    for name, first, triggers in (("shop-etl", "aaaa", list(Trigger)), ("report", "bbbb", [Trigger.MANUAL] * 6)):
        version = await bench.deploy(name)
        new = [
            NewRun(
                RunId(f"{first}{number:08d}"),
                name,
                version.id,
                {"n": number, "day": "mon", "list": [1, {"a": None, "b": 2}]},
                trigger,
            )
            for number, trigger in enumerate(triggers)
        ]
        await bench.store.create_runs(new, NOW + timedelta(hours=len(name)))


@BOTH
async def test_runs_are_found_by_trigger_text_and_param(bench: Bench, kind: str) -> None:
    async with with_store(bench, kind) as used, await used.client(Role.VIEWER) as client:
        await some_runs(used)
        assert await listed(client, trigger="event") == ["aaaa00000003"]
        assert await listed(client, q="ETL") == [f"aaaa0000000{number}" for number in (3, 2, 1, 0)]
        assert await listed(client, q="bbbb00000002") == ["bbbb00000002"]
        assert await listed(client, q="bbbb", workflow="shop-etl") == []
        assert await listed(client, q="bbb") == []  # too short for an id
        assert await listed(client, param="n:5") == ["bbbb00000005"]
        assert await listed(client, param="day:mon", workflow="shop-etl", trigger="manual") == ["aaaa00000000"]
        assert await listed(client, param="day:tue") == []
        assert await listed(client, param='list:[ 1,{"b":2,"a":null}]', limit=1) == ["aaaa00000003"]
        assert await listed(client, q="report", status="failed") == []
        for wrong in ({"trigger": "x"}, {"param": "n"}, {"sort": "name"}, {"q": ""}):
            assert (await client.get(f"{PREFIX}/runs", params=wrong)).status_code == 422
        assert (await client.get(f"{PREFIX}/runs", params={"q": "etl", "cursor": "abcd"})).status_code == 400


@BOTH
async def test_pages_of_a_search_have_every_run_once(bench: Bench, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with with_store(bench, kind) as used, await used.client(Role.VIEWER) as client:
        await some_runs(used)
        every = [f"aaaa0000000{number}" for number in (3, 2, 1, 0)] + [
            f"bbbb0000000{number}" for number in range(5, -1, -1)
        ]
        assert await every_page(client, q="e", limit=3) == every
        assert await every_page(client, param="day:mon", limit=2) == every
        assert await every_page(client, trigger="manual", limit=1) == ["aaaa00000000", *every[4:]]
        monkeypatch.setattr(run_search, "_PAGE", 2)
        monkeypatch.setattr(run_search, "MOST_READ", 2)  # each search ends after a page, with a cursor
        assert await every_page(client, trigger="manual", limit=5) == ["aaaa00000000", *every[4:]]
        page = (await client.get(f"{PREFIX}/runs", params={"trigger": "manual"})).json()
        assert (page["runs"], page["partial"]) == ([], False)
        assert page["cursor"]


@BOTH
async def test_params_are_searched_by_the_page_not_by_the_run(bench: Bench, kind: str) -> None:
    async with with_store(bench, kind) as used, await used.client(Role.VIEWER) as client:
        version = await used.deploy("shop-etl")
        new = [NewRun(RunId(f"cccc{number:08d}"), "shop-etl", version.id, {"n": number}) for number in range(300)]
        await used.store.create_runs(new, NOW)
        before = statements_of(used.store)
        assert await listed(client, param="n:0") == ["cccc00000000"]
        assert statements_of(used.store) - before < 60


@BOTH
async def test_a_page_counts_runs_and_tasks_if_asked(bench: Bench, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with with_store(bench, kind) as used, await used.client(Role.VIEWER) as client:
        await failed_run(used.store)
        await some_runs(used)
        page = (await client.get(f"{PREFIX}/runs", params={"counts": True, "limit": 11})).json()
        assert (page["count"], page["count_is_exact"]) == (11, True)
        assert page["runs"][-1]["progress"] == {"done": 6, "total": 6}
        monkeypatch.setattr(run_search, "MOST_COUNTED", 4)
        page = (await client.get(f"{PREFIX}/runs", params={"counts": True, "limit": 2, "q": "report"})).json()
        assert (page["count"], page["count_is_exact"], len(page["runs"])) == (4, False, 2)
        plain = (await client.get(f"{PREFIX}/runs")).json()
        assert (plain["count"], plain["runs"][0]["progress"]) == (None, None)


@BOTH
async def test_runs_are_sorted_by_duration(bench: Bench, kind: str) -> None:
    async with with_store(bench, kind) as used, await used.client(Role.VIEWER) as client:
        await some_runs(used)
        await used.store.register(ANN, "identity", "scheduler", NOW)
        for claimed in (await used.store.claim_runs(ANN, 100, NOW)).runs:
            seconds = int(claimed.run.id[-1]) * 7 % 10
            row = replaced(claimed.run, status=RunStatus.SUCCESS, started_at=NOW, finished_at=at(seconds))
            await used.store.commit(ANN, [RunChanges(row.id, claimed.epoch, row, release_ownership=True)], NOW)
        longest = await listed(client, sort="-duration", workflow="report", limit=3)
        assert longest == ["bbbb00000004", "bbbb00000001", "bbbb00000005"]
        assert (await listed(client, sort="duration", workflow="report"))[0] == "bbbb00000000"


@BOTH
async def test_runs_are_found_by_the_time_they_are_for(bench: Bench, kind: str) -> None:
    async with with_store(bench, kind) as used, await used.client(Role.VIEWER) as client:
        version = await used.deploy()
        new = NewRun(RunId("00000000000a"), "flow", version.id, {}, Trigger.BACKFILL, at(-60))
        await used.store.create_runs([new], NOW)
        times = [at(-60).isoformat(), at(-120).isoformat()]
        assert await listed(client, workflow="flow", scheduled_for=times) == [new.id]
        assert (await client.get(f"{PREFIX}/runs", params={"scheduled_for": times})).status_code == 400
