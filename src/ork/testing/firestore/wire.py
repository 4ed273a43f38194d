"""One process's connection to the Firestore of a simulation: slow, with lost and late requests, lost answers and contention."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeVar

from google.api_core import exceptions as google

from ork.model.record import Record
from ork.state.firestore.failures import TROUBLE, commit_error
from ork.state.firestore.wire import Doc, Put, Query, Wire, pause_seconds
from ork.testing.faults import SimulatedProcess
from ork.testing.firestore.model import MemoryFirestore
from ork.testing.kernel import Actor

TROUBLED = 0.4  # share of the messages at which a process can die or stand still; a verb has many messages
LATEST_SECONDS = 30.0

T = TypeVar("T")


class CommitFaults(Record):
    """Probabilities per commit."""

    lost_request: float = 0.0  # not carried out, and no answer
    lost_answer: float = 0.0  # carried out, and no answer
    late: float = 0.0  # no answer, and carried out later
    contention: float = 0.0  # refused


class Carry(Protocol):
    """Carries out a commit in the service: its writes, and when the service received them. Returns the times of the writes."""

    def __call__(self, puts: Sequence[Put], received: int) -> list[int]: ...


class SimulatedWire(Wire):
    """`process` None: nothing goes wrong and no time passes. `commits` is asked for each commit, before it is sent, how to
    carry it out. `errors` counts the errors of commits by their names."""

    def __init__(
        self,
        database: MemoryFirestore,
        process: SimulatedProcess | None,
        faults: CommitFaults,
        commits: Callable[[Sequence[Put]], Carry],
    ) -> None:
        self.resource = "projects/simulated/databases/ork"
        self.root = f"{self.resource}/documents"
        self.requests = self.first_read = self.last_read = 0
        self._database = database
        self._process = process
        self._faults = faults
        self._commits = commits
        self._deadlines: dict[Actor | None, float] = {}
        self.errors: Counter[str] = Counter()

    async def close(self) -> None:
        return

    # ── reading ──────────────────────────────────────────────────────────────────────────────────

    async def get_all(self, paths: Collection[str], select: Sequence[str] | None = None) -> dict[str, Doc]:
        return await self._read(lambda: self._database.get_all(paths, select)) if paths else {}

    async def server_time(self) -> int:
        return await self._read(lambda: self._database.read_time)

    async def query(self, query: Query) -> list[Doc]:
        return await self._read(lambda: self._database.query(query))

    async def count(self, query: Query) -> int:
        return await self._read(lambda: self._database.count(query))

    async def _read(self, read: Callable[[], T]) -> T:
        async def ask() -> T:
            await self._request()
            answer = read()
            self.last_read = self._database.read_time
            self.first_read = self.first_read or self.last_read
            await self._response()
            return answer

        return await self._patiently(ask)

    # ── writing ──────────────────────────────────────────────────────────────────────────────────

    async def commit(self, puts: Sequence[Put]) -> list[int]:
        self.requests += 1
        try:
            return await self._commit(puts)
        except TROUBLE as error:
            self.errors[type(error).__name__] += 1
            raise commit_error(error) from error

    async def _commit(self, puts: Sequence[Put]) -> list[int]:
        carry, sent = self._commits(puts), self._database.read_time
        await self._request(writes=True)
        if self._happens(self._faults.lost_request):
            raise google.ServiceUnavailable("the connection was lost")
        if self._happens(self._faults.contention):
            raise google.Aborted("too much contention on these documents")
        received = self._between(sent, self._database.read_time)
        if self._process is not None and self._happens(self._faults.late):
            self._carry_out_later(self._process, puts, carry, received)
            raise google.DeadlineExceeded("no answer in time")
        times = carry(puts, received)
        if self._happens(self._faults.lost_answer):
            raise google.DeadlineExceeded("no answer in time")
        await self._response()
        return times

    def _carry_out_later(self, process: SimulatedProcess, puts: Sequence[Put], carry: Carry, received: int) -> None:
        def arrive() -> None:
            process.faults.late_writes -= 1
            try:
                carry(puts, self._between(received, self._database.read_time))
            except google.GoogleAPICallError:
                return  # nobody waits for this answer

        process.faults.late_writes += 1
        process.kernel.later(process.faults.random.uniform(0.0, LATEST_SECONDS), arrive)

    # ── messages ─────────────────────────────────────────────────────────────────────────────────

    async def _request(self, *, writes: bool = False) -> None:
        process = self._process
        if process is None:
            return
        await self._pass(process)
        faults = process.faults
        if faults.store_is_down() or (writes and faults.disk_is_full()):
            await process.kernel.pause(faults.random.uniform(0.0, 2.0))
            raise google.ServiceUnavailable("the service is out of reach")
        if faults.happens(faults.rates.error_before):
            raise google.ServiceUnavailable("the connection was lost")

    async def _response(self) -> None:
        process = self._process
        if process is None:
            return
        await self._pass(process)
        if process.faults.happens(process.faults.rates.error_after):
            raise google.ServiceUnavailable("the connection was lost")
        self._check_deadline(process)

    async def _pass(self, process: SimulatedProcess) -> None:
        """A message is on its way."""
        random = process.faults.random
        if random.random() < TROUBLED:
            await process.stumble_in_executor()
        else:
            await process.kernel.pause(random.uniform(0.0, 0.004))
            process.check_alive()

    def _happens(self, rate: float) -> bool:
        return self._process is not None and self._process.faults.happens(rate)

    def _between(self, first: int, last: int) -> int:
        return first if self._process is None else self._process.faults.random.randint(first, last)

    # ── waiting ──────────────────────────────────────────────────────────────────────────────────

    async def pause(self, number: int) -> None:
        if self._process is not None:
            random = self._process.faults.random
            await self._process.kernel.pause(pause_seconds(number, random.random()))
            self._process.check_alive()
            self._check_deadline(self._process)

    async def together(self, *calls: Awaitable[Any]) -> list[Any]:
        return [await call for call in calls]

    def within(self, seconds: float) -> AbstractAsyncContextManager[Any]:
        return _Deadline(self, seconds)

    def set_deadline(self, seconds: float | None) -> None:
        """For the actor at work: from now on, or none."""
        if self._process is not None:
            kernel = self._process.kernel
            self._deadlines.pop(kernel.current, None)
            if seconds is not None:
                self._deadlines[kernel.current] = kernel.time + seconds

    def _check_deadline(self, process: SimulatedProcess) -> None:
        """A process that stood still notices only afterwards that its time is over, when its request has been sent."""
        if process.kernel.time > self._deadlines.get(process.kernel.current, float("inf")):
            raise TimeoutError


class _Deadline(AbstractAsyncContextManager[None]):
    def __init__(self, wire: SimulatedWire, seconds: float) -> None:
        self._wire = wire
        self._seconds = seconds

    async def __aenter__(self) -> None:
        self._wire.set_deadline(self._seconds)

    async def __aexit__(self, *_: object) -> None:
        self._wire.set_deadline(None)
