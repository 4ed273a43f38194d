"""Setting aside what cannot be decoded or worked with, so that its neighbours go on."""

from __future__ import annotations

from datetime import datetime

from ork.model.ids import RunId, SchedulerId
from ork.model.quarantine import ItemKind, Quarantined, QuarantinedRun
from ork.model.record import replaced
from ork.model.run import RunStatus
from ork.model.task import AttemptStatus, TaskStatus
from ork.state.firestore.access import list_tokens
from ork.state.firestore.commit import doc_id, own_account
from ork.state.firestore.database import Database, Plan
from ork.state.firestore.definitions import list_schedules, list_workflows
from ork.state.firestore.documents import Rows, attempt_text, lenient, run_state
from ork.state.firestore.locations import list_locations
from ork.state.firestore.rows import rows_of
from ork.state.firestore.values import clean, micros
from ork.state.firestore.wire import Put, Query
from ork.state.quarantine import damaged_items, note_of

_KINDS = frozenset(kind.value for kind in ItemKind)
_STATUS, _FINISHED, _NOTE = 3, 9, 14  # places in a run's columns


async def set_aside(
    db: Database, scheduler: SchedulerId, run: RunId, epoch: int, reason: str, now: datetime
) -> QuarantinedRun | None:
    async def plan() -> Plan[QuarantinedRun | None]:
        doc = await db.wire.get(f"runs/{run}")
        state = None if doc is None else run_state(doc)
        if doc is None or state is None or state.owner != scheduler or state.epoch != epoch:
            return Plan((), None)
        found = await rows_of(db, doc, state)
        columns = [[run, *row] for key, row in found.attempts.items() if key in state.act]
        attempts = lenient.readable_attempts(columns)
        is_cancelled = not state.is_final and state.cancel_waits
        rows = Rows(run, await _order(db, state.version), state.n + 1)
        account, *_ = await own_account(db, scheduler)
        account.held.subtract(state.held)
        freed = bool(state.held) and account.time is not None
        state.begin_change()
        if is_cancelled:
            for task in [lenient.task(row) for _, row in found.tasks.values()]:
                if not task.status.is_final:
                    ended = {"status": TaskStatus.CANCELLED, "finished_at": now, "retry_at": None}
                    rows.add_task(replaced(task, reason=note_of(reason, True), **ended))
            for attempt in attempts:
                rows.add_attempt(replaced(attempt, status=AttemptStatus.CANCELLED, finished_at=now))
                state.act.pop(attempt_text(attempt.key), None)
            state.columns[_STATUS], state.columns[_FINISHED] = RunStatus.CANCELLED.value, micros(now)
        else:
            state.aside = [clean(reason), micros(now)]
            if not state.is_final:
                state.columns[_STATUS] = RunStatus.PAUSED.value
        state.columns[_NOTE] = note_of(reason, is_cancelled)
        state.owner, state.account, state.commands = None, None, {}
        puts = [
            state.put(is_change=True, rows=rows),
            *rows.puts(),
            *rows.big_puts(),
            *([account.put()] if freed else []),
        ]
        db.accounts.pop(scheduler, None)
        return Plan(puts, QuarantinedRun(run, state.workflow, reason, is_cancelled, attempts))

    answer = await db.change(plan)
    db.runs.pop(run, None)
    return answer


async def _order(db: Database, version: object) -> dict[str, int]:
    """Without the version nobody knows the order; then there are no rows to write either that anybody could read."""
    try:
        return await db.order_of(version)  # type: ignore[arg-type]
    except Exception:
        return {}


def noted_put(kind: ItemKind, id: str, reason: str, now: datetime) -> Put:
    fields = {"kind": kind.value, "id": id, "reason": reason, "since": micros(now)}
    return Put(f"quarantine/{doc_id(f'{kind.value} {id}')}", fields)


async def list_quarantined(db: Database, limit: int = 100) -> tuple[Quarantined, ...]:
    """Of the small collections what is damaged is found anew each time."""
    aside = await db.wire.query(Query("runs", (("is_aside", "==", True),), (), limit, ("aside",)))
    noted = [(ItemKind.RUN.value, doc.id, *doc.fields["aside"]) for doc in aside]
    rows = await db.wire.query(Query("quarantine", limit=limit))
    noted += [(doc.fields["kind"], doc.fields["id"], doc.fields["reason"], doc.fields["since"]) for doc in rows]
    items = [
        Quarantined(ItemKind(kind), id, reason, lenient.time(since))
        for kind, id, reason, since in noted
        if kind in _KINDS
    ]
    found = damaged_items(
        await list_workflows(db), await list_schedules(db), await list_locations(db), await list_tokens(db)
    )
    return tuple(sorted([*items, *found], key=lambda item: (item.kind, item.id)))[:limit]
