"""JSON Schema (draft 2020-12) of the files, for editors. Made from the tables that read them, so it cannot drift."""

from __future__ import annotations

from typing import Any

from ork.definition.keys import Table
from ork.definition.params import PARAM_TABLE
from ork.definition.project_file import EXECUTOR_TABLE, POOL_TABLE, PROJECT_TABLE
from ork.definition.schedule import SCHEDULE_TABLE
from ork.definition.tasks import DEFAULTS_TABLE, TASK_TABLE
from ork.definition.workflow_file import WORKFLOW_TABLE
from ork.model.ids import NAME_PATTERN

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_NAME = {"type": "string", "pattern": f"^{NAME_PATTERN}$"}
_VALUE = {
    "description": "A constant, {ref: path}, {secret: name} or {const: value}.",
    "anyOf": [
        {"type": ["null", "boolean", "number", "string", "array"]},
        {"type": "object", "properties": {"ref": {"type": "string"}, "secret": {"type": "string"}, "const": {}}},
    ],
}


def workflow_schema() -> dict[str, Any]:
    definitions = {
        "name": _NAME,
        "value": _VALUE,
        "param": _object(PARAM_TABLE),
        "schedule": _object(SCHEDULE_TABLE),
        "defaults": _object(DEFAULTS_TABLE),
        "task": _object(TASK_TABLE),
    }
    return {"$schema": _DRAFT, "title": "Ork workflow", **_object(WORKFLOW_TABLE), "$defs": definitions}


def project_schema() -> dict[str, Any]:
    definitions = {"name": _NAME, "pool": _object(POOL_TABLE), "executor": _object(EXECUTOR_TABLE)}
    return {"$schema": _DRAFT, "title": "Ork project", **_object(PROJECT_TABLE), "$defs": definitions}


def _object(table: Table) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {key.name: {"description": key.description, **key.schema} for key in table.keys},
        "additionalProperties": False,
    }
    required = [key.name for key in table.keys if key.required]
    return {**schema, "required": required} if required else schema
