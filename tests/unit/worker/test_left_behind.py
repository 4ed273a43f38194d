"""What is noticed of the processes and threads that a call started, and of what it took."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from ork.worker.pool import leak_check
from ork.worker.pool.leak_check import LIGHT_SECONDS, Effort, Starts


def a_thread() -> None:
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()


def a_process() -> None:
    subprocess.run(["/bin/true"], check=True)


def a_fork() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


@pytest.mark.parametrize("start", [a_thread, a_process, a_fork])
def test_whatever_is_started_is_noticed_even_when_it_is_gone(start: Callable[[], None]) -> None:
    starts = Starts()
    for _ in range(20):
        starts.any_since()
        start()
        assert starts.any_since()


def test_a_fork_notices_itself() -> None:
    starts = Starts()
    starts.any_since()
    child = os.fork()
    if child == 0:
        os._exit(not starts.any_since())
    assert os.waitpid(child, 0)[1] == 0


def test_where_nothing_is_started_nothing_is_looked_for() -> None:
    starts = Starts()
    assert starts.any_since()
    assert not all(starts.any_since() for _ in range(1000))  # others may start something


def test_where_the_system_does_not_tell_there_may_be_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leak_check, "_LAST_STARTED", "/proc/nothing")
    starts = Starts()
    assert all(starts.any_since() for _ in range(10))


def told_by(monkeypatch: pytest.MonkeyPatch, *taken: float) -> list[bool]:
    """What is said after tasks that took so much of a processor, each beyond what the first took."""
    spent = iter(sum((1.0, *taken)[: number + 1]) for number in range(len(taken) + 1))
    monkeypatch.setattr(leak_check, "time", SimpleNamespace(process_time=lambda: next(spent)))
    effort = Effort()
    assert effort.is_light()  # nothing is known of the others by the first
    return [effort.is_light() for _ in taken]


def test_tasks_that_cost_little_are_light_and_one_among_them_that_does_not_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    little, much = LIGHT_SECONDS / 2, 1.0
    assert told_by(monkeypatch, much, little, little, much, little, little) == [True] * 6


def test_tasks_that_cost_much_are_not_light_whatever_those_before_them_were(monkeypatch: pytest.MonkeyPatch) -> None:
    little, more = LIGHT_SECONDS / 2, LIGHT_SECONDS * 3
    told = told_by(monkeypatch, *[little] * 9, *[more] * 9, *[little] * 20)
    assert told[:9] == [True] * 9
    assert told[12:18] == [False] * 6
    assert told[-1]
