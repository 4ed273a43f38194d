"""Calls a Python function, sends an HTTP request or runs SQL for task.py. Written by `ork eject`; plain Python 3.11.

Reads what to do from $ORK_INPUT_FILE and writes the output to $ORK_OUTPUT_FILE.
"""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import importlib
import importlib.util
import inspect
import json
import logging
import os
import sys
import types
import typing
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

FINAL = 65  # the exit code of a failure that is not retried
HERE = Path(__file__).resolve().parent


class Context:
    """What a parameter named `ctx` receives."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.run_id, self.task_name = os.environ["ORK_RUN_ID"], os.environ["ORK_TASK_NAME"]
        self.workflow_name, self.task_id = os.environ["ORK_WORKFLOW_NAME"], os.environ["ORK_TASK_ID"]
        self.attempt = int(os.environ["ORK_ATTEMPT"])
        index, count = os.environ.get("ORK_PARALLEL_INDEX"), os.environ.get("ORK_PARALLEL_COUNT")
        self.parallel_index: int | None = int(index) if index else None
        self.parallel_count: int | None = int(count) if count else None
        self.scheduled_for = os.environ.get("ORK_SCHEDULED_FOR")
        self.params, self.upstream_states = spec["params"], spec["states"]
        self.failed = [name for name, state in spec["states"].items() if state != "success"]
        self.log, self.metrics = _Log(), _Metrics()


class _Log:
    def __getattr__(self, level: str) -> Any:
        def line(message: str, *args: Any, **fields: Any) -> None:
            text = message % args if args else message
            print(" ".join([text, *(f"{name}={value}" for name, value in fields.items())]), file=sys.stderr)

        return line


class _Metrics:
    def set(self, name: str, number: float) -> None:
        print(f"{name}={number}", file=sys.stderr)

    def incr(self, name: str, number: float = 1) -> None:
        print(f"{name}+={number}", file=sys.stderr)


class TaskError(Exception):
    """Fails the task with one sentence; with `retry=False` it is not retried."""

    def __init__(self, message: str, *, retry: bool = True) -> None:
        super().__init__(message)
        self.retry = retry


def offer_names() -> None:
    """Lets functions import `Context` and `TaskError` from `ork` where it is not installed."""
    if importlib.util.find_spec("ork") is None:
        module = types.ModuleType("ork")
        module.Context, module.TaskError = Context, TaskError  # type: ignore[attr-defined]
        sys.modules["ork"] = module


def call(spec: dict[str, Any]) -> Any:
    """Calls the function. Arguments come from inputs, then upstream tasks, then params, then defaults."""
    action = spec["action"]
    code = HERE / "code"
    sys.path[:0] = [str(Path.cwd()), str(code)]
    offer_names()
    if action["module"]:
        module = importlib.import_module(action["module"])
    else:
        path = Path(action["file"])
        path = path if path.is_file() else code / str(path).lstrip("/")
        found = importlib.util.spec_from_file_location(path.stem, path)
        assert found is not None
        assert found.loader is not None
        module = importlib.util.module_from_spec(found)
        sys.modules[path.stem] = module
        found.loader.exec_module(module)
    function: Any = module
    for name in action["function"].split("."):
        function = getattr(function, name)
    result = function(**arguments(function, spec))
    return asyncio.run(result) if inspect.iscoroutine(result) else result


def arguments(function: Any, spec: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    try:
        hints = typing.get_type_hints(function)
    except Exception:
        hints = {}
    signature = inspect.signature(function)
    takes_any = any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values())
    for name, parameter in signature.parameters.items():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        if name == "ctx" or getattr(hints.get(name), "__name__", "") == "Context":
            found[name] = Context(spec)
            continue
        sources = [spec["inputs"], {"item": spec["item"]} if "item" in spec else {}, spec["upstream"], spec["params"]]
        source = next((each for each in sources if name in each), None)
        if source is not None:
            value = source[name]
            found[name] = value if value is None or name not in hints else convert(value, hints[name])
        elif parameter.default is parameter.empty:
            raise TypeError(f"the parameter {name} has no value")
    if takes_any:
        found |= {name: value for name, value in spec["inputs"].items() if name not in found}
    return found


def convert(value: Any, kind: Any) -> Any:
    """The JSON value as the annotated type."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _first_that_fits(value, args)
    if origin in (list, tuple, set, frozenset) or kind in (tuple, set, frozenset):
        made = origin or kind
        item = args[0] if args else Any
        if made is tuple and args and args[-1] is not Ellipsis:
            return tuple(convert(each, part) for each, part in zip(value, args, strict=True))
        return made(convert(each, item) for each in value)
    if origin is dict and len(args) == 2:
        return {convert(key, args[0]): convert(each, args[1]) for key, each in value.items()}
    if origin is typing.Annotated:
        return convert(value, args[0])
    if not isinstance(kind, type):
        return value
    if kind in (date, datetime, time):
        return kind.fromisoformat(value)
    if kind is timedelta:
        return timedelta(seconds=value)
    if kind in (Decimal, UUID, Path):
        return kind(str(value))
    if issubclass(kind, enum.Enum):
        return kind(value)
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return kind(**{name: convert(each, hints.get(name, Any)) for name, each in value.items()})
    if hasattr(kind, "model_validate"):
        return kind.model_validate(value)
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        pairs = value if isinstance(value, dict) else dict(zip(kind._fields, value, strict=True))
        hints = typing.get_type_hints(kind)
        return kind(**{name: convert(each, hints.get(name, Any)) for name, each in pairs.items()})
    return float(value) if kind is float and isinstance(value, int) else value


def _first_that_fits(value: Any, kinds: tuple[Any, ...]) -> Any:
    if value is None and type(None) in kinds:
        return None
    for kind in kinds:
        if kind is type(None):
            continue
        try:
            found = convert(value, kind)
        except (TypeError, ValueError, AttributeError):
            continue
        if not isinstance(kind, type) or isinstance(found, kind):
            return found
    raise TypeError(f"{value!r} fits none of {kinds}")


def plain(value: Any) -> Any:
    """The result as JSON."""
    if value is None or (isinstance(value, str | int | float | bool) and not isinstance(value, enum.Enum)):
        return value
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if isinstance(value, dict):
        return {str(plain(key)): plain(each) for key, each in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Decimal | UUID | Path):
        return str(value)
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def http(spec: dict[str, Any]) -> Any:
    """Sends the request of an `executor: http` task."""
    from urllib.error import HTTPError
    from urllib.parse import urlencode, urljoin
    from urllib.request import Request, urlopen

    config = {**(spec["action"]["shared"] or {}), **(spec["action"]["config"] or {})}
    base = config.get("base_url")
    url = (
        urljoin(base.rstrip("/") + "/", str(config["url"]).lstrip("/"))
        if base and "://" not in config["url"]
        else config["url"]
    )
    query = {name: value for name, value in (config.get("params") or {}).items() if value is not None}
    if query:
        url += ("&" if "?" in url else "?") + urlencode(query, doseq=True)
    method = config.get("method", "GET").upper()
    headers = {**((spec["action"]["shared"] or {}).get("headers") or {}), **(config.get("headers") or {})}
    body = config.get("body")
    data = body.encode() if isinstance(body, str) else None
    payload = config.get(
        "json", spec["inputs"] or None if data is None and method in ("POST", "PUT", "PATCH") else None
    )
    if data is None and payload is not None:
        data, headers = json.dumps(payload).encode(), {"Content-Type": "application/json", **headers}
    request = Request(url, data=data, method=method, headers={name: str(value) for name, value in headers.items()})
    try:
        with urlopen(request, timeout=config.get("timeout", 30)) as response:
            status, kind, content = response.status, response.headers.get("Content-Type", ""), response.read()
    except HTTPError as error:
        status, kind, content = error.code, error.headers.get("Content-Type", ""), error.read()
    expected = config.get("expect")
    is_fine = (
        200 <= status < 300 if expected is None else status in (expected if isinstance(expected, list) else [expected])
    )
    if not is_fine:
        print(f"{method} {url}: HTTP {status}", file=sys.stderr)
        sys.exit(1 if status in (408, 425, 429) or status >= 500 else FINAL)
    form = config.get("output", "auto")
    if form == "none":
        return None
    return json.loads(content) if form == "json" or (form == "auto" and "json" in kind) else content.decode()


def sql(spec: dict[str, Any]) -> Any:
    """Runs the query of an `executor: sql` task: SQLite, or Postgres with psycopg or psycopg2."""
    config = {**(spec["action"]["shared"] or {}), **(spec["action"]["config"] or {})}
    query = config.get("query") or Path(config["file"]).read_text(encoding="utf-8")
    values = {
        name: json.dumps(value) if isinstance(value, list | dict) else value for name, value in spec["inputs"].items()
    }
    connection = _connection(config["url"])
    try:
        cursor = connection.cursor()
        if config.get("fetch") == "none" and not values:
            cursor.executescript(query) if hasattr(cursor, "executescript") else cursor.execute(query)
            connection.commit()
            return {"changed": max(cursor.rowcount, 0)}
        cursor.execute(query if hasattr(cursor, "executescript") else _postgres(query), values)
        rows = None if cursor.description is None else cursor.fetchall()
        names = [each[0] for each in cursor.description or ()]
        connection.commit()
    finally:
        connection.close()
    if rows is None or config.get("fetch") == "none":
        return {"changed": cursor.rowcount}
    found = [dict(zip(names, row, strict=True)) for row in rows]
    return (found[0] if found else None) if config.get("fetch") == "one" else found


def _connection(url: str) -> Any:
    if url.startswith("sqlite:///"):
        import sqlite3

        return sqlite3.connect(url.removeprefix("sqlite:///"))
    try:
        import psycopg as driver
    except ImportError:
        import psycopg2 as driver
    return driver.connect(url)


def _postgres(query: str) -> str:
    import re

    return re.sub(r"(?<!:):([A-Za-z_]\w*)", r"%(\1)s", query.replace("%", "%%"))


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    spec = json.loads(Path(os.environ["ORK_INPUT_FILE"]).read_text())
    work = {"function": call, "http": http, "sql": sql}[spec["action"]["kind"]]
    try:
        result = plain(work(spec))
    except Exception as error:
        import traceback

        traceback.print_exc()
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(FINAL if getattr(error, "retry", True) is False else 1)
    Path(os.environ["ORK_OUTPUT_FILE"]).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
