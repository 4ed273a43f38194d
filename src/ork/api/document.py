"""Builds the OpenAPI document: completes what FastAPI generates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from ork.api.models import ProblemDetails
from ork.api.routing import Route

_PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}}


def describe(app: FastAPI, routes: Iterable[Route]) -> dict[str, Any]:
    """The document, with error responses and the required role for every operation."""
    document = get_openapi(
        title=app.title,
        version=app.version,
        description=app.description,
        routes=app.routes,
        openapi_version="3.1.0",
        servers=[{"url": "/", "description": "The server that this document comes from."}],
    )
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["ProblemDetails"] = ProblemDetails.model_json_schema()
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    roles = {(route.path, route.method.lower()): route.role for route in routes}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            _complete(operation, roles[path, method])
            _name_bodies(operation, schemas)
    return document


def _name_bodies(operation: dict[str, Any], schemas: dict[str, Any]) -> None:
    """Moves the schemas of request bodies to the components, so that a shared body is described once."""
    for content in operation.get("requestBody", {}).get("content", {}).values():
        if (title := content["schema"].get("title")) is not None:
            schemas[title] = content["schema"]
            content["schema"] = {"$ref": f"#/components/schemas/{title}"}


def _complete(operation: dict[str, Any], role: str | None) -> None:
    responses = operation["responses"]
    responses.pop("422", None)
    responses["4XX"] = {"description": "The request was rejected: `code` and `detail` say why.", "content": _PROBLEM}
    responses["503"] = {"description": "The store is unavailable.", "content": _PROBLEM}
    operation["security"] = [{"token": []}] if role is not None else []
    if role is not None:
        operation["x-role"] = str(role)
