"""The OpenAPI document: what FastAPI sees, and what it cannot see."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from ork.api.routing import Route
from ork.api.shapes import Problem

_PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}


def describe(app: FastAPI, routes: Iterable[Route]) -> dict[str, Any]:
    """Every operation says which errors it may answer with, and which role it takes."""
    document = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes, openapi_version="3.1.0"
    )
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["Problem"] = Problem.model_json_schema()
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    roles = {(route.path, route.method.lower()): route.role for route in routes}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            _complete(operation, roles[path, method])
    return document


def _complete(operation: dict[str, Any], role: str | None) -> None:
    responses = operation["responses"]
    responses.pop("422", None)
    responses["4XX"] = {"description": "It cannot be done: `code` and `detail` say why.", "content": _PROBLEM}
    responses["503"] = {"description": "The store does not answer now.", "content": _PROBLEM}
    operation["security"] = [{"token": []}] if role is not None else []
    if role is not None:
        operation["x-role"] = str(role)
