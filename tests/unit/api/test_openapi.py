"""The OpenAPI document and the API agree: whatever the document allows is answered as it says."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from ork.api.app import all_routes
from ork.api.routing import PREFIX
from ork.model.access import Role
from ork.model.ids import AttemptKey, TaskKey
from ork.model.run import RunStatus
from ork.objects.layout import attempt_folder, log_key
from tests.unit.api.conftest import Bench
from tests.unit.api.test_routes import worked_on

EXAMPLES = 12
# Never a 5xx, and every answer as the document describes it. (That what fits a schema may still mean nothing, such as
# a workflow with a cycle, is no fault of the document.)
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
pytestmark = pytest.mark.slow


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


def test_nothing_the_document_allows_makes_the_api_fail(bench: Bench, tmp_path: Path) -> None:
    run = asyncio.run(worked_on(bench, RunStatus.RUNNING))
    bench.objects.put(log_key(attempt_folder(AttemptKey(run.id, TaskKey("extract"), 2))), b"words\n")
    text = asyncio.run(bench.token(Role.ADMIN))
    schema = schemathesis.openapi.from_dict(document(bench), config=SchemathesisConfig())
    schema.app = bench.app
    seen: set[str] = set()
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.path.endswith("/events"):
            continue  # never ends
        seen.add(operation.label)
        strategy = operation.as_strategy()

        @settings(
            max_examples=EXAMPLES,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=strategy)
        def check(case: Case) -> None:
            _use_what_is_there(case, run.id)
            case.call_and_validate(headers={"Authorization": f"Bearer {text}", "Host": "localhost"}, checks=CHECKS)

        check()
    assert len(seen) > 30


def _use_what_is_there(case: Case, run: str) -> None:
    """Names that exist get further than made-up ones; every second case keeps its own."""
    names = {"run": run, "name": "flow" if "/workflows/" in case.path or "/hooks/" in case.path else "extract"}
    if case.path_parameters and len(str(case.path_parameters)) % 2:
        case.path_parameters = {key: names.get(key, value) for key, value in case.path_parameters.items()}
    if case.query and "follow" in case.query:
        case.query = {key: value for key, value in case.query.items() if key != "follow"}
