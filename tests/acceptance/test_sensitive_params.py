"""Params that are declared sensitive: given to tasks, and shown to nobody."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import serving
from tests.postgres import fresh_database
from tests.snapshots import readable

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]

VALUE = "correct-horse-battery"
WORKFLOW = """
name: flow
params:
  token: {type: str, sensitive: true}
  limits: {type: any, default: null, sensitive: true}
  day: {type: str, default: today}
tasks:
  function: {file: tasks.py, function: by_name}
  context: {file: tasks.py, function: by_context}
  command: {command: [sh, -c, 'echo "has $TOKEN"; case "$TOKEN" in *-horse-*) ;; *) exit 3;; esac'], env: {TOKEN: {ref: params.token}}}
  child: {workflow: child, inputs: {key: {ref: params.token}}}
  unable: {file: tasks.py, function: unable, depends_on: [function]}
"""
CHILD = """
name: child
params: {key: {type: str, sensitive: true}}
tasks:
  use: {file: tasks.py, function: use_key}
"""
TASKS = """
import os

def by_name(token, day):
    print("got", token, day)
    return len(token)

def by_context(ctx):
    print("got", ctx.params["token"], ctx.params["day"])
    assert VALUE == ctx.params["token"]
    assert not [name for name in os.environ if "PARAM" in name]
    return sorted(ctx.params)

def use_key(key):
    print("got", key)
    assert key == VALUE

def unable(token):
    if not os.path.exists("go"):
        raise ValueError("no: " + token)

VALUE = "-".join(["correct", "horse", "battery"])
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "workflow.yaml").write_text(WORKFLOW)
    (tmp_path / "child.yaml").write_text(CHILD)
    (tmp_path / "tasks.py").write_text(TASKS)
    return tmp_path


def kept_in(folder: Path) -> list[str]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".yaml"]
    return [str(path) for path in files if VALUE.encode() in path.read_bytes()]


def states(text: str) -> dict[str, str]:
    run: Any = json.loads(text)
    return {task["name"]: task["status"] for task in run["tasks"]}


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    if request.param == "sqlite":
        yield {}
        return
    with fresh_database() as url:
        yield {"ORK_STORE": url}


def test_tasks_get_it_and_nothing_shows_or_keeps_it(project: Path, ork_cli: OrkCli, store: dict[str, str]) -> None:
    def ork(*args: str) -> subprocess.CompletedProcess[str]:
        return ork_cli(*args, cwd=project, env=store)

    done = ork("run", "--json", "-p", f"token={VALUE}", "-p", 'limits={"pin": 12345678}')
    good = {"function": "success", "context": "success", "command": "success", "child": "success"}
    assert states(done.stdout) == {**good, "unable": "failed"}, done.stdout
    assert json.loads(done.stdout)["params"] == {"token": "•••", "limits": "•••", "day": "today"}
    (project / "go").touch()
    retried = ork("retry", "@last")
    assert retried.returncode == 0, retried.stderr
    again = ork("rerun", "@last", "--json", "-p", "day=tomorrow")
    assert again.returncode == 0, again.stderr
    other = ork("run", "--json", "-p", "token=another-word")
    ids = [json.loads(run.stdout)["id"] for run in (done, again, other)]
    looks = [("runs", "--json")]
    looks += [(command, run) for command in ("show", "logs", "why") for run in ids]
    looks += [("logs", ids[0], task) for task in states(done.stdout)]
    looks += [("report", ids[0], "-o", "-")]
    shown = [ork(*look) for look in looks]
    assert [(run.args, run.stderr) for run in shown if run.returncode] == []
    shown += [done, again, other]
    same, differ = (json.loads(ork("runs", "diff", ids[0], each, "--json").stdout) for each in ids[1:])
    assert "token" not in same["params"]
    assert differ["params"]["token"] == {"a": "•••", "b": "•••"}
    assert [run.args for run in shown if VALUE in readable(run.stdout) + run.stderr] == []
    assert "got *** today" in "".join(run.stdout for run in shown)
    assert "ValueError: no: ***" in done.stdout
    assert kept_in(project) == []


REPEATS = """
name: flow
params: {token: {type: str, sensitive: true}, pin: {type: int, sensitive: true}, who: {type: str, default: Jürgen}}
tasks:
  small: {file: repeats.py, function: small}
  large: {file: repeats.py, function: large}
  items: {file: repeats.py, function: items}
  each: {file: repeats.py, function: each, foreach: {ref: items}}
  user: {file: repeats.py, function: user, depends_on: [small, large]}
"""
REPEATS_TASKS = """
def small(token, pin):
    return {"t": token, "pin": pin, "other": "Jürgen"}

def large(token):
    return [token, "x" * 300_000]

def items(token):
    return [token]

def each(item):
    return item

def user(small, large, token, pin):
    assert small["t"] == large[0] == token
    assert small["pin"] == pin
"""


@pytest.fixture
def repeating(tmp_path: Path) -> Path:
    (tmp_path / "workflow.yaml").write_text(REPEATS)
    (tmp_path / "repeats.py").write_text(REPEATS_TASKS)
    return tmp_path


GIVEN = ("-p", f"token={VALUE}", "-p", "pin=12345678")


def check_looks(ork: Callable[..., subprocess.CompletedProcess[str]], *run: str) -> None:
    """`run` starts a run and shows its tasks; then every command that shows outputs."""
    shown = [ork(*run, *GIVEN), ork(*run, *GIVEN)]
    first = json.loads(ork("runs", "--json").stdout)["runs"][1]["id"]
    looks = (
        ("show", "@last", "--instances"),
        ("show", "@last", "--json"),
        *(("output", "@last", task) for task in ("small", "large", "items", "each")),
        ("report", "@last", "-o", "-"),
        ("runs", "diff", "@last", first, "--json"),
    )
    shown += [ork(*look) for look in looks]
    assert [(each.args, each.stderr) for each in shown if each.returncode] == []
    said = [(each.args, readable(each.stdout) + each.stderr) for each in shown]
    assert [args for args, text in said if VALUE in text or "12345678" in text] == []
    assert 'who="Jürgen"' in shown[2].stdout
    assert 'token="•••"' in shown[2].stdout
    assert '"who": "Jürgen"' in readable(shown[8].stdout)
    small, large, items, each_item = (json.loads(each.stdout) for each in shown[4:8])
    assert small == {"t": "***", "pin": "***", "other": "Jürgen"}
    assert (large[0], items, each_item) == ("***", ["***"], ["***"])
    rows = {task["name"]: task for task in json.loads(shown[3].stdout)["tasks"]}
    assert rows["small"]["output"] == small
    assert (rows["each"]["item"], rows["each"]["output"]) == ("***", "***")


@pytest.mark.slow
def test_an_output_that_repeats_it_is_shown_without_it(repeating: Path, ork_cli: OrkCli, store: dict[str, str]) -> None:
    check_looks(lambda *args: ork_cli(*args, cwd=repeating, env=store), "run", "workflow.yaml")


@pytest.mark.slow
def test_a_server_shows_outputs_without_it(repeating: Path, ork_cli: OrkCli, plain_environment: dict[str, str]) -> None:
    assert ork_cli("deploy", "workflow.yaml", cwd=repeating).returncode == 0
    with serving.serving(repeating, plain_environment) as server:
        check_looks(lambda *args: ork_cli(*args, cwd=repeating, env=server.remote), "trigger", "flow", "--wait")
        run = json.loads(ork_cli("show", "@last", "--json", cwd=repeating).stdout)["id"]
        for path in ("", "/tasks", "/tasks/small/output", "/tasks/large/output"):
            status, answer = server.ask("GET", f"/runs/{run}{path}")
            assert status == 200
            assert "***" in str(answer)
            assert VALUE not in str(answer)


def test_a_wrong_value_is_not_repeated(project: Path, ork_cli: OrkCli) -> None:
    (project / "workflow.yaml").write_text(
        "name: f\nparams: {pin: {type: int, sensitive: true}}\ntasks:\n  a: {command: 'true'}\n"
    )
    done = ork_cli("run", "-p", f"pin={VALUE}", cwd=project)
    assert done.returncode == 2
    assert "•••" in done.stderr
    assert VALUE not in done.stderr


@pytest.mark.parametrize(
    ("task", "what"),
    [
        ("{command: [echo, {ref: params.token}]}", "is sensitive"),
        ("{command: echo, when: {ref: params.token, equals: x}}", "is sensitive"),
        ("{command: echo, foreach: params.token}", "is sensitive"),
    ],
)
def test_where_it_would_be_seen_it_is_refused(project: Path, ork_cli: OrkCli, task: str, what: str) -> None:
    (project / "workflow.yaml").write_text(f"name: f\nparams: {{token: {{sensitive: true}}}}\ntasks:\n  a: {task}\n")
    done = ork_cli("validate", cwd=project)
    assert done.returncode == 2
    assert what in done.stderr


def test_a_default_and_a_child_that_would_show_it_are_refused(project: Path, ork_cli: OrkCli) -> None:
    (project / "workflow.yaml").write_text(
        "name: f\nparams: {token: {sensitive: true, default: x}}\ntasks:\n  a: {command: 'true'}\n"
    )
    assert "cannot have a default" in ork_cli("validate", cwd=project).stderr
    (project / "workflow.yaml").write_text(WORKFLOW)
    (project / "child.yaml").write_text(CHILD.replace(", sensitive: true", ""))
    done = ork_cli("run", "--json", "-p", f"token={VALUE}", cwd=project)
    assert "`key` of `child` is not" in done.stdout


def test_through_a_server(project: Path, ork_cli: OrkCli, plain_environment: dict[str, str]) -> None:
    """The server encrypts what it is sent, shows none of it, and repeats a run with what it was given."""
    assert ork_cli("deploy", "workflow.yaml", cwd=project).returncode == 0
    (project / "go").touch()
    with serving.serving(project, plain_environment) as server:

        def ork(*args: str) -> subprocess.CompletedProcess[str]:
            return ork_cli(*args, cwd=project, env=server.remote)

        first = ork("trigger", "flow", "-p", f"token={VALUE}", "--key", "k", "--wait")
        assert first.returncode == 0, first.stderr
        again = ork("trigger", "flow", "-p", f"token={VALUE}", "--key", "k")
        assert again.stdout.split()[0] == first.stdout.split()[0]
        assert ork("trigger", "flow", "-p", "token=another", "--key", "k").returncode == 4
        rerun = ork("rerun", first.stdout.split()[0], "--json")
        assert rerun.returncode == 0, rerun.stdout + rerun.stderr
        assert json.loads(rerun.stdout)["params"]["token"] == "•••"
    assert kept_in(project) == []
    assert os.path.exists(project / ".ork/ork.db")
