"""Attempts that are over in a moment: nothing is watched then, and so nothing may be missed."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from ork.executors import worker_pool
from ork.model.task import Attempt
from tests.integration.workshop import Workshop, in_workshop, is_alive

TASKS = """
import os, subprocess, sys, time

def main():
    return 1

def says():
    print("hello")

def says_much():
    for number in range(20_000):
        print(f"line {number:6}")

def returns_much():
    return "x" * 60_000

def fails():
    raise ValueError("so it is")

def blocks():
    before = [os.get_blocking(1), os.get_blocking(2)]
    os.set_blocking(1, False)
    return before

def is_called_once():
    global is_called_once
    del is_called_once
    return (1, 2)

def leaves():
    os._exit(0)

def is_killed():
    print("last words", flush=True)
    os.kill(os.getpid(), 9)

def leaves_a_process():
    child = subprocess.Popen(["sh", "-c", "trap '' TERM; echo $$ > left; while :; do sleep 0.01; done"])
    while not os.path.exists("left") or not open("left").read():
        time.sleep(0.001)

def leaves_a_word():
    subprocess.Popen(["sh", "-c", "sleep 0.2; echo and one more"], start_new_session=True)
    print("one")
"""


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "START_TIMEOUT_SECONDS", 60.0)


async def settled(shop: Workshop) -> None:
    shop.write("tasks.py", TASKS)
    for name in ("first", "second", "third"):
        assert (await shop.run(shop.attempt(name)))["state"] == "success"
        await shop.vanished(shop.made[-1])


def worker_of(shop: Workshop, attempt: Attempt) -> int:
    gate = shop.gates.of(attempt)
    assert gate is not None
    return int(gate["pid"])


async def performed(shop: Workshop, name: str, **spec: Any) -> tuple[dict[str, Any], bytes]:
    """Its end, and its log. Another one follows that says nothing: what is left of it is not to be found there."""
    attempt = shop.attempt(name)
    status = await shop.run(attempt, **spec)
    await shop.vanished(attempt)
    after = shop.attempt(f"after-{name}")
    silent = {"argv": ["true"]} if "argv" in spec else {}
    assert (await shop.run(after, **silent))["state"] == "success"
    await shop.vanished(after)
    assert not shop.log_path(after).exists()
    return status, shop.log(attempt)


@in_workshop
async def test_what_functions_say_and_return_is_there_to_the_last_letter(shop: Workshop) -> None:
    await settled(shop)
    status, log = await performed(shop, "says", function="says")
    assert (status["state"], log) == ("success", b"hello\n")
    status, log = await performed(shop, "much", function="says_much")
    assert (status["state"], len(log.splitlines())) == ("success", 20_000)
    status, log = await performed(shop, "returns", function="returns_much")
    assert (len(status["output"]["inline"]), log) == (60_002, b"")
    # A worker that is still busy with the end of the attempt before is not waited for: another one is made.
    assert worker_of(shop, shop.made[-1]) in {worker_of(shop, attempt) for attempt in shop.made[:-1]}


@in_workshop
async def test_functions_that_end_badly_are_told_so(shop: Workshop) -> None:
    await settled(shop)
    status, log = await performed(shop, "fails", function="fails")
    assert status["failure"]["message"] == "ValueError: so it is"
    assert b"ValueError: so it is" in log
    status, log = await performed(shop, "leaves", function="leaves")
    assert status["failure"]["message"] == "the process exited before the function returned"
    status, log = await performed(shop, "killed", function="is_killed")
    assert "SIGKILL" in status["failure"]["message"]
    assert status["failure"]["detail"]["tail"] == ["last words"]
    assert log == b"last words\n"


@in_workshop
async def test_what_a_function_leaves_is_ended_and_heard_to_its_end(shop: Workshop) -> None:
    await settled(shop)
    status, _ = await performed(shop, "process", function="leaves_a_process")
    assert status["state"] == "success"
    assert not is_alive(int((shop.root / "left").read_text()))
    status, log = await performed(shop, "word", function="leaves_a_word")
    assert (status["state"], log.splitlines()[0]) == ("success", b"one")


@in_workshop
async def test_what_a_task_does_to_its_streams_is_not_felt_by_the_next(shop: Workshop) -> None:
    await settled(shop)
    blocks = "import os; before = [os.get_blocking(1), os.get_blocking(2)]; os.set_blocking(1, False); print(before)"
    for turn in range(3):
        status, _ = await performed(shop, f"function{turn}", function="blocks")
        assert status["output"] == {"inline": "[true,true]"}
    for turn in range(2):
        _, log = await performed(shop, f"command{turn}", argv=[sys.executable, "-c", blocks])
        assert log == b"[True, True]\n"
        await performed(shop, f"silent{turn}", argv=["dd", "if=/dev/null", "oflag=nonblock", "status=none"])


@in_workshop
async def test_a_function_that_has_been_called_is_not_looked_for_again(shop: Workshop) -> None:
    await settled(shop)
    status, _ = await performed(shop, "once", function="is_called_once")
    assert (status["state"], status["output"]) == ("success", {"inline": "[1,2]"})


@in_workshop
async def test_commands_say_what_they_say_one_after_the_other(shop: Workshop) -> None:
    await settled(shop)
    for name, script, log_of_it in (
        ("silent", "true", b""),
        ("says", "echo hello", b"hello\n"),
        ("complains", "echo oh >&2", b"oh\n"),
        ("again", "true", b""),
    ):
        status, log = await performed(shop, name, argv=["sh", "-c", script])
        assert (status["state"], log) == ("success", log_of_it)
    status, log = await performed(shop, "fails", argv=["sh", "-c", "echo no; exit 3"])
    assert (status["exit_code"], status["failure"]["detail"]["tail"], log) == (3, ["no"], b"no\n")
    status, _ = await performed(shop, "writes", argv=["sh", "-c", "echo '[1, 2]' > $ORK_OUTPUT_FILE"])
    assert status["output"] == {"inline": "[1,2]"}
    status, log = await performed(shop, "leaves", argv=["sh", "-c", "(trap '' TERM; sleep 60; echo never) &"])
    assert (status["state"], log) == ("success", b"")


@in_workshop
async def test_a_timeout_may_be_shorter_than_a_moment(shop: Workshop) -> None:
    await settled(shop)
    for name, spec in (("command", {"argv": ["sleep", "60"]}), ("function", {"function": "sleeps"})):
        shop.write("tasks.py", TASKS + "\ndef sleeps():\n    time.sleep(60)\n")
        status, _ = await performed(shop, name, **spec, timeout=0.001, stop_grace_seconds=0.1)
        assert status["state"] == "timed_out"


@in_workshop
async def test_a_worker_has_no_more_open_after_many_than_after_a_few(shop: Workshop) -> None:
    await settled(shop)
    opened: dict[int, list[int]] = {}  # of each worker
    turn = 0
    while max(map(len, opened.values()), default=0) < 3:
        for name, spec in (("f", {"function": "says"}), ("c", {"argv": ["true"]}), ("d", {"argv": ["echo", "hello"]})):
            await shop.run(shop.attempt(f"{name}{turn}"), **spec)
            await shop.vanished(shop.made[-1])
        await asyncio.sleep(0.05)
        worker, turn = worker_of(shop, shop.made[-1]), turn + 1
        opened.setdefault(worker, []).append(len(os.listdir(Path(f"/proc/{worker}/fd"))))
        assert turn < 20, opened
    assert [numbers[2] - numbers[1] for numbers in opened.values() if len(numbers) == 3] == [0]
