"""Values of secrets appear in nothing that Ork writes: logs, errors, status documents, reports, alerts."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests import serving
from tests.loopback import loopback
from tests.snapshots import readable

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]

VALUE = "correct horse/battery+staple"
FORMS = {
    VALUE,
    base64.b64encode(VALUE.encode()).decode(),
    base64.b64encode(f"me:{VALUE}".encode()).decode()[4:-4],
    quote(VALUE, safe=""),
    quote(VALUE),
}
TASKS = """
import base64, sys
from urllib.parse import quote

def say(key):
    print("raw", key)
    print("base64", base64.b64encode(b"me:" + key.encode()).decode(), quote(key, safe=""), file=sys.stderr)
    for letter in key:
        sys.stdout.write(letter)
        sys.stdout.flush()
    print()
    return len(key)

def fall(key):
    try:
        int(key)
    except ValueError as error:
        raise RuntimeError("cannot use " + key + " " * 3960 + key) from error
"""
WORKFLOW = """
name: flow
alerts: [ops]
defaults: {env: {KEY: {secret: KEY}}}
tasks:
  say: {file: tasks.py, function: say, inputs: {key: {secret: KEY}}}
  shout: {command: ["sh", "-c", "printf %s \\"$KEY\\" | head -c 9; sleep 0.7; printf %s \\"$KEY\\" | tail -c +10; echo; echo \\"$KEY\\" >&2"]}
  fall: {file: tasks.py, function: fall, inputs: {key: {secret: KEY}}}
  exit: {command: ["sh", "-c", "echo \\"no: $KEY\\"; exit 3"]}
  reader:
    command: ["sh", "-c", "cmp $ORK_INPUT_FILE - && cat $ORK_INPUT_FILE && ! grep -rqs [h]orse .ork && echo clean"]
    inputs: {key: {secret: KEY}}
  fetch: {executor: http, config: {url: {secret: KEY}}}
  lost: {command: ["sh", "-c", "echo $1", "x", "y"], env: {PATH: {secret: KEY}}}
"""


def kept_in(folder: Path) -> list[str]:
    """Files below that hold the value in any form."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != ".env"]
    return [str(path) for path in files if any(form.encode() in path.read_bytes() for form in FORMS)]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "workflow.yaml").write_text(WORKFLOW)
    (tmp_path / "tasks.py").write_text(TASKS)
    (tmp_path / "ork.yaml").write_text("secrets: {KEY: {from: env}}\nalerts: {ops: http://127.0.0.1:1/}\n")
    return tmp_path


def test_no_form_of_a_value_is_written_anywhere(project: Path, ork_cli: OrkCli) -> None:
    with loopback() as site:
        site.answers["/hook"] = (200, {})
        settings = (
            f"secrets: {{KEY: {{from: env}}}}\nalerts: {{ops: {site.url}/hook}}\noutbound: {{allow: [127.0.0.1]}}\n"
        )
        (project / "ork.yaml").write_text(settings)

        def ork(*args: str) -> str:
            done = ork_cli(*args, cwd=project, env={"KEY": VALUE})
            return done.stdout + done.stderr

        shown = {"run": ork("run")}
        run: Any = json.loads(ork("show", "@last", "--json"))
        states = {task["name"]: task["status"] for task in run["tasks"]}
        assert states["say"] == states["shout"] == states["reader"] == "success", shown
        assert [states[name] for name in ("fall", "exit", "fetch")] == ["failed"] * 3
        for task in states:
            shown[task] = ork("logs", "@last", task)
            shown[f"why {task}"] = ork("why", "@last", task)
        shown |= {"show": ork("show", "@last"), "json": ork("show", "@last", "--json"), "audit": ork("audit")}
        ork("report", "@last", "-o", "report.html")
        shown["report"] = readable((project / "report.html").read_text())
        assert "cannot use ***" in shown["report"]
        told = b"".join(asked.body for asked in site.asked).decode()
        assert "cannot use ***" in told
    for name, text in {**shown, "alerts": told}.items():
        assert [form for form in FORMS if form in text] == [], (name, text)
    assert shown["say"].splitlines()[0] == "raw ***"
    assert shown["say"].count("***") >= 4
    assert shown["shout"].split() == ["***", "***"]
    assert "no: ***" in shown["exit"]
    assert shown["reader"] == '{"key":"***"}clean\n'
    assert "not an http or https URL" in shown["json"]
    assert kept_in(project) == []
    assert "horse" not in json.dumps(run)


def test_a_job_that_repeats_what_it_was_sent_does_not_show_it(tmp_path: Path, ork_cli: OrkCli) -> None:
    with loopback() as site:
        site.answers["/job"] = (403, {"no": f"Bearer {VALUE}"})
        (tmp_path / "ork.yaml").write_text("outbound: {allow: [127.0.0.1]}\n")
        (tmp_path / ".env").write_text(f"KEY='{VALUE}'\n")
        (tmp_path / "jobs.py").write_text(
            "import ork\ndef job(url):\n    return ork.defer(ork.http_job(url, headers={'X': {'secret': 'KEY'}}))\n"
            "def call():\n    return ork.defer(ork.call_job('jobs:ask', every=0.05))\n"
            "def ask():\n    import os\n    print('asking with', os.environ['KEY'])\n    raise ValueError(os.environ['KEY'])\n"
        )
        (tmp_path / "workflow.yaml").write_text(
            "name: flow\ndefaults: {env: {KEY: {secret: KEY}}}\ntasks:\n"
            f"  job: {{file: jobs.py, function: job, inputs: {{url: {site.url}/job}}}}\n"
            "  call: {file: jobs.py, function: call}\n"
        )
        assert ork_cli("run", cwd=tmp_path).returncode == 1
        assert site.asked[0].headers["X"] == VALUE
    run = ork_cli("show", "@last", "--json", cwd=tmp_path).stdout
    assert "its status URL answered 403" in run
    assert "ValueError: ***" in run
    assert "asking with ***" in ork_cli("logs", "@last", "call", cwd=tmp_path).stdout
    assert kept_in(tmp_path) == []


def test_an_output_that_holds_a_value_is_passed_on_as_it_is_and_shown_masked(
    tmp_path: Path, ork_cli: OrkCli, plain_environment: dict[str, str]
) -> None:
    (tmp_path / ".env").write_text(f"KEY='{VALUE}'\n")
    (tmp_path / "tasks.py").write_text("def give(key):\n    return {'key': key}\n")
    (tmp_path / "workflow.yaml").write_text(
        "name: flow\ntasks:\n  give: {file: tasks.py, function: give, inputs: {key: {secret: KEY}}}\n"
        f'  take: {{command: [sh, -c, \'test "$X" = "{VALUE}"\'], env: {{X: {{ref: give.key}}}}}}\n'
    )
    done = ork_cli("run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    looks = [
        ("output", "@last", "give"),
        ("show", "@last"),
        ("show", "@last", "--json"),
        ("report", "@last", "-o", "-"),
    ]
    for look in looks:
        shown = ork_cli(*look, cwd=tmp_path)
        assert "***" in readable(shown.stdout), (look, shown.stderr)
        assert "horse" not in readable(shown.stdout)
    assert "horse" not in done.stdout + done.stderr
    with serving.serving(tmp_path, plain_environment) as server:
        _, runs = server.ask("GET", "/runs")
        run = runs["runs"][0]["id"]
        for path in (f"/runs/{run}/tasks", f"/runs/{run}/tasks/give/output"):
            status, answer = server.ask("GET", path)
            assert (status, "***" in str(answer), "horse" in str(answer)) == (200, True, False), path


@pytest.mark.slow
def test_items_of_a_fan_out_are_shown_masked(
    tmp_path: Path, ork_cli: OrkCli, plain_environment: dict[str, str]
) -> None:
    (tmp_path / ".env").write_text(f"KEY='{VALUE}'\n")
    (tmp_path / "tasks.py").write_text(
        "def give(key):\n    return [key, {key: [key]}, 'plain']\n"
        "def take(item):\n    assert len(str(item)) > 20 and '*' not in str(item)\n"
    )
    (tmp_path / "workflow.yaml").write_text(
        "name: flow\ntasks:\n  give: {file: tasks.py, function: give, inputs: {key: {secret: KEY}}}\n"
        "  each: {file: tasks.py, function: take, foreach: {ref: give}}\n"
    )
    done = ork_cli("run", "--json", cwd=tmp_path)
    tasks = [task for task in json.loads(done.stdout)["tasks"] if task["name"] == "each"]
    items = ["***", {"***": ["***"]}, "plain"]
    assert [(task["item"], task["status"]) for task in tasks] == [
        (item, "failed" if item == "plain" else "success") for item in items
    ]
    run = json.loads(done.stdout)["id"]
    local = [
        ("show", run, "--instances"),
        ("show", run, "--full"),
        ("show", run, "--json"),
        ("why", run),
        ("why", run, "each"),
        ("report", run, "-o", "-"),
    ]
    shown = [ork_cli(*look, cwd=tmp_path) for look in local]
    with serving.serving(tmp_path, plain_environment) as server:
        shown += [ork_cli(*look, cwd=tmp_path, env=server.remote) for look in local]
        for path in ("", "/tasks", "/tasks?name=each"):
            status, answer = server.ask("GET", f"/runs/{run}{path}")
            assert (status, "horse" in str(answer)) == (200, False), path
            assert [task["item"] for task in answer["tasks"] if task["index"] is not None] == items
    assert [look.args for look in shown if look.returncode or "horse" in readable(look.stdout) + look.stderr] == []
