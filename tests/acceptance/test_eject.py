"""`ork eject`: the written forms give the same results as `ork run`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]

WORKFLOW = """\
name: everything
description: All that an ejected workflow does
schedule: {cron: "0 3 * * *", timezone: Europe/Prague}
max_active_runs: 1
params:
  day: {type: date, default: 2026-01-31}
  batch: {type: int, default: 2}
tasks:
  extract: {file: tasks.py, function: extract, retries: 2, retry_delay: 10ms}
  clean: {file: tasks.py, function: clean, foreach: extract.rows, concurrency: 2, inputs: {factor: {ref: params.batch}}}
  total: {file: tasks.py, function: total, depends_on: [clean]}
  shell:
    command: [sh, -c, 'cat; echo; echo "{\\"day\\": \\"$DAY\\", \\"first\\": \\"$1\\"}"', x, {ref: "tasks.extract.output.rows[0]"}]
    env: {DAY: {ref: params.day}}
    depends_on: [total]
  many: {command: [sh, -c, 'echo $ORK_PARALLEL_INDEX'], when: {ref: total, gt: 1000}}
  skipped: {command: "true", depends_on: [many]}
  query:
    executor: sql
    config: {url: "sqlite:///:memory:", query: "SELECT :n + 1 AS n", fetch: one}
    inputs: {n: {ref: total}}
  slow: {command: [sleep, "30"], timeout: 300ms}
  broken: {file: tasks.py, function: broken, retries: 3}
  tidy: {file: tasks.py, function: tidy, depends_on: [broken, slow, query], run_if: all_done}
"""
TASKS = """\
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from common.money import cents


@dataclass
class Found:
    rows: list[int]
    day: date


def extract(day: date, ctx) -> Found:
    if ctx.attempt < 2:
        raise ConnectionError("not yet")
    return Found([1, 2, 3], day)


def clean(item: int, factor: int):
    return item * factor


def total(clean: list[int]) -> int:
    print("adding")
    return cents(sum(clean))


def broken():
    marks = Path("marks")
    marks.write_text(marks.read_text() + "x" if marks.exists() else "x")
    from ork import TaskError

    raise TaskError("no use", retry=False)


def tidy(ctx, query):
    return [sorted(ctx.upstream_states.items()), sorted(ctx.failed), query]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "flows").mkdir(parents=True)
    (folder / "common").mkdir()
    (folder / "ork.yaml").touch()
    (folder / "flows/workflow.yaml").write_text(WORKFLOW)
    (folder / "flows/tasks.py").write_text(TASKS)
    (folder / "common/money.py").write_text("def cents(amount):\n    return amount * 100\n")
    return folder


def ork_results(ork_cli: OrkCli, folder: Path) -> dict[str, tuple[str, Any]]:
    shown = json.loads(ork_cli("show", "@last", "--json", cwd=folder).stdout)
    found = {}
    for task in shown["tasks"]:
        name = task["name"]
        output = (
            json.loads(ork_cli("output", "@last", name, cwd=folder).stdout) if task["status"] == "success" else None
        )
        found[name] = (task["status"], output)
    return found


EJECTED_ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHON": sys.executable}


def test_make_and_the_script_give_what_ork_run_gives(project: Path, tmp_path: Path, ork_cli: OrkCli) -> None:
    ran = ork_cli("run", "flows/workflow.yaml", "-p", "batch=3", cwd=project)
    assert ran.returncode == 1
    expected = ork_results(ork_cli, project)
    assert expected["total"] == ("success", 1800)
    for name in ("marks",):
        (project / "flows" / name).unlink()
    done = ork_cli("eject", "@last", "-o", str(tmp_path / "ejected"), cwd=project)
    assert done.returncode == 0, done.stderr
    ejected = tmp_path / "ejected"
    folder = ejected / "code/flows"

    made = subprocess.run(
        ["make", "-j3", "-k", "all"], cwd=ejected, env=EJECTED_ENV, capture_output=True, text=True, check=False
    )
    assert made.returncode == 2, made.stdout + made.stderr
    assert "FAILED   broken  TaskError: no use" in made.stdout
    kept = json.loads((ejected / "out/run.json").read_text())
    assert kept["params"] == {"day": "2026-01-31", "batch": 3}  # those of the run
    assert (folder / "marks").read_text() == "x"  # not retried

    script = subprocess.run(
        ["./run.sh", "batch=3"], cwd=ejected, env=EJECTED_ENV, capture_output=True, text=True, check=False
    )
    assert script.returncode == 1, script.stdout + script.stderr
    states = {
        name: state.removeprefix("ok").strip() or state
        for state, name in re.findall(r"^(ok|FAILED|skipped) +(\w+)", script.stdout, re.M)
    }
    words = {"ok": "success", "FAILED": "failed", "skipped": "skipped"}
    assert {name: words[state] for name, state in states.items()} == {
        name: state for name, (state, _) in expected.items()
    }
    outputs = {path.stem: json.loads(path.read_text()) for path in (ejected / "out").glob("*.json")}
    for name, (state, output) in expected.items():
        if state == "success":
            assert outputs[name] == output, name


def test_a_second_make_runs_what_did_not_succeed(tmp_path: Path, ork_cli: OrkCli) -> None:
    (tmp_path / "workflow.yaml").write_text(
        "name: again\ntasks:\n  first: {command: [sh, -c, 'echo x >> count']}\n"
        "  second: {command: [sh, -c, 'test -e fixed'], depends_on: [first]}\n"
        "  third: {command: [touch, done], depends_on: [second]}\n"
    )
    assert ork_cli("eject", "workflow.yaml", "-o", "out-dir", cwd=tmp_path).returncode == 0
    ejected = tmp_path / "out-dir"

    def make(*arguments: str) -> int:
        return subprocess.run(
            ["make", *arguments], cwd=ejected, env=EJECTED_ENV, capture_output=True, check=False
        ).returncode

    assert make() == 2
    (ejected / "code/fixed").touch()
    assert make() == 0
    assert (ejected / "code/count").read_text() == "x\n"
    assert (ejected / "code/done").exists()
    assert make("clean") == 0
    assert make() == 0
    assert (ejected / "code/count").read_text() == "x\nx\n"


def test_fail_fast_sub_workflows_and_approvals(tmp_path: Path, ork_cli: OrkCli) -> None:
    (tmp_path / "workflow.yaml").write_text(
        "name: parent\ntasks:\n  child: {workflow: child, inputs: {n: 4}}\n"
        "  ok: {approval: {message: 'Publish?'}, depends_on: [child]}\n  last: {command: [cat], depends_on: [ok], inputs: {got: {ref: child}}}\n"
    )
    (tmp_path / "child.yaml").write_text(
        "name: child\nparams: {n: {type: int}}\ntasks:\n  one: {command: [echo, {ref: params.n}]}\n"
    )
    assert ork_cli("eject", "workflow.yaml", "-o", "e", cwd=tmp_path).returncode == 0
    ejected = tmp_path / "e"
    refused = subprocess.run(
        ["./run.sh"],
        cwd=ejected,
        env=EJECTED_ENV,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 1
    assert "not approved: Publish?" in refused.stdout
    approved = subprocess.run(
        ["./run.sh"], cwd=ejected, env={**EJECTED_ENV, "APPROVE": "ok"}, capture_output=True, text=True, check=False
    )
    assert approved.returncode == 0, approved.stdout
    assert json.loads((ejected / "out/last.json").read_text()) == {"got": 4}
    (tmp_path / "fast.yaml").write_text(
        "name: fast\nfail_fast: true\ntasks:\n  a: {command: 'false'}\n  b: {command: [touch, b], depends_on: [a], run_if: all_done}\n"
        "  c: {command: [touch, c], depends_on: [a], run_if: always}\n"
    )
    assert ork_cli("eject", "fast.yaml", "-o", "f", cwd=tmp_path).returncode == 0
    assert (
        subprocess.run(["./run.sh"], cwd=tmp_path / "f", env=EJECTED_ENV, capture_output=True, check=False).returncode
        == 1
    )
    assert not (tmp_path / "f/code/b").exists()
    assert (tmp_path / "f/code/c").exists()


def test_a_container_is_run_by_docker_with_its_files(tmp_path: Path, ork_cli: OrkCli) -> None:
    """A stand-in for `docker` keeps the files of its containers in folders."""
    docker = tmp_path / "docker"
    docker.write_text(
        "#!/bin/sh\nset -e\nroot=$ROOT\ncase $1 in\n"
        'create) shift; echo "$*" > $root/created; mkdir -p $root/c1; echo c1 ;;\n'
        'cp) case $2 in c1:*) cp "$root/${2#c1:}" "$3" ;; *) mkdir -p "$root/c1/in"; cp "$2" "$root/${3#c1:}" ;; esac ;;\n'
        "start) cp $root/in.json $root/out.json ;;\nrm) touch $root/removed ;;\nesac\n"
    )
    docker.chmod(0o755)
    (tmp_path / "workflow.yaml").write_text(
        "name: boxed\ntasks:\n  box:\n    image: alpine:3\n    command: [report, --day, {ref: run.id}]\n    env: {A: b}\n"
        "    inputs: {n: 5}\n    input: {to_file: /in.json}\n    output: {from_file: /out.json}\n"
    )
    done = ork_cli("eject", "workflow.yaml", "-o", "e", cwd=tmp_path)
    assert "no manifest for Kubernetes: `box` starts a container" in done.stdout
    env = {**EJECTED_ENV, "DOCKER": str(docker), "ROOT": str(tmp_path)}
    ran = subprocess.run(["make"], cwd=tmp_path / "e", env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert json.loads((tmp_path / "e/out/box.json").read_text()) == {"n": 5}
    run = json.loads((tmp_path / "e/out/run.json").read_text())["id"]
    created = (tmp_path / "created").read_text()
    assert "-e A=b" in created
    assert created.endswith(f"alpine:3 report --day {run}\n")
    assert (tmp_path / "removed").exists()


def test_the_cronjob_is_one_that_kubernetes_knows(project: Path, ork_cli: OrkCli) -> None:
    """Every key of the manifest is a field of the API's model."""
    from lightkube.codecs import load_all_yaml

    assert ork_cli("eject", "flows/workflow.yaml", "-o", "e", cwd=project).returncode == 0
    text = (project / "e/cronjob.yaml").read_text()
    (parsed,) = load_all_yaml(text)
    assert parsed.to_dict() == yaml.safe_load(text)  # an unknown key would be missing here
    assert parsed.spec.schedule == "0 3 * * *"
    assert parsed.spec.timeZone == "Europe/Prague"
    assert parsed.spec.concurrencyPolicy == "Forbid"
    assert parsed.spec.jobTemplate.spec.template.spec.containers[0].command == ["make", "-j4"]
    assert (project / "e/Dockerfile").exists()


# Google's Workflows: the definition is run by a small interpreter of the steps that Ork writes.


@pytest.fixture
def service() -> Iterator[str]:
    tries: dict[str, int] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            tries[path] = tries.get(path, 0) + 1
            if path == "/flaky" and tries[path] % 2:
                self.send_response(503)
                self.end_headers()
                return
            self._reply({"path": self.path, "rows": [1, 2]})

        def do_POST(self) -> None:
            self._reply({"got": json.loads(self.rfile.read(int(self.headers["Content-Length"])))})

        def _reply(self, value: Any) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(value).encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


class Interpreter:
    """Assignments, http.request with retries, parallel branches, return; expressions of paths and `map.merge`."""

    def __init__(self, definition: dict[str, Any], args: dict[str, Any]) -> None:
        self.names: dict[str, Any] = {"args": args}
        self.result: Any = None
        self.steps(definition["main"]["steps"])

    def steps(self, steps: list[dict[str, Any]]) -> None:
        for step in steps:
            ((_, body),) = step.items()
            self.step(body)

    def step(self, body: dict[str, Any]) -> None:
        if "assign" in body:
            for pair in body["assign"]:
                ((name, value),) = pair.items()
                self.names[name] = self.value(value)
        elif "parallel" in body:
            branches = [steps for branch in body["parallel"]["branches"] for steps in branch.values()]
            with ThreadPoolExecutor(len(branches)) as pool:
                list(pool.map(lambda each: self.steps(each["steps"]), branches))
        elif "return" in body:
            self.result = self.value(body["return"])
        else:
            tries = body["retry"]["max_retries"] + 1 if "retry" in body else 1
            self.call(body.get("try", body), tries)

    def call(self, body: dict[str, Any], tries: int) -> None:
        import httpx2

        assert body["call"] == "http.request"
        args = self.value(body["args"])
        for _ in range(tries):
            response = httpx2.request(
                args["method"],
                args["url"],
                params=args.get("query"),
                json=args.get("body"),
                headers=args.get("headers"),
            )
            if response.status_code < 500:
                break
        response.raise_for_status()
        self.names[body["result"]] = {"body": response.json()}

    def value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self.value(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.value(each) for each in value]
        if not (isinstance(value, str) and value.startswith("${")):
            return value
        text = value[2:-1]
        merged = re.fullmatch(r"map\.merge\((.*), default\(args, \{\}\)\)", text)
        if merged:
            return {**json.loads(merged[1]), **self.names["args"]}
        return eval(text.replace(".body", "['body']"), {"__builtins__": {}}, self.names)


def test_a_workflow_of_requests_runs_as_a_definition_for_google_workflows(
    tmp_path: Path, ork_cli: OrkCli, service: str
) -> None:
    (tmp_path / "ork.yaml").write_text(f"executors: {{api: {{class: http, config: {{base_url: '{service}'}}}}}}\n")
    (tmp_path / "workflow.yaml").write_text(
        "name: requests\nparams: {day: 2026-01-01}\ntasks:\n"
        "  first: {executor: api, config: {url: /first, params: {day: {ref: params.day}}}}\n"
        "  flaky: {executor: api, config: {url: /flaky}, retries: 3, retry_delay: 10ms}\n"
        "  send: {executor: api, config: {url: /send, method: POST, json: {n: {ref: 'first.rows[1]'}, from: {ref: flaky.path}}}}\n"
    )
    assert ork_cli("run", "workflow.yaml", cwd=tmp_path).returncode == 0
    expected = ork_results(ork_cli, tmp_path)
    assert ork_cli("eject", "requests", "-o", "e", cwd=tmp_path).returncode == 0
    definition = yaml.safe_load((tmp_path / "e/cloud-workflow.yaml").read_text())
    found = Interpreter(definition, {})
    assert found.result == expected["send"][1] == {"got": {"n": 2, "from": "/flaky"}}
    assert found.names["first"] == expected["first"][1]
    made = subprocess.run(
        ["make", "-j2"], cwd=tmp_path / "e", env=EJECTED_ENV, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stdout + made.stderr
    assert json.loads((tmp_path / "e/out/send.json").read_text()) == expected["send"][1]


def test_refusals(tmp_path: Path, ork_cli: OrkCli) -> None:
    (tmp_path / "workflow.yaml").write_text("name: a\ntasks: {t: {command: 'true'}}\n")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    refused = ork_cli("eject", "workflow.yaml", "-o", "full", cwd=tmp_path)
    assert (refused.returncode, "full is not empty" in refused.stderr) == (4, True)
    ork_cli("deploy", "workflow.yaml", cwd=tmp_path)
    unknown = ork_cli("eject", "nothing", "-o", "new", cwd=tmp_path)
    assert (unknown.returncode, "no workflow and no run `nothing`" in unknown.stderr) == (3, True)
    assert not (tmp_path / "new").exists()
