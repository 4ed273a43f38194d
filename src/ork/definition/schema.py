"""JSON Schema (draft 2020-12) of the files, for editors. Generated from the tables of keys, so it cannot drift."""

from __future__ import annotations

from typing import Any

from ork.definition.alarm_key import ALARM_TABLE, CLOUD_TASKS_TABLE
from ork.definition.approvals import APPROVAL_TABLE
from ork.definition.budgets import BUDGET_TABLE
from ork.definition.conditions import CONDITION_TABLE
from ork.definition.containers import INPUT_TABLE, OUTPUT_TABLE
from ork.definition.environments import ENVIRONMENT_TABLE
from ork.definition.keys import KeyTable
from ork.definition.locations_file import LOCATION_TABLE
from ork.definition.params import PARAM_TABLE
from ork.definition.pod_keys import KUBERNETES_TABLE, TOLERATION_TABLE
from ork.definition.project_file import EXECUTOR_TABLE, GCP_TABLE, POOL_TABLE, PROJECT_TABLE
from ork.definition.quantities import RESOURCES_TABLE
from ork.definition.rates import RATE_TABLE
from ork.definition.schedule import SCHEDULE_TABLE
from ork.definition.secrets_key import OUTBOUND_TABLE, SECRET_TABLE
from ork.definition.sign_in_key import OIDC_TABLE, ROLE_TABLE, SIGN_IN_TABLE
from ork.definition.tasks import DEFAULTS_TABLE, TASK_TABLE
from ork.definition.types import TYPE_SCHEMA
from ork.definition.ui_key import PUBLISH_TABLE, UI_TABLE
from ork.definition.workers_file import WORKER_TABLE
from ork.definition.workflow_file import IMPORT_TABLE, WORKFLOW_TABLE
from ork.model.ids import NAME_PATTERN

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_NAME = {"type": "string", "pattern": f"^{NAME_PATTERN}$"}
_VALUE = {
    "description": "A constant, {ref: path}, {ref: path, as: file}, {secret: name} or {const: value}.",
    "anyOf": [
        {"type": ["null", "boolean", "number", "string", "array"]},
        {
            "type": "object",
            "properties": {
                "ref": {"type": "string"},
                "as": {"const": "file"},
                "secret": {"type": "string"},
                "const": {},
            },
        },
    ],
}
_PATH = {
    "description": "A path to a value: tasks.<name>.output.<field>, params.<name>, run.id; <name>.<field> for short.",
    "anyOf": [
        {"type": "string", "minLength": 1},
        {
            "type": "object",
            "properties": {"ref": {"type": "string"}},
            "required": ["ref"],
            "additionalProperties": False,
        },
    ],
}


def workflow_schema() -> dict[str, Any]:
    definitions = {
        "name": _NAME,
        "value": _VALUE,
        "path": _PATH,
        "type": TYPE_SCHEMA,
        "param": _object(PARAM_TABLE),
        "schedule": _object(SCHEDULE_TABLE),
        "defaults": _object(DEFAULTS_TABLE),
        "task": _object(TASK_TABLE),
        "condition": _object(CONDITION_TABLE),
        "approval": _object(APPROVAL_TABLE),
        "environment": _object(ENVIRONMENT_TABLE),
        "input": _object(INPUT_TABLE),
        "output": _object(OUTPUT_TABLE),
        "resources": _object(RESOURCES_TABLE),
        "import": _object(IMPORT_TABLE),
        "rate": _object(RATE_TABLE),
        "budget": _object(BUDGET_TABLE),
    }
    return {"$schema": _DRAFT, "title": "Ork workflow", **_object(WORKFLOW_TABLE), "$defs": definitions}


def workers_schema() -> dict[str, Any]:
    """Configs at the top level, or under `workers:` next to the name of the default."""
    config = {"anyOf": [_object(WORKER_TABLE), _NAME]}
    bare = {"type": "object", "propertyNames": _NAME, "additionalProperties": config}
    wrapped = {
        "type": "object",
        "properties": {"workers": bare, "default": config},
        "required": ["workers"],
        "additionalProperties": False,
    }
    definitions = {"toleration": _object(TOLERATION_TABLE)}
    return {"$schema": _DRAFT, "title": "Ork worker configs", "anyOf": [wrapped, bare], "$defs": definitions}


def project_schema() -> dict[str, Any]:
    definitions = {
        "name": _NAME,
        "pool": _object(POOL_TABLE),
        "gcp": _object(GCP_TABLE),
        "kubernetes": _object(KUBERNETES_TABLE),
        "rate": _object(RATE_TABLE),
        "executor": _object(EXECUTOR_TABLE),
        "secret": _object(SECRET_TABLE),
        "outbound": _object(OUTBOUND_TABLE),
        "alarm": _object(ALARM_TABLE),
        "cloud_tasks": _object(CLOUD_TASKS_TABLE),
        "sign_in": _object(SIGN_IN_TABLE),
        "oidc": _object(OIDC_TABLE),
        "role": _object(ROLE_TABLE),
        "ui": _object(UI_TABLE),
        "publish": _object(PUBLISH_TABLE),
    }
    return {"$schema": _DRAFT, "title": "Ork project", **_object(PROJECT_TABLE), "$defs": definitions}


def locations_schema() -> dict[str, Any]:
    definitions = {"name": _NAME, "location": _object(LOCATION_TABLE)}
    entries = {"type": "array", "items": {"$ref": "#/$defs/location"}}
    wrapped = {
        "type": "object",
        "properties": {"locations": entries},
        "required": ["locations"],
        "additionalProperties": False,
    }
    return {"$schema": _DRAFT, "title": "Ork locations", "anyOf": [entries, wrapped], "$defs": definitions}


def _object(table: KeyTable) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {key.name: {"description": key.description, **key.schema} for key in table.keys},
        "additionalProperties": False,
    }
    required = [key.name for key in table.keys if key.required]
    return {**schema, "required": required} if required else schema
