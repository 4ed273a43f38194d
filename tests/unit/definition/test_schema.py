"""The JSON Schema says what the readers say, because it is made from their tables."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from ork.definition.approvals import APPROVAL_TABLE
from ork.definition.conditions import CONDITION_TABLE
from ork.definition.keys import KeyTable
from ork.definition.params import PARAM_TABLE
from ork.definition.project_file import PROJECT_TABLE
from ork.definition.rates import RATE_TABLE
from ork.definition.schedule import SCHEDULE_TABLE
from ork.definition.schema import project_schema, workflow_schema
from ork.definition.tasks import DEFAULTS_TABLE, TASK_TABLE
from ork.definition.workflow_file import WORKFLOW_TABLE

WORKFLOW = workflow_schema()


@pytest.mark.parametrize(
    ("table", "schema"),
    [
        (WORKFLOW_TABLE, WORKFLOW),
        (TASK_TABLE, WORKFLOW["$defs"]["task"]),
        (DEFAULTS_TABLE, WORKFLOW["$defs"]["defaults"]),
        (SCHEDULE_TABLE, WORKFLOW["$defs"]["schedule"]),
        (PARAM_TABLE, WORKFLOW["$defs"]["param"]),
        (CONDITION_TABLE, WORKFLOW["$defs"]["condition"]),
        (APPROVAL_TABLE, WORKFLOW["$defs"]["approval"]),
        (RATE_TABLE, WORKFLOW["$defs"]["rate"]),
        (RATE_TABLE, project_schema()["$defs"]["rate"]),
        (PROJECT_TABLE, project_schema()),
    ],
    ids=lambda value: value.what if isinstance(value, KeyTable) else "",
)
def test_every_key_is_in_the_schema_with_its_description_and_no_other(table: KeyTable, schema: dict[str, Any]) -> None:
    assert {name: part["description"] for name, part in schema["properties"].items()} == {
        key.name: key.description for key in table.keys
    }
    assert schema["additionalProperties"] is False
    assert schema.get("required", []) == [key.name for key in table.keys if key.required]


@pytest.mark.parametrize("schema", [WORKFLOW, project_schema()], ids=["workflow", "project"])
def test_the_schema_is_json_and_every_pointer_in_it_leads_somewhere(schema: dict[str, Any]) -> None:
    pointers = set(re.findall(r'"\$ref": "#/\$defs/(\w+)"', json.dumps(schema)))
    assert pointers
    assert pointers <= set(schema["$defs"])
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
