"""One handle on the database: the requests, what is remembered between them, and the one way to change something."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from itertools import count
from typing import Generic, NamedTuple, TypeVar

from ork.errors import StoreUnavailableError, UnreadableError
from ork.model.ids import RunId, SchedulerId, VersionId
from ork.model.workflow import Version
from ork.state.firestore.accounts import Account, LimitSettings
from ork.state.firestore.address import Address
from ork.state.firestore.documents import RunState
from ork.state.firestore.failures import ConflictError, UnansweredError
from ork.state.firestore.values import SERVER_TIME
from ork.state.firestore.wire import Doc, Put, Wire
from ork.state.quarantine import missing_version
from ork.state.versions import KnownVersions

_TRIES = 40
_KEPT_RUNS = 5000
_WRITTEN_BEFORE = 40  # large rows in one request: up to 64 KiB each

T = TypeVar("T")
LeaseClock = Callable[[], datetime]


class Plan(NamedTuple, Generic[T]):
    """What to write and what to answer once it is written. `written` gets the time of each write. `before` is written
    first, in parts: documents that mean nothing without the rest."""

    puts: Sequence[Put]
    answer: T
    written: Callable[[list[int]], None] | None = None
    before: Sequence[Put] = ()


class Database:
    """`runs`, `accounts`, `limits`, `settings` and `leases` are documents as this handle last wrote or read them. A commit that
    relies on them carries their times as preconditions, so one that is out of date makes the commit fail and is read again."""

    def __init__(
        self,
        address: Address,
        lease_seconds: float,
        clock: LeaseClock | None,
        connect: Callable[[Address], Wire] = Wire,
    ) -> None:
        self.address = address
        self.lease_seconds = lease_seconds
        self.me = secrets.token_hex(5)
        self.known = KnownVersions()
        self.runs: dict[RunId, RunState] = {}
        self.accounts: dict[SchedulerId, Account] = {}
        self.limits: LimitSettings | None = None
        self.settings: Doc | None = None
        self.leases: dict[SchedulerId, int] = {}  # when this handle last wrote the documents of schedulers
        self.newcomers: set[SchedulerId] = set()  # registered by this handle, and have not claimed anything since
        self.key: bytes | None = None  # of signatures; it never changes
        self.others_changed = False  # seen in passing: the next wait for changes returns at once
        self._clock = clock
        self._connect = connect
        self._wire: Wire | None = None
        self._operations = count()

    @property
    def wire(self) -> Wire:
        if self._wire is None:  # in the event loop, to which its channel belongs
            self._wire = self._connect(self.address)
        return self._wire

    @property
    def statements(self) -> int:
        return 0 if self._wire is None else self._wire.requests

    async def close(self) -> None:
        if self._wire is not None:
            await self._wire.close()

    # ── the store's clock ────────────────────────────────────────────────────────────────────────

    def seconds(self, read: int) -> float:
        """The store's clock when a document was read: the service's, or that of a test."""
        return read / 1e6 if self._clock is None else self._clock().timestamp()

    def written(self, time: int) -> float:
        """When a document was written, by the service's clock; with the clock of a test nobody knows."""
        return time / 1e6 if self._clock is None else 0.0

    @property
    def stamp(self) -> object:
        """As the value of a field: now."""
        return SERVER_TIME if self._clock is None else self._clock()

    # ── changing something ───────────────────────────────────────────────────────────────────────

    async def change(self, decide: Callable[[], Awaitable[Plan[T]]], *, is_repeatable: bool = True) -> T:
        """Reads, decides and writes with preconditions, until nobody else was quicker.

        Each try marks its documents with a nonce, `w`. After a commit without an answer the nonce says whether it was
        carried out. If somebody else has written the document since, nobody can tell: then a change that is not
        `is_repeatable` ends with StoreUnavailableError.
        """
        operation, unanswered = next(self._operations), dict[str, tuple[Put, T]]()
        for number in range(_TRIES):
            if number:
                await self.wire.pause(min(number, 6))
            for nonce, (probe, answer) in unanswered.items():
                found = await self.wire.get(probe.path)
                if found is not None and found.fields.get("w") == nonce:
                    return answer
                is_as_before = found.time == probe.guard if found is not None else probe.guard is False
                if not is_as_before and not is_repeatable:
                    raise self._in_doubt()
            plan = await decide()
            if not plan.puts:
                return plan.answer
            nonce = f"{self.me}-{operation}-{number}"
            try:
                for start in range(0, len(plan.before), _WRITTEN_BEFORE):
                    await self.wire.commit(plan.before[start : start + _WRITTEN_BEFORE])
                times = await self.wire.commit([_marked(put, nonce) for put in plan.puts])
            except ConflictError:
                self.forget()
                continue
            except UnansweredError:
                self.forget()
                if (marked := _probe(plan.puts)) is not None:
                    unanswered[nonce] = marked, plan.answer
                continue
            if plan.written is not None:
                plan.written(times)
            return plan.answer
        raise self._in_doubt()

    def forget(self) -> None:
        """The next commit reads again what it relies on."""
        self.runs.clear()
        self.accounts.clear()
        self.leases.clear()
        self.limits = self.settings = None

    def remember(self, run: RunState) -> None:
        if len(self.runs) >= _KEPT_RUNS:
            del self.runs[next(iter(self.runs))]
        self.runs[run.id] = run

    def _in_doubt(self) -> StoreUnavailableError:
        return StoreUnavailableError(
            f"A change of the store {self.address.shown} did not get through, or got through unseen.",
            hint="Try again; work goes on by itself when the database answers.",
        )

    # ── versions ─────────────────────────────────────────────────────────────────────────────────

    async def version(self, id: VersionId) -> Version | None:
        """UnreadableError if it is damaged."""
        from ork.state.firestore.definitions import read_version

        return self.known.get(id) or await read_version(self, id)

    async def needed_version(self, id: VersionId) -> Version:
        version = await self.version(id)
        if version is None:
            raise UnreadableError(missing_version(id), hint="Deploy the workflow again.")
        return version

    async def order_of(self, id: VersionId) -> dict[str, int]:
        """Each task's place in the workflow."""
        order = self.known.known_order(id)
        return self.known.order_of(await self.needed_version(id)) if order is None else order


def _is_marked(put: Put) -> bool:
    return put.fields is not None and put.path.count("/") == 1 and put.mask != []


def _marked(put: Put, nonce: str) -> Put:
    if not _is_marked(put):
        return put
    mask = put.mask if put.mask is None else [*put.mask, ("w",)]
    return put._replace(fields={**(put.fields or {}), "w": nonce}, mask=mask)


def _probe(puts: Sequence[Put]) -> Put | None:
    """The write that says whether the commit was carried out: one with a precondition, if there is one."""
    marked = [put for put in puts if _is_marked(put)]
    guarded = [put for put in marked if put.guard is not None and put.guard is not True]
    return next(iter(guarded or marked), None)


WAKE = "meta/wake"


def wake(db: Database) -> Put:
    """A change that stands in no run: whoever waits for changes watches this document."""
    return Put(WAKE, {"at": SERVER_TIME, "by": db.me})
