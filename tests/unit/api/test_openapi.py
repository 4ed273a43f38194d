"""The OpenAPI document: it names every route, and what a client must know about it."""

from __future__ import annotations

import asyncio

from ork.api.app import all_routes
from ork.api.routing import PREFIX
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
