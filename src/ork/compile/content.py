"""A compiled workflow as JSON and back, and the hash that identifies its version.

Fields with their default value are omitted, so that adding a field later does not change existing hashes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from ork.model.code import Code
from ork.model.digest import sha256
from ork.model.ids import VersionId
from ork.model.infra import Resources
from ork.model.workflow import (
    DEFAULT_RETRY_ON,
    Action,
    Approval,
    Budget,
    Catchup,
    CloudRunJob,
    Command,
    CompiledWorkflow,
    Condition,
    Const,
    Container,
    Custom,
    Environment,
    Isolation,
    NotBy,
    OnExceed,
    OnUnreachable,
    Op,
    Param,
    ParamType,
    PythonCall,
    Rate,
    Ref,
    RetryOn,
    RunIf,
    RustProgram,
    Schedule,
    Secret,
    SubWorkflow,
    TaskSpec,
    Value,
    Version,
)

_ID_LENGTH = 16


def make_version(workflow: CompiledWorkflow, root: str, source: str | None = None, code: Code | None = None) -> Version:
    """The same content and code in the same folder have the same id; `source` and the commit are not part of it."""
    named = {"root": root, "workflow": to_document(workflow), **({} if code is None else {"code": code.hash})}
    return Version(VersionId(sha256(_canonical(named)).hexdigest()[:_ID_LENGTH]), workflow, root, source, code)


def content_hash(workflow: CompiledWorkflow) -> str:
    return sha256(_canonical(to_document(workflow))).hexdigest()


def to_document(workflow: CompiledWorkflow) -> dict[str, Any]:
    return _encode(workflow, _WORKFLOW)


def from_document(document: dict[str, Any]) -> CompiledWorkflow:
    """The inverse of `to_document`. Only for trusted documents; see `received.py` for others."""
    return CompiledWorkflow(**_decode(document, _WORKFLOW))


class _Field(NamedTuple):
    """How one attribute is encoded. Without a default it is always written."""

    default: Any = ...
    encode: Callable[[Any], Any] | None = None
    decode: Callable[[Any], Any] | None = None


def _encode(thing: Any, fields: dict[str, _Field]) -> dict[str, Any]:
    document = {}
    for name, (default, encode, _) in fields.items():
        value = getattr(thing, name)
        if default is ... or value != default:
            document[name] = value if encode is None else encode(value)
    return document


def _decode(document: dict[str, Any], fields: dict[str, _Field]) -> dict[str, Any]:
    values = {}
    for name, value in document.items():
        decode = fields[name].decode
        values[name] = value if decode is None else decode(value)
    return values


def _encode_value(value: Value) -> dict[str, Any]:
    if isinstance(value, Const):
        return {"const": value.value}
    if isinstance(value, Secret):
        return {"secret": value.name}
    return {"ref": list(value.path), "as": "file"} if value.as_file else {"ref": list(value.path)}


def _decode_value(document: dict[str, Any]) -> Value:
    if "const" in document:
        return Const(document["const"])
    return (
        Ref(tuple(document["ref"]), document.get("as") == "file") if "ref" in document else Secret(document["secret"])
    )


def _encode_pairs(pairs: tuple[tuple[str, Value], ...]) -> list[list[Any]]:
    return [[name, _encode_value(value)] for name, value in pairs]


def _decode_pairs(pairs: list[list[Any]]) -> tuple[tuple[str, Value], ...]:
    return tuple((name, _decode_value(value)) for name, value in pairs)


def _encode_values(values: tuple[Value, ...]) -> list[Any]:
    return [_encode_value(value) for value in values]


def _decode_values(documents: list[Any]) -> tuple[Value, ...]:
    return tuple(_decode_value(document) for document in documents)


def action_document(action: Action) -> dict[str, Any]:
    return _encode_action(action)


def _encode_action(action: Action) -> dict[str, Any]:
    if isinstance(action, Command) and action.from_file is None:
        return {"command": _encode_values(action.argv)}
    kind = next(kind for kind, (made_of, _) in _ACTIONS.items() if isinstance(action, made_of))
    return {kind: _encode(action, _ACTIONS[kind][1])}


def _decode_action(document: dict[str, Any]) -> Action:
    ((kind, content),) = document.items()
    if kind == "command":
        return Command(_decode_values(content))
    made_of, fields = _ACTIONS[kind]
    if kind == "python":
        content = {"file": None, "module": None, **content}
    return made_of(**_decode(content, fields))  # type: ignore[no-any-return]


def _encode_condition(condition: Condition) -> list[Any]:
    return [list(condition.ref.path), str(condition.op), condition.value]


def _decode_condition(document: list[Any]) -> Condition:
    path, op, value = document
    return Condition(Ref(tuple(path)), Op(op), value)


def _encode_count(count: int | Ref) -> Any:
    return count if isinstance(count, int) else _encode_value(count)


def _decode_count(document: Any) -> Any:
    return document if isinstance(document, int) else _decode_value(document)


_ACTIONS: dict[str, tuple[type[Any], dict[str, _Field]]] = {
    "program": (Command, {"argv": _Field((), _encode_values, _decode_values), "from_file": _Field(None)}),
    "python": (PythonCall, {"file": _Field(None), "module": _Field(None), "function": _Field("main")}),
    "rust": (RustProgram, {"path": _Field(), "args": _Field((), _encode_values, _decode_values)}),
    "container": (
        Container,
        {"argv": _Field((), _encode_values, _decode_values), "to_file": _Field(None), "from_file": _Field(None)},
    ),
    "cloud_run_job": (CloudRunJob, {"job": _Field(), "args": _Field((), _encode_values, _decode_values)}),
    "custom": (Custom, {"target": _Field(), "config": _Field(None), "task": _Field(None)}),
    "workflow": (SubWorkflow, {"name": _Field()}),
    "approval": (Approval, {"message": _Field(), "not_by": _Field(None, str, NotBy)}),
}

_RATE = {"count": _Field(), "seconds": _Field()}

_RESOURCES = {"cpu": _Field(None), "memory": _Field(None)}

_ENVIRONMENT = {
    "path": _Field(None),
    "requirements": _Field((), list, tuple),
    "requirements_file": _Field(None),
    "script": _Field(False),
}

_TASK = {
    "name": _Field(),
    "executor": _Field(),
    "action": _Field(encode=_encode_action, decode=_decode_action),
    "depends_on": _Field((), list, tuple),
    "inputs": _Field((), _encode_pairs, _decode_pairs),
    "env": _Field((), _encode_pairs, _decode_pairs),
    "retries": _Field(0),
    "retry_delay": _Field(None),
    "retry_on": _Field(DEFAULT_RETRY_ON, sorted, lambda names: frozenset(map(RetryOn, names))),
    "on_unreachable": _Field(OnUnreachable.RETRY, str, OnUnreachable),
    "timeout": _Field(None),
    "pool": _Field(None),
    "priority": _Field(0),
    "run_if": _Field(RunIf.ALL_SUCCESS, str, RunIf),
    "when": _Field(
        (), lambda all_: [_encode_condition(each) for each in all_], lambda all_: tuple(map(_decode_condition, all_))
    ),
    "parallel": _Field(None, _encode_count, _decode_count),
    "foreach": _Field(None, _encode_value, _decode_value),
    "concurrency": _Field(None),
    "cache": _Field(None),
    "rate": _Field(None, lambda rate: _encode(rate, _RATE), lambda rate: Rate(**_decode(rate, _RATE))),
    "environment": _Field(
        None,
        lambda environment: _encode(environment, _ENVIRONMENT),
        lambda environment: Environment(**_decode(environment, _ENVIRONMENT)),
    ),
    "isolation": _Field(None, str, Isolation),
    "image": _Field(None),
    "worker": _Field(None),
    "resources": _Field(
        None,
        lambda resources: _encode(resources, _RESOURCES),
        lambda resources: Resources(**_decode(resources, _RESOURCES)),
    ),
    "input_types": _Field((), lambda pairs: [list(pair) for pair in pairs], lambda pairs: tuple(map(tuple, pairs))),
    "output_type": _Field(None),
}

_PARAM = {
    "name": _Field(),
    "type": _Field(ParamType.ANY, str),
    "required": _Field(True),
    "default": _Field(None),
    "description": _Field(None),
    "sensitive": _Field(False),
}

_SCHEDULE = {
    "cron": _Field(),
    "timezone": _Field("UTC"),
    "catchup": _Field(Catchup.NONE, str, Catchup),
    "enabled": _Field(True),
    "jitter": _Field(0.0),
    "catchup_limit": _Field(100),
}

_BUDGET = {"usd": _Field(), "on_exceed": _Field(OnExceed.ALERT, str, OnExceed)}

_WORKFLOW = {
    "name": _Field(),
    "description": _Field(None),
    "params": _Field(
        (),
        lambda params: [_encode(param, _PARAM) for param in params],
        lambda params: tuple(Param(**_decode(param, _PARAM)) for param in params),
    ),
    "schedule": _Field(
        None,
        lambda schedule: _encode(schedule, _SCHEDULE),
        lambda schedule: Schedule(**_decode(schedule, _SCHEDULE)),
    ),
    "max_active_runs": _Field(None),
    "fail_fast": _Field(False),
    "budget": _Field(None, lambda budget: _encode(budget, _BUDGET), lambda budget: Budget(**_decode(budget, _BUDGET))),
    "alerts": _Field((), list, tuple),
    "types": _Field((), lambda pairs: [list(pair) for pair in pairs], lambda pairs: tuple(map(tuple, pairs))),
    "project": _Field(None),
    "pythonpath": _Field((), list, tuple),
    "codecs": _Field((), lambda pairs: [list(pair) for pair in pairs], lambda pairs: tuple(map(tuple, pairs))),
    "tasks": _Field(
        encode=lambda tasks: [_encode(task, _TASK) for task in tasks],
        decode=lambda tasks: tuple(TaskSpec(**_decode(task, _TASK)) for task in tasks),
    ),
}


def _canonical(document: dict[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
