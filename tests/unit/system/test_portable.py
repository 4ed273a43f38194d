"""The portable functions, on this machine: they find and watch the same processes as those of Linux."""

from __future__ import annotations

import calendar
import inspect
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType

import pytest

from ork.executors.processes import Leader, ProcessEntry, family
from ork.system import linux, portable

TREE = Path(__file__).resolve().parents[3]
BOOTSTRAP = "/anywhere/ork/worker/bootstrap.py"
SLEEP = "import sys, time; print(flush=True); time.sleep(600)"


@contextmanager
def started(*argv: str, **options: bool) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", *argv], stdout=subprocess.PIPE, **options)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.wait()


def is_readable(descriptor: int, seconds: float) -> bool:
    return bool(select.select([descriptor], [], [], seconds)[0])


def test_both_have_the_same_functions_and_constants() -> None:
    assert shape(portable) == {
        name: each for name, each in shape(linux).items() if name not in ("disk_of", "prctl")
    } | {"LOOK_SECONDS": float}


def shape(module: object) -> dict[str, object]:
    """Public names, with the parameters of functions."""
    return {
        name: [(each.name, each.annotation) for each in inspect.signature(value).parameters.values()]
        if isinstance(value, FunctionType)
        else type(value)
        for name, value in vars(module).items()
        if not name.startswith("_") and not inspect.ismodule(value) and name not in ("annotations", "getppid", "TYPE_CHECKING")
    }  # fmt: skip


def test_a_start_time_is_that_of_the_process() -> None:
    began = time.time()
    with started(SLEEP) as process:
        found = portable.start_time(process.pid)
        assert found is not None
        assert -2 <= found - began <= time.time() - began + 2
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert portable.start_time(process.pid) is None, "a zombie counts as gone"
    assert portable.start_time(process.pid) is None


@pytest.mark.parametrize("day", [(1970, 1, 1), (2000, 2, 29), (2026, 11, 18), (2100, 3, 1), (2024, 12, 31)])
def test_days_are_counted_as_the_calendar_does(day: tuple[int, int, int]) -> None:
    assert portable._days(*day) * 86_400 == calendar.timegm((*day, 0, 0, 0))


def test_the_end_of_a_child_is_noticed() -> None:
    with started(SLEEP) as process:
        watched = portable.watch_end(process.pid, portable.start_time(process.pid) or 0)
        assert watched is not None
        assert not is_readable(watched, 0)
        process.kill()
        assert is_readable(watched, 60)
        os.close(watched)


def test_the_end_of_another_process_is_noticed() -> None:
    grandchild = (
        "import subprocess, sys; p = subprocess.Popen(['sleep', '600']); print(p.pid, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", grandchild], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        watched = portable.watch_end(pid, portable.start_time(pid) or 0)
        assert watched is not None
        os.kill(pid, signal.SIGKILL)
        parent.communicate("")  # now the zombie is collected
        assert is_readable(watched, 60)
        os.close(watched)


def test_a_process_that_started_at_another_time_is_not_meant() -> None:
    with started(SLEEP) as process:
        start = portable.start_time(process.pid) or 0
        assert portable.watch_end(process.pid, start - 10) is None
        assert not portable.send_signal(process.pid, start - 10, signal.SIGKILL)
        assert process.poll() is None
        assert portable.send_signal(process.pid, start, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL


def test_a_worker_is_known_by_its_command_line_and_its_programs_by_its_session() -> None:
    script = "import subprocess; subprocess.Popen(['sleep', '600']); " + SLEEP
    with started(
        script, "--", BOOTSTRAP, "file:/a folder/objects", "7f3k/load.0.1", "0", start_new_session=True
    ) as worker:
        assert portable.attempt_of(worker.pid, "ORK_ATTEMPT_ID") == "7f3k/load.0.1"
        table = [ProcessEntry(*each) for each in portable.tagged_processes("ORK_ATTEMPT_ID")]
        found = family(table, "7f3k/load.0.1")
        sleeper = next(each for each in found if each.pid != worker.pid)
        assert {each.pid for each in found} == {worker.pid, sleeper.pid}
        assert set(portable.members_of(worker.pid)) == {worker.pid, sleeper.pid}
        leader = Leader(worker.pid, portable.start_time(worker.pid) or 0)
        worker.kill()
        worker.wait()
        # The program has no tag of its own; its session is still that of the worker.
        table = [ProcessEntry(*each) for each in portable.tagged_processes("ORK_ATTEMPT_ID")]
        assert family(table, "7f3k/load.0.1") == []
        assert [each.pid for each in family(table, "7f3k/load.0.1", leader)] == [sleeper.pid]
        os.kill(sleeper.pid, signal.SIGKILL)


def test_a_session_of_a_pid_that_is_used_again_is_not_meant() -> None:
    table = [ProcessEntry(50, 1, 9_000, None, 50), ProcessEntry(51, 50, 9_001, None, 50)]
    assert family(table, "x", Leader(50, 100)) == []
    assert [each.pid for each in family(table, "x", Leader(50, 9_000))] == [50, 51]


def test_descendants_are_children_of_children_and_the_rest_of_the_session() -> None:
    script = """
import os, subprocess, sys, time
sys.path.insert(0, sys.argv[1])
from ork.system import portable
os.setsid()
subprocess.run(["sh", "-c", "sleep 600 &"])  # an orphan in this session
child = subprocess.Popen(["sh", "-c", "sleep 600; true"], start_new_session=True)
names = lambda: sorted(open(f"/proc/{pid}/comm").read().strip() for pid in portable.descendants(b""))
while len(found := names()) < 3: time.sleep(0.05)
print(found, portable.descendants(b"").count(os.getpid()), flush=True)
for pid in portable.descendants(b""): os.kill(pid, 9)
"""
    done = subprocess.run([sys.executable, "-c", script, str(TREE / "src")], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "['sh', 'sleep', 'sleep'] 0", done.stderr


def test_a_socket_in_a_deep_folder_has_a_short_address(tmp_path: Path) -> None:
    import socket

    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        portable.with_short_path(str(deep), lambda short: made.bind(f"{short}/a"))
    assert (deep / "a").is_socket()


def test_a_link_to_another_folder_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portable, "_temporary_folder", lambda: str(tmp_path))
    portable.with_short_path("/one", lambda _short: None)
    (link,) = tmp_path.iterdir()
    link.unlink()
    link.symlink_to("/two")
    with pytest.raises(OSError, match="is not the link"):
        portable.with_short_path("/one", lambda _short: None)


def test_an_unnamed_file_is_inherited_and_has_no_name() -> None:
    descriptor = portable.unnamed_file("spec")
    os.write(descriptor, b"text")
    assert os.fstat(descriptor).st_nlink == 0
    script = f"import os; print(os.pread({descriptor}, 9, 0).decode())"
    done = subprocess.run([sys.executable, "-c", script], close_fds=False, capture_output=True, text=True)
    os.close(descriptor)
    assert done.stdout == "text\n"


def test_the_boot_and_the_machine_have_the_same_names_as_for_linux() -> None:
    assert portable.boot_id() == linux.boot_id()
    assert portable.machine_id() == linux.machine_id()
