"""Containers, and everything that can go wrong between them and us: no start is doubled, no end is lost."""

from __future__ import annotations

import asyncio
import json
import signal
from datetime import datetime
from pathlib import Path

import pytest

from ork.executors.executor import Presence
from ork.model.record import replaced
from ork.scheduler.spec_secrets import mask_of
from tests.docker import Daemon, busybox, daemon_or_skip, own_daemon
from tests.integration.cutting_proxy import CuttingProxy, Where
from tests.integration.dock import Dock, play

pytestmark = pytest.mark.slow


@pytest.fixture
def daemon() -> Daemon:
    daemon = daemon_or_skip()
    busybox(daemon)
    return daemon


def container_of(dock: Dock) -> str:
    return f"ork.{str(dock.made[0].key).replace('/', '.')}"


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize(
    "call", ["POST /v1.41/containers/create", "PUT ", "HEAD ", "/wait", "/logs", "GET /v1.41/containers/"]
)
def test_a_lost_answer_changes_nothing(daemon: Daemon, tmp_path: Path, call: str, where: Where) -> None:
    async def scene(dock: Dock) -> None:
        async with CuttingProxy(daemon.url.removeprefix("unix://")) as proxy:
            dock.container = dock.new_executor(f"tcp://127.0.0.1:{proxy.port}")
            proxy.arm(lambda data, _: call.encode() in data.split(b"\r\n")[0], where)
            attempt = dock.attempt()
            order = dock.shell(
                attempt, "echo once; cp /a /b/c; sleep 0.2", to_file="/a", from_file="/b/c", inputs={"x": {"value": 1}}
            )
            status = await dock.end_of(order)
            assert proxy.has_cut
            assert (status["state"], dock.log(attempt)) == ("success", b"once\n")
            assert dock.starts_of(attempt) == 1

    play(tmp_path, daemon, scene)


def test_a_start_whose_answer_is_lost_is_not_asked_for_again(daemon: Daemon, tmp_path: Path) -> None:
    async def scene(dock: Dock) -> None:
        async with CuttingProxy(daemon.url.removeprefix("unix://")) as proxy:
            dock.container = dock.new_executor(f"tcp://127.0.0.1:{proxy.port}")
            proxy.arm(lambda data, _: b"/start" in data.split(b"\r\n")[0], "after")
            attempt = dock.attempt()
            status = await dock.end_of(dock.shell(attempt, "echo once"))
            assert proxy.has_cut
            assert (status["state"], dock.log(attempt)) == ("success", b"once\n")
            assert dock.starts_of(attempt) == 1

    play(tmp_path, daemon, scene)


def test_one_that_may_be_on_its_way_is_removed_rather_than_started_again(daemon: Daemon, tmp_path: Path) -> None:
    async def scene(dock: Dock) -> None:
        async with CuttingProxy(daemon.url.removeprefix("unix://")) as proxy:
            dock.container = dock.new_executor(f"tcp://127.0.0.1:{proxy.port}")
            proxy.arm(lambda data, _: b"/start" in data.split(b"\r\n")[0], "before")
            attempt = await dock.begin(dock.shell(dock.attempt(), "echo never"))
            await dock.vanished(attempt)
            assert (await dock.container.find([attempt])) == [Presence.GONE]
            gate = dock.gates.of(attempt)
            assert (gate and gate["state"], dock.starts_of(attempt)) == ("started", 0)
            assert daemon.docker("ps", "-aq", "--filter", f"name={container_of(dock)}") == ""

    play(tmp_path, daemon, scene)


def test_two_schedulers_with_one_order_start_it_once(daemon: Daemon, tmp_path: Path) -> None:
    async def scene(dock: Dock) -> None:
        attempt = dock.attempt()
        order = dock.shell(attempt, "echo once; sleep 0.3")
        other = dock.new_executor()
        await asyncio.gather(*(each.start([order], dock.news.put_nowait) for each in (dock.container, other)))
        status = await dock.ended(attempt)
        await other.close()
        assert (status["state"], dock.log(attempt), dock.starts_of(attempt)) == ("success", b"once\n", 1)

    play(tmp_path, daemon, scene)


def test_the_next_scheduler_finds_it_with_its_exit_code_and_all_it_wrote_meanwhile(
    daemon: Daemon, tmp_path: Path
) -> None:
    async def scene(dock: Dock) -> None:
        attempt = dock.attempt()
        script = "for i in 1 2 3; do echo $i; done; until [ -e /go ]; do sleep 0.05; done; echo alone; exit 5"
        await dock.begin(dock.shell(attempt, script))
        await dock.running(attempt)
        await dock.container.close()
        daemon.docker("exec", container_of(dock), "touch", "/go")
        daemon.docker("wait", container_of(dock))
        dock.container = dock.new_executor()
        assert await dock.container.find([attempt]) == [Presence.RUNNING]  # its last word is still to be said
        await dock.container.watch([attempt], dock.news.put_nowait)
        while not (dock.status(attempt) or {}).get("finished_at"):
            await asyncio.sleep(0.02)
        status = dock.status(attempt)
        assert status is not None
        assert (status["state"], status["exit_code"]) == ("failed", 5)
        assert dock.log(attempt) == b"1\n2\n3\nalone\n"
        assert dock.starts_of(attempt) == 1

    play(tmp_path, daemon, scene)


def test_one_that_was_made_and_never_let_through_the_gate_is_gone_and_can_be_started(
    daemon: Daemon, tmp_path: Path
) -> None:
    async def scene(dock: Dock) -> None:
        attempt = dock.attempt()
        order = dock.shell(attempt, "echo made")
        label = f"ork.attempt={attempt.key}"
        daemon.docker("create", "--network", "none", "--name", container_of(dock), "--label", label, "busybox", "true")
        assert await dock.container.find([attempt]) == [Presence.GONE]
        assert (await dock.end_of(order))["state"] == "success"

    play(tmp_path, daemon, scene)


def test_one_that_is_given_up_before_it_began_leaves_nothing(daemon: Daemon, tmp_path: Path) -> None:
    async def scene(dock: Dock) -> None:
        from datetime import UTC, datetime

        from ork.scheduler.statuses import close_gate

        attempt = dock.attempt()
        order = dock.shell(attempt, "echo never")
        assert close_gate(dock.objects, attempt, datetime.now(UTC))
        await dock.begin(order)
        await dock.container.stop([attempt], at_once=True)
        await dock.vanished(attempt)
        assert dock.starts_of(attempt) == 0

    play(tmp_path, daemon, scene)


def test_what_somebody_died_before_removing_is_removed_by_the_next(daemon: Daemon, tmp_path: Path) -> None:
    async def scene(dock: Dock) -> None:
        over, going_on = dock.attempt(number=1), dock.attempt(number=2)
        await dock.begin(dock.shell(over, "true"))
        await dock.ended(over)
        await dock.begin(dock.shell(going_on, "sleep 60"))
        await dock.running(going_on)
        await dock.container.close()
        dock.container = dock.new_executor()
        await dock.container.watch([going_on], dock.news.put_nowait)
        async with asyncio.timeout(30):
            while container_of(dock) in daemon.containers():
                await asyncio.sleep(0.05)
        assert await dock.container.find([going_on]) == [Presence.RUNNING]

    play(tmp_path, daemon, scene)


def test_one_that_ended_while_nobody_watched_has_the_duration_the_engine_says(daemon: Daemon, tmp_path: Path) -> None:
    async def scene(dock: Dock) -> None:
        attempt = dock.attempt()
        await dock.begin(dock.shell(attempt, "sleep 0.2"))
        await dock.running(attempt)
        await dock.container.close()
        await asyncio.to_thread(daemon.docker, "wait", container_of(dock))
        await asyncio.sleep(2)  # the time that must not be counted
        dock.container = dock.new_executor()
        await dock.container.watch([attempt], dock.news.put_nowait)
        status = await dock.ended(attempt)
        began, ended = (datetime.fromisoformat(status[name]) for name in ("started_at", "finished_at"))
        assert 0.1 <= (ended - began).total_seconds() < 1.5

    play(tmp_path, daemon, scene)


@pytest.mark.parametrize("options", [(), ("--live-restore",)], ids=["ends what runs", "lets it run"])
def test_an_engine_that_is_restarted_tells_what_became_of_it(tmp_path: Path, options: tuple[str, ...]) -> None:
    with own_daemon(*options) as daemon:
        busybox(daemon)

        async def scene(dock: Dock) -> None:
            attempt = dock.attempt()
            script = "echo before; until [ -e /go ]; do sleep 0.05; done; echo after"
            await dock.begin(dock.shell(attempt, script))
            await dock.running(attempt)
            daemon.stop(signal.SIGKILL if options else signal.SIGTERM)
            assert await dock.container.find([attempt]) == [Presence.RUNNING]  # nobody can say otherwise
            daemon.start()
            if options:
                assert await dock.container.find([attempt]) == [Presence.RUNNING]
                await asyncio.to_thread(daemon.docker, "exec", container_of(dock), "touch", "/go")
            status = await dock.ended(attempt)
            (facts,) = json.loads(daemon.docker("inspect", container_of(dock)))
            assert (facts["State"]["Running"], facts["RestartCount"]) == (False, 0)
            assert status["exit_code"] == facts["State"]["ExitCode"]
            assert (status["state"] == "success") == bool(options)
            assert dock.log(attempt).startswith(b"before\n")

        play(tmp_path, daemon, scene)


def test_fifty_at_once_lose_no_start_and_no_end(daemon: Daemon, tmp_path: Path) -> None:
    async def scene(dock: Dock) -> None:
        attempts = [dock.attempt(number=number) for number in range(1, 51)]
        orders = [dock.shell(each, f"echo {each.key.number}; exit {each.key.number % 3}") for each in attempts]
        assert await dock.container.start(orders, dock.news.put_nowait) == []
        for attempt in attempts:
            status = await dock.ended(attempt, seconds=240)
            assert status["exit_code"] == attempt.key.number % 3
            assert dock.log(attempt) == f"{attempt.key.number}\n".encode()

    play(tmp_path, daemon, scene)


def test_secrets_are_masked_also_by_a_scheduler_that_takes_over(daemon: Daemon, tmp_path: Path) -> None:
    async def scene(dock: Dock) -> None:
        attempt = dock.attempt()
        say = 'echo "has $KEY"; printf %s "$KEY" | base64; echo "$KEY" >&2'
        script = f"{say}; until [ -e /go ]; do sleep 0.05; done; {say}; exit 5"
        order = dock.shell(attempt, script, env={"KEY": {"secret": "ORK_SECRET_KEY"}}, workflow="flow")
        await dock.begin(replaced(order, secrets=(("ORK_SECRET_KEY", "correct-horse"),)))
        async with asyncio.timeout(30):
            while dock.log(attempt).count(b"***") < 3:
                await asyncio.sleep(0.02)
        await dock.container.close()
        daemon.docker("exec", container_of(dock), "touch", "/go")
        daemon.docker("wait", container_of(dock))
        secrets = {("KEY", "flow"): "correct-horse"}
        dock.container = dock.new_executor(find_mask=lambda spec: mask_of(spec, lambda *of: secrets[of]))
        assert await dock.container.find([attempt]) == [Presence.RUNNING]
        while not (dock.status(attempt) or {}).get("finished_at"):
            await asyncio.sleep(0.02)
        log = dock.log(attempt)
        assert sorted(log.split(b"\n")) == sorted([b"has ***", b"***", b"***"] * 2 + [b""])
        status = dock.status(attempt) or {}
        assert b"horse" not in log
        assert "horse" not in json.dumps(status)
        assert "has ***" in status["failure"]["detail"]["tail"]

    play(tmp_path, daemon, scene)
