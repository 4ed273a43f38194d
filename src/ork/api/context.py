"""What every route works with."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from fastapi import Request

from ork.api.events import Hub
from ork.model.access import AuditEntry, Role
from ork.model.record import Record, made, replaced
from ork.objects.attempt_documents import AttemptDocuments
from ork.state.store import StateStore
from ork.status.explain import ExplainTimeouts
from ork.telemetry import Telemetry

if TYPE_CHECKING:
    from ork.definition.project import Project


class Ticked(Protocol):
    """What one pass of a scheduler came to."""

    @property
    def steps(self) -> int: ...

    @property
    def launched(self) -> int: ...

    @property
    def finished(self) -> int: ...

    @property
    def next_wake(self) -> datetime | None: ...


# How many answers that hold a whole run are made at the same time.
LARGE_ANSWERS = 2


def _no_secret(_name: str) -> str | None:
    return None


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Caller(Record):
    """Who asks, by the token they showed, and from where. A signed hook has a name and no token."""

    name: str
    role: Role
    digest: str | None = None
    token_id: str | None = None
    address: str | None = None


class Api(Record):
    """The store and objects this process answers for. `tick` does one pass of a scheduler; `wake` wakes the one that
    runs in this process and is None where there is none."""

    store: StateStore
    objects: AttemptDocuments
    hub: Hub
    tick: Callable[[], Awaitable[Ticked]]
    wake: Callable[[], None] | None = None
    root: str = "/"
    project: Project | None = None
    secret: Callable[[str], str | None] = _no_secret
    timeouts: ExplainTimeouts = made(default_factory=ExplainTimeouts)
    telemetry: Telemetry = made(default_factory=Telemetry)
    now: Callable[[], datetime] = _utc_now
    large_answers: asyncio.Semaphore = made(default_factory=lambda: asyncio.Semaphore(LARGE_ANSWERS))

    async def changed(self, caller: Caller, action: str, subject: str, detail: str | None = None) -> None:
        """Somebody changed something through our handle: it is written down, and those who listen hear of it.

        Called before the answer is sent, so that no change is acknowledged that is not in the audit trail.
        """
        self.hub.poke()
        entry = AuditEntry(self.now(), caller.name, action, subject, detail)
        await self.store.record(replaced(entry, token=caller.token_id, address=caller.address))


def api_of(request: Request) -> Api:
    api = request.app.state.api
    assert isinstance(api, Api)
    return api


def caller_of(request: Request) -> Caller:
    """The guard has put it there; a route that is open has none and must not ask."""
    caller = request.scope["ork.caller"]
    assert isinstance(caller, Caller)
    return caller
