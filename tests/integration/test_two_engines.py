"""Two machines, each with a container engine of its own, under one store: neither answers for the other's containers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from ork.executors.docker import executor as docker_executor
from ork.executors.docker.executor import DockerExecutor
from ork.executors.executor import Presence
from ork.model.record import replaced
from ork.model.task import Attempt, AttemptStatus, GiveUp
from ork.objects import layout
from ork.objects.documents import open_signed, sign
from tests.docker import Daemon, busybox, daemon_or_skip, own_daemon
from tests.integration.dock import Dock, play

pytestmark = pytest.mark.slow


@pytest.fixture
def daemon() -> Daemon:
    daemon = daemon_or_skip()
    busybox(daemon)
    return daemon


@pytest.fixture
def other() -> Iterator[Daemon]:
    with own_daemon() as daemon:
        busybox(daemon)
        yield daemon


async def running(dock: Dock, script: str = "sleep 600", **spec: object) -> Attempt:
    attempt = await dock.begin(dock.shell(dock.attempt(), script, heartbeat_seconds=0.2, **spec))
    await dock.running(attempt)
    return attempt


def returned(dock: Dock, row: Attempt) -> DockerExecutor:
    """That of a scheduler which comes back to its machine; somebody else owns the run."""

    async def attempt_of(text: str) -> Attempt | None:
        return row if text == str(row.key) else None

    made = dock.new_executor()
    made._attempt_of = attempt_of
    made.sweep_engines([(dock.daemon.url, None)])
    return made


async def forsaken(dock: Dock) -> None:
    """Its scheduler dies, and nobody writes its heartbeats for a while."""
    await dock.container.close()
    await asyncio.sleep(0.2 * docker_executor._MISSED_BEATS + 0.2)


def test_another_engine_starts_no_second_container(daemon: Daemon, other: Daemon, tmp_path: Path) -> None:
    async def scene(dock: Dock) -> None:
        attempt = await running(dock)
        elsewhere = dock.new_executor(other.url)
        assert await elsewhere.find([attempt]) == [Presence.UNKNOWN]
        await elsewhere.watch([attempt], dock.news.put_nowait)
        assert await elsewhere.start([dock.shell(attempt, "sleep 600")], dock.news.put_nowait) == []
        while attempt.key in elsewhere._monitors:
            await asyncio.sleep(0.05)
        assert await elsewhere.find([attempt]) == [Presence.UNKNOWN]
        assert other.containers() == []
        await elsewhere.close()
        assert await dock.container.find([attempt]) == [Presence.RUNNING]

    play(tmp_path, daemon, scene)


def test_a_scheduler_that_comes_back_to_its_engine_looks_after_what_it_finds_there(
    daemon: Daemon, tmp_path: Path
) -> None:
    async def scene(dock: Dock) -> None:
        attempt = await running(dock, "sleep 3; exit 7")
        await forsaken(dock)
        dock.container = returned(dock, attempt)
        status = await asyncio.wait_for(_end(dock, attempt), 60)
        assert (status["state"], status["exit_code"]) == ("failed", 7)

    play(tmp_path, daemon, scene)


async def _end(dock: Dock, attempt: Attempt) -> dict[str, object]:
    while (status := dock.status(attempt)) is None or status["state"] == "running":
        await asyncio.sleep(0.1)
    return status


@pytest.mark.parametrize("way", ["being given up", "given up"])
def test_what_was_given_up_meanwhile_is_ended(daemon: Daemon, tmp_path: Path, way: str) -> None:
    async def scene(dock: Dock) -> None:
        attempt = await running(dock, "trap 'exit 0' TERM; sleep 600 & wait")
        await forsaken(dock)
        row = replaced(attempt, closing=GiveUp.STALE)
        if way == "given up":
            row = replaced(attempt, status=AttemptStatus.LOST)
        dock.container = returned(dock, row)
        while daemon.docker("ps", "-q", "--filter", f"label=ork.attempt={attempt.key}"):
            await asyncio.sleep(0.1)
        if way == "being given up":
            assert (await _end(dock, attempt))["state"] == "stopped"

    play(tmp_path, daemon, scene)


def test_what_somebody_keeps_is_left_to_them(daemon: Daemon, tmp_path: Path) -> None:
    async def scene(dock: Dock) -> None:
        attempt = await running(dock)
        beside = returned(dock, attempt)
        await asyncio.gather(*beside._background)
        assert attempt.key not in beside._monitors
        await beside.close()

    play(tmp_path, daemon, scene)


@pytest.mark.parametrize(("host", "expected"), [("elsewhere", Presence.UNKNOWN), (None, Presence.GONE)])
def test_gates_that_name_no_engine_are_answered_for_on_the_machine_that_won_them(
    daemon: Daemon, other: Daemon, tmp_path: Path, host: str | None, expected: Presence
) -> None:
    """As 0.1.0 wrote them."""

    async def scene(dock: Dock) -> None:
        attempt = await running(dock)
        await forsaken(dock)
        key = layout.gate_key(layout.attempt_stem(attempt.key))
        data = dock.objects.get(key)
        assert data is not None
        gate = {name: value for name, value in open_signed(data, attempt.token_hash).items() if name != "engine"}
        dock.objects.put(key, sign(gate if host is None else {**gate, "host": host}, attempt.token_hash))
        dock.container = dock.new_executor()
        assert await dock.container.find([attempt]) == [Presence.RUNNING]  # it has the very container
        elsewhere = dock.new_executor(other.url)
        assert await elsewhere.find([attempt]) == [expected]
        await elsewhere.close()

    play(tmp_path, daemon, scene)


def test_an_engine_that_does_not_answer_cannot_be_asked_although_somebody_keeps_the_container(
    daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene(dock: Dock) -> None:
        attempt = await running(dock)
        assert await dock.container.find([attempt]) == [Presence.RUNNING]
        monkeypatch.setattr(docker_executor, "_SILENT_SECONDS", 0.0)
        assert await dock.container.find([attempt]) == [Presence.UNKNOWN]

    play(tmp_path, daemon, scene)
