"""The API as one ASGI application: a guard and a router, both built from the same list of routes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from ork import __version__
from ork.api import problems
from ork.api.bodies import json_response
from ork.api.compression import Compression
from ork.api.context import Api, caller_of
from ork.api.document import describe
from ork.api.guard import RequestGuard
from ork.api.identity_tokens import IdentityVerifier
from ork.api.origins import Origins
from ork.api.proxies import TrustedProxies
from ork.api.routes import (
    access,
    code,
    comparisons,
    hooks,
    live,
    locations,
    logs,
    mcp,
    objects,
    overviews,
    runs,
    schedules,
    services,
    session,
    sign_on,
    tasks,
    ui,
    workers,
    workflows,
)
from ork.api.routing import Route, Routes, RouteTable, router_of
from ork.api.signatures import secret_name
from ork.errors import OrkError
from ork.model.access import Role

ROUTE_MODULES = (
    workflows, overviews, schedules, runs, code, comparisons, tasks, logs, live, locations, workers, services, access, session,
    hooks, objects, mcp, sign_on, ui,
)  # fmt: skip


def create_app(
    api: Api,
    *,
    allowed_hosts: Iterable[str] = (),
    trusted_proxies: Iterable[str] = (),
    platform: IdentityVerifier | None = None,
) -> RequestGuard:
    """The API of one store. It accepts loopback host names and those in `allowed_hosts`. `platform` verifies identity
    tokens of the alarm's calls."""
    return RequestGuard(
        Compression(application(api)),
        RouteTable(all_routes()),
        api.store,
        origins=Origins(allowed_hosts),
        proxies=TrustedProxies(trusted_proxies),
        hook_secret=lambda name: api.secret(secret_name(name)),
        platform=platform,
    )


def application(api: Api) -> FastAPI:
    """All routes, without the guard: the caller of each request must be in its scope."""
    app = FastAPI(
        title="Ork",
        version=__version__,
        description="Workflows, runs, and their tasks.",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.api = api
    app.state.routes = tuple(all_routes())
    app.router.routes.extend(_router().routes)
    _handle_errors(app)
    return app


def all_routes() -> list[Route]:
    return [*(route for module in ROUTE_MODULES for route in module.routes.all), *_document.all]


@cache
def _router() -> APIRouter:
    """Shared by all apps of a process, because FastAPI takes long to analyse the endpoints."""
    return router_of(all_routes())


def _handle_errors(app: FastAPI) -> None:
    app.add_exception_handler(OrkError, problems.on_ork_error)
    app.add_exception_handler(RequestValidationError, problems.on_invalid)
    app.add_exception_handler(HTTPException, problems.on_http_error)
    app.add_exception_handler(ClientDisconnect, problems.on_disconnect)
    app.add_exception_handler(Exception, problems.on_bug)


_document = Routes("document")
_described: dict[str, Any] = {}


@_document.add("GET", "/openapi.json", Role.VIEWER, include_in_schema=False)
async def openapi(request: Request) -> Response:
    """This document."""
    caller_of(request)
    if not _described:
        _described.update(describe(request.app, all_routes()))
    return json_response(_described)
