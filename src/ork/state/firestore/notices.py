"""Notices to people: documents with the time they are `due`, which is absent once they are done with."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from ork.core.effects import Alert
from ork.model.ids import RunId, TaskKey
from ork.model.notice import Notice, NoticeKind
from ork.model.task import Failure
from ork.state.firestore.database import Database, Plan
from ork.state.firestore.documents import lenient
from ork.state.firestore.values import clean, micros, moment_of
from ork.state.firestore.wire import Doc, Put, Query
from ork.state.lenient import shown_failure
from ork.state.records import UnsentAlert
from ork.state.rows import failure_text, index_number, index_of, number_of, text_of


class Raised(NamedTuple):
    """A notice that has no id yet."""

    kind: NoticeKind
    workflow: str
    at: datetime
    run: RunId | None = None
    task: TaskKey | None = None
    failure: Failure | None = None
    detail: str | None = None


def notice_put(id: int, raised: Raised) -> Put:
    """Ids are moments of the service's clock, counted on where two are equal."""
    task = None if raised.task is None else [raised.task.name, index_number(raised.task.index)]
    fields = {
        "id": text_of(id), "kind": raised.kind.value, "workflow": raised.workflow, "raised": micros(raised.at),
        "run": raised.run, "task": task, "failure": failure_text(raised.failure), "detail": raised.detail, "tries": 0,
        "sent": [], "due": micros(raised.at), "is_alert": raised.kind in (NoticeKind.TASK, NoticeKind.RUN),
    }  # fmt: skip
    return Put(f"notices/{text_of(id)}", {name: value for name, value in fields.items() if value is not None}, False)


def _notice(doc: Doc) -> Notice:
    fields = doc.fields
    task, index = fields.get("task", (None, None))
    row = (
        number_of(doc.id), fields["kind"], fields["workflow"], fields["raised"], fields.get("run"), task, index,
        fields.get("failure"), fields.get("detail"), fields["tries"], fields["sent"],
    )  # fmt: skip
    return lenient.notice(row, tuple)[0]


async def take_alerts(db: Database, limit: int, now: datetime, hold_seconds: float = 60.0) -> tuple[Notice, ...]:
    until = micros(now + timedelta(seconds=hold_seconds))

    async def plan() -> Plan[tuple[Notice, ...]]:
        docs = await db.wire.query(Query("notices", (("due", "<=", micros(now)),), ("due", "__name__"), limit))
        for doc in docs:
            doc.fields["tries"] += 1
        puts = [
            Put(doc.path, {"due": until, "tries": doc.fields["tries"]}, doc.time, [("due",), ("tries",)])
            for doc in docs
        ]
        return Plan(puts, tuple(sorted(map(_notice, docs), key=lambda notice: notice.id)))

    return await db.change(plan)


async def settle_alert(
    db: Database, id: str, sent: Sequence[str], retry_at: datetime | None, error: str | None = None
) -> None:
    async def plan() -> Plan[None]:
        doc = await db.wire.get(f"notices/{text_of(number_of(id))}")
        if doc is None:
            return Plan((), None)
        fields: dict[str, Any] = {"sent": sorted({*doc.fields["sent"], *map(clean, sent)})}
        if retry_at is not None:
            fields["due"] = micros(retry_at)
        if error is not None:
            fields["error"] = error
        return Plan([Put(doc.path, fields, doc.time, [("sent",), ("due",), ("error",)])], None)

    await db.change(plan)


async def next_alert_at(db: Database) -> datetime | None:
    found = await db.wire.query(Query("notices", (), ("due",), 1, ("due",)))
    return moment_of(found[0].fields["due"]) if found else None


async def unsent_alerts(db: Database, limit: int) -> tuple[UnsentAlert, ...]:
    docs = await db.wire.query(Query("notices", (("error", ">", ""),)))
    docs.sort(key=lambda doc: doc.id, reverse=True)
    return tuple(
        UnsentAlert(_notice(doc), doc.fields["error"], lenient.time(doc.fields.get("due"))) for doc in docs[:limit]
    )


async def list_alerts(db: Database, run: RunId) -> tuple[Alert, ...]:
    where = (("run", "==", run), ("is_alert", "==", True))
    docs = sorted(await db.wire.query(Query("notices", where)), key=lambda doc: doc.id)
    return tuple(_alert(doc) for doc in docs)


async def over_budget_at(db: Database, run: RunId) -> datetime | None:
    where = (("run", "==", run), ("kind", "==", NoticeKind.BUDGET.value))
    docs = await db.wire.query(Query("notices", where))
    return max((moment_of(doc.fields["raised"]) for doc in docs), default=None)


def _alert(doc: Doc) -> Alert:
    task = doc.fields.get("task")
    key = None if task is None else TaskKey(task[0], index_of(task[1]))
    return Alert(key, shown_failure(doc.fields.get("failure")))
