"""Airflow DAGs: schedules, edges, operators, templates, and what is left to a person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ork.importers.airflow import import_airflow
from ork.importers.project import Level
from tests.unit.importers.airflow_sources import imported, in_dag, keys


@pytest.mark.parametrize(
    ("keywords", "schedule"),
    [
        ("schedule='0 2 * * *'", "0 2 * * *"),
        ("schedule_interval='@weekly'", "0 0 * * 0"),
        ("schedule=None", None),
        ("schedule='@once'", None),
        ("schedule=timedelta(minutes=15)", "*/15 * * * *"),
        ("schedule=timedelta(hours=6), start_date=datetime(2024, 1, 1, 2, 30)", "30 */6 * * *"),
        ("schedule=timedelta(days=1), start_date=datetime(2024, 1, 1, 4)", "0 4 * * *"),
        ("schedule=timedelta(weeks=1), start_date=datetime(2024, 1, 1)", "0 0 * * 1"),
        (
            "schedule='0 1 * * *', start_date=pendulum.datetime(2024, 1, 1, tz='Europe/Prague')",
            {"cron": "0 1 * * *", "timezone": "Europe/Prague"},
        ),
        ("schedule='@daily', catchup=True", {"cron": "0 0 * * *", "catchup": "all"}),
    ],
)
def test_schedules(tmp_path: Path, keywords: str, schedule: Any) -> None:
    workflow = in_dag(tmp_path, "EmptyOperator(task_id='a')", keywords)
    assert workflow.keys.get("schedule") == schedule


EMPTY = "a, b, c, d = [EmptyOperator(task_id=name) for name in 'abcd']\n"


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ("a >> b >> [c, d]", {"b": ["a"], "c": ["b"], "d": ["b"]}),
        ("[a, b] >> c\nd << c", {"c": ["a", "b"], "d": ["c"]}),
        ("b.set_upstream(a); b.set_downstream([c, d])", {"b": ["a"], "c": ["b"], "d": ["b"]}),
        ("chain(a, [b, c], d)", {"b": ["a"], "c": ["a"], "d": ["b", "c"]}),
        ("chain([a, b], [c, d])", {"c": ["a"], "d": ["b"]}),
        ("cross_downstream([a, b], [c, d])", {"c": ["a", "b"], "d": ["a", "b"]}),
        ("for one, other in zip([a, b], [b, c]):\n    one >> other", {"b": ["a"], "c": ["b"]}),
    ],
)
def test_edges(tmp_path: Path, edges: str, expected: dict[str, list[str]]) -> None:
    workflow = in_dag(tmp_path, EMPTY + edges)
    assert {task.name: task.depends_on for task in workflow.tasks.values() if task.depends_on} == expected


def test_groups_prefix_names_and_are_ends_of_edges(tmp_path: Path) -> None:
    body = """\
    first = EmptyOperator(task_id="first")
    with TaskGroup("g") as group:
        x = EmptyOperator(task_id="x")
        with TaskGroup("inner"):
            y = EmptyOperator(task_id="y")
        x >> y
    first >> group >> EmptyOperator(task_id="last")
    """
    workflow = in_dag(tmp_path, body)
    assert {task.name: task.depends_on for task in workflow.tasks.values()} == {
        "first": [],
        "g_x": ["first"],
        "g_inner_y": ["g_x"],
        "last": ["g_inner_y"],
    }


def test_default_args_become_defaults_and_arguments_win(tmp_path: Path) -> None:
    workflow = in_dag(
        tmp_path,
        "BashOperator(task_id='a', bash_command='true', retries=0, execution_timeout=timedelta(hours=2), pool='api')",
        "schedule=None, default_args={'retries': 3, 'retry_delay': timedelta(seconds=90)}, max_active_runs=2",
    )
    assert workflow.keys["defaults"] == {"retries": 3, "retry_delay": "90s"}
    assert workflow.keys["max_active_runs"] == 2
    assert keys(workflow, "a") == {"command": ["bash", "-c", "true"], "retries": 0, "timeout": "2h", "pool": "api"}


@pytest.mark.parametrize(
    ("rule", "run_if"),
    [("all_success", None), ("all_done", "all_done"), ("one_failed", "any_failed"), ("one_success", "any_success"),
     ("none_failed_min_one_success", "any_success")],
)  # fmt: skip
def test_trigger_rules(tmp_path: Path, rule: str, run_if: str | None) -> None:
    workflow = in_dag(tmp_path, f"EmptyOperator(task_id='a') >> EmptyOperator(task_id='b', trigger_rule='{rule}')")
    assert keys(workflow, "b").get("run_if") == run_if


@pytest.mark.parametrize(
    ("command", "script", "env"),
    [
        ("echo {{ ds }}", "echo ${ds}", {"ds": {"ref": "tasks.airflow_values.output.ds"}}),
        ("echo '{{ ds }}'", "echo ''\"${ds}\"''", {"ds": {"ref": "tasks.airflow_values.output.ds"}}),
        ("echo {{ params.x }}", "echo ${param_x}", {"param_x": {"ref": "params.x"}}),
        ("echo {{ dag_run.conf['k'] }}", "echo ${param_k}", {"param_k": {"ref": "params.k"}}),
        ("echo {{ run_id }} {{ dag.dag_id }} {{ ti.task_id }}", "echo ${run_id} d t", {"run_id": {"ref": "run.id"}}),
        ("echo {{ var.value.key }}", "echo ${AIRFLOW_VAR_KEY}", {"AIRFLOW_VAR_KEY": {"secret": "AIRFLOW_VAR_KEY"}}),
        ("{% raw %}{{ x }}{% endraw %}", {"const": "{{ x }}"}, None),
        ("docker ps --format '{{ '{{' }}'", "docker ps --format ''\"${value}\"''", None),
    ],
)
def test_templates_in_commands(tmp_path: Path, command: str, script: Any, env: Any) -> None:
    workflow = in_dag(tmp_path, f"BashOperator(task_id='t', bash_command={command!r})")
    if env is not None:
        assert keys(workflow, "t") == {"command": ["bash", "-c", script], "env": env}
    elif isinstance(script, dict):
        assert keys(workflow, "t")["command"][2] == script


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        (
            "from airflow.providers.docker.operators.docker import DockerOperator\n"
            "DockerOperator(task_id='t', image='alpine:3', command='echo {{ run_id }} \"a b\"', environment={'A': 1})",
            {"image": "alpine:3", "command": ["echo", {"ref": "run.id"}, "a b"], "env": {"A": "1"}},
        ),
        (
            "from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator\n"
            "KubernetesPodOperator(task_id='t', image='a/b:1', cmds=['sh'], arguments=['-c', 'x'], env_vars={'A': 'b'})",
            {"image": "a/b:1", "command": ["sh", "-c", "x"], "env": {"A": "b"}},
        ),
        (
            "from airflow.providers.http.operators.http import SimpleHttpOperator\n"
            "SimpleHttpOperator(task_id='t', http_conn_id='api', endpoint='v1/x', method='GET', data={'q': '1'})",
            {"executor": "api", "config": {"url": "/v1/x", "method": "GET", "params": {"q": "1"}}},
        ),
        (
            "from airflow.providers.postgres.operators.postgres import PostgresOperator\n"
            "PostgresOperator(task_id='t', postgres_conn_id='pg', sql=\"select * from t where r = '{{ run_id }}'\")",
            {
                "executor": "pg",
                "config": {"query": "select * from t where r = :run_id"},
                "inputs": {"run_id": {"ref": "run.id"}},
            },
        ),
        (
            "from airflow.providers.common.sql.operators.sql import SQLExecuteQueryOperator\n"
            "SQLExecuteQueryOperator(task_id='t', conn_id='my_postgres', sql=['truncate a', 'truncate b'])",
            {"executor": "my_postgres", "config": {"query": "truncate a;\ntruncate b", "fetch": "none"}},
        ),
        ("EmptyOperator(task_id='t')", {"command": ["true"]}),
        (
            "from airflow_dbt.operators.dbt_operator import DbtRunOperator\n"
            "DbtRunOperator(task_id='t', select='orders', dir='/dbt', full_refresh=True)",
            {"command": ["dbt", "run", "--select", "orders", "--project-dir", "/dbt", "--full-refresh"]},
        ),
    ],
)
def test_operators(tmp_path: Path, operator: str, expected: dict[str, Any]) -> None:
    workflow = in_dag(tmp_path, operator)
    assert keys(workflow, "t") == expected


def test_functions_are_copied_with_what_they_use_and_nothing_else(tmp_path: Path) -> None:
    source = """\
    from helper import double
    LIMIT = 3
    UNUSED = open("/does/not/exist") if False else None

    def clean(rows):
        # keeps the comment
        return [double(row) for row in rows][:LIMIT]

    def unrelated():
        return DAG

    with DAG("d", schedule=None):
        PythonOperator(task_id="t", python_callable=clean, op_args=[[1, 2]])
    """
    project = imported(tmp_path, source, helper__py="import requests\nOTHER = 1\ndef double(x):\n    return x * 2\n")
    text = project.files["d_tasks.py"]
    assert "# keeps the comment" in text
    assert "LIMIT = 3" in text
    assert "unrelated" not in text
    assert "airflow" not in text.split('"""')[2]
    assert project.files["helper.py"].endswith("def double(x):\n    return x * 2\n")
    assert "OTHER" not in project.files["helper.py"]
    assert project.workflows[0].tasks["t"].keys["inputs"] == {"rows": [1, 2]}


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ("from x.y import StrangeOperator\nStrangeOperator(task_id='t')", "StrangeOperator has no translation"),
        ("BashOperator(task_id='t', bash_command='{% if ds %}x{% endif %}')", "the template has a block"),
        ("BashOperator(task_id='t', bash_command='gone.sh')", "its script `gone.sh` was not found"),
        ("for x in json.load(open('a')):\n    BashOperator(task_id='t', bash_command='x')", "made by a loop"),
        ("EmptyOperator(task_id='t', trigger_rule='all_skipped')", "its trigger rule `all_skipped` has no counterpart"),
    ],
)
def test_what_is_not_translated_fails_with_its_place(tmp_path: Path, task: str, reason: str) -> None:
    workflow = in_dag(tmp_path, task)
    found = workflow.tasks["t"]
    assert found.level == Level.PERSON
    message = found.keys["command"][-1]
    assert reason in message
    assert f"{found.place.file}:{found.place.line}" in message


def test_a_function_that_uses_other_parts_of_airflow_is_left_to_a_person(tmp_path: Path) -> None:
    before = "from airflow.providers.ftp.hooks.ftp import FTPHook\ndef f():\n    return FTPHook('x')\n"
    workflow = in_dag(tmp_path, "PythonOperator(task_id='t', python_callable=f)", before=before)
    assert "it uses `airflow.providers.ftp.hooks.ftp.FTPHook`" in workflow.tasks["t"].keys["command"][-1]


def test_a_syntax_error_is_reported_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("from airflow import DAG\ndag = DAG('x'\n\ndef f(:\n")
    project = import_airflow(str(tmp_path))
    assert project.workflows == []
    (note,) = project.notes
    assert str(note.place).endswith("bad.py:4") or str(note.place).endswith("bad.py:2")
    assert "not valid Python" in note.text


def test_variables_and_connections_become_secrets(tmp_path: Path) -> None:
    source = """\
    from airflow.providers.postgres.hooks.postgres import PostgresHook
    from airflow.hooks.base import BaseHook
    def f():
        PostgresHook(postgres_conn_id="pg").run("select 1")
        return BaseHook.get_connection("api").host, Variable.get("token"), Variable.get("x", default_var=1)
    with DAG("d", schedule=None):
        PythonOperator(task_id="t", python_callable=f)
        PythonOperator(task_id="u", python_callable=print)
    """
    project = imported(tmp_path, source)
    secrets = ["AIRFLOW_CONN_API", "AIRFLOW_CONN_PG", "AIRFLOW_VAR_TOKEN"]
    assert sorted(project.secrets) == secrets
    assert project.pass_env == ["AIRFLOW_VAR_X"]
    assert sorted(project.workflows[0].tasks["t"].keys["env"]) == secrets
    assert "env" not in project.workflows[0].tasks["u"].keys


def test_packages_that_functions_import_are_listed(tmp_path: Path) -> None:
    before = (
        "import requests, yaml\nfrom google.cloud import bigquery\ndef f():\n    return requests, yaml, bigquery, os\n"
    )
    in_dag(tmp_path, "PythonOperator(task_id='t', python_callable=f)", before=before)
    project = import_airflow(str(tmp_path))
    assert project.requirements == {"requests", "PyYAML", "google-cloud-bigquery"}
