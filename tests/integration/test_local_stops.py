"""Attempts that are stopped, timed out or left alone: whatever happens, nothing of them stays behind."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from ork.executors import processes
from ork.executors.executor import Presence
from ork.executors.local_worker import ATTEMPT_VARIABLE
from ork.model.task import Attempt
from ork.model.workflow import Isolation
from ork.objects import layout
from ork.objects.documents import sign
from ork.scheduler.statuses import ask_to_stop
from tests.integration.workshop import Workshop, in_every_workshop, is_alive, run_in_workshop

# Starts a grandchild in a session of its own that ignores SIGTERM, tells its pid, and waits.
STUBBORN_TREE = """
import os, signal, subprocess, sys, time
child = subprocess.Popen(
    [sys.executable, "-c", "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"],
    start_new_session=True, stdout=subprocess.PIPE)
child.stdout.readline()
with open("pid.tmp", "w") as file:
    file.write(f"{child.pid} {os.getpid()}")
os.rename("pid.tmp", "pid")
time.sleep(600)
"""


@in_every_workshop
async def test_a_timeout_ends_the_whole_tree(shop: Workshop) -> None:
    shop.write("tree.py", STUBBORN_TREE)
    status = await shop.run(argv=[sys.executable, "tree.py"], timeout=2.5, stop_grace_seconds=0.2)
    grandchild, child = map(int, (shop.root / "pid").read_text().split())
    assert (status["state"], status["failure"]["kind"]) == ("timed_out", "timeout")
    assert status["failure"]["message"] == "timed out after 2.5s"
    assert not is_alive(grandchild)
    assert not is_alive(child)


@in_every_workshop
async def test_stop_ends_the_whole_tree_gently_then_firmly(shop: Workshop) -> None:
    shop.write("tree.py", STUBBORN_TREE)
    attempt = shop.attempt()
    await shop.start(attempt, argv=[sys.executable, "tree.py"], stop_grace_seconds=0.2)
    grandchild, _ = map(int, (await shop.until_file(shop.root / "pid")).split())
    await shop.executor.stop([attempt], at_once=False)
    status = await shop.ended(attempt)
    assert (status["state"], status["failure"]["kind"]) == ("stopped", "cancelled")
    assert not is_alive(grandchild)
    await shop.vanished(attempt)


@in_every_workshop
async def test_stopping_a_worker_on_its_way_leaves_no_started_task_without_a_word(shop: Workshop) -> None:
    shop.write("tasks.py", "import time\n\ndef main():\n    time.sleep(600)\n")
    for number in range(12):
        attempt = shop.attempt(f"t{number}")
        await shop.start(attempt)
        await asyncio.sleep(number * 0.002)  # somewhere between its first instruction and its task
        await shop.executor.stop([attempt], at_once=False)
        await shop.vanished(attempt)
        status = shop.status(attempt)
        assert (shop.gates.of(attempt) is None) == (status is None)
        assert status is None or status["state"] == "stopped"


def test_a_worker_that_wins_its_gate_while_it_is_looked_for_is_stopped(tmp_path: Path) -> None:
    async def stop(shop: Workshop) -> None:
        shop.write("tasks.py", "import time\n\ndef main():\n    time.sleep(600)\n")
        attempt = shop.attempt()
        await shop.start(attempt)
        await shop.running(attempt)
        look, looks = shop.executor._shim, iter([None])  # at the first look the gate is not won yet
        shop.executor._shim = lambda *args, **how: next(looks, look(*args, **how))  # type: ignore[method-assign]
        await shop.executor.stop([attempt], at_once=False)
        assert (await shop.ended(attempt))["state"] == "stopped"

    run_in_workshop(stop, tmp_path, Isolation.INTERPRETER)


@in_every_workshop
async def test_a_stopped_task_may_use_its_grace(shop: Workshop) -> None:
    shop.write("slow.sh", "trap 'echo bye; exit 0' TERM; echo up > up; while :; do sleep 0.05; done\n")
    attempt = shop.attempt()
    await shop.start(attempt, argv=["./slow.sh"])
    await shop.until_file(shop.root / "up")
    await shop.executor.stop([attempt], at_once=False)
    assert (await shop.ended(attempt))["state"] == "stopped"
    assert b"bye" in shop.log(attempt)


@in_every_workshop
async def test_a_stop_document_is_as_good_as_a_signal(shop: Workshop) -> None:
    shop.write("tasks.py", "import time\n\ndef main():\n    time.sleep(600)\n")
    attempt = shop.attempt()
    await shop.start(attempt)
    await shop.running(attempt)
    stop = {"v": 1, "attempt": str(attempt.key), "why": "cancelled by ann", "at_once": True}
    shop.objects.put(layout.stop_key(layout.attempt_stem(attempt.key)), sign(stop, attempt.token_hash))
    status = await shop.ended(attempt)
    assert (status["state"], status["failure"]["message"]) == ("stopped", "stopped: cancelled by ann")


@in_every_workshop
async def test_a_forged_stop_document_stops_nothing(shop: Workshop) -> None:
    shop.write(
        "tasks.py", "import os, time\n\ndef main():\n    while not os.path.exists('go'):\n        time.sleep(0.01)\n"
    )
    attempt = shop.attempt()
    await shop.start(attempt)
    first = await shop.running(attempt)
    stop = {"v": 1, "attempt": str(attempt.key), "why": "mischief", "at_once": True}
    shop.objects.put(layout.stop_key(layout.attempt_stem(attempt.key)), sign(stop, "00" * 32))
    while (shop.status(attempt) or first)["seq"] < first["seq"] + 2:
        await asyncio.sleep(0.05)
    shop.write("go", "")
    assert (await shop.ended(attempt))["state"] == "success"


@in_every_workshop
async def test_what_a_finished_task_leaves_behind_is_ended(shop: Workshop) -> None:
    shop.write("daemon.sh", "setsid sleep 600 & echo $! > pid\n")
    status = await shop.run(argv=["./daemon.sh"])
    assert status["state"] == "success"
    assert not is_alive(int((shop.root / "pid").read_text()))


@in_every_workshop
async def test_orphans_of_a_killed_shim_are_told_from_a_running_task_until_they_are_ended(shop: Workshop) -> None:
    shop.write("tree.py", STUBBORN_TREE)
    attempt = shop.attempt()
    await shop.start(attempt, argv=[sys.executable, "tree.py"])
    grandchild, child = map(int, (await shop.until_file(shop.root / "pid")).split())
    gate = shop.gates.of(attempt)
    assert gate is not None
    os.kill(gate["pid"], signal.SIGKILL)
    while is_alive(child):  # it dies with its shim
        await asyncio.sleep(0.01)
    assert await shop.executor.find([attempt]) == [Presence.ORPHANED]
    await shop.executor.stop([attempt], at_once=True)
    await shop.vanished(attempt)
    assert not is_alive(grandchild)
    assert (shop.status(attempt) or {"state": "running"})["state"] == "running"


@in_every_workshop
async def test_news_comes_when_a_shim_dies_without_a_word(shop: Workshop) -> None:
    shop.write("tasks.py", "import time\n\ndef main():\n    time.sleep(600)\n")
    attempt = shop.attempt()
    await shop.start(attempt)
    await shop.running(attempt)
    while not shop.news.empty():
        shop.news.get_nowait()
    gate = shop.gates.of(attempt)
    assert gate is not None
    os.kill(gate["pid"], signal.SIGKILL)
    async with asyncio.timeout(30):
        assert await shop.news.get() == attempt.key
    await shop.vanished(attempt)
    assert await shop.executor.find([attempt]) == [Presence.GONE]


@in_every_workshop
async def test_stopping_at_once_kills_shim_and_tree(shop: Workshop) -> None:
    shop.write("tree.py", STUBBORN_TREE)
    attempt = shop.attempt()
    await shop.start(attempt, argv=[sys.executable, "tree.py"])
    grandchild, child = map(int, (await shop.until_file(shop.root / "pid")).split())
    await shop.executor.stop([attempt], at_once=True)
    await shop.vanished(attempt)
    assert not is_alive(grandchild)
    assert not is_alive(child)


@in_every_workshop
async def test_a_worker_that_cannot_write_its_heartbeat_stops_its_task(shop: Workshop) -> None:
    shop.write(
        "tasks.py",
        "import os, time\n\ndef main():\n    open('pid', 'w').write(str(os.getpid()))\n    time.sleep(600)\n",
    )
    attempt = shop.attempt()
    await shop.start(attempt, heartbeat_seconds=0.05, fence_seconds=0.5)
    pid = int(await shop.until_file(shop.root / "pid"))
    folder = shop.folder(attempt)
    away = folder.rename(folder.with_name("away"))
    folder.write_text("in its place, so that it cannot be made again")
    while is_alive(pid):
        await asyncio.sleep(0.02)
    folder.unlink()
    for beat in away.glob("*.status.json"):
        beat.unlink()
    folder.mkdir(exist_ok=True)  # unless its worker has made it again
    for document in away.iterdir():
        document.rename(folder / document.name)
    status = await shop.ended(attempt)
    assert (status["state"], status["failure"]["kind"]) == ("failed", "lost")


def frozen(attempt: Attempt) -> list[processes.ProcessEntry]:
    """Halts the worker and its task together, as a machine that stands still does."""
    family = processes.family(processes.tagged_processes(ATTEMPT_VARIABLE), str(attempt.key))
    for process in family:
        processes.send_signal(process.pid, process.start_time, signal.SIGSTOP)
    return family


def woken(family: list[processes.ProcessEntry]) -> None:
    for process in family:
        processes.send_signal(process.pid, process.start_time, signal.SIGCONT)


FROZEN_TASK = (
    "import os, signal, time\n\ndef main():\n    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "    open('pid', 'w').write(str(os.getpid()))\n    while not os.path.exists('go on'):\n        time.sleep(0.01)\n"
)


@in_every_workshop
async def test_a_worker_that_wakes_up_after_it_was_given_up_ends_its_task_at_once(shop: Workshop) -> None:
    shop.write("tasks.py", FROZEN_TASK)
    attempt = shop.attempt()
    await shop.start(attempt, heartbeat_seconds=0.05, fence_seconds=0.3, stop_grace_seconds=600)
    pid = int(await shop.until_file(shop.root / "pid"))
    await shop.running(attempt)
    family = frozen(attempt)
    ask_to_stop(shop.objects, attempt, "stale")
    await asyncio.sleep(0.5)
    woken(family)
    status = await shop.ended(attempt)
    assert (status["state"], is_alive(pid)) == ("stopped", False)


@in_every_workshop
async def test_a_worker_that_wakes_up_and_was_not_given_up_goes_on(shop: Workshop) -> None:
    shop.write("tasks.py", FROZEN_TASK)
    attempt = shop.attempt()
    await shop.start(attempt, heartbeat_seconds=0.05, fence_seconds=0.3)
    await shop.until_file(shop.root / "pid")
    before = await shop.running(attempt)
    family = frozen(attempt)
    await asyncio.sleep(0.5)
    woken(family)
    while (shop.status(attempt) or before)["seq"] <= before["seq"] + 1:
        await asyncio.sleep(0.02)
    shop.write("go on", "")
    assert (await shop.ended(attempt))["state"] == "success"
