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


def variable(name: str, default: str | None = None) -> str:
    """A variable of the environment. KeyError if it is not set and there is no default."""
    return os.environ[name] if default is None else os.environ.get(name, default)


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
