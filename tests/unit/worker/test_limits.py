"""Limits of local tasks where no control group can be made: of the process itself."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path
from typing import Any

import pytest

from ork.worker.supervise import limits
from ork.worker.supervise.status import Ending


def in_a_child(check: Any) -> int:
    """The exit code of a process that does this."""
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(check())
        finally:
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.fixture
def no_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOUNT", "/nowhere")


@pytest.mark.usefixtures("no_groups")
def test_without_a_control_group_memory_is_an_address_space_limit() -> None:
    assert limits.enforcement() == {"memory": "address space", "cpu": "affinity"}
    wanted = limits.ProcessLimits({"memory": 64 << 20, "cpu": None, "worker": "tiny"}, "r/t/0/1")

    def allocates() -> int:
        wanted.enter(executes=False)
        small = bytearray(8 << 20)
        try:
            bytearray(256 << 20)
        except MemoryError:
            return 7 if small else 1
        return 0

    assert in_a_child(allocates) == 7


@pytest.mark.usefixtures("no_groups")
def test_a_program_gets_the_limit_itself() -> None:
    wanted = limits.ProcessLimits({"memory": 512 << 20, "cpu": None, "worker": "tiny"}, "r/t/0/1")

    def limit() -> int:
        wanted.enter(executes=True)
        return int(resource.getrlimit(resource.RLIMIT_AS)[0] == 512 << 20)

    assert in_a_child(limit) == 1


@pytest.mark.usefixtures("no_groups")
def test_without_a_control_group_processes_are_bound_to_as_many_processors() -> None:
    wanted = limits.ProcessLimits({"memory": None, "cpu": 0.5, "worker": "tiny"}, "r/t/0/1")

    def processors() -> int:
        wanted.enter(executes=False)
        return len(os.sched_getaffinity(0))

    assert in_a_child(processors) == 1


@pytest.mark.usefixtures("no_groups")
def test_a_memory_error_names_the_limit() -> None:
    wanted = limits.ProcessLimits({"memory": 64 << 20, "cpu": None, "worker": "tiny"}, "r/t/0/1")
    failure = {"kind": "exception", "message": "MemoryError", "detail": {"type": "MemoryError"}}
    told = wanted.explain(Ending("failed", exit_code=1, failure=failure), None).failure
    assert told is not None
    assert "the memory limit of 64Mi in worker config `tiny`" in told["message"]
    wanted = limits.ProcessLimits({"memory": 64 << 20, "cpu": None, "worker": None}, "r/t/0/1")
    failure = {"kind": "exception", "message": "MemoryError", "detail": {"type": "MemoryError"}}
    told = wanted.explain(Ending("failed", exit_code=1, failure=failure), None).failure
    assert told is not None
    assert "in the task's `resources`" in told["message"]


def test_groups_that_a_killed_worker_left_are_removed_when_they_are_old(tmp_path: Path) -> None:
    for name, age in (("ork-old", 7200), ("ork-new", 0), ("other", 7200)):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    limits._remove_old(str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ork-new", "other"]
