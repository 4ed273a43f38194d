"""Sensors: tasks that wait without a process. Each hands a function of `from_airflow.py` to Ork, which calls it again and again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from ork.importers.airflow.arguments import ArgumentCode
from ork.importers.airflow.dag_builder import HOOKS, MODULE, DagBuilder, duration_text
from ork.importers.airflow.objects import Operator
from ork.importers.airflow.python_tasks import _write_wrapper, callable_of, needs_context
from ork.importers.project import ImportedTask, Level, Untranslatable, identifier, safe_name
from ork.importers.python.values import SourceFunction

DEFAULT_INTERVAL = 60.0
DEFAULT_TIMEOUT = timedelta(days=7)


def _waiting(
    operator: Operator,
    task: ImportedTask,
    builder: DagBuilder,
    function: str,
    codes: dict[str, str],
    arguments: ArgumentCode,
) -> None:
    """Writes a task that waits until the function returns something."""
    if operator.mapped is not None:
        raise Untranslatable("it is a mapped sensor")
    builder.module.add_import(f"from {MODULE} import wait_for")
    builder.module.uses_replacements = True
    every = _seconds(operator.get("poke_interval"), DEFAULT_INTERVAL)
    given = [repr(function), _map_code(codes), f"{every:g}"]
    _write_wrapper(operator, task, builder, arguments, "wait_for", given, "{0}")
    timeout = operator.get("timeout")
    limit = (
        timeout
        if isinstance(timeout, timedelta)
        else timedelta(seconds=_seconds(timeout, DEFAULT_TIMEOUT.total_seconds()))
    )
    task.keys["timeout"] = duration_text(limit)
    if operator.get("soft_fail") is True:
        task.note(Level.CHECK, "`soft_fail`: the task fails here after its timeout, and is not skipped")


def _map_code(codes: dict[str, str]) -> str:
    return "{" + ", ".join(f"{name!r}: {code}" for name, code in codes.items()) + "}"


def _seconds(value: Any, default: float) -> float:
    if isinstance(value, timedelta):
        return value.total_seconds()
    return float(value) if isinstance(value, int | float) and value > 0 else default


def file_sensor(operator: Operator, task: ImportedTask, builder: DagBuilder) -> None:
    arguments = ArgumentCode(operator, builder)
    path = operator.keywords.get("filepath")
    if path is None:
        raise Untranslatable("it has no `filepath`")
    if not (isinstance(path, str) and path.startswith("/")):
        task.note(Level.CHECK, "a relative path is relative to this project, not to the connection's folder")
    _waiting(operator, task, builder, f"{MODULE}:file_exists", {"path": arguments.code(path)}, arguments)


def time_delta_sensor(operator: Operator, task: ImportedTask, builder: DagBuilder) -> None:
    delta = operator.keywords.get("delta")
    if not isinstance(delta, timedelta):
        raise Untranslatable("its delay is known only when the file is run")
    arguments = ArgumentCode(operator, builder)
    arguments.uses_context = True
    builder.module.add_import("import datetime as datetime_module")
    code = f"(context['data_interval_end'] + datetime_module.timedelta(seconds={delta.total_seconds():g})).isoformat()"
    _waiting(operator, task, builder, f"{MODULE}:time_passed", {"until": code}, arguments)


def date_time_sensor(operator: Operator, task: ImportedTask, builder: DagBuilder) -> None:
    arguments = ArgumentCode(operator, builder)
    code = f"str({arguments.code(operator.keywords.get('target_time'))})"
    _waiting(operator, task, builder, f"{MODULE}:time_passed", {"until": code}, arguments)


def sql_sensor(operator: Operator, task: ImportedTask, builder: DagBuilder) -> None:
    conn, sql = operator.get("conn_id"), operator.keywords.get("sql")
    if not isinstance(conn, str) or not isinstance(sql, str):
        raise Untranslatable("its connection or query is known only when the file is run")
    if any(operator.keywords.get(name) is not None for name in ("success", "failure", "selector")):
        raise Untranslatable("it decides with functions of the file")
    builder.connection_secret(conn, operator.task_id)
    builder.project.requirements |= {"SQLAlchemy"}
    arguments = ArgumentCode(operator, builder)
    _waiting(
        operator, task, builder, f"{HOOKS}:sql_true", {"conn_id": repr(conn), "sql": arguments.code(sql)}, arguments
    )


def s3_key_sensor(operator: Operator, task: ImportedTask, builder: DagBuilder) -> None:
    key, bucket = operator.keywords.get("bucket_key"), operator.keywords.get("bucket_name")
    if isinstance(key, str) and key.startswith("s3://") and bucket is None:
        bucket, _, key = key.removeprefix("s3://").partition("/")
    if not isinstance(key, str) or operator.keywords.get("wildcard_match") or operator.keywords.get("check_fn"):
        raise Untranslatable("it waits for several keys or decides with a function")
    builder.project.requirements.add("boto3")
    arguments = ArgumentCode(operator, builder)
    conn = operator.get("aws_conn_id")
    codes = {
        "bucket": arguments.code(bucket),
        "key": arguments.code(key),
        "conn_id": repr(conn if isinstance(conn, str) else None),
    }
    _waiting(operator, task, builder, f"{HOOKS}:s3_key_exists", codes, arguments)


def gcs_object_sensor(operator: Operator, task: ImportedTask, builder: DagBuilder) -> None:
    builder.project.requirements.add("google-cloud-storage")
    arguments = ArgumentCode(operator, builder)
    codes = {
        "bucket": arguments.code(operator.keywords.get("bucket")),
        "key": arguments.code(operator.keywords.get("object")),
    }
    _waiting(operator, task, builder, f"{HOOKS}:gcs_object_exists", codes, arguments)


def http_sensor(operator: Operator, task: ImportedTask, builder: DagBuilder) -> None:
    if operator.keywords.get("response_check") is not None:
        raise Untranslatable("it decides with a function of the file")
    conn = operator.get("http_conn_id", "http_default")
    if not isinstance(conn, str):
        raise Untranslatable("its connection is known only when the file is run")
    builder.connection_secret(conn, operator.task_id)
    arguments = ArgumentCode(operator, builder)
    builder.module.add_import(f"from {MODULE} import connection_url")
    endpoint = arguments.code(operator.keywords.get("endpoint") or "")
    code = f"connection_url({conn!r}).rstrip('/') + '/' + {endpoint}.lstrip('/')"
    headers = operator.keywords.get("headers")
    _waiting(
        operator,
        task,
        builder,
        f"{HOOKS}:http_succeeds",
        {"url": code, "headers": arguments.code(headers or {})},
        arguments,
    )


def external_task_sensor(operator: Operator, task: ImportedTask, builder: DagBuilder) -> None:
    dag_id = operator.keywords.get("external_dag_id")
    if not isinstance(dag_id, str) or "{{" in dag_id:
        raise Untranslatable("the DAG it waits for is known only when the file is run")
    if operator.keywords.get("execution_date_fn") is not None:
        raise Untranslatable("it computes the time of the other run with a function of the file")
    if operator.keywords.get("external_task_id") or operator.keywords.get("external_task_ids"):
        task.note(Level.CHECK, f"it waits for a successful run of `{dag_id}`, not for one task of it")
    arguments = ArgumentCode(operator, builder)
    arguments.uses_context = True
    delta = operator.keywords.get("execution_delta")
    offset = delta.total_seconds() if isinstance(delta, timedelta) else 0
    builder.module.add_import("import datetime as datetime_module")
    code = f"(context['logical_date'] - datetime_module.timedelta(seconds={offset:g})).isoformat()"
    _waiting(
        operator,
        task,
        builder,
        f"{MODULE}:workflow_succeeded",
        {"workflow": repr(safe_name(dag_id)), "after": code},
        arguments,
    )
    task.note(
        Level.INFO, "it waits for a run of the other workflow that was created after the start of this run's interval"
    )


def python_sensor(operator: Operator, task: ImportedTask, builder: DagBuilder) -> None:
    function = callable_of(operator)
    if not isinstance(function, SourceFunction) or function.name == "<lambda>":
        raise Untranslatable("its function is known only when the file is run")
    missing = getattr(operator, "missing", [])
    if missing:
        raise Untranslatable(f"{missing[0].reason} (line {missing[0].line})")
    given = operator.keywords.get("op_kwargs") or {}
    if needs_context(function, given) or operator.args:
        raise Untranslatable("its function uses the context of Airflow")
    arguments = ArgumentCode(operator, builder)
    values = dict(zip(function.parameters, operator.keywords.get("op_args") or [], strict=False)) | given
    codes = {name: arguments.code(value) for name, value in values.items()}
    name = f"{identifier(builder.names[operator.task_id])}_poke"
    builder.module.wrappers.append(f"def {name}(**given):\n    return {function.name}(**given) or None")
    module = builder.module.path.removesuffix(".py")
    _waiting(operator, task, builder, f"{module}:{name}", codes, arguments)


Translator = Callable[[Operator, ImportedTask, DagBuilder], None]
SENSORS: dict[str, Translator] = {
    "FileSensor": file_sensor,
    "TimeDeltaSensor": time_delta_sensor,
    "DateTimeSensor": date_time_sensor,
    "SqlSensor": sql_sensor,
    "S3KeySensor": s3_key_sensor,
    "GCSObjectExistenceSensor": gcs_object_sensor,
    "HttpSensor": http_sensor,
    "ExternalTaskSensor": external_task_sensor,
    "PythonSensor": python_sensor,
    "@task.sensor": python_sensor,
}
