"""Workers that stay for the next attempt: one at a time, and nobody's stop reaches an attempt it is not meant for."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ork.executors import local, processes, worker_pool
from ork.executors.executor import Presence
from ork.executors.local import LocalExecutor
from ork.executors.local_worker import ATTEMPT_VARIABLE
from ork.model.task import Attempt
from tests.integration.workshop import Workshop, in_workshop, is_alive

# Says who ran it, and holds on while there is a file of its name.
TASKS = """
import os, time

def main():
    name = os.environ['ORK_TASK_NAME']
    while os.path.exists(f'hold-{name}'):
        time.sleep(0.01)
    print(name)
    return [os.getpid(), os.getppid()]
"""


async def resident_of(shop: Workshop, attempt: Attempt) -> int:
    """The worker that performs, or performed, the attempt."""
    async with asyncio.timeout(30):
        while (gate := shop.gates.of(attempt)) is None:
            await asyncio.sleep(0.01)
    return int(gate["pid"])


async def settled(shop: Workshop) -> int:
    """A resident that is there to stay: the first worker of a server is not."""
    shop.write("tasks.py", TASKS)
    for name in ("first", "second"):
        assert (await shop.run(shop.attempt(name)))["state"] == "success"
    await shop.vanished(shop.made[-1])
    return await resident_of(shop, shop.made[-1])


@in_workshop
async def test_a_worker_that_was_expected_takes_the_first_attempt_and_stays(shop: Workshop) -> None:
    shop.write("tasks.py", TASKS)
    shop.executor.expect(str(shop.root))
    for name in ("first", "second"):
        assert (await shop.run(shop.attempt(name)))["state"] == "success"
        await shop.vanished(shop.made[-1])
    first, second = [await resident_of(shop, attempt) for attempt in shop.made]
    assert first == second


@in_workshop
async def test_nothing_is_said_of_a_worker_that_was_expected_and_cannot_be(shop: Workshop) -> None:
    shop.write(".venv/bin/python", "", executable=True)
    shop.write(".venv/pyvenv.cfg", "version = 3.8.1\n")
    shop.executor.expect(str(shop.root))


@in_workshop
async def test_a_worker_takes_one_attempt_after_another_each_in_a_process_of_its_own(shop: Workshop) -> None:
    resident = await settled(shop)
    made = [shop.attempt(f"t{n}") for n in range(5)]
    outputs = []
    for attempt in made:
        outputs.append((await shop.run(attempt))["output"]["inline"])
        await shop.vanished(attempt)
        assert await resident_of(shop, attempt) == resident
        assert shop.log(attempt) == attempt.key.task.name.encode() + b"\n"
    pids = {json.loads(output)[0] for output in outputs}
    assert len(pids) == 5
    assert resident not in pids


@in_workshop
async def test_attempts_at_the_same_time_have_workers_of_their_own(shop: Workshop) -> None:
    await settled(shop)
    made = [shop.attempt(name) for name in "abc"]
    for attempt in made:
        shop.write(f"hold-{attempt.key.task.name}", "")
        await shop.start(attempt)
    assert len({await resident_of(shop, attempt) for attempt in made}) == 3


@in_workshop
async def test_an_attempt_that_is_over_is_gone_though_its_worker_lives(shop: Workshop) -> None:
    resident = await settled(shop)
    assert is_alive(resident)
    assert processes.attempt_of(resident, ATTEMPT_VARIABLE) == ""
    assert await shop.executor.find([shop.made[-1]]) == [Presence.GONE]


@in_workshop
async def test_stopping_an_attempt_that_is_over_harms_nobody_who_came_after_it(shop: Workshop) -> None:
    resident = await settled(shop)
    past, present = shop.made[-1], shop.attempt("present")
    shop.write("hold-present", "")
    await shop.start(present)
    assert await resident_of(shop, present) == resident
    other = LocalExecutor("python", shop.objects)
    for executor in (shop.executor, other):
        for at_once in (False, True):
            await executor.stop([past], at_once=at_once)
    await other.close()
    (shop.root / "hold-present").unlink()
    assert (await shop.ended(present))["state"] == "success"


@in_workshop
async def test_another_executor_stops_what_a_resident_has_now(shop: Workshop) -> None:
    await settled(shop)
    attempt = shop.attempt("present")
    shop.write("hold-present", "")
    await shop.start(attempt)
    await resident_of(shop, attempt)
    other = LocalExecutor("python", shop.objects)
    await other.stop([attempt], at_once=False)
    await other.close()
    assert (await shop.ended(attempt))["state"] == "stopped"


def test_a_signal_for_a_worker_that_moved_on_is_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the worker had taken its next attempt right after the look at its mark."""

    @in_workshop
    async def inside(shop: Workshop) -> None:
        resident = await settled(shop)
        past, present = shop.made[-1], shop.attempt("present")
        shop.write("hold-present", "")
        await shop.start(present)
        await resident_of(shop, present)
        honest, looks = processes.attempt_of, [str(past.key)]
        monkeypatch.setattr(
            local.processes, "attempt_of", lambda pid, mark: looks.pop() if looks else honest(pid, mark)
        )
        other = LocalExecutor("python", shop.objects)
        await other.stop([past], at_once=False)
        assert looks == []
        await other.close()
        assert is_alive(resident)
        (shop.root / "hold-present").unlink()
        assert (await shop.ended(present))["state"] == "success"

    inside(tmp_path)


@in_workshop
async def test_an_idle_worker_that_was_killed_is_replaced(shop: Workshop) -> None:
    resident = await settled(shop)
    os.kill(resident, signal.SIGKILL)
    attempt = shop.attempt("after")
    assert (await shop.run(attempt))["state"] == "success"
    assert await resident_of(shop, attempt) != resident


def test_an_idle_worker_that_does_not_answer_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @in_workshop
    async def inside(shop: Workshop) -> None:
        resident = await settled(shop)
        monkeypatch.setattr(worker_pool, "START_TIMEOUT_SECONDS", 0.2)
        os.kill(resident, signal.SIGSTOP)
        attempt = shop.attempt("after")
        assert (await shop.run(attempt))["state"] == "success"
        assert await resident_of(shop, attempt) != resident
        # When it wakes up it finds the gate held, and leaves quietly.
        os.kill(resident, signal.SIGCONT)
        async with asyncio.timeout(30):
            while is_alive(resident):
                await asyncio.sleep(0.01)
        assert shop.log(attempt) == b"after\n"

    inside(tmp_path)


@in_workshop
async def test_workers_end_when_their_executor_does(shop: Workshop) -> None:
    resident = await settled(shop)
    await shop.executor.close()
    async with asyncio.timeout(30):
        while is_alive(resident):
            await asyncio.sleep(0.01)


@in_workshop
async def test_a_file_that_was_changed_is_read_anew_and_its_warnings_are_told_each_time(shop: Workshop) -> None:
    resident = await settled(shop)
    for number in range(3):
        shop.write("tasks.py", f"def main():\n    return {number} is {number} or {number}\n")
        for name in ("once", "again"):
            attempt = shop.attempt(f"{name}{number}")
            assert (await shop.run(attempt))["output"] == {"inline": "true"}
            assert b"SyntaxWarning" in shop.log(attempt)
            await shop.vanished(attempt)
            assert await resident_of(shop, attempt) == resident


PROGRAM = """
echo $$ >> pids
sleep 600 &
echo $! >> pids
wait
"""


@in_workshop
async def test_what_one_task_installs_the_next_one_finds(shop: Workshop) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(shop.root / ".venv")], check=True)
    install = "\n\ndef install():\n    open(f'{packages}/new.pth', 'w').write(f'{os.getcwd()}/more')\n"
    find = "\n\ndef find():\n    import only_there\n    return only_there.answer\n"
    packages = "import sys\npackages = next(path for path in sys.path if path.endswith('site-packages'))"
    await settled(shop)
    shop.write("more/only_there.py", "answer = 42\n")
    shop.write("tasks.py", f"{TASKS}\n{packages}{install}{find}")
    assert (await shop.run(shop.attempt("install"), function="install"))["state"] == "success"
    status = await shop.run(shop.attempt("find"), function="find")
    assert status["output"] == {"inline": "42"}, status["failure"]


@in_workshop
async def test_a_command_ends_with_its_worker_and_so_does_what_it_started(shop: Workshop) -> None:
    resident = await settled(shop)
    attempt = shop.attempt("command")
    await shop.start(attempt, argv=["sh", "-c", PROGRAM])
    pids = await written_pids(shop)
    assert await resident_of(shop, attempt) == resident
    os.kill(resident, signal.SIGKILL)
    await gone(*pids, *in_session(resident))


@in_workshop
async def test_nothing_is_left_of_a_worker_that_had_commands(shop: Workshop) -> None:
    resident = await settled(shop)
    attempt = shop.attempt("command")
    assert (await shop.run(attempt, argv=["true"]))["state"] == "success"
    assert await resident_of(shop, attempt) == resident
    await shop.vanished(attempt)
    beside = in_session(resident)
    assert len(beside) == 2  # itself, and who would end what it left behind
    await shop.executor.close()
    await gone(*beside)


async def written_pids(shop: Workshop) -> list[int]:
    async with asyncio.timeout(30):
        while not (shop.root / "pids").exists() or len((shop.root / "pids").read_text().splitlines()) < 2:
            await asyncio.sleep(0.01)
    return [int(line) for line in (shop.root / "pids").read_text().splitlines()]


def in_session(leader: int) -> list[int]:
    return [process.pid for process in processes.tagged_processes(ATTEMPT_VARIABLE) if is_in(process.pid, leader)]


def is_in(pid: int, session: int) -> bool:
    try:
        return is_alive(pid) and os.getsid(pid) == session
    except ProcessLookupError:
        return False


async def gone(*pids: int) -> None:
    async with asyncio.timeout(30):
        while any(is_alive(pid) for pid in pids):
            await asyncio.sleep(0.01)
