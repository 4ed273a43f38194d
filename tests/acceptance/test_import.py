"""`ork import`: projects that were imported run, schedule and fail as the originals would."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]

DAGS = """\
from datetime import datetime, timedelta
from airflow import DAG
from airflow.decorators import dag, task
from airflow.exceptions import AirflowSkipException
from airflow.models import Variable
from airflow.operators.bash import BashOperator
from airflow.operators.empty import EmptyOperator
from airflow.operators.python import BranchPythonOperator, PythonOperator
from airflow.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sensors.filesystem import FileSensor
from airflow.models import BaseOperator
from helpers import double

class Add(BaseOperator):
    template_fields = ("number",)

    def __init__(self, number, **kwargs):
        super().__init__(**kwargs)
        self.number = number

    def execute(self, context):
        return int(self.number) + context["ti"].xcom_pull(task_ids="transform")[0]

def extract(**context):
    context["ti"].xcom_push(key="count", value=3)
    return {"day": context["ds"], "rows": [1, 2, 3]}

def transform(ti, factor):
    return [double(row) * factor for row in ti.xcom_pull(task_ids="extract")["rows"]]

def choose(**context):
    return "big" if context["ti"].xcom_pull(task_ids="extract", key="count") > 2 else "small"

def maybe():
    raise AirflowSkipException("nothing to do")

with DAG("etl", schedule="0 2 * * *", start_date=datetime(2024, 1, 1), catchup=False, params={"region": "eu"},
         default_args={"retries": 1, "retry_delay": timedelta(seconds=1)}) as etl:
    e = PythonOperator(task_id="extract", python_callable=extract)
    t = PythonOperator(task_id="transform", python_callable=transform, op_kwargs={"factor": 10})
    b = BranchPythonOperator(task_id="choose", python_callable=choose)
    big = BashOperator(task_id="big", bash_command="echo '{{ params.region }}' $(( {{ ti.xcom_pull(task_ids='extract', key='count') }} + 1 )) > big.txt")
    small = BashOperator(task_id="small", bash_command="touch small.txt")
    join = EmptyOperator(task_id="join", trigger_rule="none_failed_min_one_success")
    line = BashOperator(task_id="line", bash_command="echo first; echo {{ macros.ds_format(ds, '%Y-%m-%d', '%Y') }}")
    show = PythonOperator(task_id="show", python_callable=str, op_args=["{{ ti.xcom_pull(task_ids='line') }}!"])
    skip = PythonOperator(task_id="skip", python_callable=maybe)
    after_skip = BashOperator(task_id="after_skip", bash_command="touch skipped.txt")
    add = Add(task_id="add", number="{{ 40 + 2 }}")
    child = TriggerDagRunOperator(task_id="child", trigger_dag_id="flow", conf={"n": 2}, wait_for_completion=True)
    wait = FileSensor(task_id="wait", filepath="big.txt", poke_interval=1)
    e >> t >> b >> [big, small] >> join >> child
    t >> add
    e >> line >> show
    e >> skip >> after_skip
    big >> wait

@dag(schedule=None)
def flow(n: int = 3):
    @task
    def numbers(n):
        return list(range(n))

    @task
    def square(x, plus):
        return x * x + plus

    @task
    def total(values, label):
        return f"{label}: {sum(values)}"

    total(square.partial(plus=1).expand(x=numbers(n)), label="sum")

flow()
"""


@pytest.fixture
def run_of(ork_cli: OrkCli) -> Callable[[Path, str], dict[str, Any]]:
    """Runs a workflow and returns the status and output of each task."""

    def run(folder: Path, file: str) -> dict[str, Any]:
        ork_cli("run", file, "--progress", "quiet", cwd=folder)
        shown = json.loads(ork_cli("show", "@last", "--json", cwd=folder).stdout)
        return {task["name"]: (task["status"], task.get("output")) for task in shown["tasks"]}

    return run


def test_an_airflow_folder_runs_as_it_did(tmp_path: Path, ork_cli: OrkCli, run_of: Any) -> None:
    dags = tmp_path / "dags"
    dags.mkdir()
    (dags / "flows.py").write_text(DAGS)
    (dags / "helpers.py").write_text("def double(x):\n    return x * 2\n")
    done = ork_cli("import", "airflow", "dags", "-o", "out", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["tasks"]["person"] == 0, report["notes"]
    out = tmp_path / "out"
    assert ork_cli("validate", "etl.yaml", "flow.yaml", cwd=out).returncode == 0
    assert "import airflow" not in (out / "etl_tasks.py").read_text()
    found = run_of(out, "etl.yaml")
    states = {name: status for name, (status, _) in found.items()}
    assert {name for name, status in states.items() if status != "success"} == {"small", "after_skip"}, states
    assert states["small"] == states["after_skip"] == "skipped"
    output = {
        name: json.loads(ork_cli("output", "@last", name, cwd=out).stdout)
        for name in ("transform", "show", "add", "child")
    }
    assert output["transform"] == [20, 40, 60]
    assert output["show"].endswith("!")
    assert len(output["show"]) == 5  # the year that the other command printed
    assert output["add"] == 62
    assert output["child"] == "sum: 3"
    assert (out / "big.txt").read_text() == "eu 4\n"
    assert not (out / "small.txt").exists()
    assert not (out / "skipped.txt").exists()
    planned = ork_cli("plan", "etl.yaml", cwd=out)
    assert "0 2 * * *" in planned.stdout


CRONTAB = """\
MAILTO=ops@example.org
GREETING="good morning"
# writes a greeting
*/5 * * * * echo "$GREETING" > {folder}/greeting.txt
@daily cat > {folder}/input.txt%first%second
0 3 * * * exit 3
"""


def test_a_crontab_becomes_scheduled_workflows_that_run(tmp_path: Path, ork_cli: OrkCli, run_of: Any) -> None:
    (tmp_path / "tab").write_text(CRONTAB.format(folder=tmp_path))
    done = ork_cli(
        "import", "crontab", "tab", "--retries", "1", "--timezone", "Europe/Prague", "-o", "out", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "3 workflows, 3 tasks" in done.stdout
    out = tmp_path / "out"
    assert run_of(out, "echo.yaml")["run"][0] == "success"
    assert (tmp_path / "greeting.txt").read_text() == "good morning\n"
    assert run_of(out, "cat.yaml")["run"][0] == "success"
    assert (tmp_path / "input.txt").read_text() == "first\nsecond\n"
    files = sorted(path.name for path in out.glob("*.yaml"))
    assert "ork.yaml" in files  # `*.yaml` names the settings as well
    deployed = ork_cli("deploy", *files, cwd=out)
    assert deployed.returncode == 0, deployed.stderr
    schedules = json.loads(ork_cli("schedules", "--json", cwd=out).stdout)
    assert "Europe/Prague" in json.dumps(schedules)
    assert "MAILTO=ops@example.org" in (out / "REPORT.md").read_text()


GITHUB = """\
on: {schedule: [{cron: "0 3 * * *"}], workflow_dispatch: {inputs: {level: {default: info}}}}
env: {LEVEL: "${{ inputs.level }}"}
jobs:
  build:
    runs-on: ubuntu-latest
    outputs: {version: "${{ steps.v.outputs.version }}"}
    steps:
      - uses: actions/checkout@v4
      - {id: v, run: 'echo "version=1.2" >> $GITHUB_OUTPUT; echo "NAME=ork" >> $GITHUB_ENV'}
      - {run: 'false; touch not-reached', continue-on-error: true}
      - run: echo "$NAME $LEVEL '${{ steps.v.outputs.version }}'" > built.txt
  test:
    needs: build
    strategy: {matrix: {python: ["3.11", "3.12"], os: [a, b], exclude: [{python: "3.11", os: b}]}}
    steps: [{run: 'echo "${{ matrix.python }} ${{ matrix.os }} ${{ needs.build.outputs.version }}"'}]
  deploy: {needs: [build], steps: [{uses: some/deploy@v1}]}
  report: {needs: [build, deploy], if: always(), steps: [{run: touch reported}]}
  never: {needs: [build], if: "inputs.level == 'debug'", steps: [{run: touch never}]}
"""


def test_github_actions(tmp_path: Path, ork_cli: OrkCli, run_of: Any) -> None:
    file = tmp_path / ".github/workflows/nightly.yml"
    file.parent.mkdir(parents=True)
    file.write_text(GITHUB)
    done = ork_cli("import", "github-actions", str(file), "-o", "out", cwd=tmp_path)
    assert "the action `some/deploy@v1` has no translation" in done.stdout
    found = run_of(tmp_path / "out", "nightly.yaml")
    states = {name: status for name, (status, _) in found.items()}
    assert states == {
        "build": "success",
        "test": "success",
        "deploy": "failed",
        "report": "success",
        "never": "skipped",
    }
    assert (tmp_path / "built.txt").read_text() == "ork info '1.2'\n"
    assert not (tmp_path / "not-reached").exists()
    assert not (tmp_path / "never").exists()
    logs = ork_cli("logs", "@last", "test", cwd=tmp_path / "out").stdout
    assert sorted(line.partition("| ")[2] for line in logs.splitlines()) == ["3.11 a 1.2", "3.12 a 1.2", "3.12 b 1.2"]


PREFECT = """\
from prefect import flow, get_run_logger, task, unmapped
FACTOR = 3

@task(retries=2, retry_delay_seconds=1)
def numbers(n):
    get_run_logger().info("numbers %s", n)
    return list(range(n))

@task
def times(x, factor):
    return x * factor

@task(name="sum up")
def total(values, label):
    return {"label": label, "total": sum(values)}

@flow(name="pipeline")
def pipeline(n: int = 4):
    found = total.submit(times.map(numbers(n), factor=unmapped(FACTOR)), label=f"up to {n}").result()
    if found["total"] > 100:
        numbers(1)
    return found

if __name__ == "__main__":
    pipeline.serve(name="x", cron="0 4 * * *")
"""


def test_prefect(tmp_path: Path, ork_cli: OrkCli, run_of: Any) -> None:
    (tmp_path / "flow.py").write_text(PREFECT)
    done = ork_cli("import", "prefect", "flow.py", "-o", "out", cwd=tmp_path)
    assert (
        "flow.py:21: pipeline/numbers_2: it depends on a condition that is known only when the flow runs" in done.stdout
    )
    out = tmp_path / "out"
    assert "schedule: 0 4 * * *" in (out / "pipeline.yaml").read_text()
    run_of(out, "pipeline.yaml")
    assert json.loads(ork_cli("output", "@last", "sum_up", cwd=out).stdout) == {"label": "up to 4", "total": 18}


DAGSTER = """\
from dagster import (AssetExecutionContext, Definitions, DynamicOutput, Output, RetryPolicy, ScheduleDefinition, asset,
                     define_asset_job, job, op)

@asset(retry_policy=RetryPolicy(max_retries=2, delay=1))
def raw():
    return [1, 2, 3]

@asset
def doubled(context: AssetExecutionContext, raw):
    context.log.info("rows %s", len(raw))
    return Output([x * 2 for x in raw], metadata={"n": 3})

@asset(deps=[doubled])
def done() -> None:
    print("done")

daily = define_asset_job("daily", selection="*")
schedule = ScheduleDefinition(job=daily, cron_schedule="0 6 * * *", execution_timezone="Europe/Prague")

@op
def numbers():
    for number in range(3):
        yield DynamicOutput(number, mapping_key=str(number))

@op
def square(x):
    return x * x

@op
def add(values):
    return sum(values)

@job
def squares():
    add(numbers().map(square).collect())

defs = Definitions(assets=[raw, doubled, done], jobs=[daily, squares], schedules=[schedule])
"""


def test_dagster(tmp_path: Path, ork_cli: OrkCli, run_of: Any) -> None:
    (tmp_path / "defs.py").write_text(DAGSTER)
    assert ork_cli("import", "dagster", "defs.py", "-o", "out", cwd=tmp_path).returncode == 0
    out = tmp_path / "out"
    assert "{cron: 0 6 * * *, timezone: Europe/Prague}" in (out / "daily.yaml").read_text()
    assert {status for status, _ in run_of(out, "daily.yaml").values()} == {"success"}
    assert json.loads(ork_cli("output", "@last", "doubled", cwd=out).stdout) == [2, 4, 6]
    run_of(out, "squares.yaml")
    assert json.loads(ork_cli("output", "@last", "add", cwd=out).stdout) == 5


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("crontab", "gone"), 3, "there is no gone"),
        (("crontab", "binary"), 2, "binary is not text"),
        (("airflow", "empty"), 2, "nothing to import in empty"),
        (("airflow", "broken"), 2, "broken/dag.py:2: not valid Python"),
        (("github-actions", "bad.yml"), 2, "bad.yml:1: not valid YAML"),
        (("github-actions", "other.yml"), 2, "it has no `jobs`"),
        (("prefect", "broken/dag.py"), 2, "not valid Python"),
        (("dagster", "empty"), 2, "nothing to import"),
        (("crontab", "tab", "-o", "full"), 4, "full is not empty: nothing was written"),
        (("crontab", "tab", "-o", "tab"), 4, "tab is not a folder"),
    ],
)
def test_wrong_input_writes_nothing(
    tmp_path: Path, ork_cli: OrkCli, arguments: tuple[str, ...], code: int, message: str
) -> None:
    (tmp_path / "binary").write_bytes(b"\x7fELF\0\0")
    (tmp_path / "tab").write_text("0 * * * * true\n")
    for folder in ("empty", "full", "broken"):
        (tmp_path / folder).mkdir()
    (tmp_path / "full/file").touch()
    (tmp_path / "broken/dag.py").write_text("from airflow import DAG\nx = DAG('a'))\n")
    (tmp_path / "bad.yml").write_text("{")
    (tmp_path / "other.yml").write_text("a: 1\n")
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    given = arguments if "-o" in arguments else (*arguments, "-o", "out")
    done = ork_cli("import", *given, cwd=tmp_path)
    assert (done.returncode, message in done.stderr) == (code, True), done.stderr
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before
