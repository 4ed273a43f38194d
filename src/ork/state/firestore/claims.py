"""Claiming runs: which need an owner, and what changes hands with them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from ork.errors import StoreError, UnreadableError
from ork.model.ids import RunId, SchedulerId
from ork.model.quarantine import ItemKind, QuarantinedRun
from ork.model.run import RunStatus
from ork.model.task import Heartbeat
from ork.state.admission import that_fit
from ork.state.firestore.accounts import CONFIG, Account, LimitSettings, move, path_of
from ork.state.firestore.commit import look_at_all
from ork.state.firestore.database import Database, Plan
from ork.state.firestore.definitions import workflow_path
from ork.state.firestore.documents import FACTS, FoundRows, RunState, attempt_key, codec, lenient, run_state
from ork.state.firestore.failures import TROUBLE
from ork.state.firestore.ownership import beats_path, owned_runs, scheduler_path, seconds_left
from ork.state.firestore.quarantine import noted_put, set_aside
from ork.state.firestore.requests import COMMAND_KINDS, commands_of
from ork.state.firestore.rows import beats_of, current_attempts, params_of, rows_of, tasks_in_order
from ork.state.firestore.wire import Doc, Put, Query
from ork.state.records import Claim, ClaimedRun

_PAGE = 100
_AT_ONCE = 200  # runs that one commit takes, and that it disowns: with what goes with them, fewer than 500 writes
_MOST_IN = 30  # values of one `in` filter


class _Taken(NamedTuple):
    """What a commit took. None: the scheduler is unknown or its own lease has expired. `is_all`: nobody else is left to look at.
    `docs`: documents of runs that were read as a whole, and which are as they were. `nothing_waits`: see `Claim`."""

    runs: list[RunState] | None
    is_all: bool = True
    docs: Mapping[RunId, Doc] = {}
    nothing_waits: bool = False


class _Moved(NamedTuple):
    """What a claim does to accounts."""

    puts: Sequence[Put] = ()
    own: Account | None = None
    limits: LimitSettings | None = None

    def remember(self, db: Database, times: Mapping[str, int]) -> None:
        if self.own is None or self.limits is None:
            return
        self.own.time, self.limits.time = times[path_of(self.own.id)], times.get(CONFIG, self.limits.time)
        db.accounts[SchedulerId(self.own.id)], db.limits = self.own, self.limits


async def claim_runs(
    db: Database,
    scheduler: SchedulerId,
    room: int,
    now: datetime,
    *,
    only: Collection[RunId] | None = None,
) -> Claim:
    runs: list[RunState] = []
    docs: dict[RunId, Doc] = {}
    is_newcomer = scheduler in db.newcomers
    db.newcomers.discard(scheduler)  # now, whatever becomes of this claim
    while True:
        taken = await db.change(partial(_plan, db, scheduler, room - len(runs), only))
        if taken.runs is None and not runs:
            return Claim()
        runs += taken.runs or ()
        docs |= taken.docs
        if taken.is_all or len(runs) >= room:
            break
    claimed, broken = await _load(db, scheduler, runs, docs, now)
    if is_newcomer:  # it owned nothing before this claim
        ids = {each.run.id for each in claimed}
        asking = [state for state in runs if state.id in ids and state.commands]
    else:
        where = (("owner", "==", scheduler), ("asks", "==", True))
        asking = [run_state(doc) for doc in await db.wire.query(Query("runs", where, (), None, FACTS))]
    for state in asking:
        await _end_unknown(db, scheduler, state, now)
    commands = sorted((command for state in asking for command in commands_of(state)), key=lambda command: command.id)
    return Claim(claimed, tuple(commands), broken, nothing_waits=taken.nothing_waits)


async def _plan(db: Database, scheduler: SchedulerId, room: int, only: Collection[RunId] | None) -> Plan[_Taken]:
    schedulers = {doc.id: doc for doc in await db.wire.query(Query("schedulers"))}
    lapsed = [doc for doc in schedulers.values() if seconds_left(db, doc) <= 0]
    if scheduler not in schedulers or schedulers[scheduler] in lapsed:
        return Plan((), _Taken(None))
    if room <= 0:
        return Plan((), _Taken([]))
    left, gone = await _left_behind(db, lapsed)
    found = {state.id: state for state in left.values() if state.needs_owner}
    found |= await _queued(db, only) if only is not None else {}
    docs: dict[RunId, Doc] = {}
    fitting, places, is_whole = await _fitting(db, found, left, room, docs if only is None else None)
    taken = fitting[: min(room, _AT_ONCE)]
    is_all = len(gone) == len(lapsed) and len(taken) in (room, len(fitting))
    chosen = {state.id for state in taken}
    rest = [state for state in left.values() if state.id not in chosen]
    moved = await _moves(db, scheduler, taken, schedulers.keys() - {doc.id for doc in gone})
    for state in [*rest, *taken]:
        state.begin_claim()
        state.owner = None
    for state in taken:
        state.owner, state.epoch = scheduler, state.epoch + 1
        state.account = scheduler if state.act else None
    puts = [state.put(is_change=False) for state in [*taken, *rest]]
    puts += [Put(doc.path, None, doc.time) for doc in gone]
    if puts:  # that we are still known is a precondition: a run must not belong to nobody
        puts += [Put(scheduler_path(scheduler), {}, schedulers[scheduler].time, []), *places(taken), *moved.puts]

    def remember(times: list[int]) -> None:
        for state, time in zip(taken, times, strict=False):
            state.time = time
            db.remember(state)
        moved.remember(db, {put.path: time for put, time in zip(puts, times, strict=True)})

    return Plan(puts, _Taken(taken, is_all, docs, is_whole and is_all and len(taken) == len(found)), remember)


async def _left_behind(db: Database, lapsed: Sequence[Doc]) -> tuple[dict[RunId, RunState], list[Doc]]:
    """Runs of schedulers whose lease has expired, and those schedulers of which these are all runs."""
    states: dict[RunId, RunState] = {}
    gone = []
    for doc in lapsed:
        room = _AT_ONCE - len(states)
        owned = await owned_runs(db, doc.id, room + 1)
        if len(owned) <= room:
            gone.append(doc)
        states |= {state.id: state for state in owned[:room]}
        if len(owned) > room:
            break
    return states, gone


async def _queued(db: Database, only: Collection[RunId]) -> dict[RunId, RunState]:
    """With `only`: those runs, their sub-workflows, and what nobody looks after though it is active."""
    ids = sorted(only)
    docs = [*(await db.wire.get_all([f"runs/{id}" for id in ids], FACTS)).values()]
    for start in range(0, len(ids), _MOST_IN):
        where = (("above", "in", ids[start : start + _MOST_IN]),)
        docs += await db.wire.query(Query("runs", where, (), None, FACTS))
    docs += [
        doc
        for doc in await db.wire.query(Query("runs", (("busy", "==", True),), (), None, FACTS))
        if doc.fields["epoch"]
    ]
    states = [run_state(doc) for doc in docs]
    return {state.id: state for state in states if state.owner is None and state.needs_owner}


class _Places:
    """The documents that serialize claims of workflows with `max_active_runs`."""

    def __init__(self) -> None:
        self.docs: dict[str, Doc | None] = {}
        self.free: dict[str, int] = {}

    def __call__(self, taken: Sequence[RunState]) -> list[Put]:
        names = {state.workflow for state in taken if state.status == RunStatus.PENDING} & self.free.keys()
        docs = [(name, self.docs[name]) for name in sorted(names)]
        return [Put(_queue_path(name), {"name": name}, False if doc is None else doc.time) for name, doc in docs]


def _queue_path(workflow: str) -> str:
    return workflow_path(workflow).replace("workflows/", "queues/")


async def _fitting(
    db: Database, found: dict[RunId, RunState], left: Mapping[RunId, RunState], room: int, docs: dict[RunId, Doc] | None
) -> tuple[list[RunState], _Places, bool]:
    """Of the found runs, and with `docs` those in the queue, the ones that may be claimed, in order. The documents of the
    queue are added to `docs`, as a whole: who claims one needs its rows. True: the whole queue was found."""
    places, after, size = _Places(), None, room
    while True:
        is_last = True
        if docs is not None:
            where = () if after is not None else (("queue", ">", ""),)
            page = await db.wire.query(Query("runs", where, ("queue",), size, after=after))
            # Two reads are two moments: one that was just read as somebody's is not in the queue.
            fresh = {RunId(doc.id): doc for doc in page if RunId(doc.id) not in left and "owner" not in doc.fields}
            found |= {id: run_state(doc) for id, doc in fresh.items()}
            docs |= fresh
            is_last, size = len(page) < size, max(_PAGE, room)
            after = (page[-1].fields["queue"],) if page else None
        ordered = sorted(found.values(), key=lambda state: state.queue)
        await _count(db, places, ordered, left)
        wanted = [
            (state.id, state.workflow, state.status == RunStatus.PENDING, state.columns[13] is not None)
            for state in ordered
        ]
        fit = that_fit(wanted, dict(places.free))
        if is_last or len(fit) >= room:
            return [found[RunId(id)] for id in fit], places, is_last and docs is not None


async def _count(db: Database, places: _Places, ordered: Sequence[RunState], left: Mapping[RunId, RunState]) -> None:
    names = {state.workflow for state in ordered if state.status == RunStatus.PENDING} - places.docs.keys()
    if not names:
        return
    docs = await db.wire.get_all([workflow_path(name) for name in names])
    limits = {doc.fields["name"]: doc.fields.get("most") for doc in docs.values()}
    limited = sorted(name for name in names if limits.get(name) is not None)
    docs = await db.wire.get_all([_queue_path(name) for name in limited])
    for name in sorted(names):
        places.docs[name] = docs.get(_queue_path(name))
        if (most := limits.get(name)) is not None:
            active = await db.wire.count(Query("runs", (("workflow", "==", name), ("live", "==", True))))
            waiting = sum(state.workflow == name and state.status == RunStatus.PENDING for state in left.values())
            places.free[name] = most - active + waiting


async def _moves(db: Database, scheduler: SchedulerId, taken: Sequence[RunState], alive: Collection[str]) -> _Moved:
    """What the runs hold goes from the accounts of their former owners to ours."""
    moving = [state for state in taken if state.act and state.account != scheduler]
    if not moving:
        return _Moved()
    limits, own, others = await look_at_all(db, scheduler, None if db.limits is None else db.limits.copy())
    # The runs were read before the accounts, and are as they were: the accounts that they name are there.
    accounts = {other.id: other for other in others}
    for state in moving:
        move(state.held, accounts.get(state.account or "") or Account("", None), own, limits.slots)
    puts = []
    for account in (accounts[id] for id in sorted({state.account or "" for state in moving} & accounts.keys())):
        if account.id in alive or +account.held:
            puts.append(account.put())
        else:
            own.inherit(account)
            puts.append(account.delete())
    return _Moved([own.put(), *puts, *([limits.put()] if own.time is None else [])], own, limits)


# ── what a new owner gets ────────────────────────────────────────────────────────────────────────


async def _load(
    db: Database, scheduler: SchedulerId, runs: Sequence[RunState], read: Mapping[RunId, Doc], now: datetime
) -> tuple[tuple[ClaimedRun, ...], tuple[QuarantinedRun, ...]]:
    """The runs, and those that had to be set aside because they cannot be decoded. Documents in `read` were read before the
    claim, whose preconditions say that nobody had written them since."""
    docs = await db.wire.get_all([f"runs/{state.id}" for state in runs if state.epoch > 1 and state.id not in read])
    found, broken = [], []
    for state in runs:
        run, doc = state.id, None
        if state.epoch > 1 and (doc := read.get(run)) is None:
            doc = docs.get(f"runs/{run}")
            if doc is None or doc.fields.get("owner") != scheduler:
                continue
        try:
            found.append(await _claimed(db, doc, state))
        except (*TROUBLE, StoreError) as problem:
            if not isinstance(problem, UnreadableError):
                raise
            broken.append(await set_aside(db, scheduler, run, state.epoch, str(problem), now))
        except Exception as problem:
            rows = FoundRows({}, {}) if doc is None else await rows_of(db, doc, state)
            tasks, attempts = [row for _, row in rows.tasks.values()], [[run, *row] for row in rows.attempts.values()]
            reason = lenient.why_unreadable(state.row("{}"), tasks, attempts) or repr(problem)
            broken.append(await set_aside(db, scheduler, run, state.epoch, reason, now))
    return tuple(found), tuple(each for each in broken if each is not None)


async def _claimed(db: Database, doc: Doc | None, state: RunState) -> ClaimedRun:
    """Without a document: nobody owned it before, so nobody can have written below it."""
    run = codec.run_of(state.row(await params_of(db, state)))
    version = await db.needed_version(run.version)
    if doc is None:
        return ClaimedRun(run, state.epoch, version, (), ())
    rows = await rows_of(db, doc, state)
    tasks = tasks_in_order(rows, await db.order_of(version.id))
    attempts = tuple(codec.attempt_of(columns) for columns in current_attempts(run.id, rows, tasks))
    noted = await db.wire.get(beats_path(run.id)) if state.act else None
    beats, clock = beats_of(noted), db.seconds((noted or doc).read)
    heard = tuple(
        Heartbeat(attempt_key(run.id, key), seq, max(0.0, clock - at))
        for key, (seq, at) in beats.items()
        if key in state.act
    )
    return ClaimedRun(run, state.epoch, version, tuple(map(codec.task_of, tasks)), attempts, heard)


async def _end_unknown(db: Database, scheduler: SchedulerId, state: RunState, now: datetime) -> None:
    """Commands that cannot be decoded are done with, so that nobody meets them again."""
    if all(command[0] in COMMAND_KINDS for command in state.commands.values()):
        return

    async def plan() -> Plan[None]:
        doc = await db.wire.get(f"runs/{state.id}")
        fresh = None if doc is None else run_state(doc)
        if fresh is None or fresh.owner != scheduler:
            return Plan((), None)
        unknown = {id: command for id, command in fresh.commands.items() if command[0] not in COMMAND_KINDS}
        fresh.begin_change()
        fresh.commands = {id: command for id, command in fresh.commands.items() if id not in unknown}
        notes = [
            noted_put(ItemKind.COMMAND, id, f"command {command[0]!r} for run {state.id} is not known", now)
            for id, command in unknown.items()
        ]
        return Plan([fresh.put(is_change=True), *notes], None)

    await db.change(plan)
