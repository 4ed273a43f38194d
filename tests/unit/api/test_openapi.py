"""The OpenAPI document: it names every route, and what a client must know about it."""

from __future__ import annotations

import asyncio
from typing import get_args

from ork.api.app import all_routes
from ork.api.failure_models import FailureDetail
from ork.api.routing import PREFIX
from ork.model.run import Run, RunStatus, SchedulerKind
from ork.worker.call.failure import describe
from tests.unit.api.conftest import Bench


def document(bench: Bench) -> dict[str, object]:
    async def read() -> dict[str, object]:
        async with await bench.client() as client:
            answer = await client.get(f"{PREFIX}/openapi.json")
            assert answer.status_code == 200
            found: dict[str, object] = answer.json()
            return found

    return asyncio.run(read())


def test_the_document_names_every_route_with_its_role(bench: Bench) -> None:
    paths = document(bench)["paths"]
    assert isinstance(paths, dict)
    for route in all_routes():
        if route.path.startswith(PREFIX) and not route.path.endswith("openapi.json"):
            operation = paths[route.path][route.method.lower()]
            assert operation.get("x-role") == (str(route.role) if route.role else None)
            assert operation["summary"]
            assert operation["description"]


def test_operations_have_short_ids_of_their_own_and_a_tag(bench: Bench) -> None:
    paths = document(bench)["paths"]
    assert isinstance(paths, dict)
    operations = [operation for methods in paths.values() for operation in methods.values()]
    ids = [operation["operationId"] for operation in operations]
    assert len(ids) == len(set(ids))
    assert all(id.isidentifier() and len(id) <= 24 for id in ids), ids
    assert all(len(operation["tags"]) == 1 for operation in operations)


def test_responses_name_their_fields_statuses_and_times(bench: Bench) -> None:
    components = document(bench)["components"]
    assert isinstance(components, dict)
    schemas = components["schemas"]
    run = schemas["Run"]
    assert run["additionalProperties"] is False
    assert set(run["required"]) == set(run["properties"]) == {*Run._fields}
    assert run["properties"]["created_at"] == {"type": "string", "format": "date-time", "title": "Created At"}
    assert schemas["RunStatus"]["enum"] == [status.value for status in RunStatus]
    open_ended = {name for name, schema in schemas.items() if schema.get("additionalProperties") is not False}
    files = {"WorkflowFile", "CompiledWorkflow"}
    assert {name for name in open_ended if schemas[name]["type"] == "object"} == {
        "ProblemDetails",
        "FailureDetail",
        *files,
    }


def test_only_values_of_users_have_no_named_fields(bench: Bench) -> None:
    """Params and definitions; everything else is typed."""
    components = document(bench)["components"]
    assert isinstance(components, dict)
    loose = {
        (name, field)
        for name, schema in components["schemas"].items()
        for field, kind in schema.get("properties", {}).items()
        if any(each.get("additionalProperties") is True for each in (kind, *kind.get("anyOf", ())))
    }
    assert {field for _, field in loose} == {"params", "definition", "before", "after"}
    assert components["schemas"]["WhyItem"]["properties"]["code"] == {"$ref": "#/components/schemas/ReasonCode"}
    assert components["schemas"]["Scheduler"]["properties"]["kind"]["enum"] == [*get_args(SchedulerKind)]


def test_the_detail_of_a_failure_names_all_that_workers_write() -> None:
    try:
        try:
            raise KeyError("rows")
        except KeyError as error:
            raise ValueError("no rows") from error
    except ValueError as error:
        written = describe(error, __file__.rpartition("/")[0], {"part": "3"})["detail"]
    detail = FailureDetail.model_validate(written)
    assert detail.model_extra == {}
    assert detail.model_dump(exclude_unset=True) == written
    assert (detail.frames[0].function, detail.causes[0].type) == (
        "test_the_detail_of_a_failure_names_all_that_workers_write",
        "KeyError",
    )
