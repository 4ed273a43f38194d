"""What the engine must show to a person, end to end, with the real program."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import serving
from tests.acceptance.waiting import wait_until

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]
Ork = Callable[..., "subprocess.CompletedProcess[str]"]
Start = Callable[..., "subprocess.Popen[str]"]

# Silence is noticed within seconds instead of a minute.
IMPATIENT = {"ORK_HEARTBEAT_SECONDS": "0.5", "ORK_STALE_SECONDS": "30", "ORK_STOP_GRACE_SECONDS": "1"}


@pytest.fixture
def ork(tmp_path: Path, ork_cli: OrkCli) -> Ork:
    def call(*args: str) -> subprocess.CompletedProcess[str]:
        return ork_cli(*args, cwd=tmp_path, env=IMPATIENT)

    return call


@pytest.fixture
def start(tmp_path: Path, plain_environment: dict[str, str]) -> Iterator[Start]:
    """Starts `ork …` in the background; what still runs at the end is ended, and so is what it started."""
    started: list[subprocess.Popen[str]] = []

    def begin(*args: str) -> subprocess.Popen[str]:
        started.append(serving.start_ork(tmp_path, {**plain_environment, **IMPATIENT}, *args))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.communicate()
    for pid in processes_in(tmp_path):
        os.kill(pid, signal.SIGKILL)


def processes_in(folder: Path) -> list[int]:
    """Living processes whose working folder this is: the tasks, and whatever they started."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                if os.readlink(entry / "cwd") == str(folder) and state not in "ZX":
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)


def shown(ork: Ork, run: str = "@last") -> dict[str, Any]:
    run_shape: dict[str, Any] = json.loads(ork("show", run, "--json").stdout)
    return run_shape


def states(run: dict[str, Any]) -> dict[str, str]:
    return {task["name"]: task["status"] for task in run["tasks"]}


# ── the first run ────────────────────────────────────────────────────────────────────────────────

MY_ETL = """\
name: my_etl
tasks:
  extract: {file: tasks/extract.py}
  transform: {file: tasks/transform.py, depends_on: [extract]}
  load: {file: tasks/load.py, depends_on: [transform]}
"""


def test_my_etl_validates_and_runs_in_order_in_an_empty_folder(tmp_path: Path, ork: Ork) -> None:
    record = "    open('order', 'a').write(__name__ + ' ')\n"
    write(
        tmp_path,
        {
            "my_etl.yaml": MY_ETL,
            "tasks/extract.py": f"def main():\n{record}    return [3, 1, 2]\n",
            "tasks/transform.py": f"def main(extract):\n{record}    return sorted(extract)\n",
            "tasks/load.py": f"def main(transform):\n{record}    return {{'rows': transform}}\n",
        },
    )
    checked = ork("validate", "my_etl.yaml")
    assert (checked.returncode, (tmp_path / ".ork").exists()) == (0, False)
    done = ork("run", "my_etl.yaml")
    assert done.returncode == 0, done.stderr
    assert [word.rpartition(".")[2] for word in (tmp_path / "order").read_text().split()] == [
        "extract",
        "transform",
        "load",
    ]
    assert json.loads(ork("output", "@last", "load").stdout) == {"rows": [1, 2, 3]}


# ── failures ─────────────────────────────────────────────────────────────────────────────────────

FAILING = """\
name: failing
tasks:
  bad: {command: [sh, -c, 'echo x >> tries; echo no such table >&2; exit 1'], retries: 2, retry_delay: 50ms}
  below: {command: 'true', depends_on: [bad]}
  far: {command: 'true', depends_on: [below]}
  apart: {command: [sh, -c, 'sleep 0.5; touch apart']}
  after: {command: [touch, after], depends_on: [apart]}
"""


def test_a_task_that_fails_is_tried_three_times_and_the_cause_is_plain(tmp_path: Path, ork: Ork) -> None:
    write(tmp_path, {"workflow.yaml": FAILING})
    done = ork("run")
    assert done.returncode == 1
    assert (tmp_path / "tries").read_text() == "x\n" * 3
    assert (tmp_path / "after").exists()
    run = shown(ork)
    assert states(run) == {
        "bad": "failed",
        "below": "skipped",
        "far": "skipped",
        "apart": "success",
        "after": "success",
    }
    tasks = {task["name"]: task for task in run["tasks"]}
    assert [attempt["exit_code"] for attempt in tasks["bad"]["attempts"]] == [1, 1, 1]
    assert {tasks[name]["reason"] for name in ("below", "far")} == {"bad failed"}
    for text in (done.stderr, ork("show", "@last").stdout):
        assert "exit code 1   attempt 3 of 3" in text
        assert "no such table" in text
        assert "⊘ far          skipped: bad failed" in text
    why = ork("why", "@last", "far").stdout
    assert "skipped: bad failed; the root cause is `bad`: exit code 1" in why


def test_a_failing_function_needs_at_most_fifteen_lines_however_deep_it_failed(tmp_path: Path, ork: Ork) -> None:
    calls = "".join(f"def f{n}(x):\n    return f{n + 1}(x)\n" for n in range(30))
    write(
        tmp_path,
        {
            "tasks.py": f"{calls}def f30(x):\n    print('noise\\n' * 50)\n    return 1 + {{'a': x}}['b']\n"
            "def main(text='x' * 500):\n    return f0(text)\n",
            "workflow.yaml": "name: deep\ntasks:\n  a: {file: tasks.py}\n  b: {command: 'true', depends_on: [a]}\n",
        },
    )
    done = ork("run")
    assert done.returncode == 1
    printed = (done.stderr + done.stdout).splitlines()
    assert len(printed) <= 15, done.stderr
    assert max(map(len, printed)) < 250
    assert "KeyError: 'b'" in done.stderr
    assert "tasks.py:63 in f30" in done.stderr
    assert "63 |     return 1 + {'a': x}['b']" in done.stderr
    assert "^^^^^" in done.stderr
    assert "ork/worker" not in done.stderr


# ── timeouts ─────────────────────────────────────────────────────────────────────────────────────

# A grandchild in a session of its own, deaf to SIGTERM, and a child beside it.
TREE = """\
import os, signal, subprocess, sys, time
open('tries', 'a').write('x')
deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); open('deaf', 'w').close(); time.sleep(600)"
child = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', sys.argv[1]], start_new_session=True); time.sleep(600)"
subprocess.Popen([sys.executable, "-c", child, deaf])
time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("more", "tries"), [("", 1), (", retry_on: [timeout]", 2)])
def test_a_timed_out_task_leaves_nothing_and_is_tried_again_only_when_told_so(
    tmp_path: Path, ork: Ork, more: str, tries: int
) -> None:
    task = f"{{command: [{sys.executable}, tree.py], timeout: 1.5, retries: 1, retry_delay: 0{more}}}"
    write(tmp_path, {"tree.py": TREE, "workflow.yaml": f"name: t\ntasks:\n  a: {task}\n"})
    done = ork("run")
    assert done.returncode == 1
    assert (tmp_path / "deaf").exists()
    assert processes_in(tmp_path) == []
    assert (tmp_path / "tries").read_text() == "x" * tries
    (task_shape,) = shown(ork)["tasks"]
    assert [attempt["error"] for attempt in task_shape["attempts"]] == ["timed out after 1.5s"] * tries
    assert "timed out after 1.5s" in done.stderr


# ── cancel ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_a_cancelled_run_leaves_no_process_and_final_states_and_is_cancelled_once(
    tmp_path: Path, ork: Ork, start: Start
) -> None:
    write(
        tmp_path,
        {
            "tree.py": TREE,
            "workflow.yaml": f"name: c\ntasks:\n  a: {{command: [{sys.executable}, tree.py]}}\n"
            "  quick: {command: 'true'}\n  b: {command: 'true', depends_on: [a]}\n",
        },
    )
    scheduler = start("scheduler")
    assert scheduler.stdout is not None
    scheduler.stdout.readline()
    watching = start("run")
    wait_until(lambda: (tmp_path / "deaf").exists() and states(shown(ork))["quick"] == "success")
    assert ork("cancel", "@last").returncode == 0
    watching.communicate(timeout=60)
    assert watching.returncode == 1
    run = shown(ork)
    assert (run["status"], states(run)) == ("cancelled", {"a": "cancelled", "quick": "success", "b": "cancelled"})
    assert set(processes_in(tmp_path)) <= {scheduler.pid}
    again = ork("cancel", "@last")
    assert again.returncode == 4
    assert "it has already been cancelled" in again.stderr


# ── why ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_why_tells_of_a_silent_worker_and_of_a_lost_one(tmp_path: Path, ork: Ork, start: Start) -> None:
    hold = "[sh, -c, 'echo $PPID > shim; exec sleep 600']"
    write(tmp_path, {"workflow.yaml": f"name: l\ntasks:\n  a: {{command: {hold}, retries: 1, retry_delay: 1h}}\n"})
    start("run")
    wait_until(lambda: (tmp_path / "shim").exists() and states(shown(ork))["a"] == "running")
    shim = int((tmp_path / "shim").read_text())
    os.kill(shim, signal.SIGSTOP)
    wait_until(lambda: "worker silent for" in ork("why", "@last", "a").stdout)
    assert "given up at 30 s" in ork("why", "@last", "a").stdout
    os.kill(shim, signal.SIGKILL)
    wait_until(lambda: "retry: attempt 2 of 2 at " in ork("why", "@last", "a").stdout)
    assert "after it was lost: its worker ended without leaving a result" in ork("why", "@last", "a").stdout


@pytest.mark.slow
def test_a_killed_worker_is_followed_by_the_next_attempt_at_once_whatever_it_left_alive(
    tmp_path: Path, ork: Ork
) -> None:
    """Nobody waits until its silence is noticed; what it left is ended before the next one begins."""
    work = "[ $ORK_ATTEMPT = 2 ] && exec pgrep -c -f left_by_the_first; setsid sh -c 'sleep 600 # left_by_the_first' & "
    work += "sleep 0.2; kill -9 $PPID; sleep 600"
    (tmp_path / "work.sh").write_text(work.replace("left_by", f"left_{os.getpid()}_by"))
    write(tmp_path, {"workflow.yaml": "name: k\ntasks:\n  a: {command: [sh, work.sh], retries: 1, retry_delay: 0}\n"})
    begun = time.monotonic()
    ork("run")
    assert time.monotonic() - begun < float(IMPATIENT["ORK_STALE_SECONDS"]) / 3
    (task,) = shown(ork)["tasks"]
    assert [attempt["status"] for attempt in task["attempts"]] == ["lost", "failed"]
    assert ork("logs", "@last", "a").stdout.strip() == "0"
    assert processes_in(tmp_path) == []


# ── what travels ─────────────────────────────────────────────────────────────────────────────────


def test_the_order_of_keys_survives_from_task_to_task(tmp_path: Path, ork: Ork) -> None:
    write(
        tmp_path,
        {
            "tasks.py": "def make():\n    return {'z': 1, 'a': {'y': 2, 'b': 3}}\n"
            "def look(make):\n    return [list(make), list(make['a'])]\n",
            "workflow.yaml": "name: keys\ntasks:\n  make: {file: tasks.py, function: make}\n"
            "  look: {file: tasks.py, function: look, depends_on: [make]}\n"
            "  read: {command: [sh, -c, 'cat > seen'], depends_on: [make]}\n"
            "  part: {command: [sh, -c, 'cat > seen_part'], inputs: {z: {ref: tasks.make.output.a}, a: 1}}\n",
        },
    )
    done = ork("run")
    assert done.returncode == 0, done.stderr
    assert json.loads(ork("output", "@last", "look").stdout) == [["z", "a"], ["y", "b"]]
    assert list(json.loads((tmp_path / "seen").read_text())) == ["z", "a"]
    part = json.loads((tmp_path / "seen_part").read_text())
    assert (list(part), list(part["z"])) == (["z", "a"], ["y", "b"])
    assert list(json.loads(ork("output", "@last", "make").stdout)) == ["z", "a"]


def test_a_file_mended_within_the_same_second_runs_as_it_is_now(tmp_path: Path, ork: Ork) -> None:
    broken, mended = "def main():\n    return 1 / 0\n", "def main():\n    return 1 / 1\n"
    write(tmp_path, {"task.py": broken, "workflow.yaml": "name: m\ntasks:\n  a: {file: task.py}\n"})
    moment = time.time_ns() // 10**9 * 10**9
    os.utime(tmp_path / "task.py", ns=(moment, moment))
    assert ork("run").returncode == 1
    write(tmp_path, {"task.py": mended})
    os.utime(tmp_path / "task.py", ns=(moment, moment))
    done = ork("retry", "@last")
    assert done.returncode == 0, done.stderr
    assert ork("output", "@last", "a").stdout.strip() == "1.0"


# ── nothing to do ────────────────────────────────────────────────────────────────────────────────


def cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


@pytest.mark.slow
def test_an_idle_scheduler_uses_no_processor_time(tmp_path: Path, ork: Ork, start: Start) -> None:
    write(tmp_path, {"workflow.yaml": "name: idle\ntasks:\n  a: {command: 'true'}\n"})
    ork("deploy", "workflow.yaml")
    scheduler = start("scheduler")
    assert scheduler.stdout is not None
    scheduler.stdout.readline()
    assert ork("trigger", "idle", "--wait").returncode == 0
    time.sleep(0.5)  # what its last run left to do is done
    before = cpu_ticks(scheduler.pid)
    time.sleep(3)
    assert cpu_ticks(scheduler.pid) - before <= 1
