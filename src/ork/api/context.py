"""The context of every route: the API's store and objects, and the caller."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from fastapi import Request

from ork.api.events import Hub
from ork.errors import UsageError
from ork.model.access import AuditEntry, Role
from ork.model.record import Record, made, replaced
from ork.objects.attempt_documents import AttemptDocuments
from ork.state.store import StateStore
from ork.status.explain import ExplainTimeouts
from ork.telemetry import Telemetry

if TYPE_CHECKING:
    from ork.api.oidc.sign_on import SignOn
    from ork.api.sign_ins import SignIns
    from ork.compile.pricing import Pricing
    from ork.definition.project import Project
    from ork.model.run import Run
    from ork.model.workflow import Version


class TickResult(Protocol):
    """The result of one pass of a scheduler."""

    @property
    def steps(self) -> int: ...

    @property
    def launched(self) -> int: ...

    @property
    def finished(self) -> int: ...

    @property
    def next_wake(self) -> datetime | None: ...


# How many responses with a whole run are built at the same time.
LARGE_RESPONSES = 2


def _no_secret(_name: str) -> str | None:
    return None


def _no_pricing() -> Pricing:
    raise UsageError("this server knows no prices")


async def _no_same_code(_run: Run) -> Version:
    raise UsageError("this server has no folder for checkouts")


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Caller(Record):
    """The authenticated sender of a request. A signed hook has a name and no token. An attempt may use only documents that
    `ork.api.document_access` allows."""

    name: str
    role: Role
    digest: str | None = None
    token_id: str | None = None
    address: str | None = None
    attempt: str | None = None
    until: datetime | None = None  # when the token expires or the session ends
    is_session: bool = False


class Api(Record):
    """The store and objects that this process serves. `tick` does one pass of a scheduler; `wake` wakes the scheduler
    in this process, and is None if there is none; `set_alarm` has a tick called at once, and returns whether that worked."""

    store: StateStore
    objects: AttemptDocuments
    hub: Hub
    tick: Callable[[], Awaitable[TickResult]]
    wake: Callable[[], None] | None = None
    set_alarm: Callable[[], Awaitable[bool]] | None = None
    root: str = "/"
    store_kind: str = "sqlite"  # the scheme of the store's address
    has_mcp: bool = False  # whether tools of the Model Context Protocol are offered
    project: Project | None = None
    secret: Callable[[str], str | None] = _no_secret
    pricing: Callable[[], Pricing] = _no_pricing
    same_code: Callable[[Run], Awaitable[Version]] = _no_same_code
    sign_on: SignOn | None = None  # None: people sign in with tokens only
    timeouts: ExplainTimeouts = made(default_factory=ExplainTimeouts)
    telemetry: Telemetry = made(default_factory=Telemetry)
    now: Callable[[], datetime] = _utc_now
    kept: dict[Any, Any] = made(default_factory=dict)  # what routes keep between requests, by its type
    large_responses: asyncio.Semaphore = made(default_factory=lambda: asyncio.Semaphore(LARGE_RESPONSES))

    async def record_change(self, caller: Caller, action: str, subject: str, detail: str | None = None) -> None:
        """Writes a change to the audit log and notifies listeners.

        Called before the response is sent, so that every acknowledged change is in the audit log.
        """
        self.hub.notify()
        entry = AuditEntry(self.now(), caller.name, action, subject, detail)
        await self.store.record(replaced(entry, token=caller.token_id, address=caller.address))


def api_of(request: Request) -> Api:
    api = request.app.state.api
    assert isinstance(api, Api)
    return api


def caller_of(request: Request) -> Caller:
    """The caller that the guard stored in the scope. Open routes have none and must not call this."""
    caller = request.scope["ork.caller"]
    assert isinstance(caller, Caller)
    return caller


def sign_ins_of(request: Request) -> SignIns:
    """How clients sign in at this server, with the tickets and sessions of its store."""
    found: SignIns = request.scope["ork.sign_ins"]
    return found
