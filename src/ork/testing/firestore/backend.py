"""The Firestore store in a simulated world: the real store code, one handle for each process, on a database in memory.

The judge must see calls in the order in which they take effect. A call takes effect when the service carries out its commit, not when the
caller gets the answer, so the judge is called at that moment, with the answer that the store's code has prepared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any, cast

from ork.model.ids import SchedulerId
from ork.state.firestore import claims, commit, documents
from ork.state.firestore.database import Database, Plan
from ork.state.firestore.ownership import scheduler_path
from ork.state.firestore.store import FirestoreStore
from ork.state.firestore.values import micros
from ork.state.firestore.wire import Put
from ork.state.records import Claim
from ork.state.store import StateStore
from ork.testing.clock import EPOCH
from ork.testing.faults import Faults, SimulatedProcess
from ork.testing.firestore.model import MemoryFirestore
from ork.testing.firestore.wire import Carry, CommitFaults, SimulatedWire
from ork.testing.invariants import Judge
from ork.testing.kernel import Actor, Kernel
from ork.testing.store import LaggingStore

_URL = "firestore://simulated/ork"
_LEASED = ("register", "renew")  # verbs that begin or extend a lease


class StoreCall:
    """A verb that a process has called. `plan` is what the store's code has decided last."""

    def __init__(self, process: SimulatedProcess, verb: str, args: Any, kwargs: Any, began: float) -> None:
        self.process, self.verb, self.args, self.kwargs = process, verb, args, kwargs
        self.began = began
        self.plan: Plan[Any] | None = None
        self.has_taken_effect = False

    def is_carried_out_by(self, puts: Sequence[Put]) -> bool:
        """Not by documents that are written before, nor by what opens the database."""
        if self.plan is None:
            return self.verb == "renew"
        return [put.path for put in puts] == [put.path for put in self.plan.puts]


class FirestoreBackend:
    """`store` has no faults. `notify` is called with the writer after each change that the store reports to those who wait."""

    def __init__(
        self,
        seed: int,
        kernel: Kernel,
        faults: Faults,
        judge: Judge,
        notify: Callable[[SimulatedProcess | None], None],
        lease_seconds: float,
    ) -> None:
        random = Random(f"firestore {seed}")
        self._small = random.random() < 0.5
        self._commit_faults = _draw(random)
        self._kernel, self._faults, self._judge, self._notify = kernel, faults, judge, notify
        self._lease_seconds = lease_seconds
        self._calls: dict[Actor | None, StoreCall] = {}
        self.errors: Counter[str] = Counter()  # of commits
        self.database = MemoryFirestore(lambda: micros(EPOCH) + round(kernel.time * 1e6))
        self.store = cast(StateStore, self._open("admin", None))
        self._observer = self._open("observer", None)

    def view(self, process: SimulatedProcess) -> StateStore:
        """The store as this process sees it."""
        handle = self._open(process.name.replace("-", ""), process)
        return cast(StateStore, FirestoreView(cast(StateStore, handle), process, self))

    def begin_faults(self) -> None:
        """The installation is set up."""

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """In half of the worlds rows are spread over more documents than their size calls for."""
        before = documents.INLINE_TASKS, documents.CHUNK, documents.BIG_ROW, documents.MANY_NEW, commit._FEW_BIG
        if self._small:
            _set_sizes(2, 3, 150, 2, 1)
        try:
            yield
        finally:
            _set_sizes(*before)

    def _open(self, name: str, process: SimulatedProcess | None) -> FirestoreStore:
        faults = CommitFaults() if process is None else self._commit_faults
        wire = SimulatedWire(self.database, process, faults, self._commits)
        wire.errors = self.errors
        store = FirestoreStore(_URL, lease_seconds=self._lease_seconds, connect=lambda _address: wire)
        store._db.me = name
        self._watch(store._db)
        return store

    # ── calls ────────────────────────────────────────────────────────────────────────────────────

    def begin(self, call: StoreCall) -> None:
        self._calls[self._kernel.current] = call

    def end(self) -> None:
        self._calls.pop(self._kernel.current, None)

    def _watch(self, db: Database) -> None:
        """Note what each call decides."""
        change = db.change

        async def watched(decide: Callable[[], Awaitable[Plan[Any]]], *, is_repeatable: bool = True) -> Any:
            async def noted() -> Plan[Any]:
                plan = await decide()
                if (call := self._calls.get(self._kernel.current)) is not None:
                    call.plan = plan
                return plan

            return await change(noted, is_repeatable=is_repeatable)

        db.change = watched  # type: ignore[method-assign]

    def _commits(self, puts: Sequence[Put]) -> Carry:
        """How to carry out these writes, which may be later: the call is that of now."""
        call = self._calls.get(self._kernel.current)
        if call is not None and not call.is_carried_out_by(puts):
            call = None
        plan = None if call is None else call.plan

        def carry(puts: Sequence[Put], received: int) -> list[int]:
            times = self.database.commit(puts, received)
            if call is not None:
                self.takes_effect(call, True if plan is None else plan.answer)
            if at_once(self._observer.wait_for_change(0)):
                self._notify(None if call is None else call.process)
            return times

        return carry

    def takes_effect(self, call: StoreCall, answer: Any) -> None:
        call.has_taken_effect = True
        judged: Callable[..., None] | None = getattr(self._judge, call.verb, None)
        if judged is None:
            return
        if isinstance(answer, claims._Taken):
            answer = self._claim(answer)
        self._judge.asked_at = call.began
        judged(answer, *call.args, **call.kwargs)
        self._judge.asked_at = None
        if call.verb in _LEASED:
            self._note_lease(call.args[0])

    def _claim(self, taken: claims._Taken) -> Claim:
        """What the caller will read of the runs that it has just been given."""
        db = cast(FirestoreStore, self.store)._db
        docs = self.database.get_all([f"runs/{state.id}" for state in taken.runs or () if state.epoch > 1])
        claimed = [at_once(claims._claimed(db, docs.get(f"runs/{state.id}"), state)) for state in taken.runs or ()]
        return Claim(tuple(claimed))

    def _note_lease(self, scheduler: SchedulerId) -> None:
        """The lease runs from the time that the service wrote."""
        doc = self.database.get_all([scheduler_path(scheduler)]).get(scheduler_path(scheduler))
        if doc is not None:
            renewed = (doc.fields["renewed"] - EPOCH).total_seconds()
            self._judge.ledger.leases[scheduler] = renewed + self._lease_seconds

    def check_answer(self, call: StoreCall, answer: Any) -> None:
        """The caller has the answer. If nothing had to be written, it is only now that the call takes effect."""
        if not call.has_taken_effect:
            self.takes_effect(call, answer)
        elif isinstance(answer, Claim):
            self._judge.check_loaded(answer, call.args[0])


class FirestoreView(LaggingStore):
    """Faults are between the requests of a verb, not around the verb. Reads may be as old as the last response."""

    def __init__(self, store: StateStore, process: SimulatedProcess, backend: FirestoreBackend) -> None:
        super().__init__(store, process, None, _nobody)
        self._backend = backend

    async def _before_read(self) -> None:
        self._process.check_alive()

    async def _write(self, verb: str, call: Callable[..., Awaitable[Any]], args: Any, kwargs: Any) -> Any:
        self._process.check_alive()
        made = StoreCall(self._process, verb, args, kwargs, self._process.kernel.time)
        self._backend.begin(made)
        try:
            answer = await call(*args, **kwargs)
        finally:
            self._backend.end()
        self._backend.check_answer(made, answer)
        return answer


async def _nobody(_process: SimulatedProcess) -> None:
    return


def at_once(call: Coroutine[Any, Any, Any]) -> Any:
    """The answer of a coroutine that waits for nothing."""
    try:
        call.send(None)
    except StopIteration as over:
        return over.value
    raise AssertionError("it waits")


def _draw(random: Random) -> CommitFaults:
    """Up to three of ten answers are lost, and one of five commits meets others."""
    lost, unsent = random.choice((0.0, 0.05, 0.3)), random.choice((0.0, 0.05))
    return CommitFaults(
        lost_request=unsent,
        lost_answer=lost,
        late=random.choice((0.0, 0.02, 0.1)),
        contention=random.choice((0.0, 0.05, 0.2)),
    )


def _set_sizes(inline: int, chunk: int, big_row: int, many_new: int, few_big: int) -> None:
    documents.INLINE_TASKS, documents.CHUNK, documents.BIG_ROW = inline, chunk, big_row
    documents.MANY_NEW, commit._FEW_BIG = many_new, few_big
