"""Every command of a person through a real `ork serve`, from a folder that has no store: the same words, JSON and exit
codes as beside the store, and a clear refusal of what only works there."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.waiting import wait_until
from tests.serving import Served, serving, start_ork
from tests.snapshots import readable

pytestmark = pytest.mark.slow

FLOW = """
name: flow
schedule: "0 2 * * *"
params: {n: {type: int, default: 2}}
tasks:
  extract: {command: [sh, -c, 'echo words; echo 7']}
  load: {command: echo 8, depends_on: [extract]}
"""
HELD = """
name: held
tasks:
  a: {command: [sh, -c, 'echo begun; while [ ! -e go ]; do sleep 0.05; done; echo 7']}
"""
ASKING = "name: asking\ntasks:\n  ask: {approval: Is it good?}\n  after: {command: echo 1, depends_on: [ask]}\n"
FAILING = "name: failing\ntasks:\n  a: {command: [sh, -c, 'test -e go']}\n"


class Far:
    """The command line on the other side of a server, in a folder of its own."""

    def __init__(self, served: Served, folder: Path, environment: dict[str, str], ork_cli: Callable[..., Any]) -> None:
        self.served = served
        self.folder = folder
        self.environment = {**environment, **served.remote}
        self._ork_cli = ork_cli

    def __call__(self, *args: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done: subprocess.CompletedProcess[str] = self._ork_cli(*args, cwd=self.folder, env=self.environment)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    def json(self, *args: str, code: int = 0) -> Any:
        return json.loads(self(*args, "--json", code=code).stdout)

    def status(self, run: str) -> str:
        return str(self.json("show", run)["status"])

    def start(self, *args: str) -> subprocess.Popen[str]:
        return start_ork(self.folder, self.environment, *args)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, plain_environment: dict[str, str]) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("server")
    with serving(folder, plain_environment) as one:
        yield one


@pytest.fixture
def far(
    served: Served, tmp_path: Path, plain_environment: dict[str, str], ork_cli: Callable[..., Any]
) -> Iterator[Far]:
    for name, text in (("flow", FLOW), ("held", HELD), ("asking", ASKING), ("failing", FAILING)):
        (tmp_path / f"{name}.yaml").write_text(text)
    yield Far(served, tmp_path, plain_environment, ork_cli)
    (tmp_path / "go").touch()
    assert not (tmp_path / ".ork").exists()


@pytest.fixture
def done(far: Far) -> str:
    """A run of `flow` that has ended."""
    return str(far.json("run", "flow.yaml")["id"])


@pytest.fixture
def held(far: Far) -> str:
    """A run that is in the middle of its task."""
    far("deploy", "held.yaml")
    run = far("trigger", "held").stdout.strip()
    wait_until(lambda: far("logs", run).stdout == "begun\n")
    return run


def test_run(far: Far) -> None:
    shown = far("run", "flow.yaml", "-p", "n=5")
    assert "success" in shown.stdout
    assert "✓ extract" in shown.stderr
    assert far.json("show", "@last")["params"] == {"n": 5}
    assert far("run", "failing.yaml", code=1).stdout.startswith("✗ failed")


def test_deploy_and_plan(far: Far) -> None:
    assert far.json("plan", "flow.yaml")["workflows"][0]["state"] in ("new", "changed", "unchanged")
    assert "✓ flow" in far("deploy", "flow.yaml").stdout
    assert "unchanged" in far("deploy", "flow.yaml").stdout
    (far.folder / "flow.yaml").write_text(FLOW.replace("echo 8", "echo 9"))
    (plan,) = far.json("plan", "flow.yaml")["workflows"]
    assert (plan["state"], list(plan["changed"])) == ("changed", ["load"])
    (far.folder / "bad.yaml").write_text("name: bad\ntasks:\n  a: {depends_on: [x]}\n")
    assert "ORK201" in far("deploy", "bad.yaml", code=2).stderr


def test_trigger(far: Far) -> None:
    far("deploy", "flow.yaml")
    first = far("trigger", "flow", "--key", str(far.folder), "--wait").stdout
    assert far("trigger", "flow", "--key", str(far.folder)).stdout == first
    assert far("trigger", "flow", "--key", str(far.folder), "-p", "n=9", code=4).stdout == ""
    assert far("trigger", "nobody", code=3).stdout == ""


def test_rerun_and_runs_diff(far: Far, done: str) -> None:
    again = far.json("rerun", done, "-p", "n=9")
    assert (again["parent"], again["params"]) == (done, {"n": 9})
    assert "2 → 9" in far("runs", "diff", done, again["id"]).stdout


def test_runs_and_show(far: Far, done: str) -> None:
    assert done in [run["id"] for run in far.json("runs", "--workflow", "flow", "--status", "success")["runs"]]
    assert done in [run["id"] for run in far.json("runs", "--search", "flo", "-p", "n=2", "--longest")["runs"]]
    assert [task["name"] for task in far.json("show", done)["tasks"]] == ["extract", "load"]
    assert "✓ load" in far("show", done[:8]).stdout
    assert far("show", "zzzzzzzz", code=3).stdout == ""


def test_logs_and_output(far: Far, done: str) -> None:
    assert far("logs", done, "extract").stdout == "words\n7\n"
    assert far("logs", done, "extract", "--attempt", "1").stdout == "words\n7\n"
    assert far("output", done, "load").stdout == "8\n"


def test_logs_are_followed_to_the_end(far: Far, held: str) -> None:
    following = far.start("logs", held, "-f")
    assert following.stdout is not None
    assert following.stdout.readline() == "begun\n"
    (far.folder / "go").touch()
    assert following.communicate(timeout=60)[0] == "7\n"
    assert following.returncode == 0


def test_watch(far: Far, held: str) -> None:
    watching = far.start("watch", held, "--progress", "plain")
    (far.folder / "go").touch()
    assert "success" in watching.communicate(timeout=60)[0]
    assert watching.returncode == 0
    assert far("watch", held, "--timeout", "5").returncode == 0


def test_leaving_a_watch_leaves_the_run_alone(far: Far, held: str) -> None:
    watching = far.start("watch", held, "--progress", "plain")
    assert watching.stderr is not None
    watching.stderr.readline()
    watching.send_signal(signal.SIGINT)
    assert "continues" in watching.communicate(timeout=60)[1]
    assert (watching.returncode, far.status(held)) == (130, "running")


def test_pause_resume_and_cancel(far: Far, held: str) -> None:
    far("pause", held)
    wait_until(lambda: far.status(held) == "paused")
    far("resume", held)
    wait_until(lambda: far.status(held) == "running")
    far("cancel", held)
    far("watch", held, code=1)
    assert far.status(held) == "cancelled"
    far("cancel", held, code=4)


def test_retry(far: Far) -> None:
    run = far.json("run", "failing.yaml", code=1)["id"]
    (far.folder / "go").touch()
    far("retry", run)
    far("watch", run)
    assert far.json("show", run)["tasks"][0]["attempt"] == 2


def test_approve_and_reject(far: Far) -> None:
    far("deploy", "asking.yaml")
    for decide, status in (("approve", "success"), ("reject", "failed")):
        run = far("trigger", "asking").stdout.strip()
        wait_until(lambda run=run: "waiting for a person" in far("why", run, "ask").stdout)  # type: ignore[misc]
        far(decide, run, "--comment", "seen")
        far("watch", run, code=0 if status == "success" else 1)
        assert far.status(run) == status
        far(decide, run, code=4)


def test_workflows_show_disable_enable_delete(far: Far, done: str) -> None:
    assert "flow" in [each["name"] for each in far.json("workflows")["workflows"]]
    assert far.json("workflow", "show", "flow")["definition"]["name"] == "flow"
    far("workflow", "disable", "flow")
    assert not far.json("workflow", "show", "flow")["enabled"]
    far("workflow", "enable", "flow")
    far("workflow", "delete", "flow")
    far("workflow", "show", "flow", code=3)
    assert far.status(done) == "success"


def test_schedules_and_graph(far: Far) -> None:
    far("deploy", "flow.yaml")
    (entry,) = [each for each in far.json("schedules", "--next", "3")["schedules"] if each["workflow"] == "flow"]
    assert len(entry["next"]) == 3
    (row,) = far.json("schedules", "calendar", "flow")["workflows"]
    assert {each["state"] for each in row["times"]} == {"planned"}
    assert far("graph", "flow").stdout == "● extract\n│\n● load\n"
    assert "<svg" in far("graph", "flow", "--format", "svg").stdout


def test_status_and_why(far: Far, done: str) -> None:
    status = far.json("status")
    assert (status["store"], len(status["schedulers"])) == (far.served.url, 1)
    assert "succeeded" in far("why", done).stdout
    assert "succeeded" in far("why", f"{done}/load").stdout


def test_report(far: Far, done: str) -> None:
    far("report", done, "-o", "out.html")
    assert "words\n7\n" in readable((far.folder / "out.html").read_text())


def test_backfill_with_progress_limit_and_a_pause(far: Far) -> None:
    (far.folder / "held.yaml").write_text(HELD.replace("name: held", 'name: held_daily\nschedule: "0 2 * * *"'))
    far("deploy", "held.yaml")
    times = ("backfill", "held_daily", "--from", "2026-01-01", "--to", "2026-01-06")
    assert far.json(*times, "--dry-run")["total"] == 6
    limited = far(*times, "--limit", "1")
    assert "1 runs created" in limited.stdout
    assert "5 times are left" in limited.stdout
    assert [each["state"] for each in far.json(*times, "--dry-run")["plan"]] == ["exists"] + ["new"] * 5
    waiting = far.start(*times, "--max-active", "2")
    assert waiting.stderr is not None
    assert waiting.stderr.readline() == "2 of 6 times have their runs, 2 unfinished\n"
    waiting.send_signal(signal.SIGINT)
    assert "the same command continues" in waiting.communicate(timeout=60)[1]
    assert waiting.returncode == 130
    assert len(far.json("runs", "--workflow", "held_daily")["runs"]) == 2
    (far.folder / "go").touch()
    assert far.json(*times, "--max-active", "2") == {"created": 4, "existing": 2, "total": 6, "is_served": True}


def test_prune(far: Far, done: str) -> None:
    assert done in far.json("prune", "--older-than", "0s", "--dry-run")["runs"]
    assert done not in far.json("prune", "--older-than", "0s", "--keep-last", "1")["runs"]
    assert done in far.json("prune", "--older-than", "0s")["runs"]
    far("show", done, code=3)
    assert "--older-than" in far("prune", code=2).stderr


def test_tokens_and_audit(far: Far) -> None:
    text = far("token", "create", "--role", "operator", "--name", "ci").stdout.strip()
    tokens = {each["name"]: each for each in far.json("token", "list")["tokens"]}
    assert (tokens["ci"]["role"], tokens["ci"]["revoked_at"]) == ("operator", None)
    far("deploy", "flow.yaml")
    far.environment["ORK_TOKEN"] = text
    far("trigger", "flow", "--wait")
    assert "needs the role admin" in far("audit", code=4).stderr
    far.environment |= far.served.remote
    assert {entry["by"] for entry in far.json("audit")["entries"]} >= {"first", "ci"}
    far("token", "revoke", tokens["ci"]["id"])
    assert "token of the request" in far("token", "revoke", tokens["first"]["id"], code=4).stderr


def test_tick_and_doctor(far: Far) -> None:
    assert set(far.json("tick")) == {"steps", "launched", "finished", "next_wake"}
    checks = {each["subject"]: each["says"] for each in far.json("doctor")["checks"]}
    assert far.served.url in checks["server"]
    assert checks["schedulers"] == "1 running"
    far.environment["ORK_TOKEN"] = "ork_a1B2c3D4e5F6g7H8i9J0"  # known to nobody
    assert far("doctor", code=1).stdout.count("✗") == 1


@pytest.mark.parametrize(
    "words", [("db", "status"), ("db", "migrate"), ("debug", "@last"), ("scheduler",), ("serve",)], ids=" ".join
)
def test_what_cannot_go_through_a_server_says_so(far: Far, words: tuple[str, ...]) -> None:
    refused = far(*words, code=2)
    assert "server" in refused.stderr
    assert "without --server" in refused.stderr


def test_what_needs_no_store_works_all_the_same(far: Far) -> None:
    assert "✓ flow.yaml" in far("validate", "flow.yaml").stdout
    assert "● extract" in far("graph", "flow.yaml").stdout
    assert "ORK201" in far("explain", "ORK201").stdout


def test_a_reader_that_leaves_early_is_no_error(far: Far, done: str) -> None:
    words = f"{sys.executable} -m ork logs {done} | head -n 1; exit ${{PIPESTATUS[0]}}"
    shown = subprocess.run(["bash", "-c", words], cwd=far.folder, env=far.environment, capture_output=True, text=True)
    assert (shown.returncode, shown.stderr) == (0, "")
