"""Workers that are forked from a server: the same promises as for those that are started anew, whoever is killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ork.executors import fork_servers, worker_pool
from ork.executors.executor import Presence
from ork.executors.local import LocalExecutor
from ork.model.record import replaced
from ork.model.task import Attempt
from ork.model.workflow import Isolation
from tests.integration.workshop import Workshop, in_patient_workshop, in_workshop, is_alive

WAITING = """
import os, time

def main():
    with open('ledger', 'a') as file:
        file.write('x')
    while not os.path.exists('go'):
        time.sleep(0.01)
    return os.getpid()
"""

# Forks a process, without a program of its own, into a session of its own, that ignores SIGTERM.
SLIPPING_AWAY = """
import os, signal, time

def main():
    if os.fork() == 0:
        os.setsid()
        signal.signal(15, signal.SIG_IGN)
        with open('pid.tmp', 'w') as file:
            file.write(f'{os.getpid()} {os.getppid()}')
        os.rename('pid.tmp', 'pid')
    time.sleep(600)
"""

# Everything about a process that a task could notice.
LOOK_AROUND = """
import os, signal, sys, resource

def main():
    files = sorted((int(fd), os.readlink(f'/proc/self/fd/{fd}').split(':')[0]) for fd in os.listdir('/proc/self/fd')
                   if os.path.exists(f'/proc/self/fd/{fd}'))
    own = {n: v for n, v in os.environ.items() if n not in ('ORK_TASK_ID', 'ORK_TASK_NAME', 'ORK_ATTEMPT_ID')}
    marks = [v for v in open('/proc/self/environ').read().split('\\0') if v.startswith('ORK_ATTEMPT_ID=')]
    return {
        'streams': files[:3],
        'sockets': [name for _, name in files if name == 'socket'],
        'ignored': [n for n in range(1, 32) if signal.getsignal(n) is signal.SIG_IGN],
        'default': [n for n in range(1, 32) if signal.getsignal(n) is signal.SIG_DFL],
        'blocked': sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        'leads': [os.getpgid(0) == os.getpid(), os.getsid(0) == os.getppid()],
        'environ': own, 'marks': marks == [f"ORK_ATTEMPT_ID={os.environ['ORK_ATTEMPT_ID']}"],
        'path': sys.path, 'argv': sys.argv, 'flags': str(sys.flags), 'prefix': sys.prefix, 'cwd': os.getcwd(),
        'limits': resource.getrlimit(resource.RLIMIT_NOFILE), 'main': '__file__' in vars(sys.modules['__main__']),
    }
"""


def shim_of(shop: Workshop, attempt: Attempt) -> int:
    gate = shop.gates.of(attempt)
    assert gate is not None
    return int(gate["pid"])


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def is_server(pid: int) -> bool:
    return b"ork.worker.pool.fork_server" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")


async def server_of(shop: Workshop, attempt: Attempt) -> int:
    """The server from which the worker of a running attempt was forked."""
    await shop.running(attempt)
    server = parent_of(shim_of(shop, attempt))
    assert is_server(server)
    return server


async def died(pid: int) -> None:
    async with asyncio.timeout(30):
        while is_alive(pid):
            await asyncio.sleep(0.01)


@contextmanager
def halted(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        if is_alive(pid):
            os.kill(pid, signal.SIGCONT)


@in_workshop
async def test_a_forked_task_finds_the_same_world_as_in_an_interpreter_of_its_own(shop: Workshop) -> None:
    shop.write("tasks.py", LOOK_AROUND)
    seen = {}
    for isolation in Isolation:
        order = replaced(shop.order(shop.attempt(isolation)), isolation=isolation)
        status = await shop.run_order(order)
        assert status["state"] == "success", status
        seen[isolation] = json.loads(status["output"]["inline"])
    assert seen[Isolation.FORK] == seen[Isolation.INTERPRETER]
    assert seen[Isolation.FORK]["marks"]
    assert seen[Isolation.FORK]["sockets"] == []


@in_patient_workshop
async def test_workers_of_one_interpreter_come_from_one_server_that_leads_no_attempt(shop: Workshop) -> None:
    shop.write("tasks.py", WAITING)
    attempts = [shop.attempt(name) for name in ("a", "b")]
    for attempt in attempts:
        assert await shop.start(attempt) == []
    servers = {await server_of(shop, attempt) for attempt in attempts}
    assert len(servers) == 1
    await shop.executor.stop(attempts, at_once=True)
    for attempt in attempts:
        await shop.vanished(attempt)
    assert is_alive(*servers)


@in_workshop
async def test_what_a_function_forked_is_found_and_ended_when_its_shim_was_killed(shop: Workshop) -> None:
    shop.write("tasks.py", SLIPPING_AWAY)
    attempt = shop.attempt()
    await shop.start(attempt)
    grandchild, child = map(int, (await shop.until_file(shop.root / "pid")).split())
    os.kill(shim_of(shop, attempt), signal.SIGKILL)
    await died(child)
    assert is_alive(grandchild)
    assert await shop.executor.find([attempt]) == [Presence.ORPHANED]
    await shop.executor.stop([attempt], at_once=True)
    await shop.vanished(attempt)
    assert not is_alive(grandchild)


@in_patient_workshop
async def test_tasks_go_on_when_their_server_is_killed_and_the_next_gets_a_new_one(shop: Workshop) -> None:
    shop.write("tasks.py", WAITING)
    first, second = shop.attempt("first"), shop.attempt("second")
    await shop.start(first)
    server = await server_of(shop, first)
    os.kill(server, signal.SIGKILL)
    await died(server)
    assert await shop.executor.find([first]) == [Presence.RUNNING]
    async with asyncio.timeout(30):
        while (
            shop.executor._pool._servers.by_interpreter
        ):  # else the second one might be sent there, and be started without it
            await asyncio.sleep(0.01)
    await shop.start(second)
    assert await server_of(shop, second) != server
    shop.write("go", "")
    assert (await shop.ended(first))["state"] == (await shop.ended(second))["state"] == "success"
    await shop.vanished(first)
    assert (shop.root / "ledger").read_text() == "xx"


@in_workshop
async def test_what_a_killed_server_has_not_answered_is_started_without_it_and_once(shop: Workshop) -> None:
    shop.write("tasks.py", WAITING)
    first, *others = [shop.attempt(f"t{n}") for n in range(5)]
    await shop.start(first)
    server = await server_of(shop, first)
    with halted(server):
        for attempt in others:
            assert await shop.start(attempt) == []
            assert await shop.executor.find([attempt]) == [Presence.RUNNING]
        os.kill(server, signal.SIGKILL)
    for attempt in others:
        await shop.running(attempt)
        assert not is_server(parent_of(shim_of(shop, attempt)))
    shop.write("go", "")
    for attempt in (first, *others):
        assert (await shop.ended(attempt))["state"] == "success"
    assert (shop.root / "ledger").read_text() == "xxxxx"


def test_a_server_that_does_not_answer_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @in_workshop
    async def inside(shop: Workshop) -> None:
        shop.write("tasks.py", WAITING)
        first, second, third = (shop.attempt(name) for name in "abc")
        await shop.start(first)
        server = await server_of(shop, first)
        monkeypatch.setattr(worker_pool, "START_TIMEOUT_SECONDS", 0.2)
        os.kill(server, signal.SIGSTOP)
        await shop.start(second)
        await shop.running(second)
        await died(server)
        monkeypatch.undo()
        await shop.start(third)
        assert await server_of(shop, third) != server
        shop.write("go", "")
        for attempt in (first, second, third):
            assert (await shop.ended(attempt))["state"] == "success"
        assert (shop.root / "ledger").read_text() == "xxx"

    inside(tmp_path)


@in_workshop
async def test_more_than_the_socket_holds_is_started_all_the_same(shop: Workshop) -> None:
    shop.write("tasks.py", WAITING)
    first, *many = [shop.attempt(f"t{n}") for n in range(301)]
    await shop.start(first)
    with halted(await server_of(shop, first)):
        orders = [shop.order(attempt, argv=["true"]) for attempt in many]
        assert await shop.executor.start(orders, shop.news.put_nowait) == []
    for attempt in many:
        assert (await shop.ended(attempt))["state"] == "success"


@pytest.mark.parametrize("at_once", [False, True])
def test_an_attempt_that_is_stopped_before_its_fork_ends_without_a_trace_or_as_stopped(
    tmp_path: Path, at_once: bool
) -> None:
    @in_workshop
    async def inside(shop: Workshop) -> None:
        shop.write("tasks.py", WAITING)
        first, second = shop.attempt("first"), shop.attempt("second")
        await shop.start(first)
        with halted(await server_of(shop, first)):
            await shop.start(second)
            await shop.executor.stop([second], at_once=at_once)
        await shop.vanished(second)
        status = shop.status(second)
        if not at_once:
            assert (shop.gates.of(second) is None) == (status is None)
            assert status is None or status["state"] == "stopped"
        assert await shop.executor.find([first, second]) == [Presence.RUNNING, Presence.GONE]

    inside(tmp_path)


@in_workshop
async def test_a_server_ends_with_its_executor_and_its_tasks_do_not(shop: Workshop) -> None:
    shop.write("tasks.py", WAITING)
    attempt = shop.attempt()
    await shop.start(attempt)
    server = await server_of(shop, attempt)
    worker = shim_of(shop, attempt)
    await shop.executor.close()
    await died(server)
    assert is_alive(worker)
    shop.write("go", "")
    await died(worker)
    assert (shop.status(attempt) or {})["state"] == "success"


SCHEDULER = """
import asyncio, sys
from pathlib import Path
from tests.integration.workshop import Workshop

async def start():
    shop = Workshop(Path(sys.argv[1]))
    assert await shop.start(shop.attempt()) == []
    await shop.running(shop.attempt())
    print("started", flush=True)
    await asyncio.sleep(600)

asyncio.run(start())
"""


@in_workshop
async def test_a_killed_scheduler_takes_its_server_along_and_leaves_its_task_to_the_next(shop: Workshop) -> None:
    shop.write("tasks.py", WAITING)
    tree = Path(__file__).resolve().parents[2]
    env = {**os.environ, "PYTHONPATH": f"{tree}{os.pathsep}{tree / 'src'}"}
    command = [sys.executable, "-c", SCHEDULER, str(shop.root.parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=env) as scheduler:
        assert scheduler.stdout is not None
        assert scheduler.stdout.readline() == b"started\n"
        attempt = shop.attempt()
        server = parent_of(shim_of(shop, attempt))
        assert is_server(server)
        scheduler.kill()
    await died(server)
    assert await shop.executor.find([attempt]) == [Presence.RUNNING]
    await shop.executor.watch([attempt], shop.news.put_nowait)
    shop.write("go", "")
    assert (await shop.ended(attempt))["state"] == "success"
    assert (shop.root / "ledger").read_text() == "x"


def test_a_server_with_another_environment_than_ours_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @in_workshop
    async def inside(shop: Workshop) -> None:
        shop.write("tasks.py", "import os\n\ndef main():\n    return os.environ.get('COLOUR_OF_THE_DAY')\n")
        shop.executor = LocalExecutor("python", shop.objects, isolation=shop.isolation, pass_env=["COLOUR_*"])
        assert (await shop.run(shop.attempt("before")))["output"] is None
        monkeypatch.setenv("COLOUR_OF_THE_DAY", "blue")
        assert (await shop.run(shop.attempt("after")))["output"] == {"inline": '"blue"'}

    inside(tmp_path)


def test_a_server_is_replaced_when_what_it_loaded_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @in_workshop
    async def inside(shop: Workshop) -> None:
        shop.write("tasks.py", WAITING)
        first, second = shop.attempt("first"), shop.attempt("second")
        await shop.start(first)
        server = await server_of(shop, first)
        changed = fork_servers.fingerprint_of(sys.executable, 0)[1:]
        monkeypatch.setattr(fork_servers, "fingerprint_of", lambda _interpreter, _second: changed)
        await shop.start(second)
        assert await server_of(shop, second) != server
        await died(server)
        assert await shop.executor.find([first]) == [Presence.RUNNING]

    inside(tmp_path)


@in_workshop
async def test_secrets_never_reach_a_server(shop: Workshop) -> None:
    shop.write("tasks.py", WAITING)
    attempt = shop.attempt()
    order = shop.order(attempt, env={"KEY": {"secret": "ORK_SECRET_key"}})
    assert await shop.start_order(replaced(order, secrets=(("ORK_SECRET_key", "hush"),))) == []
    await shop.running(attempt)
    assert not is_server(parent_of(shim_of(shop, attempt)))


@in_workshop
async def test_an_interpreter_in_which_no_server_comes_up_is_used_without_one(shop: Workshop) -> None:
    script = f'#!/bin/sh\ncase "$*" in *ork.worker.pool.fork_server*) echo x >> tried; exit 3;; esac\nexec {sys.executable} "$@"\n'
    python = shop.write("python", script.replace("tried", str(shop.root / "tried")), executable=True)
    shop.write("tasks.py", "def main():\n    return 1\n")
    for name in ("a", "b"):
        order = replaced(shop.order(shop.attempt(name)), interpreter=str(python))
        assert (await shop.run_order(order))["output"] == {"inline": "1"}
    assert (shop.root / "tried").read_text() == "x\n"


@in_workshop
async def test_what_was_asked_for_is_started_even_if_the_executor_leaves_at_once(shop: Workshop) -> None:
    shop.write("tasks.py", "def main():\n    with open('ledger', 'a') as file:\n        file.write('x')\n")
    attempts = [shop.attempt(f"t{n}") for n in range(20)]
    orders = [shop.order(attempt) for attempt in attempts]
    assert await shop.executor.start(orders, shop.news.put_nowait) == []
    until_begun(shop, attempts)  # answers arrive meanwhile, and nobody reads them
    await shop.executor.close()
    async with asyncio.timeout(30):
        while any((shop.status(attempt) or {"state": ""})["state"] != "success" for attempt in attempts):
            await asyncio.sleep(0.02)
    assert (shop.root / "ledger").read_text() == "x" * 20


def until_begun(shop: Workshop, attempts: list[Attempt]) -> None:
    while not any(shop.gates.of(attempt) for attempt in attempts):
        pass
