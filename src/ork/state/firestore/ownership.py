"""Schedulers and their leases. A lease is the time of `schedulers/{id}.renewed` by the service's clock."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

from ork.model.ids import RunId, SchedulerId
from ork.model.run import SchedulerEntry
from ork.model.task import Heartbeat
from ork.state.firestore.accounts import Account, path_of
from ork.state.firestore.commit import doc_id
from ork.state.firestore.database import Database, Plan, wake
from ork.state.firestore.documents import FACTS, RunState, attempt_text, run_state
from ork.state.firestore.failures import ConflictError, UnansweredError
from ork.state.firestore.installation import SETTINGS, settings_in
from ork.state.firestore.rows import beats_of
from ork.state.firestore.values import clean, micros, moment_of
from ork.state.firestore.wire import Doc, Put, Query
from ork.state.installation import check_terms
from ork.state.rows import json_text, notes_of

_EXPIRED = datetime(1970, 1, 1, tzinfo=UTC)
_TRIES = 5
_RELEASED_AT_ONCE = 400


def scheduler_path(scheduler: str) -> str:
    return f"schedulers/{scheduler}"


def seconds_left(db: Database, doc: Doc) -> float:
    """Of the lease, when the document was read; negative if it has expired."""
    if doc.fields["renewed"] == _EXPIRED:
        return float("-inf")
    renewed = micros(doc.fields["renewed"]) / 1e6
    return round(renewed + db.lease_seconds - db.seconds(doc.read), 6)


async def register(
    db: Database, scheduler: SchedulerId, identity: str, kind: str, now: datetime, *, terms: str | None = None
) -> None:
    """The first try assumes that nobody is registered under this id, because ids are random. The preconditions tell."""
    path, is_first = scheduler_path(scheduler), True

    async def plan() -> Plan[None]:
        nonlocal is_first
        settings, before = db.settings, None
        if not is_first or not _has_terms(settings, terms):
            docs = await db.wire.get_all([SETTINGS] if is_first else [path, SETTINGS])
            before, settings = docs.get(path), docs.get(SETTINGS)
            check_terms(settings_in(settings), terms)
        is_first = False
        owned = await owned_runs(db, scheduler) if before is not None else []
        fields = {
            "identity": clean(identity), "kind": kind, "started": micros(now), "renewed": db.stamp, "notes": "[]",
        }  # fmt: skip
        # That the settings stay as they were is a precondition: nobody registers under terms that are being replaced.
        same = Put(SETTINGS, None, False) if settings is None else Put(SETTINGS, {}, settings.time, [])
        own = Put(path, fields, False if before is None else before.time)

        def remember(times: list[int]) -> None:
            db.settings, db.leases[scheduler] = settings, times[0]

        return Plan([own, *map(_disowned, owned), same], None, remember)

    await db.change(plan)
    db.newcomers.add(scheduler)  # it owns nothing


def _has_terms(settings: Doc | None, terms: str | None) -> bool:
    recorded = settings_in(settings)
    return recorded is not None and terms in (None, recorded.terms)


def _disowned(state: RunState) -> Put:
    state.begin_claim()
    state.owner = None
    return state.put(is_change=False)


async def owned_runs(db: Database, scheduler: str, limit: int | None = None) -> list[RunState]:
    docs = await db.wire.query(Query("runs", (("owner", "==", scheduler),), (), limit, FACTS))
    for doc in docs:
        db.runs.pop(RunId(doc.id), None)
    return [run_state(doc) for doc in docs]


async def renew(db: Database, scheduler: SchedulerId) -> bool:
    """One blind write. It can be repeated, so one without an answer is."""
    put = Put(scheduler_path(scheduler), {"renewed": db.stamp}, True, [("renewed",)])
    for number in range(_TRIES):
        try:
            (db.leases[scheduler],) = await db.wire.commit([put])
        except ConflictError:
            db.leases.pop(scheduler, None)
            if await db.wire.get(put.path) is None:
                return False
        except UnansweredError:
            db.leases.pop(scheduler, None)
        else:
            return True
        await db.wire.pause(number)
    raise TimeoutError


async def note_fallbacks(db: Database, scheduler: SchedulerId, notes: Sequence[str]) -> None:
    async def plan() -> Plan[None]:
        doc = await db.wire.get(scheduler_path(scheduler))
        if doc is None:
            return Plan((), None)
        return Plan([Put(doc.path, {"notes": json_text(list(notes))}, True, [("notes",)])], None)

    await db.change(plan)


async def expire(db: Database, schedulers: Sequence[SchedulerId]) -> None:
    async def plan() -> Plan[None]:
        docs = await db.wire.get_all([scheduler_path(scheduler) for scheduler in schedulers])
        ends = [Put(doc.path, {"renewed": _EXPIRED}, doc.time, [("renewed",)]) for doc in docs.values()]
        return Plan([*ends, wake(db)], None)

    await db.change(plan)


async def release(
    db: Database, scheduler: SchedulerId, runs: Sequence[RunId] | None = None, *, exits: bool = False
) -> None:
    if runs is not None and not runs:
        return

    async def plan() -> Plan[bool]:
        if runs is None:
            return await departure(db, scheduler, exits=exits)
        docs = await db.wire.get_all([f"runs/{run}" for run in runs], FACTS)
        states = [state for state in map(run_state, docs.values()) if state.owner == scheduler]
        return Plan([_released(state) for state in states], False)

    while await db.change(plan):
        continue
    for run in [*db.runs] if runs is None else runs:
        db.runs.pop(run, None)


def _released(state: RunState) -> Put:
    """A change: whoever waits may claim it."""
    state.begin_change()
    state.owner = None
    return state.put(is_change=True)


async def departure(db: Database, scheduler: str, *, exits: bool) -> Plan[bool]:
    """Forgets a scheduler, its account if it is empty, and a control that is for it alone. True: it has more runs than one
    commit releases, and is forgotten with the last of them."""
    id = SchedulerId(scheduler)
    lease, account = db.leases.pop(id, None), db.accounts.pop(id, None)
    db.newcomers.discard(id)
    if lease is None:
        doc = await db.wire.get(scheduler_path(scheduler))
        if doc is None:
            return Plan((), False)
        lease = doc.time
    owned = await owned_runs(db, scheduler, _RELEASED_AT_ONCE)
    # The account that active attempts are counted in is not empty: that their run is as it was is a precondition.
    is_in_use = any(state.account == scheduler and +state.held for state in owned)
    puts = [_released(state) for state in owned]
    if len(owned) == _RELEASED_AT_ONCE:
        return Plan(puts, True)
    if not is_in_use:
        if account is None or +account.held:  # what is remembered may be out of date
            account = Account(scheduler, await db.wire.get(path_of(scheduler)))
        puts += [account.delete()] if account.time is not None and not +account.held else []
    control = await db.wire.get(f"controls/{doc_id(scheduler)}") if exits else None
    puts += [] if control is None else [Put(control.path, None, control.time)]
    return Plan([*puts, Put(scheduler_path(scheduler), None, lease)], False)


async def list_schedulers(db: Database) -> tuple[SchedulerEntry, ...]:
    entries = []
    for doc in await db.wire.query(Query("schedulers")):
        number = await db.wire.count(Query("runs", (("owner", "==", doc.id),)))
        fields = doc.fields
        entries.append(
            SchedulerEntry(
                SchedulerId(doc.id), fields["identity"], fields["kind"], moment_of(fields["started"]),
                seconds_left(db, doc), number, notes_of(fields["notes"]),
            )
        )  # fmt: skip
    return tuple(sorted(entries, key=lambda entry: (entry.started_at, entry.id)))


async def get_owner(db: Database, run: RunId) -> SchedulerId | None:
    owner = await _field(db, run, "owner")
    return None if owner is None else SchedulerId(owner)


async def get_starter(db: Database, run: RunId) -> str | None:
    return await _field(db, run, "starter")


async def get_key(db: Database, run: RunId) -> str | None:
    return await _field(db, run, "key")


async def _field(db: Database, run: RunId, name: str) -> str | None:
    docs = await db.wire.get_all([f"runs/{run}"], (name,))
    return next((doc.fields.get(name) for doc in docs.values()), None)


# ── heartbeats ───────────────────────────────────────────────────────────────────────────────────


def beats_path(run: str) -> str:
    return f"runs/{run}/notes/beats"


async def note_heartbeats(db: Database, heartbeats: Sequence[Heartbeat]) -> None:
    """In a document beside the run's, so that nobody's precondition fails because of them."""
    by_run: dict[RunId, list[Heartbeat]] = {}
    for heartbeat in heartbeats:
        by_run.setdefault(heartbeat.attempt.run, []).append(heartbeat)
    if not by_run:
        return
    reads: list[float] = []
    for run, noted in by_run.items():
        await db.change(partial(_noted, db, run, noted, reads))


async def _noted(db: Database, run: RunId, heartbeats: Sequence[Heartbeat], reads: list[float]) -> Plan[None]:
    """`reads` gets the time of each read. Ages are those at the first of them, which is the nearest to the call."""
    docs = await db.wire.get_all([f"runs/{run}", beats_path(run)], ("act", "row", "epoch", "n", "log", "beats"))
    doc = docs.get(f"runs/{run}")
    if doc is None:
        return Plan((), None)
    reads.append(db.seconds(doc.read))
    now = reads[0]
    before, act = beats_of(docs.get(beats_path(run))), run_state(doc).act
    known = dict(before)
    for heartbeat in heartbeats:
        key = attempt_text(heartbeat.attempt)
        last = known[key][0] if key in known else None
        is_older = last is not None and (last == heartbeat.seq or 0 <= heartbeat.seq < last)
        if key in act and not is_older:
            known[key] = heartbeat.seq, now - heartbeat.age
    if known == before:
        return Plan((), None)
    beats = {key: json_text(value) for key, value in known.items() if key in act}
    return Plan([Put(beats_path(run), {"beats": beats})], None)
