"""The list of what the API answers: each route with the role it takes. The guard and the router are made from it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from fastapi import Depends, FastAPI, Request
from starlette.routing import compile_path

from ork.errors import UsageError
from ork.model.access import Role
from ork.model.record import Record, made

PREFIX = "/api/v1"
BODY_LIMIT = 1 << 20

E = TypeVar("E", bound=Callable[..., Any])


class Route(Record):
    """`role` None: open to all. `is_signed`: a request that the hook's secret signed needs no token. `is_for_workers`:
    the token of an attempt opens it as well. `is_stream`: its answer may go on for as long as the client stays."""

    method: str
    path: str
    role: Role | None
    endpoint: Callable[..., Any]
    body_limit: int = BODY_LIMIT
    is_signed: bool = False
    is_for_workers: bool = False
    is_stream: bool = False
    tag: str = ""
    options: dict[str, Any] = made(default_factory=dict)


class Routes:
    """Collects routes; below the prefix, unless their path is given as it is with `at_root`. `tag` groups them in the
    OpenAPI document."""

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
        is_stream: bool = False,
        **options: Any,
    ) -> Callable[[E], E]:
        def register(endpoint: E) -> E:
            whole = path if at_root else PREFIX + path
            kinds = (is_signed, is_for_workers, is_stream)
            self.all.append(Route(method, whole, role, endpoint, body_limit, *kinds, self._tag, options))
            return endpoint

        return register


class Match(NamedTuple):
    """The route a path and method mean, with what its path names; or the methods the path would have answered."""

    route: Route | None
    names: dict[str, str]
    methods: tuple[str, ...] = ()


class RouteTable:
    """Exact: what is not in the list is not there. The patterns are those the router uses."""

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


def install(app: FastAPI, routes: Iterable[Route]) -> None:
    for route in routes:
        app.add_api_route(
            route.path,
            route.endpoint,
            methods=[route.method],
            dependencies=[Depends(_know_the_query)],
            operation_id=route.endpoint.__name__,
            tags=[route.tag],
            **route.options,
        )


def _know_the_query(request: Request) -> None:
    """A filter with a slip in its name would be passed over and show everything."""
    known = {field.alias for field in request.scope["route"].dependant.query_params}
    unknown = sorted(set(request.query_params) - known)
    if unknown:
        named = ", ".join(sorted(known)) or "none"
        raise UsageError(f"there is no query `{unknown[0][:100]}` here", hint=f"known: {named}")
