"""The params of a workflow as the fields of a form."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

from ork.model.type_text import TypeTextError, parse_type
from ork.model.types import resolved, side_of
from ork.model.workflow import CompiledWorkflow, Param

if TYPE_CHECKING:
    from ork.model.types import Names, TypeJson


class FieldKind(StrEnum):
    """How a value is entered. `choice` has `choices`; `json` is everything else."""

    STR = "str"
    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    DATE = "date"
    DATETIME = "datetime"
    CHOICE = "choice"
    LIST = "list"
    JSON = "json"


def param_fields(workflow: CompiledWorkflow) -> list[dict[str, Any]]:
    """`type` is as written; `may_be_null`: null is a value of the type. The default of a sensitive param is not shown."""
    names = dict(workflow.types)
    return [_field(param, names) for param in workflow.params]


def _field(param: Param, names: Names) -> dict[str, Any]:
    kind, may_be_null = _without_none(_parsed(param.type, names), names)
    return {
        "name": param.name,
        "type": str(param.type),
        "kind": _kind(kind).value,
        "choices": kind["enum"] if isinstance(kind, dict) and "enum" in kind else None,
        "may_be_null": may_be_null,
        "required": param.required,
        "default": None if param.sensitive else param.default,
        "description": param.description,
        "sensitive": param.sensitive,
    }


def _parsed(text: str, names: Names) -> TypeJson:
    try:
        return resolved(side_of(resolved(parse_type(text), names), "takes"), names)
    except TypeTextError:  # from a newer release
        return "any"


def _without_none(kind: TypeJson, names: Names) -> tuple[TypeJson, bool]:
    if isinstance(kind, str) or "union" not in kind:
        return kind, kind in ("any", "none")
    members = [resolved(member, names) for member in kind["union"]]
    others = [member for member in members if member != "none"]
    return (others[0] if len(others) == 1 else {"union": others}), len(others) < len(members)


def _kind(kind: TypeJson) -> FieldKind:
    if isinstance(kind, str):
        return FieldKind(kind) if kind in set(FieldKind) else FieldKind.JSON
    if "enum" in kind:
        return FieldKind.CHOICE
    return FieldKind.LIST if "list" in kind else FieldKind.JSON
