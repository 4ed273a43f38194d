"""The process that functions are forked from, beside a worker that stays: it may die, and what it knows may change."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from tests.integration.workshop import Workshop, in_workshop, is_alive

TASKS = """
import os, time

def main():
    open('pid', 'w').write(f'{os.getpid()} {os.getppid()}')
    while os.path.exists('hold'):
        time.sleep(0.01)
    return os.getppid()
"""


def below(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def until(is_so: object) -> None:
    async with asyncio.timeout(30):
        while not is_so():  # type: ignore[operator]
            await asyncio.sleep(0.01)


async def resident_with_a_forker(shop: Workshop) -> int:
    shop.write("tasks.py", TASKS)
    for name in ("first", "second", "third"):
        assert (await shop.run(shop.attempt(name)))["state"] == "success"
        await shop.vanished(shop.made[-1])
    gate = shop.gates.of(shop.made[-1])
    assert gate is not None
    return int(gate["pid"])


@in_workshop
async def test_a_worker_that_stays_does_not_fork_functions_itself(shop: Workshop) -> None:
    resident = await resident_with_a_forker(shop)
    status = await shop.run(shop.attempt("fourth"))
    forker = int(status["output"]["inline"])
    assert forker != resident
    assert below(resident) == [forker]


@in_workshop
async def test_when_the_forker_is_killed_its_function_dies_and_the_worker_goes_on(shop: Workshop) -> None:
    resident = await resident_with_a_forker(shop)
    shop.write("hold", "")
    (shop.root / "pid").unlink()
    attempt = shop.attempt("held")
    await shop.start(attempt)
    pid, forker = map(int, (await shop.until_file(shop.root / "pid")).split())
    assert below(resident) == [forker]
    os.kill(forker, signal.SIGKILL)
    status = await shop.ended(attempt)
    assert (status["state"], status["failure"]["kind"]) == ("failed", "exit")
    assert "SIGKILL" in status["failure"]["message"]
    await until(lambda: not is_alive(pid))  # the system ends it a moment after its parent
    await shop.vanished(attempt)
    (shop.root / "hold").unlink()
    again = shop.attempt("again")
    assert (await shop.run(again))["state"] == "success"
    gate = shop.gates.of(again)
    assert gate is not None
    assert gate["pid"] == resident


@in_workshop
async def test_a_forker_that_was_stopped_keeps_no_task_from_its_end(shop: Workshop) -> None:
    await resident_with_a_forker(shop)
    shop.write("hold", "")
    (shop.root / "pid").unlink()
    attempt = shop.attempt("held")
    await shop.start(attempt, timeout=0.3, stop_grace_seconds=0.1)
    pid, forker = map(int, (await shop.until_file(shop.root / "pid")).split())
    os.kill(forker, signal.SIGSTOP)
    assert (await shop.ended(attempt))["state"] == "timed_out"
    assert not is_alive(pid)
    await shop.vanished(attempt)
    (shop.root / "hold").unlink()
    assert (await shop.run(shop.attempt("after")))["state"] == "success"


@in_workshop
async def test_what_is_too_large_for_a_pipe_reaches_its_function(shop: Workshop) -> None:
    await resident_with_a_forker(shop)
    shop.write("tasks.py", f"{TASKS}\ndef long(text):\n    return len(text)\n")
    for length in (50_000, 70_000, 200_000, 50_000):
        attempt = shop.attempt(f"long{len(shop.made)}")
        status = await shop.run(attempt, function="long", inputs={"text": {"value": "x" * length}})
        assert status["output"] == {"inline": str(length)}
        await shop.vanished(attempt)


@in_workshop
async def test_a_process_that_was_killed_while_it_waited_is_missed_by_nobody(shop: Workshop) -> None:
    resident = await resident_with_a_forker(shop)
    (forker,) = below(resident)
    await until(lambda: below(forker))
    (waiting,) = below(forker)
    os.kill(waiting, signal.SIGKILL)
    await until(lambda: not below(forker))
    assert (await shop.run(shop.attempt("next")))["state"] == "success"


@in_workshop
async def test_when_the_worker_is_killed_nothing_of_it_is_left(shop: Workshop) -> None:
    resident = await resident_with_a_forker(shop)
    (forker,) = below(resident)
    await until(lambda: below(forker))
    left = [forker, *below(forker)]
    os.kill(resident, signal.SIGKILL)
    await until(lambda: not any(is_alive(pid) for pid in left))


@in_workshop
async def test_a_file_that_hides_a_standard_module_is_told_also_if_it_came_later(shop: Workshop) -> None:
    await resident_with_a_forker(shop)
    shop.write("dataclasses.py", "raise RuntimeError('not the real one')\n")
    shop.write("tasks.py", "def main():\n    return 1 / 0\n")
    status = await shop.run(shop.attempt("later"))
    assert status["failure"]["message"] == "ZeroDivisionError: division by zero"


@in_workshop
async def test_a_change_of_the_tasks_file_reaches_the_next_function(shop: Workshop) -> None:
    await resident_with_a_forker(shop)
    for number in range(3):
        shop.write("tasks.py", f"def main():\n    return {number}\n")
        assert (await shop.run(shop.attempt(f"n{number}")))["output"] == {"inline": str(number)}


@in_workshop
async def test_what_a_task_says_about_python_holds_though_its_process_was_there_before(shop: Workshop) -> None:
    await resident_with_a_forker(shop)
    shop.write("lib/only_here.py", "answer = 42\n")
    shop.write("tasks.py", "def main():\n    import only_here\n    return only_here.answer\n")
    env = {"PYTHONPATH": {"value": str(shop.root / "lib")}}
    assert (await shop.run(shop.attempt("path"), env=env))["output"] == {"inline": "42"}
    status = await shop.run(shop.attempt("no-path"))
    assert "only_here" in status["failure"]["message"]
