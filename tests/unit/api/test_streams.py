"""Streams over a real socket: events that can be resumed, and logs that are followed."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from ork.api import page_models, sessions
from ork.api.feed import ChangeFeed
from ork.api.routes import live
from ork.api.server import ApiServer, ListenAddress, bind, check_exposure
from ork.api.tokens import make_token
from ork.errors import RefusedError
from ork.model.access import Role, Token
from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.record import replaced
from ork.model.run import NewRun, RunStatus
from ork.model.task import Attempt, AttemptStatus, Task, TaskStatus
from ork.objects.layout import attempt_stem, log_key
from ork.state.records import RunChanges
from ork.state.sqlite import SqliteStore
from tests.unit.api.conftest import NOW, Bench
from tests.unit.api.test_routes import ANN

PATIENCE_SECONDS = 20


@asynccontextmanager
async def serving(bench: Bench) -> AsyncIterator[httpx.AsyncClient]:
    server = ApiServer(bench.app, ListenAddress("127.0.0.1", 0), bench.api.telemetry)
    work = asyncio.create_task(server.run())
    await server.check_health()
    headers = {"Authorization": f"Bearer {await bench.token(Role.ADMIN)}"}
    async with httpx.AsyncClient(base_url=server.url, headers=headers, timeout=PATIENCE_SECONDS) as client:
        yield client
    bench.api.hub.close()
    server.stop()
    await work


class Events:
    """The events of a stream, one after the other."""

    def __init__(self, response: httpx.Response) -> None:
        self._lines = response.aiter_lines()

    async def next(self) -> dict[str, Any]:
        event: dict[str, Any] = {}
        async with asyncio.timeout(PATIENCE_SECONDS):
            async for line in self._lines:
                if not line and event:
                    return {**event, "data": json.loads(event["data"])}
                name, _, value = line.partition(": ")
                if name:
                    event[name] = value
        raise EOFError

    async def next_of(self, kind: str) -> dict[str, Any]:
        while True:
            event = await self.next()
            if event["event"] == kind:
                return event


async def test_a_change_by_another_process_is_heard_at_once_and_nothing_is_missed_in_between(bench: Bench) -> None:
    await bench.deploy()
    other = SqliteStore(bench.folder / "ork.db")
    async with serving(bench) as client:
        async with client.stream("GET", "/api/v1/events") as response:
            events = Events(response)
            assert (await events.next())["event"] == "ready"
            first = await Bench.run(dataclasses.replace(bench, store=other), "00000000000a")
            told = await events.next_of("run")
            assert told["data"]["run"]["id"] == first.id
            mark = (await events.next_of("mark"))["id"]
        missed = await Bench.run(dataclasses.replace(bench, store=other), "00000000000b")
        headers = {"Last-Event-ID": mark}
        async with client.stream("GET", "/api/v1/events", headers=headers) as response:
            events = Events(response)
            assert (await events.next_of("run"))["data"]["run"]["id"] == missed.id
        assert (await client.get("/api/v1/events", headers={"Last-Event-ID": "x"})).status_code == 400
    await other.close()


async def test_what_the_api_itself_changed_is_heard_with_the_tasks_that_changed(bench: Bench) -> None:
    await bench.deploy()
    async with serving(bench) as client, client.stream("GET", "/api/v1/events?workflow=flow") as response:
        events = Events(response)
        await events.next_of("ready")
        made = (await client.post("/api/v1/workflows/flow/runs")).json()
        assert (await events.next_of("run"))["data"]["run"]["id"] == made["id"]
        await bench.store.register(ANN, "identity", "scheduler", NOW)
        (claimed,) = (await bench.store.claim_runs(ANN, 1, NOW)).runs
        running = replaced(claimed.run, status=RunStatus.RUNNING)
        task = Task(TaskKey("extract"), TaskStatus.PENDING, "process")
        await bench.store.commit(ANN, [RunChanges(claimed.run.id, claimed.epoch, running, (task,))], NOW)
        bench.api.hub.notify()
        data = (await events.next_of("run"))["data"]
        assert (data["run"]["status"], [row["name"] for row in data["tasks"]]) == ("running", ["extract"])


async def test_a_log_is_followed_from_any_place_to_the_end_of_its_attempt(bench: Bench) -> None:
    run = await bench.run()
    await bench.store.register(ANN, "identity", "scheduler", NOW)
    (claimed,) = (await bench.store.claim_runs(ANN, 1, NOW)).runs
    key = AttemptKey(run.id, TaskKey("extract"), 1)
    attempt = Attempt(key, AttemptStatus.RUNNING, "process", "name", "hash", NOW)
    task = Task(key.task, TaskStatus.RUNNING, "process", 1)
    running = replaced(claimed.run, status=RunStatus.RUNNING)
    await bench.store.commit(ANN, [RunChanges(run.id, claimed.epoch, running, (task,), (attempt,))], NOW)
    log = log_key(attempt_stem(key))
    bench.objects.put(log, "one\nzwö".encode()[:-1])
    path = f"/api/v1/runs/{run.id}/tasks/extract/0/attempts/1/log?follow"
    async with serving(bench) as client:
        async with client.stream("GET", path) as response:
            events = Events(response)
            first = await events.next_of("log")
            assert (first["data"]["text"], first["id"]) == ("one\nzw", "6")
            bench.objects.put(log, "one\nzwö\n".encode())
            assert (await events.next_of("log"))["data"]["text"] == "ö\n"
            done = replaced(attempt, status=AttemptStatus.SUCCESS, finished_at=NOW)
            await bench.store.commit(ANN, [RunChanges(run.id, claimed.epoch, attempts=(done,))], NOW)
            assert (await events.next_of("end"))["data"] == {"status": "success"}
        async with client.stream("GET", path, headers={"Last-Event-ID": "4"}) as response:
            assert (await Events(response).next_of("log"))["data"]["text"] == "zwö\n"


async def test_nothing_is_waited_for_while_nobody_listens(bench: Bench) -> None:
    async with serving(bench) as client:
        before = bench.store.statements
        await asyncio.sleep(0.3)
        assert bench.store.statements == before
        assert bench.api.hub._watch is None
        async with client.stream("GET", "/api/v1/events") as response:
            await Events(response).next_of("ready")
            assert bench.api.hub._watch is not None


@pytest.mark.slow
async def test_a_stream_ends_when_its_token_expires_and_tokens_are_looked_up_only_while_one_is_open(
    bench: Bench,
) -> None:
    text, token = make_token("brief", Role.VIEWER, NOW, datetime.now(UTC) + timedelta(seconds=2))
    await bench.store.add_token(token)
    async with serving(bench) as client:
        assert bench.app._streams._watch is None
        headers = {"Authorization": f"Bearer {text}"}
        async with client.stream("GET", "/api/v1/events", headers=headers) as response:
            events = Events(response)
            assert (await events.next())["event"] == "ready"
            assert bench.app._streams._watch is not None
            with pytest.raises(EOFError):
                await events.next_of("one that never comes")
        assert bench.app._streams._watch is None


@pytest.mark.parametrize("ended_by", ["revocation", "time"])
async def test_a_stream_of_a_session_ends_with_it(bench: Bench, ended_by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, token = make_token("of a browser", Role.VIEWER, NOW)
    await bench.store.add_token(token)
    if ended_by == "time":
        monkeypatch.setattr(sessions, "LIFETIME", timedelta(seconds=5))
    async with serving(bench) as client:
        del client.headers["Authorization"]
        client.headers["Sec-Fetch-Site"] = "same-origin"
        half = (await client.post("/api/v1/session", json={"token": text})).json()["half"]
        async with client.stream("GET", "/api/v1/events", headers={"X-Ork-Session": half}) as response:
            events = Events(response)
            assert (await events.next())["event"] == "ready"
            if ended_by == "revocation":
                await bench.store.revoke_token(token.id, NOW)
            with pytest.raises(EOFError):
                await events.next_of("one that never comes")
        again = await client.get("/api/v1/session", headers={"X-Ork-Session": half})
        assert again.status_code == 401


def test_what_others_can_reach_needs_a_token_and_a_name() -> None:
    token = Token("t", "n", Role.VIEWER, "d", NOW)
    check_exposure(ListenAddress("127.0.0.1", 1), [])
    check_exposure(ListenAddress("0.0.0.0", 1, ("ork.example",)), [token])
    for place, tokens in (
        (ListenAddress("0.0.0.0", 1, ("ork.example",)), []),
        (ListenAddress("0.0.0.0", 1, ("ork.example",)), [replaced(token, revoked_at=NOW)]),
        (ListenAddress("0.0.0.0", 1), [token]),
        (ListenAddress("::", 1), [token]),
    ):
        with pytest.raises(RefusedError):
            check_exposure(place, tokens)


def test_a_port_that_is_taken_is_a_plain_refusal() -> None:
    with bind(ListenAddress("127.0.0.1", 0)) as taken, pytest.raises(RefusedError, match="cannot listen"):
        bind(ListenAddress("127.0.0.1", taken.getsockname()[1]))


async def test_streams_share_one_read_of_a_change(bench: Bench) -> None:
    await bench.deploy()
    async with serving(bench) as client, AsyncExitStack() as stack:
        listening = []
        for query in ("", "?tasks=none", "?workflow=flow", "?workflow=other"):
            response = await stack.enter_async_context(client.stream("GET", f"/api/v1/events{query}"))
            listening.append(Events(response))
            await listening[-1].next_of("ready")
        asked = Counted(bench.store)
        bench.api.kept[ChangeFeed]._store = asked
        run = await bench.run()
        bench.api.hub.notify()
        for events in listening[:3]:
            data = (await events.next_of("run"))["data"]
            page_models.RunEvent.model_validate_json(json.dumps(data))
            assert data["run"]["id"] == run.id
        for events in listening:
            await events.next_of("mark")
        assert asked.calls["run_updates"] == 1
        assert asked.calls["count_tasks"] == 1
        # One read finds the change, and one that there are no more; each is shared.
        assert asked.calls["changes_since"] <= 1 + len(listening)


class Counted:
    """A store that counts the calls of its verbs."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.calls: Counter[str] = Counter()

    def __getattr__(self, verb: str) -> Any:
        self.calls[verb] += 1
        return getattr(self._store, verb)


async def test_a_stream_without_tasks_has_counts_and_one_of_a_run_has_that_run(bench: Bench) -> None:
    version = await bench.deploy()
    ids = [RunId("00000000000a"), RunId("00000000000b")]
    await bench.store.create_runs([NewRun(id, "flow", version.id, {}) for id in ids], NOW)
    await bench.store.register(ANN, "identity", "scheduler", NOW)
    path = f"/api/v1/events?tasks=none&run={ids[1]}"
    async with serving(bench) as client, client.stream("GET", path) as response:
        events = Events(response)
        await events.next_of("ready")
        task = Task(TaskKey("extract"), TaskStatus.PENDING, "process")
        for claimed in (await bench.store.claim_runs(ANN, 5, NOW)).runs:
            await bench.store.commit(ANN, [RunChanges(claimed.run.id, claimed.epoch, tasks=(task,))], NOW)
        bench.api.hub.notify()
        data = (await events.next_of("run"))["data"]
        assert data["run"]["id"] == ids[1]
        assert data["counts"] == {"pending": 1}
        assert "tasks" not in data


async def test_a_mark_that_lies_far_back_is_answered_with_a_reset(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "RESET_AFTER", 2)
    version = await bench.deploy()
    ids = [RunId(f"00000000000{number}") for number in range(4)]
    for id in ids:
        await bench.store.create_runs([NewRun(id, "flow", version.id, {})], NOW)
    async with serving(bench) as client:
        for since, kind in (("0", "reset"), ((await bench.store.changes_since("0", 2)).mark, "ready")):
            async with client.stream("GET", f"/api/v1/events?since={since}") as response:
                first = await Events(response).next()
                assert first["event"] == kind
                assert kind == "ready" or first["id"] == (await bench.store.changes_since(None)).mark
