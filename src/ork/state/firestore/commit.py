"""What schedulers decided: one commit with preconditions on the runs and on the own account."""

from __future__ import annotations

import copy
import hashlib
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

from ork.core.effects import LaunchRequest
from ork.core.launch_groups import granted
from ork.core.limits import pool_rate
from ork.model.ids import RunId, SchedulerId
from ork.model.notice import NoticeKind
from ork.model.run import RunStatus
from ork.model.task import Attempt, Task, TaskStatus
from ork.state.admission import Admission, LaunchRates, TokenBucket, admit, admit_all
from ork.state.firestore.accounts import CONFIG, Account, LimitSettings, path_of, raise_grants, room_of_all
from ork.state.firestore.database import Database, Plan
from ork.state.firestore.documents import FACTS, Rows, RunState, attempt_text, run_state
from ork.state.firestore.notices import Raised, notice_put
from ork.state.firestore.values import micros
from ork.state.firestore.wire import Doc, Put, Query
from ork.state.records import Committed, RunChanges
from ork.state.refusals import ends_unaware_of_cancel

_MOST_BYTES = 3 << 20  # of a request; the service takes 10 MiB, its emulator 4
_ROW_BYTES = 600
_FEW_BIG = 16  # large rows that are written in the same request as the rest

_NOTHING = admit_all(())


async def commit(db: Database, scheduler: SchedulerId, changes: Sequence[RunChanges], now: datetime) -> Committed:
    parts = [await db.change(partial(_plan, db, scheduler, part, now), is_repeatable=False) for part in _split(changes)]
    return parts[0] if len(parts) == 1 else _joined(parts)


def _split(changes: Sequence[RunChanges]) -> list[Sequence[RunChanges]]:
    """By runs, where one request would be too large: the contract asks for atomicity of each run only."""
    parts: list[list[RunChanges]] = [[]]
    size = 0
    for of_run in changes:
        own = (len(of_run.tasks) + len(of_run.attempts) + 2 * len(of_run.launches)) * _ROW_BYTES
        if parts[-1] and size + own > _MOST_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(of_run)
        size += own
    return [*parts]


def _joined(parts: Sequence[Committed]) -> Committed:
    waits = [part.again_in for part in parts if part.again_in is not None]
    return Committed(
        frozenset().union(*(part.fenced for part in parts)),
        frozenset().union(*(part.overruled for part in parts)),
        frozenset().union(*(part.admitted for part in parts)),
        frozenset().union(*(part.full for part in parts)),
        min(waits, default=None),
        {id: number for part in parts for id, number in part.parallelism.items()},
    )


class _Work:
    """One run of the commit: its document, copied, and the rows that are written with it."""

    def __init__(self, state: RunState, changes: RunChanges, order: dict[str, int]) -> None:
        self.state = _copied(state)
        self.held_before = state.held
        self.changes = changes
        self.rows = Rows(state.id, order, state.n + 1)
        self.is_changed = False

    def begin(self) -> None:
        if not self.is_changed:
            self.state.begin_change()
            self.is_changed = True

    def write(self, tasks: Sequence[Task], attempts: Sequence[Attempt]) -> None:
        self.begin()
        for task in tasks:
            self.rows.add_task(task)
        for attempt in attempts:
            self.rows.add_attempt(attempt)
            if attempt.status.is_final:
                self.state.act.pop(attempt_text(attempt.key), None)
            else:
                self.state.activate(attempt)

    def apply(self) -> None:
        changes, state = self.changes, self.state
        for command in changes.commands_done:
            state.commands.pop(command, None)
        self.write(changes.tasks, changes.attempts)
        if changes.run is not None:
            # A cancel that came while its owner was deciding must survive a row written without it.
            keep_cancel = changes.run.cancel_requested_at is None and state.cancel_waits
            state.set_run(changes.run, keep_cancel=keep_cancel)

    @property
    def held_change(self) -> Counter[str]:
        return _difference(self.state.held, self.held_before)

    def puts(self, scheduler: SchedulerId) -> list[Put]:
        state = self.state
        state.has_chunks = state.has_chunks or self.rows.has_chunks
        state.account = scheduler if state.act and state.aside is None else None
        if self.changes.release_ownership:
            state.owner = None
        return [state.put(is_change=True, rows=self.rows), *self.rows.puts()]


def _copied(state: RunState) -> RunState:
    copied = copy.copy(state)
    copied.commands, copied.act, copied.groups = dict(state.commands), dict(state.act), dict(state.groups)
    return copied


def _difference(after: Counter[str], before: Counter[str]) -> Counter[str]:
    after.subtract(before)
    return Counter({kind: number for kind, number in after.items() if number})


async def _plan(db: Database, scheduler: SchedulerId, changes: Sequence[RunChanges], now: datetime) -> Plan[Committed]:
    opened, fenced, overruled = await _open(db, scheduler, changes)
    for work in opened:
        if not work.changes.only_launches:
            work.apply()
    launches = [(work, request) for work in opened for request in work.changes.launches]
    held = Counter[str]()
    for work in opened:
        held.update(work.held_change)
    booking = await _Booking.of(db, scheduler, launches, held)
    admitted = [launches[place] for place in sorted(booking.admission.admitted)]
    for work, request in admitted:
        work.write((request.task,), (granted(request.attempt, booking.admission.parallelism),))
    written = [work for work in opened if work.is_changed]
    if len(written) < len(opened) and await _is_outdated(db, [work for work in opened if not work.is_changed]):
        return await _plan(db, scheduler, changes, now)
    notices = await _notices(db, written, now)
    puts = [put for work in written for put in work.puts(scheduler)]
    puts += [*booking.puts, *_cached(written), *notices]
    big = [put for work in written for put in work.rows.big_puts()]
    if len(big) <= _FEW_BIG:
        puts, big = [*puts, *big], []
    keys = frozenset(request.attempt.key for _, request in admitted)
    admission = booking.admission
    answer = Committed(fenced, overruled, keys, admission.full, admission.again_in, admission.parallelism)

    def remember(times: list[int]) -> None:
        by_path = {put.path: time for put, time in zip(puts, times, strict=True)}
        for work in written:
            work.state.time = by_path[f"runs/{work.state.id}"]
            db.remember(work.state)
        booking.remember(by_path)

    return Plan(puts, answer, remember, big)


async def _open(
    db: Database, scheduler: SchedulerId, changes: Sequence[RunChanges]
) -> tuple[list[_Work], frozenset[RunId], frozenset[RunId]]:
    """The runs that may be written, those that are fenced and those that are overruled."""
    states = {of.run_id: db.runs[of.run_id] for of in changes if of.run_id in db.runs}
    # What is remembered may be out of date. A commit that relies on it fails then; a refusal must be looked up.
    unsure = [of.run_id for of in changes if _refusal(states.get(of.run_id), scheduler, of)]
    if unsure:
        docs = await db.wire.get_all([f"runs/{id}" for id in unsure], FACTS)
        for id in unsure:
            db.runs.pop(id, None)
            states.pop(id, None)
        for read in map(run_state, docs.values()):
            if read.w.partition("-")[0] != db.me:
                db.others_changed = True
            states[read.id] = read
            db.remember(read)
    opened, refused = [], {"fenced": set[RunId](), "overruled": set[RunId]()}
    for of_run in changes:
        state = states.get(of_run.run_id)  # others may make this handle forget what it knows at any time
        refusal = _refusal(state, scheduler, of_run)
        if refusal is not None or state is None:
            refused[refusal or "fenced"].add(of_run.run_id)
        else:
            opened.append(_Work(state, of_run, await db.order_of(state.version)))
    return opened, frozenset(refused["fenced"]), frozenset(refused["overruled"])


async def _is_outdated(db: Database, works: Sequence[_Work]) -> bool:
    """Runs of which nothing is written have no precondition that would fail, so they are looked up."""
    docs = await db.wire.get_all([f"runs/{work.state.id}" for work in works], ("epoch",))
    old = [work.state.id for work in works if _time(docs, work) != work.state.time]
    for id in old:
        db.runs.pop(id, None)
    return bool(old)


def _time(docs: dict[str, Doc], work: _Work) -> int | None:
    doc = docs.get(f"runs/{work.state.id}")
    return None if doc is None else doc.time


def _refusal(state: RunState | None, scheduler: SchedulerId, changes: RunChanges) -> str | None:
    if state is None or state.owner != scheduler or state.epoch != changes.epoch:
        return "fenced"
    if not state.is_final and ends_unaware_of_cancel(changes.run) and state.cancel_waits:
        return "overruled"
    return None


class _Booking:
    """What the commit does to accounts, limits and rates."""

    def __init__(self, admission: Admission = _NOTHING) -> None:
        self.admission = admission
        self.puts: list[Put] = []
        self._accounts: list[tuple[SchedulerId, Account]] = []
        self._limits: LimitSettings | None = None
        self._db: Database | None = None

    @classmethod
    async def of(
        cls, db: Database, scheduler: SchedulerId, asked: Sequence[tuple[_Work, LaunchRequest]], held: Counter[str]
    ) -> _Booking:
        """`held` is what the rest of the commit changes about held slots, before launches."""
        if not asked and not held:
            return cls()
        launches = [request for _, request in asked]
        remembers = db.limits is not None
        account, limits, others = await own_account(db, scheduler)
        # What is relied on without having read it now.
        known = (account.time, limits.time) if remembers or others is None else None
        account.held.update(held)
        rates, buckets_of, at = await _open_rates(db, launches, limits)
        admission = admit(launches, account.room(limits.slots), rates)
        givers: list[Account] = []
        touches_limits = account.time is None
        if any(name in limits.slots for name in admission.full) and not _has_all(account, limits):
            if others is None:
                limits, _, others = await look_at_all(db, scheduler)
            rates = LaunchRates(limits.rates, buckets_of)
            admission = admit(launches, room_of_all(limits.slots, [account, *others]), rates)
            account.held.update(_taken(asked, admission))
            before = dict(account.grant)
            givers = raise_grants(account, others, limits.slots)
            touches_limits = account.grant != before or account.time is None
        else:
            account.held.update(_taken(asked, admission))
        if known is not None and not held and not admission.admitted and await _has_changed(db, scheduler, known):
            db.accounts.pop(scheduler, None)
            db.limits = None
            return await cls.of(db, scheduler, asked, held)
        booking = cls(admission)
        booking._db, booking._limits = db, limits
        if held or admission.admitted:
            booking._accounts = [(scheduler, account)]
            booking.puts = [account.put(), *(giver.put() for giver in givers)]
            booking.puts += [limits.put()] if touches_limits else []
            booking.puts += [
                Put(f"rates/{doc_id(name)}", {"tokens": bucket.tokens, "at": at}, rates_guard(buckets_of, name))
                for name, bucket in admission.buckets.items()
            ]
        return booking

    def remember(self, times: dict[str, int]) -> None:
        if self._db is None:
            return
        for scheduler, account in self._accounts:
            account.time = times[path_of(scheduler)]
            self._db.accounts[scheduler] = account
        if self._limits is not None and CONFIG in times:
            self._limits.time = times[CONFIG]
        if self._accounts:
            self._db.limits = self._limits


def _taken(asked: Sequence[tuple[_Work, LaunchRequest]], admission: Admission) -> Counter[str]:
    """What the runs hold more with the admitted launches."""
    states: dict[RunId, RunState] = {}
    taken = Counter[str]()
    for place in sorted(admission.admitted):
        work, request = asked[place]
        state = states.setdefault(work.state.id, work.state)
        if state is work.state:
            state = states[state.id] = _copied(state)
            taken.subtract(state.held)
        state.activate(granted(request.attempt, admission.parallelism))
    for state in states.values():
        taken.update(state.held)
    return Counter({kind: number for kind, number in taken.items() if number})


async def _has_changed(db: Database, scheduler: SchedulerId, known: tuple[int | None, int | None]) -> bool:
    """A refusal writes nothing, so no precondition would fail if what it was decided from is out of date: it is looked up."""
    docs = await db.wire.get_all([path_of(scheduler), CONFIG], ("w",))
    times = [None if doc is None else doc.time for doc in (docs.get(path_of(scheduler)), docs.get(CONFIG))]
    return times != [*known]


def _has_all(account: Account, limits: LimitSettings) -> bool:
    """Everything has been granted to this account, so nobody else needs to be looked at."""
    return all(account.grant.get(name, 0) == slots for name, slots in limits.slots.items())


async def own_account(db: Database, scheduler: SchedulerId) -> tuple[Account, LimitSettings, list[Account] | None]:
    """Copies of the scheduler's account and of the limits as they were when it was read or written. Where it had to be read,
    everybody else's accounts were, too."""
    others = None
    if scheduler not in db.accounts or db.limits is None:
        db.limits, db.accounts[scheduler], others = await look_at_all(db, scheduler, db.limits)
    return db.accounts[scheduler].copy(), db.limits.copy(), others


async def look_at_all(
    db: Database, scheduler: SchedulerId, limits: LimitSettings | None = None
) -> tuple[LimitSettings, Account, list[Account]]:
    """The limits, the scheduler's account, and everybody else's. The limits are read first: no grant grows without them
    being written. Who creates an account writes the limits too, with a precondition: then older `limits` will do.

    Who sets limits writes all accounts. So an account that was written after the limits were read may go with others."""
    known, limits = limits, limits or LimitSettings(await db.wire.get(CONFIG))
    accounts = {doc.id: Account(doc.id, doc) for doc in await db.wire.query(Query("accounts"))}
    own = accounts.pop(scheduler, None) or Account(scheduler, None)
    if own.time is not None and (limits is known or (limits.time is not None and own.time > limits.read)):
        return await look_at_all(db, scheduler)
    return limits, own, [*accounts.values()]


class _Buckets:
    """The rates' documents, as `LaunchRates` opens them. A bucket fills from the moment at which it was written: starts count from
    then on, and the commit may have come long after its tokens were counted."""

    def __init__(self, db: Database, docs: dict[str, Any], now: float) -> None:
        self.docs = docs
        self._db = db
        self._now = now

    def __call__(self, name: str, rate: Any) -> TokenBucket:
        doc = self.docs.get(f"rates/{doc_id(name)}")
        if doc is None:
            return TokenBucket(rate, float(rate.count), 0.0)
        filled_from = max(doc.fields["at"], self._db.written(doc.time))
        return TokenBucket(rate, doc.fields["tokens"], max(0.0, self._now - filled_from))


def rates_guard(buckets: _Buckets, name: str) -> bool | int:
    doc = buckets.docs.get(f"rates/{doc_id(name)}")
    return False if doc is None else int(doc.time)


async def _open_rates(
    db: Database, launches: Sequence[LaunchRequest], limits: LimitSettings
) -> tuple[LaunchRates, _Buckets, float]:
    names = {request.rate[0] for request in launches if request.rate is not None}
    pools = {request.attempt.pool for request in launches if request.attempt.pool is not None}
    names |= {pool_rate(pool) for pool in pools if f"pool:{pool}" in limits.rates}
    docs: dict[str, Any] = {}
    at = 0.0
    if names:
        read = await db.wire.server_time()
        docs, at = await db.wire.get_all([f"rates/{doc_id(name)}" for name in names]), db.seconds(read)
    buckets = _Buckets(db, docs, at)
    return LaunchRates(limits.rates, buckets), buckets, at


def doc_id(text: str) -> str:
    """Any text as the id of a document."""
    return (
        "x" + text.encode("utf-8", "surrogatepass").hex()
        if len(text) < 500
        else hashlib.sha256(text.encode()).hexdigest()
    )


def _cached(written: Sequence[_Work]) -> list[Put]:
    """The newest success under each cache key; see `reads.find_cached`."""
    puts = {}
    for work in written:
        for task in work.changes.tasks:
            if task.cache_key is not None and task.status is TaskStatus.SUCCESS and task.finished_at is not None:
                place = {"run": work.state.id, "task": task.key.name, "index": task.key.index}
                path = f"cached/{hashlib.sha256(task.cache_key.encode()).hexdigest()}"
                puts[path] = Put(path, {**place, "finished": micros(task.finished_at)})
    return [*puts.values()]


async def _notices(db: Database, written: Sequence[_Work], now: datetime) -> list[Put]:
    raised: list[Raised] = []
    for work in written:
        state, run = work.state, work.changes.run
        for alert in work.changes.alerts:
            raised.append(Raised(alert.kind, state.workflow, now, state.id, alert.task, alert.failure))
            state.reported = state.reported or alert.kind is NoticeKind.RUN
        if run is not None and run.status is RunStatus.SUCCESS and (state.reported or await _failed_before(db, state)):
            raised.append(Raised(NoticeKind.RECOVERY, state.workflow, now, state.id))
    if not raised:
        return []
    first = await db.wire.server_time()
    return [notice_put(first + number, each) for number, each in enumerate(raised)]


async def _failed_before(db: Database, state: RunState) -> bool:
    """The workflow's run before it, of those that succeeded or failed, had failed."""
    ended = [RunStatus.SUCCESS.value, RunStatus.FAILED.value]
    where = (("workflow", "==", state.workflow), ("status", "in", ended), ("place", "<", state.place))
    found = await db.wire.query(Query("runs", where, ("-place",), 1, ("status",)))
    return bool(found) and found[0].fields["status"] == RunStatus.FAILED
