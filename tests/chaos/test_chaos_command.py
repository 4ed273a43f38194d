"""`ork chaos`: the product's own proof, tried on a project; and a proof that it is not blind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ork
from ork.chaos.conduct import Conductor, run_in
from ork.chaos.sandbox import Sandbox
from ork.chaos.setting import Setting
from ork.chaos.verdict import Harm
from ork.compile.content import make_version
from ork.errors import OrkError
from ork.model.workflow import Command, CompiledWorkflow, Const, TaskSpec
from ork.settings import load_settings
from tests.conftest import OrkCli
from tests.docker import Daemon, busybox, daemon_or_skip, libraries, packed, program
from tests.postgres import server_or_skip

from .judge import eventually

WORKFLOW = """\
name: flow
defaults: {retries: 2}
tasks:
  a: {command: [touch, a-was-here]}
  b: {file: tasks.py, depends_on: [a]}
  c: {command: [touch, c-was-here], depends_on: [a], pool: db}
  d: {file: tasks.py, function: twice, foreach: {ref: tasks.b.output}, depends_on: [b, c]}
  e: {file: tasks.py, depends_on: [d], run_if: all_done, pool: db}
  f: {workflow: child, retries: 0}
"""
CHILD = "name: child\ntasks: {x: {command: [touch, x-was-here]}, y: {file: tasks.py, depends_on: [x], retries: 1}}\n"
TASKS = "def main():\n    return [1, 2]\n\n\ndef twice(item: int) -> int:\n    return 2 * item\n"
PROMISED = ("lost", "doubled", "overlapping", "stuck", "orphaned", "damaged")
# Together these are the full programme of 10,000 kills.
KILLS = {"sqlite": 4000, "postgres": 4000, "containers": 2000}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    texts = {"flow.yaml": WORKFLOW, "child.yaml": CHILD, "tasks.py": TASKS, "ork.yaml": "pools: {db: 2}\n"}
    for name, text in texts.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def place() -> Iterator[dict[str, str]]:
    """The variables that put sandboxes where the test can see them: at a short path that another user may enter, for Postgres."""
    with tempfile.TemporaryDirectory(prefix="ork-test-", ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o711)
        yield {"TMPDIR": folder}


def sandboxes(place: dict[str, str]) -> list[Path]:
    return list(Path(place["TMPDIR"]).glob("ork-chaos-*"))


def processes_in(place: dict[str, str]) -> list[str]:
    """The living processes that were started with the variables of a sandbox there."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            if (
                entry.isdigit()
                and f"TMPDIR={place['TMPDIR']}/ork-chaos-".encode() in Path(f"/proc/{entry}/environ").read_bytes()
            ):
                found.append(entry)
        except OSError:
            continue
    return found


def options_for(where: str) -> tuple[list[str], dict[str, str]]:
    """The options and variables for one kind of sandbox; skips where its parts cannot be had."""
    if where == "containers":
        daemon = daemon_or_skip()
        return ["--containers", image_with_flock(daemon)], {"DOCKER_HOST": daemon.url}
    if where == "postgres":
        server_or_skip()
    return ["--database", where], {}


def image_with_flock(daemon: Daemon) -> str:
    """A shell, small programs and `flock`, which Debian's busybox lacks."""
    flock = Path(shutil.which("flock") or pytest.skip("flock is not installed"))
    files = {str(path).lstrip("/"): path.resolve().read_bytes() for path in (flock, *libraries(flock))}
    links = {f"bin/{name}": "busybox" for name in ("sh", "sleep", "date", "tr")}
    binary = Path(program("busybox")).read_bytes()
    return daemon.load("with-flock", packed({"bin/busybox": binary, **files}, links), "ENV PATH=/bin:/usr/bin")


def judged(ork_cli: OrkCli, project: Path, env: dict[str, str], *words: str, timeout: float = 300) -> dict[str, Any]:
    done = ork_cli("chaos", *words, "--json", cwd=project, env=env, timeout=timeout)
    assert done.stdout, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    assert {name: report.get(name) for name in PROMISED} == dict.fromkeys(PROMISED, 0), done.stdout
    assert done.returncode == 0
    return report


def test_the_command_at_the_top_of_the_docs_breaks_no_promise_and_leaves_nothing_behind(
    ork_cli: OrkCli, tree: Path, tmp_path: Path, place: dict[str, str]
) -> None:
    """P1, P3, P4, P5, P6, on SQLite."""
    first = next(line for line in (tree / "docs" / "chaos.md").read_text().splitlines() if line.startswith("$ ork "))
    ours = tmp_path / "examples" / "diamond"
    shutil.copytree(tree / "examples" / "diamond", ours, ignore=shutil.ignore_patterns(".ork", "__pycache__"))
    before = sorted(ours.iterdir())
    done = ork_cli(*first.removeprefix("$ ork ").split(), cwd=tmp_path, env=place)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "kills      20 in" in done.stdout
    assert "lost 0   doubled 0   overlapping 0\n\n✓ every promise held\n" in done.stdout
    assert sandboxes(place) == []
    assert processes_in(place) == []
    assert [path for path in sorted(ours.iterdir()) if path.name != "__pycache__"] == before


@pytest.mark.parametrize(("where", "kills"), [("postgres", 10), ("containers", 5)])
def test_a_few_kills_break_no_promise_and_leave_nothing_behind(
    ork_cli: OrkCli, project: Path, place: dict[str, str], where: str, kills: int
) -> None:
    """P1, P3, P4, P5, P6."""
    options, env = options_for(where)
    file = "child.yaml" if where == "containers" else "flow.yaml"  # containers take their time
    report = judged(ork_cli, project, place | env, file, "--kills", str(kills), "--seed", "3", *options)
    assert (report["kills_in_all"], report["complete"], report["real"]) == (kills, True, False)
    assert report["starts"] > 0
    assert sandboxes(place) == []
    assert processes_in(place) == []


@pytest.mark.soak
@pytest.mark.parametrize("where", KILLS)
def test_thousands_of_kills_break_no_promise(ork_cli: OrkCli, project: Path, place: dict[str, str], where: str) -> None:
    """P1, P3, P4, P5, P6: 10,000 kills in all."""
    options, env = options_for(where)
    report = judged(ork_cli, project, place | env, "--kills", str(KILLS[where]), *options, timeout=3 * 3600)
    print(json.dumps({name: report[name] for name in ("seed", "seconds", "kills", "runs", "attempts", "starts")}))
    assert report["kills_in_all"] == KILLS[where]


def test_on_a_server_that_is_named_only_a_new_database_is_used(
    ork_cli: OrkCli, project: Path, place: dict[str, str]
) -> None:
    server = server_or_skip()
    before = server.sql("SELECT string_agg(datname, ' ' ORDER BY datname) FROM pg_database")
    report = judged(ork_cli, project, place, "--kills", "5", "--seed", "5", "--database", server.url("postgres"))
    assert report["database"] == "postgresql"
    assert server.sql("SELECT string_agg(datname, ' ' ORDER BY datname) FROM pg_database") == before
    assert server.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'ork'") == "0"


def test_without_the_start_gate_the_same_kills_show_doubled_work(tmp_path: Path) -> None:
    """P3: schedulers that start each adopted attempt again, and workers that ignore the gate."""
    workflow = CompiledWorkflow("flow", (TaskSpec("a", "process", Command((Const("true"),))),))
    version = make_version(workflow, str(tmp_path))
    with Sandbox() as sandbox:
        sandbox.command = (sys.executable, str(Path(__file__).with_name("without_guard.py")), "open", "scheduler")
        sandbox.variables |= {
            "JUDGED_FOLDER": str(sandbox.folder),
            "JUDGED_SOURCE": os.path.dirname(os.path.dirname(ork.__file__)),
        }
        setting = Setting(load_settings(folder=str(tmp_path)), (version,), frozenset({"flow"}), 30, 1, "sqlite")
        report = run_in(sandbox, Conductor(setting, sandbox, lambda *_: None, None))
        sandbox.keep = False
    print(report.harms)
    assert report.harms[Harm.DOUBLED] > 0


def test_schedulers_that_do_not_start_end_the_trial(tmp_path: Path) -> None:
    version = make_version(
        CompiledWorkflow("flow", (TaskSpec("a", "process", Command((Const("true"),))),)), str(tmp_path)
    )
    with Sandbox() as sandbox:
        sandbox.command = (sys.executable, "-c", "raise SystemExit('no such module')")
        setting = Setting(load_settings(folder=str(tmp_path)), (version,), frozenset({"flow"}), 30, 1, "sqlite")
        with pytest.raises(OrkError, match="end by themselves: no such module"):
            run_in(sandbox, Conductor(setting, sandbox, lambda *_: None, None))
        sandbox.keep = False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_however_it_ends_nothing_of_it_goes_on(
    project: Path, place: dict[str, str], plain_environment: dict[str, str], number: signal.Signals
) -> None:
    running = subprocess.Popen(
        [sys.executable, "-m", "ork", "chaos", "--kills", "100000", "--database", "sqlite"],
        cwd=project,
        env=plain_environment | place,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    try:
        eventually(lambda: any((folder / "ledger" / "ledger").exists() for folder in sandboxes(place)))
        running.send_signal(number)
        assert running.wait(60) == (-number if number == signal.SIGKILL else 130), running.stderr
    finally:
        running.kill()
        running.communicate()
    eventually(lambda: not processes_in(place) and not sandboxes(place))


def test_real_tasks_are_run_only_if_that_is_agreed_and_in_a_copy(
    ork_cli: OrkCli, project: Path, place: dict[str, str]
) -> None:
    refused = ork_cli("chaos", "--real", "--kills", "3", cwd=project, env=place)
    assert (refused.returncode, sandboxes(place)) == (4, [])
    assert "add --yes" in refused.stderr
    report = judged(ork_cli, project, place, "--real", "--yes", "--kills", "8", "--seed", "2", "--keep")
    assert report["real"]
    assert report["starts"] >= report["attempts"]["success"] - report["runs"]["success"]  # sub-workflows have none
    (kept,) = sandboxes(place)
    assert {path.name for path in (kept / "project").glob("*-was-here")} == {"a-was-here", "c-was-here", "x-was-here"}
    assert list(project.glob("*-was-here")) == []
    assert not (project / ".ork").exists()


def test_the_time_limit_ends_it_with_a_code_of_its_own(ork_cli: OrkCli, project: Path, place: dict[str, str]) -> None:
    done = ork_cli("chaos", "child.yaml", "--kills", "100000", "--timeout", "1", "--json", cwd=project, env=place)
    report = json.loads(done.stdout)
    assert (done.returncode, report["ok"], report["complete"]) == (124, True, False)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--database", "firestore://x"], 2, "is not a database for a sandbox"),
        (["-p", "x=1"], 2, "-p is for --real"),
        (["--real", "--yes", "--containers", "busybox"], 2, "--containers is for stand-ins"),
        (["missing.yaml"], 3, "missing.yaml"),
        (["--containers", "busybox"], 2, "no container engine"),
        (["--kills", "0"], 2, "--kills"),
    ],
)
def test_wrong_use_is_named_and_starts_nothing(
    ork_cli: OrkCli, project: Path, place: dict[str, str], words: list[str], code: int, said: str
) -> None:
    env = place | {"DOCKER_HOST": "unix:///nowhere/docker.sock"}
    done = ork_cli("chaos", *words, cwd=project, env=env)
    assert (done.returncode, sandboxes(place)) == (code, [])
    assert said in done.stderr


def test_an_image_in_which_nothing_can_be_judged_is_refused(
    ork_cli: OrkCli, project: Path, place: dict[str, str]
) -> None:
    daemon = daemon_or_skip()
    done = ork_cli("chaos", "--containers", busybox(daemon), cwd=project, env=place | {"DOCKER_HOST": daemon.url})
    assert (done.returncode, sandboxes(place)) == (2, [])
    assert "it has no `flock`" in done.stderr
    assert daemon.containers("ork.attempt") == []
