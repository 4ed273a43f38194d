"""Answers `why` for a run or one of its tasks."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from ork.model.ids import TaskKey
from ork.model.record import replaced
from ork.objects.attempt_documents import AttemptDocuments
from ork.objects.calls import in_thread
from ork.state.reading import StateReader
from ork.status.controls import control_text, controls_of_run
from ork.status.gather import gather
from ork.status.ids import RunTarget, no_task, pick_tasks, resolve_run
from ork.status.reasons import Reason, ReasonCode, reason_json, sentences
from ork.status.snapshot import Snapshot
from ork.status.why import why_instances, why_not_started, why_run, why_task


class ExplainTimeouts(NamedTuple):
    """The timeouts, in seconds, that answers mention."""

    heartbeat_seconds: float = 10.0
    stale_seconds: float = 60.0
    start_limit_seconds: float = 300.0
    fence_seconds: float = 45.0


class WhyAnswer(NamedTuple):
    subject: str
    reasons: list[Reason]

    @property
    def sentences(self) -> list[str]:
        return sentences(self.reasons)


def why_json(answer: WhyAnswer) -> dict[str, Any]:
    """`why` has the sentences, `items` the same reasons for programs."""
    return {
        "subject": answer.subject,
        "why": [reason.text for reason in answer.reasons],
        "items": [reason_json(reason) for reason in answer.reasons],
    }


async def explain(
    store: StateReader, objects: AttemptDocuments, target: RunTarget, now: datetime, timeouts: ExplainTimeouts
) -> WhyAnswer:
    found = await resolve_run(store, target.run)
    snapshot = replaced(await gather(store, objects, target, found, now), **timeouts._asdict())
    view = snapshot.view
    held: list[Reason] = []
    if not view.run.status.is_final:
        controls = controls_of_run(await store.list_controls(), snapshot.owner, snapshot.schedulers)
        held = [Reason(ReasonCode.CONTROL, control_text(control, now)) for control in controls]
    # In a thread: a run may have a hundred thousand tasks.
    return await in_thread(_answer, snapshot, target, held)


def _answer(snapshot: Snapshot, target: RunTarget, held: list[Reason]) -> WhyAnswer:
    view = snapshot.view
    if target.task is None:
        return WhyAnswer(f"run {view.short}", [*held, *why_run(snapshot)])
    if not view.tasks:
        key = pick_tasks(map(TaskKey, view.specs), target._replace(instance=None))[0]
        return WhyAnswer(f"{view.short}/{key}", [*held, *why_not_started(snapshot)])
    key = TaskKey(target.task, target.instance)
    if key not in view.tasks:
        raise no_task(target, view.specs)
    reasons = why_task(snapshot, view.tasks[key])
    if key.index is None:
        reasons += why_instances(snapshot, key.name)
    return WhyAnswer(f"{view.short}/{key}", reasons if view.tasks[key].status.is_final else [*held, *reasons])
