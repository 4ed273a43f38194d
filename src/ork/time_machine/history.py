"""The history of a workflow's tasks: how long their attempts took, how they ended, and what they returned."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from statistics import median

from ork.model.record import Record
from ork.model.run import Run, RunStatus
from ork.model.task import Attempt, AttemptStatus, FailureKind, InlineOutput, Output, StoredOutput, Task, TaskStatus
from ork.model.workflow import Approval, CompiledWorkflow, Ref, SubWorkflow, TaskSpec
from ork.objects.attempt_documents import AttemptDocuments
from ork.objects.calls import DocumentCalls
from ork.state.reading import StateReader
from ork.state.records import RunFilter

RUNS_READ = 50  # of each workflow, the newest
ATTEMPTS_READ = 2000  # of each run
OUTPUT_LIMIT = 4 << 20
_ENDED = frozenset({RunStatus.SUCCESS, RunStatus.FAILED})
_FAILURES = {
    AttemptStatus.FAILED: FailureKind.EXIT,
    AttemptStatus.TIMED_OUT: FailureKind.TIMEOUT,
    AttemptStatus.LOST: FailureKind.LOST,
}


class PastAttempt(Record):
    """One attempt of the past."""

    start_seconds: float  # from its dispatch to the start of its code
    seconds: float
    failure: FailureKind | None = None
    waited: bool = False  # it handed over to an external job, and took no slot while it waited


class TaskHistory(Record):
    samples: tuple[PastAttempt, ...] = ()
    output: str | None = None  # of the newest success, as JSON; read only where something depends on it

    def typical(self) -> PastAttempt | None:
        """The median of the successful attempts, or of all if none succeeded; as a success."""
        chosen = [each for each in self.samples if each.failure is None] or self.samples
        if not chosen:
            return None
        waited = sum(each.waited for each in chosen) * 2 > len(chosen)
        return PastAttempt(
            median(each.start_seconds for each in chosen), median(each.seconds for each in chosen), waited=waited
        )


async def read_history(
    store: StateReader, objects: AttemptDocuments, workflow: CompiledWorkflow
) -> dict[tuple[str, str], TaskHistory]:
    """By workflow and task. Tasks that were never run are missing."""
    runs = (await store.list_runs(RunFilter(workflow.name, statuses=_ENDED, limit=RUNS_READ))).runs
    wanted = outputs_used(workflow)
    people = {spec.name for spec in workflow.tasks if isinstance(spec.action, Approval)}
    samples: dict[str, list[PastAttempt]] = {}
    outputs: dict[str, str] = {}
    for run in runs:
        for attempt in await store.list_attempts(run.id, limit=ATTEMPTS_READ):
            if (sample := _sample_of(attempt)) is not None:
                samples.setdefault(attempt.key.task.name, []).append(sample)
        for task in await _tasks(store, run, needed=bool(people or wanted.keys() - outputs.keys())):
            name = task.key.name
            if name in people and task.started_at is not None and task.finished_at is not None:
                samples.setdefault(name, []).append(PastAttempt(0.0, _seconds(task.started_at, task.finished_at)))
            if name in wanted and name not in outputs and (text := await _text(objects, task)) is not None:
                outputs[name] = text
    names = dict.fromkeys([*samples, *outputs])
    return {(workflow.name, name): TaskHistory(tuple(samples.get(name, ())), outputs.get(name)) for name in names}


def outputs_used(workflow: CompiledWorkflow) -> dict[str, list[tuple[Ref, bool]]]:
    """By upstream task, the references that decide what runs: how often a task fans out, whether it runs, and with which
    params a sub-workflow does. The second part is true where a list is needed."""
    used: dict[str, list[tuple[Ref, bool]]] = {}
    for spec in workflow.tasks:
        for ref, is_list in _references(spec):
            if ref.task is not None:
                used.setdefault(ref.task, []).append((ref, is_list))
    return used


def _references(spec: TaskSpec) -> Iterable[tuple[Ref, bool]]:
    if isinstance(spec.foreach, Ref):
        yield spec.foreach, True
    if isinstance(spec.parallel, Ref):
        yield spec.parallel, False
    for condition in spec.when:
        yield condition.ref, False
    for _, value in spec.inputs if isinstance(spec.action, SubWorkflow) else ():
        if isinstance(value, Ref):
            yield value, False


async def _tasks(store: StateReader, run: Run, *, needed: bool) -> tuple[Task, ...]:
    update = await store.run_updates(run.id) if needed else None
    return () if update is None else tuple(task for task in update.tasks if task.key.index is None)


def _sample_of(attempt: Attempt) -> PastAttempt | None:
    """None for an attempt that tells nothing: it was cancelled, or never started."""
    if attempt.started_at is None or attempt.finished_at is None or attempt.status is AttemptStatus.CANCELLED:
        return None
    failure = None if attempt.status is AttemptStatus.SUCCESS else _FAILURES[attempt.status]
    if failure is not None and attempt.failure is not None:
        failure = attempt.failure.kind
    start = _seconds(attempt.dispatched_at, attempt.started_at)
    return PastAttempt(start, _seconds(attempt.started_at, attempt.finished_at), failure, attempt.waits_for is not None)


def _seconds(start: datetime, end: datetime) -> float:
    return max(0.0, (end - start).total_seconds())


async def _text(objects: AttemptDocuments, task: Task) -> str | None:
    output: Output | None = task.output if task.status is TaskStatus.SUCCESS else None
    if isinstance(output, InlineOutput):
        return output.json
    if isinstance(output, StoredOutput) and output.size <= OUTPUT_LIMIT:
        (data,) = await DocumentCalls(objects).call(objects.read_values, [output.key], OUTPUT_LIMIT)
        return data.decode() if isinstance(data, bytes) else None
    return None
