"""Which scheduler may act on which run: leases, claims and epochs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from ork.errors import StoreError, UnreadableError
from ork.model.ids import RunId, SchedulerId
from ork.model.quarantine import ItemKind, QuarantinedRun
from ork.model.run import RunCommand, SchedulerEntry
from ork.model.task import Heartbeat
from ork.state.admission import that_fit
from ork.state.installation import check_terms
from ork.state.lenient import UNKNOWN_TIME
from ork.state.records import Claim, ClaimedRun
from ork.state.rows import attempt_key, is_command, notes_of, text_of
from ork.state.sqlite.connection import Row
from ork.state.sqlite.database import Database
from ork.state.sqlite.installation import read_shared_settings
from ork.state.sqlite.quarantine import note, set_run_aside
from ork.state.sqlite.rows import attempt_of, command_of, index_number, json_text, lenient, run_of, task_of, time_text


def register(
    db: Database, scheduler: SchedulerId, identity: str, kind: str, now: datetime, *, terms: str | None = None
) -> None:
    boot, until = db.lease()
    with db.connection.writing():
        if terms is not None:
            check_terms(read_shared_settings(db), terms)
        db.connection.run("release_all", (scheduler,))
        db.connection.run(
            "register",
            {
                "id": scheduler,
                "identity": identity,
                "kind": kind,
                "now": time_text(now),
                "boot": boot,
                "until": until,
            },
        )


def renew(db: Database, scheduler: SchedulerId) -> bool:
    boot, until = db.lease()
    with db.connection.writing():
        return db.connection.run("renew", {"id": scheduler, "boot": boot, "until": until}) == 1


def note_fallbacks(db: Database, scheduler: SchedulerId, notes: Sequence[str]) -> None:
    with db.connection.writing():
        db.connection.run("note_fallbacks", {"id": scheduler, "notes": json_text(list(notes))})


def expire(db: Database, schedulers: Sequence[SchedulerId]) -> None:
    with db.changing():
        db.connection.run_many("end_lease", [(scheduler,) for scheduler in schedulers])


def release(db: Database, scheduler: SchedulerId, runs: Sequence[RunId] | None = None, *, exits: bool = False) -> None:
    if runs is None:
        if db.connection.row("is_registered", {"id": scheduler}) is not None:
            with db.changing():
                _forget(db, [scheduler])
                if exits:
                    db.connection.run("clear_control", {"target": scheduler})
    elif db.connection.row("owns_one_of", {"owner": scheduler, "runs": json_text(list(runs))}) is not None:
        with db.changing():
            db.connection.run_many("release_run", [(scheduler, run) for run in runs])


def claim_runs(
    db: Database,
    scheduler: SchedulerId,
    room: int,
    now: datetime,
    *,
    only: Collection[RunId] | None = None,
) -> Claim:
    boot, at = db.clock()
    moment = {"id": scheduler, "boot": boot, "now": at}
    with db.connection.reading():
        holds_lease, has_free_runs, has_lapsed_owners = db.connection.rows("look_for_work", moment)[0]
        if holds_lease and not (room > 0 and (has_free_runs or has_lapsed_owners)):
            commands = db.connection.rows("commands_for", {"owner": scheduler})
            if all(map(is_command, commands)):
                return Claim((), tuple(map(command_of, commands)))
    if not holds_lease:
        return Claim()
    with db.connection.writing():
        lapsed = [id for (id,) in db.connection.rows("lapsed_schedulers", moment)]
        if scheduler in lapsed:
            return Claim()
        if only is not None:
            only = [*only, *(run for id in lapsed for (run,) in db.connection.rows("runs_of_owner", {"owner": id}))]
        _forget(db, lapsed)
        taken = _take(db, scheduler, room, only)
        claimed, broken = _load(db, scheduler, taken, now)
        return Claim(claimed, _commands(db, scheduler, now), broken)


def _forget(db: Database, schedulers: Sequence[str]) -> None:
    """Delete schedulers and release their runs. An owner of a run always has a row."""
    ids = [(scheduler,) for scheduler in schedulers]
    db.connection.run_many("release_all", ids)
    db.connection.run_many("forget_scheduler", ids)


def _take(db: Database, scheduler: SchedulerId, room: int, only: Collection[str] | None) -> list[str]:
    """Claim up to `room` runs. Repeats the query while runs were skipped because their workflow became full; each time
    at least one more workflow is excluded."""
    free: dict[str, int] = dict(db.connection.rows("room_in_workflows"))
    chosen = None if only is None else json_text(sorted(only))
    taken: list[str] = []
    while room > len(taken):
        full = [workflow for workflow, left in free.items() if left <= 0]
        wanted = {"full_workflows": json_text(full), "room": room - len(taken)}
        if chosen is None:
            found = db.connection.rows("claimable_runs", wanted)
        else:
            found = db.connection.rows("claimable_of_these", {**wanted, "only": chosen})
        fitting = that_fit(found, free)
        db.connection.run_many("take_run", [(scheduler, run) for run in fitting])
        taken += fitting
        if len(fitting) == len(found):
            break
    return taken


def _load(
    db: Database, scheduler: SchedulerId, ids: list[str], now: datetime
) -> tuple[tuple[ClaimedRun, ...], tuple[QuarantinedRun, ...]]:
    """Load the claimed runs; quarantine those that cannot be decoded and return them separately."""
    claimed, broken = [], []
    for row in db.run_rows(ids):
        try:
            claimed.append(_claimed(db, row))
        except Exception as problem:
            broken.append(_set_aside(db, scheduler, row, problem, now))
    return tuple(claimed), tuple(each for each in broken if each is not None)


def _claimed(db: Database, row: Row) -> ClaimedRun:
    run, epoch = run_of(row), row[-2]
    version = db.needed_version(run.version)
    if epoch == 1:  # never owned before, so it has no tasks or attempts yet
        return ClaimedRun(run, epoch, version, (), ())
    of_run = {"run": run.id}
    tasks = tuple(task_of(task) for task in db.connection.rows("tasks_of_run", of_run))
    attempts = tuple(attempt_of(attempt) for attempt in db.connection.rows("current_attempts", of_run))
    return ClaimedRun(run, epoch, version, tasks, attempts, _heartbeats(db, run.id) if attempts else ())


def _set_aside(
    db: Database, scheduler: SchedulerId, row: Row, problem: Exception, now: datetime
) -> QuarantinedRun | None:
    if isinstance(problem, StoreError):
        raise problem
    of_run = {"run": row[0]}
    tasks = db.connection.rows("tasks_of_run", of_run)
    attempts = db.connection.rows("current_attempts", of_run)
    reason = str(problem) if isinstance(problem, UnreadableError) else lenient.why_unreadable(row, tasks, attempts)
    claim, changed = (scheduler, RunId(row[0]), row[-2]), db.count_change()
    return set_run_aside(db, claim, reason or repr(problem), changed, now)


def _heartbeats(db: Database, run: RunId) -> tuple[Heartbeat, ...]:
    boot, now = db.clock()
    rows = db.connection.rows("heartbeats_of_run", {"run": run, "boot": boot})
    return tuple(Heartbeat(attempt_key(row[:4]), row[4], max(0.0, now - row[5])) for row in rows)


def note_heartbeats(db: Database, heartbeats: Sequence[Heartbeat]) -> None:
    boot, now = db.clock()
    rows = [
        (seq, boot, now - age, run, name, index_number(index), number, seq, seq, seq)
        for (run, (name, index), number), seq, age in ((each.attempt, each.seq, each.age) for each in heartbeats)
    ]
    with db.connection.writing():
        db.connection.run_many("note_heartbeat", rows)


def _commands(db: Database, scheduler: SchedulerId, now: datetime) -> tuple[RunCommand, ...]:
    """The open commands of the scheduler's runs. Unknown commands are finished and quarantined. Call inside a
    transaction."""
    found = []
    for row in db.connection.rows("commands_for", {"owner": scheduler}):
        if is_command(row):
            found.append(command_of(row))
        else:
            db.connection.run_many("finish_command", [(time_text(now), row[0], row[1])])
            note(db, ItemKind.COMMAND, text_of(row[0]), f"command {row[2]!r} for run {row[1]} is unknown", now)
    return tuple(found)


def list_schedulers(db: Database) -> tuple[SchedulerEntry, ...]:
    boot, now = db.clock()
    return tuple(
        SchedulerEntry(
            SchedulerId(id),
            identity,
            kind,
            lenient.time(started_at) or UNKNOWN_TIME,
            _seconds_left(lease_boot == boot, until, now),
            runs,
            notes_of(notes),
        )
        for id, identity, kind, started_at, lease_boot, until, runs, notes in db.connection.rows("list_schedulers")
    )


def _seconds_left(same_boot: bool, until: float, now: float) -> float:
    return until - now if same_boot else float("-inf")


def get_owner(db: Database, run: RunId) -> SchedulerId | None:
    row = db.connection.row("get_owner", {"run": run})
    return None if row is None or row[0] is None else SchedulerId(row[0])


def get_starter(db: Database, run: RunId) -> str | None:
    row = db.connection.row("get_starter", {"run": run})
    return None if row is None else row[0]


def get_key(db: Database, run: RunId) -> str | None:
    row = db.connection.row("get_key", {"run": run})
    return None if row is None else row[0]
