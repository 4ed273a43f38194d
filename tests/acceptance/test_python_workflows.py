"""Workflows written in Python, as a person uses them; and that they mean the same as in YAML."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from ork.cli.definitions import read_versions
from ork.compile.content import content_hash, to_document
from ork.definition.tasks import TASK_TABLE
from ork.definition.workflow_file import WORKFLOW_TABLE
from ork.settings import load_settings

OrkCli = Callable[..., "CompletedProcess[str]"]
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "python_workflow"

IN_PYTHON = """\
from __future__ import annotations
from datetime import date
from ork import Workflow, ref, secret

etl = Workflow(
    "everything",
    description="All there is",
    schedule={"cron": "0 2 * * *", "timezone": "Europe/Prague", "catchup": "last", "enabled": False},
    params={"limit": {"type": "int", "default": 5, "description": "how many"}},
    types={"Row": {"id": "int", "name": "str?"}},
    defaults={"retries": 1, "env": {"STAGE": "test"}, "environment": "env"},
    max_active_runs=2, budget={"usd": 5, "on_exceed": "cancel"},
    fail_fast=True,
    alerts=["ops"],
)

@etl.task(
    timeout="10m", retry_delay=5, retry_on=["exit", "timeout"], on_unreachable="fail", pool="api", priority=3, isolation="interpreter", cache="1d", rate="10/m",
    output_type="list[Row]", executor="python", env={"KEY": secret("KEY")},
)
def extract(day: date, limit: int, ctx): ...

@etl.task(foreach="extract", concurrency=4, inputs={"limit": ref("params.limit"), "word": "x"}, retries=0)
def clean(item, limit, word): ...

@etl.task(parallel=3, when={"ref": "tasks.extract.output[0].id", "gt": 1, "le": 9}, input_type={"extract": "list[Row]"})
def check(extract): ...

@etl.task(run_if="all_done", name="join", depends_on=[check])
def joined(clean, day: date): ...

@etl.task(image="box:1", worker="heavy")
def inside(extract): ...

etl.command(
    "boxed", ["run", ref("params.limit")], image="box:1", input={"to_file": "/in.json"}, output={"from_file": "/out.json"},
    resources={"cpu": 0.5, "memory": "64Mi"},
)
etl.command("tell", ["echo", ref("params.day"), "done"], depends_on="join")
etl.approval("ok", "Publish?", not_by="starter", timeout="2h", depends_on="tell")
etl.workflow("child", "other", inputs={"rows": ref("extract")}, depends_on=["ok"])
etl.add("ask", executor="http", config={"url": "http://localhost/"}, depends_on=["child"])
etl.add("built", executor="rust", file="fast.rs", args=["--all"])
etl.add("configured", executor="http", config_file="ask.yaml")
etl.add("there", executor="cloudrun", job="nightly")
"""

IN_YAML = """\
name: everything
description: All there is
schedule: {cron: "0 2 * * *", timezone: Europe/Prague, catchup: last, enabled: false}
params:
  limit: {type: int, default: 5, description: how many}
  day: {type: date}
types: {Row: {id: int, name: str?}}
defaults: {retries: 1, env: {STAGE: test}, environment: env}
max_active_runs: 2
budget: {usd: 5, on_exceed: cancel}
fail_fast: true
alerts: [ops]
tasks:
  extract:
    file: flow.py
    function: extract
    executor: python
    timeout: 10m
    retry_delay: 5
    retry_on: [exit, timeout]
    on_unreachable: fail
    pool: api
    priority: 3
    isolation: interpreter
    cache: 1d
    rate: 10/m
    output_type: list[Row]
    env: {KEY: {secret: KEY}}
  clean:
    file: flow.py
    function: clean
    foreach: tasks.extract.output
    concurrency: 4
    retries: 0
    inputs: {limit: {ref: params.limit}, word: x}
  check:
    file: flow.py
    function: check
    depends_on: [extract]
    parallel: 3
    when: {ref: "tasks.extract.output[0].id", gt: 1, le: 9}
    input_type: {extract: "list[Row]"}
  join:
    file: flow.py
    function: joined
    depends_on: [check, clean]
    run_if: all_done
  inside: {image: "box:1", file: flow.py, function: inside, depends_on: [extract], worker: heavy}
  boxed:
    image: box:1
    command: [run, {ref: params.limit}]
    input: {to_file: /in.json}
    output: {from_file: /out.json}
    resources: {cpu: 500m, memory: 64Mi}
  tell:
    command: [echo, {ref: params.day}, done]
    depends_on: join
  ok:
    approval: {message: "Publish?", timeout: 2h, not_by: starter}
    depends_on: tell
  child:
    workflow: other
    inputs: {rows: {ref: tasks.extract.output}}
    depends_on: ok
  ask:
    executor: http
    config: {url: "http://localhost/"}
    depends_on: [child]
  built: {executor: rust, file: fast.rs, args: ["--all"]}
  configured: {executor: http, config_file: ask.yaml}
  there: {executor: cloudrun, job: nightly}
"""

# What a Python workflow says by other means, or what stands for something else that is there.
SAID_OTHERWISE = {"module", "import", "notebook"}


def test_the_same_workflow_in_yaml_and_in_python_has_equal_content(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(IN_PYTHON)
    (tmp_path / "flow.yaml").write_text(IN_YAML)
    (tmp_path / "fast.rs").write_text("fn main() {}\n")
    (tmp_path / "workers.yaml").write_text("heavy: {where: docker}\n")
    (tmp_path / "ork.yaml").write_text("alerts: {ops: https://example.org}\ngcp: {project: p, region: r}\n")
    (tmp_path / "ask.yaml").write_text("url: http://localhost/\n")
    (tmp_path / ".env").write_text("KEY=hush\n")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    settings = load_settings(folder=str(tmp_path), environ={})
    (in_python,) = read_versions(str(tmp_path / "flow.py"), settings)
    (in_yaml,) = read_versions(str(tmp_path / "flow.yaml"), settings)
    assert to_document(in_python.workflow) == to_document(in_yaml.workflow)
    assert content_hash(in_python.workflow) == content_hash(in_yaml.workflow)


def test_that_pair_uses_every_key_there_is() -> None:
    keys = {*TASK_TABLE.by_name, *WORKFLOW_TABLE.by_name} - SAID_OTHERWISE
    assert [key for key in sorted(keys) if f"{key}:" not in IN_YAML] == []


@pytest.fixture
def example(tmp_path: Path) -> Path:
    folder = tmp_path / "python_workflow"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns(".ork", "__pycache__"))
    return folder


def run_of(done: CompletedProcess[str]) -> dict[str, object]:
    assert done.stdout.strip(), done.stderr
    return dict(json.loads(done.stdout))


def outputs_of(ork_cli: OrkCli, folder: Path, *tasks: str) -> list[object]:
    return [json.loads(ork_cli("output", "@last", task, cwd=folder).stdout) for task in tasks]


def test_a_workflow_of_a_file_runs_by_its_name(example: Path, ork_cli: OrkCli) -> None:
    done = ork_cli("run", "workflow.py", "orders", "-p", "day=2026-03-01", "--json", cwd=example)
    assert (done.returncode, run_of(done)["status"]) == (0, "success"), done.stderr
    receipts, report = outputs_of(ork_cli, example, "receipt", "report")
    assert receipts == ["Brno: 1.04", "Brno: 1.04", "Prague: 1.06", "Prague: 1.06"]
    assert report == "01.03.2026: 4 receipts, Prague sold most"


def test_a_workflow_brings_along_those_it_runs(example: Path, ork_cli: OrkCli) -> None:
    done = ork_cli("run", "workflow.py", "week", "--json", cwd=example)
    assert (done.returncode, run_of(done)["status"]) == (0, "success"), done.stderr
    listed = json.loads(ork_cli("workflows", "--json", cwd=example).stdout)
    assert sorted(entry["name"] for entry in listed["workflows"]) == ["orders", "week"]


def test_the_examples_own_tests_pass(example: Path, plain_environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."],
        cwd=example,
        env=plain_environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_which_workflow_is_meant_must_be_said_where_there_are_several(example: Path, ork_cli: OrkCli) -> None:
    done = ork_cli("run", "workflow.py", cwd=example)
    assert done.returncode == 2
    assert "orders, week" in done.stderr
    done = ork_cli("run", "workflow.py", "oders", cwd=example)
    assert done.returncode == 3
    assert "no workflow `oders`" in done.stderr


def test_validate_deploy_and_graph_take_python_files(example: Path, ork_cli: OrkCli) -> None:
    checked = json.loads(ork_cli("validate", "workflow.py", "--json", cwd=example).stdout)
    assert checked["problems"] == []
    assert {entry["name"]: entry["tasks"] for entry in checked["workflows"]} == {"orders": 4, "week": 3}
    deployed = ork_cli("deploy", "workflow.py", cwd=example)
    assert (deployed.returncode, deployed.stdout.count("✓")) == (0, 2), deployed.stderr
    assert "(unchanged)" in ork_cli("deploy", "workflow.py", cwd=example).stdout
    assert "receipt" in ork_cli("graph", "workflow.py", "orders", cwd=example).stdout
    triggered = ork_cli("trigger", "orders", "-p", "day=2026-03-01", cwd=example)
    assert triggered.returncode == 0, triggered.stderr


def test_validating_leaves_nothing_behind(example: Path, ork_cli: OrkCli) -> None:
    before = sorted(example.rglob("*"))
    ork_cli("validate", "workflow.py", cwd=example, env={"PYTHONDONTWRITEBYTECODE": "1"})
    assert sorted(example.rglob("*")) == before


def test_mistakes_are_shown_all_at_once_in_the_lines_that_hold_them(tmp_path: Path, ork_cli: OrkCli) -> None:
    (tmp_path / "flow.py").write_text(
        "from ork import Workflow\n"
        "etl = Workflow('etl', max_active_run=1)\n"
        "@etl.task(retries='many')\n"
        "def extract() -> list[int]: ...\n"
        "@etl.task(depends_on=['extrct'])\n"
        "def load(extract: list[str]): ...\n"
    )
    done = ork_cli("validate", "flow.py", "--format", "concise", cwd=tmp_path)
    assert done.returncode == 2
    found = [line.split(" ")[:2] for line in done.stdout.splitlines()]
    assert ["flow.py:2:23:", "ORK101"] in found
    assert ["flow.py:3:19:", "ORK103"] in found
    assert ["flow.py:5:23:", "ORK201"] in found
    nothing = ork_cli("run", "flow.py", cwd=tmp_path)
    assert nothing.returncode == 2
    assert "Nothing was run" in nothing.stderr


def test_a_file_that_cannot_be_loaded_is_shown_at_the_line_that_raised(tmp_path: Path, ork_cli: OrkCli) -> None:
    (tmp_path / "flow.py").write_text("print('noise')\nimport not_installed_here\n")
    done = ork_cli("validate", "flow.py", cwd=tmp_path)
    assert done.returncode == 2
    assert "error[ORK510]" in done.stderr
    assert "flow.py:2:1" in done.stderr
    assert "not_installed_here" in done.stderr
    assert "noise" not in done.stdout + done.stderr


def test_tasks_run_in_the_projects_own_environment_which_needs_nothing_of_orks(tmp_path: Path, ork_cli: OrkCli) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / ".venv"], check=True)
    (packages,) = (tmp_path / ".venv" / "lib").glob("python*/site-packages")
    (packages / "only_here.py").write_text("WORD = 'found'\n")
    (tmp_path / "flow.py").write_text(
        "import sys\nfrom only_here import WORD\nfrom ork import Workflow\netl = Workflow('etl')\n"
        "@etl.task\ndef say() -> list[str]:\n    return [WORD, str('yaml' in sys.modules)]\n"
    )
    done = ork_cli("run", "flow.py", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert outputs_of(ork_cli, tmp_path, "say") == [["found", "False"]]
