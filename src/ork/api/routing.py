"""The routes of the API with their required roles. The guard and the router are built from this list."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from fastapi import APIRouter, Depends, Request
from starlette.routing import compile_path

from ork.errors import UsageError
from ork.model.access import Role
from ork.model.record import Record, made

PREFIX = "/api/v1"
BODY_LIMIT = 1 << 20

E = TypeVar("E", bound=Callable[..., Any])


class Route(Record):
    """One route. `role` None: open to everyone. `is_signed`: a request signed with the hook's secret needs no token.
    `is_for_workers`: an attempt's proof for waking its scheduler is accepted too. `is_for_attempts`: an attempt's proof
    for its documents is accepted too; the endpoint checks access to each document. `is_for_platform`: an identity token
    of the platform's service account is accepted too. `is_stream`: the response may last as long as the client
    reads. `is_linked`: a ticket in the query, made for this path, is accepted too. `is_health`: answered even when all
    connections are in use. `is_page`: a page or file of the web UI; links from other sites and any query are accepted."""

    method: str
    path: str
    role: Role | None
    endpoint: Callable[..., Any]
    body_limit: int = BODY_LIMIT
    is_signed: bool = False
    is_for_workers: bool = False
    is_for_attempts: bool = False
    is_stream: bool = False
    is_for_platform: bool = False
    is_linked: bool = False
    is_health: bool = False
    is_page: bool = False
    tag: str = ""
    options: dict[str, Any] = made(default_factory=dict)


class Routes:
    """Collects routes. Paths are below PREFIX, except with `at_root`. `tag` groups them in the OpenAPI document."""

    def __init__(self, tag: str) -> None:
        self._tag = tag
        self.all: list[Route] = []

    def add(
        self,
        method: str,
        path: str,
        role: Role | None,
        *,
        at_root: bool = False,
        body_limit: int = BODY_LIMIT,
        is_signed: bool = False,
        is_for_workers: bool = False,
        is_for_attempts: bool = False,
        is_stream: bool = False,
        is_for_platform: bool = False,
        is_linked: bool = False,
        is_health: bool = False,
        is_page: bool = False,
        **options: Any,
    ) -> Callable[[E], E]:
        def register(endpoint: E) -> E:
            whole = path if at_root else PREFIX + path
            kinds = (
                is_signed,
                is_for_workers,
                is_for_attempts,
                is_stream,
                is_for_platform,
                is_linked,
                is_health,
                is_page,
            )
            self.all.append(Route(method, whole, role, endpoint, body_limit, *kinds, self._tag, options))
            return endpoint

        return register


class Match(NamedTuple):
    """The route for a path and method with its path parameters; or the methods that the path supports."""

    route: Route | None
    names: dict[str, str]
    methods: tuple[str, ...] = ()


class RouteTable:
    """Matches paths with the same patterns as the router."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._patterns: list[tuple[re.Pattern[str], Route]] = [(compile_path(each.path)[0], each) for each in routes]

    def match(self, method: str, path: str) -> Match:
        methods = []
        for pattern, route in self._patterns:
            found = pattern.fullmatch(path)
            if found is not None and route.method == method:
                return Match(route, found.groupdict())
            if found is not None:
                methods.append(route.method)
        return Match(None, {}, tuple(methods))


def router_of(routes: Iterable[Route]) -> APIRouter:
    router = APIRouter()
    for route in routes:
        router.add_api_route(
            route.path,
            route.endpoint,
            methods=[route.method],
            dependencies=[] if route.is_page else [Depends(_reject_unknown_query)],
            operation_id=route.endpoint.__name__,
            tags=[route.tag],
            **route.options,
        )
    return router


def _reject_unknown_query(request: Request) -> None:
    """Rejects unknown query parameters: a misspelt filter would otherwise be ignored and return everything."""
    known = {field.alias for field in request.scope["route"].dependant.query_params}
    unknown = sorted(set(request.query_params) - known)
    if unknown:
        named = ", ".join(sorted(known)) or "none"
        raise UsageError(f"unknown query parameter `{unknown[0][:100]}`", hint=f"known: {named}")
