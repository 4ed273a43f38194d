"""What people and schedules ask for: new runs, and commands for runs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from ork.errors import NotFoundError
from ork.model.ids import RunId
from ork.model.notice import NoticeKind
from ork.model.run import CommandKind, NewRun, Run, RunCommand, RunStatus
from ork.model.workflow import Trigger
from ork.state.firestore.database import Database, Plan
from ork.state.firestore.definitions import fires, workflow_path
from ork.state.firestore.documents import BIG_PARAMS, FACTS, RunState, run_columns, run_state
from ork.state.firestore.notices import Raised, notice_put
from ork.state.firestore.rows import packed, run_of_state, shown_run
from ork.state.firestore.values import SERVER_TIME, micros
from ork.state.firestore.wire import Doc, Put
from ork.state.records import Accepted, TooLate
from ork.state.refusals import check_same_request, is_too_late
from ork.state.rows import json_text, text_of

_BY_SLOT = (Trigger.SCHEDULE, Trigger.BACKFILL)
COMMANDS = "meta/commands"


class _Names(NamedTuple):
    """The documents that a new run must be the first to create, by which a second request finds it."""

    run: str
    key: str | None
    slot: str | None


def _digest(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode("utf-8", "surrogatepass")).hexdigest()


def key_path(workflow: str, key: str) -> str:
    return f"keys/{_digest(workflow, key)}"


def slot_path(workflow: str, at: datetime) -> str:
    return f"slots/{_digest(workflow, str(micros(at)))}"


def _names(new: NewRun) -> _Names:
    has_slot = new.scheduled_for is not None and new.trigger in _BY_SLOT
    return _Names(
        f"runs/{new.id}",
        None if new.key is None else key_path(new.workflow, new.key),
        slot_path(new.workflow, new.scheduled_for) if has_slot and new.scheduled_for is not None else None,
    )


async def create_runs(db: Database, runs: Sequence[NewRun], now: datetime) -> tuple[Run, ...]:
    await check_versions(db, runs)
    is_first = True

    async def plan() -> Plan[tuple[Run, ...]]:
        nonlocal is_first
        puts, made = await creations(db, runs, now, look=not is_first)
        is_first = False
        return Plan(puts, made)

    return await db.change(plan)


async def check_versions(db: Database, runs: Sequence[NewRun]) -> None:
    for new in runs:
        if await db.version(new.version) is None:
            raise NotFoundError(f"There is no version {new.version}.", hint="Deploy the workflow first.")


async def creations(
    db: Database, runs: Sequence[NewRun], now: datetime, *, look: bool
) -> tuple[list[Put], tuple[Run, ...]]:
    """The writes that create the runs, and the runs; those that exist are not written. Without a look, that none of them
    exists is assumed: the preconditions tell."""
    known: dict[str, RunId] = {}
    found: dict[RunId, Run] = {}
    if look:
        known, found = await _look(db, runs)
    puts: list[Put] = []
    answers: list[Run] = []
    for new in runs:
        names = _names(new)
        existing = next((known[name] for name in names if name is not None and name in known), None)
        if existing is not None:
            if names.run not in known and names.key in known:
                check_same_request(new, found[existing])
            answers.append(found[existing])
            continue
        run = Run(
            new.id, new.workflow, new.version, RunStatus.PENDING, new.trigger, dict(new.params), now,
            scheduled_for=new.scheduled_for, priority=new.priority, fresh=new.fresh, parent=new.parent,
        )  # fmt: skip
        puts += _creation(new, run, names)
        known |= {name: new.id for name in names if name is not None}
        found[new.id] = run
        answers.append(run)
    return puts, tuple(answers)


def _creation(new: NewRun, run: Run, names: _Names) -> list[Put]:
    params = json_text(run.params)
    state = RunState(run.id, run_columns(run), params if len(params) <= BIG_PARAMS else None)
    state.key, state.starter = new.key, new.started_by
    fields = state.fields() | {"changed": SERVER_TIME}
    puts = [Put(names.run, fields if state.params is None else fields | {"params": params}, False)]
    if state.params is None:
        puts.append(Put(f"{names.run}/big/params", {"params": packed(params)}))
    return puts + [Put(name, {"run": run.id}, False) for name in names[1:] if name is not None]


async def _look(db: Database, runs: Sequence[NewRun]) -> tuple[dict[str, RunId], dict[RunId, Run]]:
    """Which of the names exist, and the runs they stand for."""
    names = [name for new in runs for name in _names(new) if name is not None]
    docs = await db.wire.get_all(names)
    known = {path: RunId(doc.fields.get("run", doc.id)) for path, doc in docs.items()}
    states = {RunId(doc.id): doc for path, doc in docs.items() if path.startswith("runs/")}
    more = await db.wire.get_all([f"runs/{id}" for id in known.values() if id not in states])
    states |= {RunId(doc.id): doc for doc in more.values()}
    found = {id: await shown_run(db, doc) for id, doc in states.items()}
    return {name: id for name, id in known.items() if id in found}, found


async def fire(
    db: Database,
    workflow: str,
    expected: datetime | None,
    runs: Sequence[NewRun],
    next_fire: datetime | None,
    now: datetime,
    *,
    missed: str | None = None,
) -> bool:
    due = 0 if expected is None else micros(expected)
    is_first = True

    async def plan() -> Plan[bool]:
        nonlocal is_first
        doc = await db.wire.get(workflow_path(workflow))
        if doc is None or not fires(doc.fields) or doc.fields.get("due") != due:
            return Plan((), False)
        await check_versions(db, runs)
        puts, _ = await creations(db, runs, now, look=not is_first)
        is_first = False
        fields = {"due": 0 if next_fire is None else micros(next_fire)}
        puts.insert(0, Put(doc.path, fields, doc.time, [("due",)]))
        if missed is not None:
            notice = Raised(NoticeKind.MISSED, workflow, now, detail=missed)
            puts.append(notice_put(await db.wire.server_time(), notice))
        return Plan(puts, True)

    return await db.change(plan)


async def submit_command(db: Database, command: RunCommand, now: datetime) -> Accepted | TooLate | None:
    async def plan() -> Plan[Accepted | TooLate | None]:
        docs = await db.wire.get_all([f"runs/{command.run}", COMMANDS])
        doc, counter = docs.get(f"runs/{command.run}"), docs.get(COMMANDS)
        if doc is None:
            return Plan((), None)
        state, run = run_state(doc), await shown_run(db, doc)
        if is_too_late(command.kind, run.status):
            return Plan((), TooLate(run))
        number = 1 if counter is None else counter.fields["last"] + 1
        state.begin_change()
        state.commands[text_of(number)] = [
            command.kind.value, command.by, command.task, command.everything, command.comment,
        ]  # fmt: skip
        if command.kind is CommandKind.CANCEL and state.columns[13] is None:
            state.columns[13] = micros(now)
        state.aside = None  # whoever claims it next tries again
        puts = [state.put(is_change=True), Put(COMMANDS, {"last": number}, _guard(counter))]
        return Plan(puts, Accepted(run_of_state(state, run.params), text_of(number)))

    answer = await db.change(plan, is_repeatable=False)
    db.runs.pop(command.run, None)
    return answer


def _guard(doc: Doc | None) -> bool | int:
    return False if doc is None else doc.time


async def pending_commands(db: Database, run: RunId) -> tuple[RunCommand, ...]:
    docs = await db.wire.get_all([f"runs/{run}"], FACTS)
    return tuple(command for doc in docs.values() for command in commands_of(run_state(doc)))


def commands_of(state: RunState) -> list[RunCommand]:
    """Those of a kind that this Ork knows, in order."""
    return [
        RunCommand(state.id, CommandKind(kind), by, task, everything, comment, id)
        for id, (kind, by, task, everything, comment) in sorted(state.commands.items())
        if kind in COMMAND_KINDS
    ]


COMMAND_KINDS = frozenset(kind.value for kind in CommandKind)
