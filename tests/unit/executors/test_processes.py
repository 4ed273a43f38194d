from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ork.executors import processes
from ork.executors.processes import ProcessEntry, family, identity, is_provably_dead, watch_death


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    yield process
    process.kill()
    process.wait()


def identity_of(process: subprocess.Popen[bytes]) -> str:
    host, boot, namespace, _, _ = identity().split("/")
    return f"{host}/{boot}/{namespace}/{process.pid}/{processes.process_start_time(process.pid)}"


def test_a_living_process_is_not_dead(sleeper: subprocess.Popen[bytes]) -> None:
    assert not is_provably_dead(identity())
    assert not is_provably_dead(identity_of(sleeper))


def test_a_process_is_dead_even_before_it_is_collected(sleeper: subprocess.Popen[bytes]) -> None:
    name = identity_of(sleeper)
    watched = watch_death(name)
    assert watched is not None
    sleeper.kill()
    assert select.select([watched], [], [], 30)[0]
    os.close(watched)
    assert is_provably_dead(name)
    assert watch_death(name) is None


def test_another_process_of_the_same_pid_does_not_count() -> None:
    host, boot, namespace, pid, start = identity().split("/")
    reused = f"{host}/{boot}/{namespace}/{pid}/{int(start) + 1}"
    assert is_provably_dead(reused)
    assert watch_death(reused) is None


def test_what_was_before_a_reboot_is_dead() -> None:
    host, _, namespace, pid, start = identity().split("/")
    assert is_provably_dead(f"{host}/another-boot/{namespace}/{pid}/{start}")


@pytest.mark.parametrize("name", ["", "nonsense", "a/b/c/d/e", "other-host/boot/1/1/1"])
def test_nothing_is_claimed_about_what_cannot_be_seen(name: str) -> None:
    assert not is_provably_dead(name)
    assert watch_death(name) is None


def test_another_namespace_is_not_judged() -> None:
    host, boot, _, _, _ = identity().split("/")
    assert not is_provably_dead(f"{host}/{boot}/1/999999/1")


def test_signals_reach_exactly_the_named_process(sleeper: subprocess.Popen[bytes]) -> None:
    start = processes.process_start_time(sleeper.pid)
    assert start is not None
    assert not processes.send_signal(sleeper.pid, start + 1, signal.SIGKILL)
    assert sleeper.poll() is None
    assert processes.send_signal(sleeper.pid, start, signal.SIGKILL)
    assert sleeper.wait() == -signal.SIGKILL
    assert not processes.send_signal(sleeper.pid, start, signal.SIGKILL)


def test_a_family_is_the_marked_and_all_below_them() -> None:
    table = [
        ProcessEntry(1, 0, 1, None),
        ProcessEntry(10, 1, 1, "a"),
        ProcessEntry(11, 10, 1, None),
        ProcessEntry(12, 11, 1, None),
        ProcessEntry(13, 1, 1, "a"),
        ProcessEntry(20, 1, 1, "b"),
        ProcessEntry(21, 20, 1, None),
    ]
    assert sorted(process.pid for process in family(table, "a")) == [10, 11, 12, 13]
    assert family(table, "c") == []


def test_marks_are_found_in_the_environment() -> None:
    mark = f"ORK_TEST_MARK_{os.getpid()}"
    with subprocess.Popen(["sleep", "600"], env={mark: "run/task/0/1"}) as process:
        found = [item for item in processes.tagged_processes(mark) if item.attempt == "run/task/0/1"]
        assert [item.pid for item in found] == [process.pid]
        assert processes.kill_family(lambda: family(processes.tagged_processes(mark), "run/task/0/1"))
        assert process.wait() == -signal.SIGKILL


def test_a_machine_of_the_same_name_is_told_from_another_boot_of_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    here = processes.machine()
    name = processes.hostname()
    pid, start = os.getpid(), processes.process_start_time(os.getpid())
    rest = f"{processes.pid_namespace()}/{pid}/{start}"
    monkeypatch.setattr(processes, "machine", lambda: f"{name}+0123456789ab")
    assert processes.is_provably_dead(f"{name}+0123456789ab/another-boot/{rest}")
    assert not processes.is_provably_dead(f"{name}+ffffffffffff/another-boot/{rest}")
    assert not processes.is_provably_dead(f"{name}/another-boot/{rest}")
    monkeypatch.setattr(processes, "machine", lambda: name)  # in a container without an id
    assert not processes.is_provably_dead(f"{name}/another-boot/{rest}")
    assert here.partition("+")[0] == name


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to ask as somebody else")
def test_a_process_of_another_user_is_hidden() -> None:
    us = os.getpid()
    asker = os.fork()
    if asker == 0:
        os.setuid(65534)
        os._exit(int(processes.is_hidden(us)))
    assert os.waitstatus_to_exitcode(os.waitpid(asker, 0)[1]) == 1
    assert not processes.is_hidden(us)
    assert not processes.is_hidden(2**22 - 1)
