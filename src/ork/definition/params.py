"""The `params` of a workflow: what a run may be given."""

from __future__ import annotations

import re
from typing import Any

from ork.definition.keys import Key, Reading, Table
from ork.definition.nodes import Kind, Node, is_null, scalar_value
from ork.definition.param_types import WrongTypeError, fit
from ork.definition.problems import quoted
from ork.definition.report import Suggester
from ork.definition.values import NotJsonError, is_scalar, json_constant, read_text
from ork.model.workflow import Const, Param, ParamType

_PARAM_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,127}")
_TYPE_NAMES = [param_type.value for param_type in ParamType]


def read_params(node: Node, reading: Reading) -> tuple[Param, ...] | None:
    if node.kind != Kind.MAP:
        reading.expected("a map of params", node)
        return None
    params = (_param(key, value, reading) for key, value in node.pairs())
    return tuple(param for param in params if param is not None)


def _read_type(node: Node, reading: Reading) -> ParamType | None:
    text = read_text(node, reading)
    if text is None:
        return None
    if text not in _TYPE_NAMES:
        hint = Suggester(_TYPE_NAMES).hint(text) or f"one of: {', '.join(_TYPE_NAMES)}"
        reading.refuse("ORK402", f"{quoted(text)} is not a type of a param", node, hint=hint)
        return None
    return ParamType(text)


def _read_default(node: Node, reading: Reading) -> Const | None:
    try:
        return Const(json_constant(node))
    except NotJsonError as error:
        reading.refuse(error.code, error.message, error.node, hint=error.hint)
        return None


PARAM_TABLE = Table(
    "a param",
    (
        Key("type", _read_type, "What values it takes; any JSON value when left out.", {"enum": _TYPE_NAMES}),
        Key("default", _read_default, "Its value when a run is not given one.", {}, nullable=True),
        Key("description", read_text, "What it is for.", {"type": "string"}),
    ),
)

PARAMS_SCHEMA: dict[str, Any] = {
    "type": "object",
    "propertyNames": {"pattern": f"^{_PARAM_NAME.pattern}$"},
    "additionalProperties": {"anyOf": [{"$ref": "#/$defs/param"}, {"not": {"type": "object"}}]},
}


def _param(key: Node, value: Node, reading: Reading) -> Param | None:
    name = key.value
    if not _PARAM_NAME.fullmatch(name):
        hint = "letters, digits, _ and -, beginning with a letter or _"
        reading.refuse("ORK105", f"{quoted(name)} cannot be the name of a param", key, hint=hint)
        return None
    if value.kind != Kind.MAP:
        return _short_param(name, value, reading)
    values = PARAM_TABLE.read(value, reading) or {}
    param_type = values.get("type", ParamType.ANY)
    if "default" not in values:
        return Param(name, param_type, description=values.get("description"))
    default = values["default"].value
    if default is not None:
        try:
            default = fit(param_type, default)
        except WrongTypeError as error:
            _refuse_default(name, param_type, value.get("default") or value, error, reading)
    return Param(name, param_type, required=False, default=default, description=values.get("description"))


def _short_param(name: str, value: Node, reading: Reading) -> Param | None:
    """`day:` alone is required, `day: date` names a type, anything else is the default."""
    if is_null(value):
        return Param(name)
    if is_scalar(value) and value.value in _TYPE_NAMES:
        return Param(name, ParamType(value.value))
    default = _read_default(value, reading)
    return None if default is None else Param(name, required=False, default=default.value)


def _refuse_default(name: str, param_type: ParamType, node: Node, error: WrongTypeError, reading: Reading) -> None:
    shown = quoted(node.value) if is_scalar(node) else "its default"
    needs_quotes = param_type is ParamType.STR and is_scalar(node) and not isinstance(scalar_value(node), str)
    hint = f'write "{node.value}", in quotes' if needs_quotes else None
    reading.refuse("ORK401", f"the default of param {quoted(name)} is wrong: {shown} {error}", node, hint=hint)
