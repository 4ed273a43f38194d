"""Names of Airflow that imported functions use, on top of the standard library. Copied here by `ork import airflow`.

Variables and connections come from environment variables, as Airflow reads them too: AIRFLOW_VAR_NAME and AIRFLOW_CONN_ID.
This file belongs to your project: change it, or replace its uses one by one and delete it.
"""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import time
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit
from zoneinfo import ZoneInfo

SKIPPED = "skipped by its function"  # the output of a task that raised AirflowSkipException


class AirflowException(Exception):  # noqa: N818 - its name in Airflow
    pass


class AirflowFailException(AirflowException):
    pass


class AirflowSkipException(AirflowException):
    pass


class AirflowNotFoundException(AirflowException):
    pass


class AirflowSensorTimeout(AirflowException):
    pass


AirflowTaskTimeout = AirflowSensorTimeout


# Values from the environment.


class Variable:
    """`Variable.get("name")` reads AIRFLOW_VAR_NAME."""

    @staticmethod
    def get(key: str, default_var: Any = ..., deserialize_json: bool = False, default: Any = ...) -> Any:
        text = os.environ.get(f"AIRFLOW_VAR_{key.upper()}")
        fallback = default if default_var is ... else default_var
        if text is None:
            if fallback is ...:
                raise KeyError(f"Variable {key} does not exist: set AIRFLOW_VAR_{key.upper()}")
            return fallback
        return json.loads(text) if deserialize_json else text


class Connection:
    """A connection, read from the URL in AIRFLOW_CONN_ID."""

    def __init__(self, conn_id: str, url: str) -> None:
        self.conn_id = conn_id
        self.url = url
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query))
        self.conn_type = parts.scheme
        self.host = unquote(parts.hostname or "")
        self.login = unquote(parts.username) if parts.username else None
        self.password = unquote(parts.password) if parts.password else None
        self.port = parts.port
        self.schema = unquote(parts.path.lstrip("/"))
        self.extra = query.pop("__extra__", "") or json.dumps(query)
        self.extra_dejson = json.loads(self.extra)

    def get_uri(self) -> str:
        return self.url

    def get_extra_dejson(self) -> Any:
        return self.extra_dejson


def connection_url(conn_id: str) -> str:
    name = f"AIRFLOW_CONN_{conn_id.upper()}"
    url = os.environ.get(name)
    if url is None:
        raise AirflowNotFoundException(f"connection {conn_id} is not defined: set {name}")
    if url.lstrip().startswith("{"):
        given = json.loads(url)
        login = f"{given.get('login') or ''}:{given.get('password') or ''}@" if given.get("login") else ""
        port = f":{given['port']}" if given.get("port") else ""
        url = f"{given.get('conn_type', '')}://{login}{given.get('host') or ''}{port}/{given.get('schema') or ''}"
    return url


class BaseHook:
    @staticmethod
    def get_connection(conn_id: str) -> Connection:
        return Connection(conn_id, connection_url(conn_id))


class DbApiHook:
    """`get_conn`, `run`, `get_records`, `get_first`, `insert_rows` and pandas on a connection of a database driver."""

    default_conn = ""

    def __init__(self, conn_id: str | None = None, *_: Any, schema: str | None = None, **given: Any) -> None:
        named = [value for key, value in given.items() if key.endswith("conn_id")]
        self.conn_id = conn_id or (named[0] if named else self.default_conn)
        self.schema = schema or given.get("database")

    def get_connection(self, conn_id: str) -> Connection:
        return BaseHook.get_connection(conn_id)

    def get_uri(self) -> str:
        return connection_url(self.conn_id)

    def get_conn(self) -> Any:
        raise NotImplementedError

    def get_sqlalchemy_engine(self, engine_kwargs: dict[str, Any] | None = None) -> Any:
        import sqlalchemy

        return sqlalchemy.create_engine(database_url(self.get_uri()), **(engine_kwargs or {}))

    def run(self, sql: Any, autocommit: bool = False, parameters: Any = None, handler: Any = None, **_: Any) -> Any:  # noqa: ARG002
        statements = [sql] if isinstance(sql, str) else list(sql)
        result = None
        connection = self.get_conn()
        try:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement, parameters) if parameters else cursor.execute(statement)
                result = handler(cursor) if handler else None
            connection.commit()
        finally:
            connection.close()
        return result

    def get_records(self, sql: str, parameters: Any = None) -> Any:
        return self.run(sql, parameters=parameters, handler=lambda cursor: cursor.fetchall())

    def get_first(self, sql: str, parameters: Any = None) -> Any:
        return self.run(sql, parameters=parameters, handler=lambda cursor: cursor.fetchone())

    def get_pandas_df(self, sql: str, parameters: Any = None, **given: Any) -> Any:
        import pandas

        connection = self.get_conn()
        try:
            return pandas.read_sql(sql, connection, params=parameters, **given)
        finally:
            connection.close()

    def insert_rows(self, table: str, rows: Any, target_fields: Any = None, commit_every: int = 1000, **_: Any) -> None:
        connection = self.get_conn()
        columns = f" ({', '.join(target_fields)})" if target_fields else ""
        try:
            cursor = connection.cursor()
            for number, row in enumerate(rows, 1):
                marks = ", ".join([self.mark] * len(row))
                cursor.execute(f"INSERT INTO {table}{columns} VALUES ({marks})", tuple(row))
                if commit_every and number % commit_every == 0:
                    connection.commit()
            connection.commit()
        finally:
            connection.close()

    mark = "%s"


class PostgresHook(DbApiHook):
    default_conn = "postgres_default"

    def get_conn(self) -> Any:
        import psycopg2

        url = self.get_uri().replace("postgres://", "postgresql://", 1)
        return psycopg2.connect(url, dbname=self.schema) if self.schema else psycopg2.connect(url)

    def copy_expert(self, sql: str, filename: str) -> None:
        connection = self.get_conn()
        try:
            with open(filename, "r+", encoding="utf-8") as file:
                connection.cursor().copy_expert(sql, file)
            connection.commit()
        finally:
            connection.close()


class MySqlHook(DbApiHook):
    default_conn = "mysql_default"

    def get_conn(self) -> Any:
        import pymysql

        found = self.get_connection(self.conn_id)
        return pymysql.connect(
            host=found.host, user=found.login, password=found.password or "", port=found.port or 3306,
            database=self.schema or found.schema,
        )  # fmt: skip


class SqliteHook(DbApiHook):
    default_conn = "sqlite_default"
    mark = "?"

    def get_conn(self) -> Any:
        import sqlite3

        parts = urlsplit(self.get_uri())
        return sqlite3.connect(unquote(parts.path if not parts.netloc else f"{parts.netloc}{parts.path}"))


class MsSqlHook(DbApiHook):
    default_conn = "mssql_default"

    def get_conn(self) -> Any:
        import pymssql

        found = self.get_connection(self.conn_id)
        return pymssql.connect(found.host, found.login, found.password, self.schema or found.schema)


class HttpHook:
    """`run(endpoint)` sends a request with the package requests."""

    def __init__(self, method: str = "POST", http_conn_id: str = "http_default", **_: Any) -> None:
        self.method = method
        self.http_conn_id = http_conn_id

    def run(
        self, endpoint: str = "", data: Any = None, headers: Any = None, extra_options: Any = None, **given: Any
    ) -> Any:
        import requests

        base = connection_url(self.http_conn_id).rstrip("/")
        key = "params" if self.method == "GET" else "data"
        response = requests.request(
            self.method,
            f"{base}/{endpoint.lstrip('/')}",
            headers=headers,
            **{key: data},
            **(extra_options or {}),
            **given,
        )
        response.raise_for_status()
        return response


class GCSHook:
    """The usual methods, on google-cloud-storage with its own credentials."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def get_conn(self) -> Any:
        from google.cloud import storage

        return storage.Client()

    def list(self, bucket_name: str, prefix: str | None = None, **_: Any) -> Any:
        return [each.name for each in self.get_conn().list_blobs(bucket_name, prefix=prefix)]

    def exists(self, bucket_name: str, object_name: str, **_: Any) -> Any:
        return self.get_conn().bucket(bucket_name).blob(object_name).exists()

    def upload(
        self, bucket_name: str, object_name: str, filename: str | None = None, data: Any = None, **_: Any
    ) -> None:
        blob = self.get_conn().bucket(bucket_name).blob(object_name)
        blob.upload_from_filename(filename) if filename else blob.upload_from_string(data)

    def download(self, bucket_name: str, object_name: str, filename: str | None = None, **_: Any) -> Any:
        blob = self.get_conn().bucket(bucket_name).blob(object_name)
        if filename is None:
            return blob.download_as_bytes()
        blob.download_to_filename(filename)
        return filename

    def delete(self, bucket_name: str, object_name: str) -> None:
        self.get_conn().bucket(bucket_name).blob(object_name).delete()


class S3Hook:
    """The usual methods, on boto3 with its own credentials."""

    def __init__(self, aws_conn_id: str | None = None, **_: Any) -> None:
        self.aws_conn_id = aws_conn_id

    def get_conn(self) -> Any:
        import boto3

        found = os.environ.get(f"AIRFLOW_CONN_{(self.aws_conn_id or 'aws_default').upper()}")
        if not found:
            return boto3.client("s3")
        given = Connection(self.aws_conn_id or "", found)
        return boto3.client(
            "s3", aws_access_key_id=given.login, aws_secret_access_key=given.password,
            region_name=given.extra_dejson.get("region_name"), endpoint_url=given.extra_dejson.get("endpoint_url"),
        )  # fmt: skip

    def check_for_key(self, key: str, bucket_name: str | None = None) -> bool:
        return bool(self.list_keys(bucket_name or "", prefix=key, max_items=1))

    def list_keys(self, bucket_name: str, prefix: str = "", max_items: int | None = None, **_: Any) -> list[str]:
        pages = self.get_conn().get_paginator("list_objects_v2").paginate(Bucket=bucket_name, Prefix=prefix)
        keys = [each["Key"] for page in pages for each in page.get("Contents", [])]
        return keys[:max_items] if max_items else keys

    def read_key(self, key: str, bucket_name: str) -> str:
        return self.get_conn().get_object(Bucket=bucket_name, Key=key)["Body"].read().decode()  # type: ignore[no-any-return]

    def get_key(self, key: str, bucket_name: str) -> Any:
        import boto3

        return boto3.resource("s3").Object(bucket_name, key)

    def load_string(self, string_data: str, key: str, bucket_name: str, **_: Any) -> None:
        self.get_conn().put_object(Bucket=bucket_name, Key=key, Body=string_data.encode())

    def load_bytes(self, bytes_data: bytes, key: str, bucket_name: str, **_: Any) -> None:
        self.get_conn().put_object(Bucket=bucket_name, Key=key, Body=bytes_data)

    def load_file(self, filename: str, key: str, bucket_name: str, **_: Any) -> None:
        self.get_conn().upload_file(filename, bucket_name, key)

    def download_file(self, key: str, bucket_name: str, local_path: str | None = None, **_: Any) -> str:
        target = os.path.join(local_path or ".", os.path.basename(key))
        self.get_conn().download_file(bucket_name, key, target)
        return target

    def delete_objects(self, bucket: str, keys: Any) -> None:
        for key in [keys] if isinstance(keys, str) else keys:
            self.get_conn().delete_object(Bucket=bucket, Key=key)


def database_url(url: str) -> str:
    """The connection as a URL of SQLAlchemy."""
    scheme, separator, rest = url.partition("://")
    names = {"postgres": "postgresql", "mysql": "mysql+pymysql", "mssql": "mssql+pymssql", "redshift": "postgresql"}
    return f"{names.get(scheme, scheme)}{separator}{rest}"


# Times.


class Moment:
    """The times of a run. `cron` is the schedule; a run covers the interval that ends when it is due, as in Airflow."""

    def __init__(
        self, scheduled_for: str | None, cron: str | None = None, timezone: str = "UTC", is_interval: bool = True
    ) -> None:
        zone = ZoneInfo(timezone)
        end = datetime.fromisoformat(scheduled_for) if scheduled_for else datetime.now(UTC)
        begin = previous_time(cron, end.astimezone(zone)) if cron and is_interval else end
        self.data_interval_start = self.logical_date = self.execution_date = begin.astimezone(UTC)
        self.data_interval_end = self.next_execution_date = end.astimezone(UTC)
        self.prev_execution_date = previous_time(cron, begin.astimezone(zone)).astimezone(UTC) if cron else begin
        self.ds = self.logical_date.strftime("%Y-%m-%d")
        self.ds_nodash = self.ds.replace("-", "")
        self.ts = self.logical_date.isoformat()
        self.ts_nodash = self.logical_date.strftime("%Y%m%dT%H%M%S")
        self.ts_nodash_with_tz = self.logical_date.strftime("%Y%m%dT%H%M%S%z")
        self.next_ds = self.data_interval_end.strftime("%Y-%m-%d")
        self.next_ds_nodash = self.next_ds.replace("-", "")
        self.prev_ds = self.prev_execution_date.strftime("%Y-%m-%d")
        self.prev_ds_nodash = self.prev_ds.replace("-", "")
        self.yesterday_ds = (self.logical_date - timedelta(days=1)).strftime("%Y-%m-%d")
        self.yesterday_ds_nodash = self.yesterday_ds.replace("-", "")
        self.tomorrow_ds = (self.logical_date + timedelta(days=1)).strftime("%Y-%m-%d")
        self.tomorrow_ds_nodash = self.tomorrow_ds.replace("-", "")


def previous_time(cron: str, before: datetime) -> datetime:
    """The last time of a cron expression of five fields before a time."""
    minutes, hours, days, months, weekdays = (
        _numbers(field, low, high) for field, (low, high) in zip(cron.split()[-5:], _RANGES, strict=True)
    )
    day_field, weekday_field = cron.split()[-3], cron.split()[-1]
    either = not day_field.startswith("*") and not weekday_field.startswith("*")
    day = before
    for _ in range(366 * 5):
        is_day, is_weekday = day.day in days, (day.isoweekday() % 7) in {each % 7 for each in weekdays}
        if day.month in months and ((is_day or is_weekday) if either else (is_day and is_weekday)):
            for hour in sorted(hours, reverse=True):
                for minute in sorted(minutes, reverse=True):
                    found = day.replace(hour=hour, minute=minute, second=0, microsecond=0)
                    if found < before:
                        return found
        day = (day - timedelta(days=1)).replace(hour=23, minute=59)
    return before


_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_NAMES = {name: number for number, name in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])}
_NAMES |= {
    name: number
    for number, name in enumerate(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1
    )
}


def _numbers(field: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for part in field.lower().split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        begin = low if first in ("*", "?") else _NAMES.get(first[:3]) if not first.isdigit() else int(first)
        end = (
            high
            if first in ("*", "?") or (step and not last)
            else _NAMES.get(last[:3], int(last or begin or 0) if last.isdigit() or not last else 0)
        )
        found |= set(range(begin or 0, (end or 0) + 1, int(step or 1)))
    return found


class macros:  # noqa: N801 - its name in templates
    """The functions of `macros` in templates."""

    datetime = datetime
    timedelta = timedelta
    json = json

    @staticmethod
    def ds_add(ds: str, days: int) -> str:
        return (date.fromisoformat(str(ds)) + timedelta(days=days)).isoformat()

    @staticmethod
    def ds_format(ds: str, before: str, after: str) -> str:
        return datetime.strptime(str(ds), before).strftime(after)


def days_ago(days: int, **_: Any) -> datetime:
    return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=days)


class timezone:  # noqa: N801 - its name in Airflow
    """`airflow.utils.timezone`."""

    utc = UTC

    @staticmethod
    def utcnow() -> Any:
        return datetime.now(UTC)

    @staticmethod
    def datetime(*args: Any, **given: Any) -> Any:
        return datetime(*args, **{"tzinfo": UTC, **given})

    @staticmethod
    def parse(text: str) -> Any:
        return datetime.fromisoformat(text)


# The context of a function.


class TaskInstance:
    """`ti.xcom_pull` reads outputs of upstream tasks, `ti.xcom_push` adds to the own output."""

    def __init__(self, ctx: Any, task_id: str, dag_id: str, outputs: dict[str, Any], pushing: frozenset[str]) -> None:
        self.task_id, self.dag_id = task_id, dag_id
        self.run_id = ctx.run_id
        self.try_number = ctx.attempt
        self.map_index = -1 if ctx.parallel_index is None else ctx.parallel_index
        self.log_url = ""
        self.log = ctx.log
        self.pushed: dict[str, Any] = {}
        self._outputs, self._pushing = outputs, pushing

    def xcom_push(self, key: str, value: Any, **_: Any) -> None:
        self.pushed[key] = value

    def xcom_pull(self, task_ids: Any = None, key: str | None = "return_value", default: Any = None, **_: Any) -> Any:
        if task_ids is None:
            found = [self._one(name, key, None) for name in self._outputs]
            return next((each for each in found if each is not None), default)
        if isinstance(task_ids, str):
            return self._one(task_ids, key, default)
        return [self._one(name, key, default) for name in task_ids]

    def _one(self, task: str, key: str | None, default: Any) -> Any:
        if task not in self._outputs:
            return default
        found = self._outputs[task]
        if task in self._pushing:
            return found.get(key or "return_value", default) if isinstance(found, dict) else default
        if key in (None, "return_value"):
            return found
        return found.get(key, default) if isinstance(found, dict) else default


class _Record:
    """A few attributes of something in the context."""

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)


class _VariableTree:
    """`var.value.name` and `var.json.name`."""

    def __init__(self, is_json: bool) -> None:
        self._is_json = is_json

    def __getattr__(self, name: str) -> Any:
        return Variable.get(name, deserialize_json=self._is_json)

    def get(self, name: str, default: Any = None) -> Any:
        return Variable.get(name, default_var=default, deserialize_json=self._is_json)


Context = dict
DagRun = DAG = Any
_current: dict[str, Any] = {}


def context_of(
    ctx: Any,
    *,
    dag_id: str,
    task_id: str,
    cron: str | None = None,
    timezone: str = "UTC",
    is_interval: bool = True,
    outputs: dict[str, Any] | None = None,
    pushing: frozenset[str] = frozenset(),
    params: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The context that Airflow would pass to the function of a task. `params` are those of the task itself."""
    when = Moment(ctx.scheduled_for, cron, timezone, is_interval)
    given = dict(ctx.params or {})
    ti = TaskInstance(ctx, task_id, dag_id, outputs or {}, pushing)
    ti.execution_date = ti.logical_date = when.logical_date  # type: ignore[attr-defined]
    kind = "scheduled" if ctx.scheduled_for else "manual"
    dag_run = _Record(
        conf=given, run_id=ctx.run_id, dag_id=dag_id, run_type=kind, external_trigger=kind == "manual", **vars(when)
    )
    _current.clear()
    _current.update(
        {
            **vars(when),
            "ti": ti,
            "task_instance": ti,
            "params": {**given, **(params or {})},
            "dag_run": dag_run,
            "run_id": ctx.run_id,
            "dag": _Record(dag_id=dag_id),
            "task": _Record(task_id=task_id, dag_id=dag_id),
            "macros": macros,
            "var": _Record(value=_VariableTree(False), json=_VariableTree(True)),
            "conn": _Record(),
            "test_mode": False,
            "task_instance_key_str": f"{dag_id}__{task_id}__{when.ds_nodash}",
            "outlets": [],
            "inlets": [],
            "templates_dict": None,
        }
    )
    return _current


def get_current_context() -> dict[str, Any]:
    return _current


def call(function: Any, context: dict[str, Any], *args: Any, pushes: bool = False, **keywords: Any) -> Any:
    """Calls the function with its arguments; adds what it pushed to its output."""
    try:
        found = function(*args, **keywords)
    except AirflowSkipException as reason:
        print(f"skipped: {reason}")
        return SKIPPED
    return {**context["ti"].pushed, "return_value": found} if pushes else found


def rest(context: dict[str, Any], *names: str) -> dict[str, Any]:
    """The context without these names."""
    return {name: value for name, value in context.items() if name not in names}


def value_of(value: Any) -> Any:
    """The value as a template shows it: JSON as it is, anything else as text."""
    return value if value is None or isinstance(value, str | int | float | bool | list | dict) else str(value)


def chosen(branch: Any) -> dict[str, bool]:
    """The output of a branch: the tasks that it chose."""
    names = [branch] if isinstance(branch, str) else list(branch or [])
    return {re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_-"): True for name in names}


# Operators of your own.


class BaseOperator:
    """Keeps the arguments; `execute` is yours."""

    template_fields: Any = ()
    template_ext: Any = ()
    ui_color = ""

    def __init__(self, task_id: str = "", **given: Any) -> None:
        self.task_id = task_id
        self.poke_interval = given.get("poke_interval", 60)
        self.params = given.get("params", {})
        self.log = logging.getLogger(task_id or "task")

    def xcom_push(self, context: dict[str, Any], key: str, value: Any, **_: Any) -> None:
        context["ti"].xcom_push(key, value)

    def xcom_pull(self, context: dict[str, Any], *args: Any, **given: Any) -> Any:
        return context["ti"].xcom_pull(*args, **given)


class BaseSensorOperator(BaseOperator):
    def poke_until_true(self, context: dict[str, Any]) -> Any:
        """Calls `poke` until it returns something true."""
        while True:
            found = self.poke(context)  # type: ignore[attr-defined]
            if found:
                return None if found is True else getattr(found, "xcom_value", None)
            time.sleep(float(getattr(self.poke_interval, "total_seconds", lambda: self.poke_interval)()))


class BaseBranchOperator(BaseOperator):
    def execute(self, context: dict[str, Any]) -> Any:
        return self.choose_branch(context)  # type: ignore[attr-defined]


class PokeReturnValue:
    def __init__(self, is_done: bool, xcom_value: Any = None) -> None:
        self.is_done, self.xcom_value = is_done, xcom_value

    def __bool__(self) -> bool:
        return self.is_done


class LoggingMixin:
    @property
    def log(self) -> logging.Logger:
        return logging.getLogger(type(self).__name__)


def apply_defaults(function: Any) -> Any:
    return function


def provide_session(function: Any) -> Any:
    return function


# Commands and SQL whose text is known only when the task runs.


def run_bash(script: str, env: dict[str, str] | None = None, cwd: str | None = None) -> str:
    """Runs a script and returns the last line that it printed, as BashOperator does."""
    last = ""
    process = subprocess.Popen(
        ["bash", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
        errors="replace", env={**os.environ, **(env or {})}, cwd=cwd,
    )  # fmt: skip
    assert process.stdout is not None
    for line in process.stdout:
        print(line, end="", flush=True)
        last = line.rstrip()
    if process.wait() != 0:
        raise AirflowException(f"the command failed with exit code {process.returncode}")
    return last


def run_http(
    conn_id: str,
    method: str = "POST",
    endpoint: str = "",
    data: Any = None,
    headers: Any = None,
    extra_options: Any = None,
    response_check: Any = None,
    response_filter: Any = None,
) -> Any:
    """Sends a request, checks the response, and returns its text or what the filter makes of it."""
    response = HttpHook(method, conn_id).run(endpoint, data, headers, extra_options)
    if response_check is not None and not response_check(response):
        raise AirflowException("the response check returned False")
    return response_filter(response) if response_filter is not None else response.text


def run_sql(conn_id: str, sql: Any, parameters: Any = None, schema: str | None = None) -> Any:
    """Runs statements with SQLAlchemy in one transaction and returns the rows of the last one."""
    import sqlalchemy

    url = sqlalchemy.engine.make_url(database_url(connection_url(conn_id)))
    engine = sqlalchemy.create_engine(url.set(database=schema) if schema else url)
    rows: list[list[Any]] = []
    with engine.begin() as connection:
        for statement in [sql] if isinstance(sql, str) else sql:
            result = (
                connection.exec_driver_sql(statement, parameters)
                if parameters
                else connection.exec_driver_sql(statement)
            )
            rows = [[_plain(cell) for cell in row] for row in result] if result.returns_rows else []
    return rows


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


# Sensors: each is called again and again without a process in between, until it returns something.


def wait_for(function: str, args: dict[str, Any], every: float) -> Any:
    """Hands the wait over to Ork: `function` of this project is polled every few seconds."""
    import ork

    return ork.defer(ork.call_job(function, args, every=every))


def file_exists(path: str) -> str | None:
    import glob

    return next(iter(sorted(glob.glob(path))), None)


def time_passed(until: str) -> str | None:
    return until if datetime.now(UTC) >= datetime.fromisoformat(until) else None


def sql_true(conn_id: str, sql: str) -> Any:
    rows = run_sql(conn_id, sql)
    return rows[0] if rows and rows[0] and rows[0][0] not in (0, "0", "", None) else None


def s3_key_exists(bucket: str, key: str, conn_id: str | None = None) -> bool | None:
    return True if S3Hook(conn_id).check_for_key(key, bucket) else None


def gcs_object_exists(bucket: str, key: str) -> bool | None:
    from google.cloud import storage

    return True if storage.Client().bucket(bucket).blob(key).exists() else None


def http_succeeds(url: str, headers: dict[str, str] | None = None) -> bool | None:
    from urllib.request import Request, urlopen

    try:
        with urlopen(Request(url, headers=headers or {}), timeout=30) as response:
            return True if response.status < 400 else None
    except OSError:
        return None


def workflow_succeeded(workflow: str, after: str) -> str | None:
    """The id of a successful run of another workflow that was created after a time."""
    import sys

    listed = subprocess.run(
        [sys.executable, "-m", "ork", "runs", "--workflow", workflow, "--status", "success", "--after", after, "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found = json.loads(listed.stdout)
    runs = found["runs"] if isinstance(found, dict) else found
    return runs[0]["id"] if runs else None


def is_latest(scheduled_for: str | None, cron: str | None, zone: str = "UTC") -> bool:
    """Whether no later time of the schedule has come; always true for runs that a person started."""
    if not scheduled_for or not cron:
        return True
    last = previous_time(cron, datetime.now(ZoneInfo(zone)))
    return datetime.fromisoformat(scheduled_for) >= last.astimezone(UTC)
