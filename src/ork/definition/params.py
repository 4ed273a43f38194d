"""The `params` of a workflow."""

from __future__ import annotations

import re
from typing import Any

from ork.definition.keys import Key, KeyTable, Reading
from ork.definition.nodes import Kind, Node, is_null, scalar_value
from ork.definition.param_types import WrongTypeError, fit
from ork.definition.problems import quoted
from ork.definition.types import read_type
from ork.definition.values import NotJsonError, is_scalar, json_constant, read_boolean, read_text
from ork.model.workflow import Const, Param, ParamType

_PARAM_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,127}")
_TYPE_NAMES = [*map(str, ParamType)]


def read_params(node: Node, reading: Reading) -> tuple[Param, ...] | None:
    if node.kind != Kind.MAP:
        reading.expected("a map of params", node)
        return None
    params = (_param(key, value, reading) for key, value in node.pairs())
    return tuple(param for param in params if param is not None)


def _read_type(node: Node, reading: Reading) -> str | None:
    text = read_type(node, reading)
    return ParamType(text) if text in _TYPE_NAMES else text


def _read_default(node: Node, reading: Reading) -> Const | None:
    try:
        return Const(json_constant(node))
    except NotJsonError as error:
        reading.refuse(error.code, error.message, error.node, hint=error.hint)
        return None


PARAM_TABLE = KeyTable(
    "a param",
    (
        Key("type", _read_type, "The type of its values. Default: any JSON value.", {"$ref": "#/$defs/type"}),
        Key("default", _read_default, "Value if a run does not set it.", {}, nullable=True),
        Key("description", read_text, "A description for people.", {"type": "string"}),
        Key(
            "sensitive",
            read_boolean,
            "Whether its values are stored encrypted, shown as •••, and masked in logs.",
            {"type": "boolean"},
        ),
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
    more = {"description": values.get("description"), "sensitive": values.get("sensitive", False)}
    if "default" not in values:
        return Param(name, param_type, **more)
    if more["sensitive"] and values["default"].value is not None:
        hint = "leave it out, or write `default: null`"
        message = f"sensitive param {quoted(name)} cannot have a default, which would be readable here"
        reading.refuse("ORK104", message, value.get("default") or value, hint=hint)
    default = values["default"].value
    if default is not None:
        try:
            default = fit(param_type, default, reading.types)
        except WrongTypeError as error:
            _refuse_default(name, param_type, value.get("default") or value, error, reading)
    return Param(name, param_type, required=False, default=default, **more)


def _short_param(name: str, value: Node, reading: Reading) -> Param | None:
    """`day:` alone is required, `day: date` is a type, any other value is the default."""
    if is_null(value):
        return Param(name)
    if is_scalar(value) and _looks_like_type(value, reading):
        param_type = _read_type(value, reading)
        return None if param_type is None else Param(name, param_type)
    default = _read_default(value, reading)
    return None if default is None else Param(name, required=False, default=default.value)


def _looks_like_type(node: Node, reading: Reading) -> bool:
    text: str = node.value
    if text in _TYPE_NAMES:
        return True
    name = text.removesuffix("?")
    is_type = text.startswith(("list[", "dict[")) or name in _TYPE_NAMES or name in reading.types
    return node.kind == Kind.PLAIN and is_type


def _refuse_default(name: str, param_type: str, node: Node, error: WrongTypeError, reading: Reading) -> None:
    shown = quoted(node.value) if is_scalar(node) else "its default"
    needs_quotes = param_type == ParamType.STR and is_scalar(node) and not isinstance(scalar_value(node), str)
    hint = f'write "{node.value}", in quotes' if needs_quotes else None
    reading.refuse("ORK401", f"the default of param {quoted(name)} is wrong: {shown} {error}", node, hint=hint)
