"""The files that are copied into imported projects work there: on the standard library, without Airflow."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ork import Context
from ork.importers.copied import from_airflow
from ork.importers.copied.from_dagster import DynamicOutput, Output, value_of


@pytest.mark.parametrize(
    ("cron", "before", "expected"),
    [
        ("0 0 * * *", "2026-03-02T00:00", "2026-03-01T00:00"),
        ("0 * * * *", "2026-03-02T00:00", "2026-03-01T23:00"),
        ("*/15 9-17 * * mon-fri", "2026-03-02T09:00", "2026-02-27T17:45"),
        ("30 4 1 * *", "2026-03-01T04:30", "2026-02-01T04:30"),
        ("0 12 29 2 *", "2026-03-01T00:00", "2024-02-29T12:00"),
        ("0 0 13 * 5", "2026-03-13T00:00", "2026-03-06T00:00"),
    ],
)
def test_the_time_before(cron: str, before: str, expected: str) -> None:
    found = from_airflow.previous_time(cron, datetime.fromisoformat(before).replace(tzinfo=UTC))
    assert found.strftime("%Y-%m-%dT%H:%M") == expected


def test_a_scheduled_run_covers_the_day_before() -> None:
    ctx = Context(scheduled_for="2026-03-02T01:00:00Z", params={"region": "eu"})
    context = from_airflow.context_of(ctx, dag_id="d", task_id="t", cron="0 2 * * *", timezone="Europe/Prague")
    assert (context["ds"], context["next_ds"], context["params"]) == ("2026-03-01", "2026-03-02", {"region": "eu"})
    assert from_airflow.get_current_context() is context


def test_pulling_and_pushing() -> None:
    outputs = {"a": {"return_value": 1, "k": 2}, "b": {"x": 3}}
    context = from_airflow.context_of(Context(), dag_id="d", task_id="t", outputs=outputs, pushing=frozenset({"a"}))
    ti = context["ti"]
    assert [ti.xcom_pull("a"), ti.xcom_pull("a", key="k"), ti.xcom_pull("b"), ti.xcom_pull("gone")] == [
        1,
        2,
        {"x": 3},
        None,
    ]
    assert ti.xcom_pull(["a", "b"]) == [1, {"x": 3}]

    def push(ti: Any) -> int:
        ti.xcom_push(key="n", value=5)
        return 6

    assert from_airflow.call(push, context, ti, pushes=True) == {"n": 5, "return_value": 6}


def test_connections_are_read_from_urls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_PG", "postgres://user:p%40ss@host:5433/db?sslmode=require")
    found = from_airflow.BaseHook.get_connection("pg")
    assert (found.host, found.login, found.password, found.port, found.schema) == ("host", "user", "p@ss", 5433, "db")
    assert found.extra_dejson == {"sslmode": "require"}
    with pytest.raises(from_airflow.AirflowException, match="set AIRFLOW_CONN_GONE"):
        from_airflow.BaseHook.get_connection("gone")


def test_the_sqlite_hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hooks = _as_in_a_project(monkeypatch)
    monkeypatch.setenv("AIRFLOW_CONN_LITE", f"sqlite://{tmp_path}/x.db")
    hook = hooks.SqliteHook("lite")
    hook.run("create table t (n integer)")
    hook.insert_rows("t", [(1,), (2,)], target_fields=["n"])
    assert hook.get_records("select n from t where n > ?", (1,)) == [(2,)]
    assert hook.get_first("select count(*) from t") == (2,)


def _as_in_a_project(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The hooks import `from_airflow`, which stands beside them in a project."""
    import importlib

    monkeypatch.setitem(sys.modules, "from_airflow", from_airflow)
    return importlib.import_module("ork.importers.copied.from_airflow_hooks")


def test_outputs_of_dagster() -> None:
    assert value_of(Output(1)) == 1
    assert value_of([DynamicOutput(1), DynamicOutput(2)]) == [1, 2]
    assert value_of(each for each in [Output(1, "a"), Output(2, "b")]) == {"a": 1, "b": 2}
    assert value_of(None) is None
