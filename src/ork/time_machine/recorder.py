"""Records what the scheduler commits: runs, attempts, who waited for which limit, and times without a run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from ork.core.cron import jitter_of, times_between
from ork.core.limits import lane_of, limit_names, pool_rate, task_rate
from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.record import Record, made
from ork.model.run import NewRun, Run
from ork.model.task import Attempt, FailureKind, Task, TaskStatus
from ork.model.workflow import Approval, Rate, Schedule, TaskSpec
from ork.state.records import Committed, RunChanges
from ork.state.store import StateStore
from ork.time_machine.project import ProjectCopy
from ork.time_machine.script import SCRIPTED

NOTICED = timedelta(seconds=1)  # shorter waits are those of the scheduler itself
_OWN_FAULTS = frozenset({FailureKind.INPUT, FailureKind.START, FailureKind.INTERNAL, FailureKind.OUTPUT})


class WatchedStore:
    """A store with every verb of the contract. `witness` may have a method per verb: it is called with the result and the
    arguments."""

    def __init__(self, store: StateStore, witness: object) -> None:
        self._store = store
        self._witness = witness

    def __getattr__(self, verb: str) -> Any:
        call: Callable[..., Awaitable[Any]] = getattr(self._store, verb)
        on_call = getattr(self._witness, verb, None)
        if on_call is None:
            self.__dict__[verb] = call
            return call

        async def answer(*args: Any, **kwargs: Any) -> Any:
            result = await call(*args, **kwargs)
            on_call(result, *args, **kwargs)
            return result

        self.__dict__[verb] = answer
        return answer


class PlayedRun(Record, frozen=False):
    """A run, when its first attempt was dispatched, and how many runs of its workflow were active when it started."""

    row: Run
    dispatched_at: datetime | None = None
    others: int = 0
    settled: dict[str, datetime] = made(default_factory=dict)  # when its tasks ended
    retry_at: dict[TaskKey, datetime] = made(default_factory=dict)


class Waited(Record):
    """Something could have started at `since` and did at `until`, because of a limit."""

    limit: str
    workflow: str
    task: str | None  # None: a run
    since: datetime
    until: datetime

    @property
    def seconds(self) -> float:
        return (self.until - self.since).total_seconds()


class Missed(Record):
    """Times of a schedule that got no run."""

    workflow: str
    first: datetime
    count: int
    why: str


class LimitRecord(Record, frozen=False):
    name: str
    slots: int
    used: int = 0
    peak: int = 0
    busy_seconds: float = 0.0  # slots in use, times seconds
    changed_at: datetime | None = None
    full_until: datetime | None = None

    def change(self, by: int, now: datetime) -> None:
        if self.changed_at is not None:
            self.busy_seconds += self.used * (now - self.changed_at).total_seconds()
        if self.used >= self.slots > self.used + by:
            self.full_until = now
        self.used, self.changed_at = self.used + by, now
        self.peak = max(self.peak, self.used)

    def was_full(self, now: datetime) -> bool:
        return self.used >= self.slots or (self.full_until is not None and now - self.full_until < NOTICED)


class Recorder:
    """A witness of the store's calls. `on_end` is called with each run that has ended, `on_approval` with each approval that
    is asked for."""

    def __init__(self, project: ProjectCopy) -> None:
        self._project = project
        self._schedules: Mapping[str, Schedule] = {entry.workflow: entry.schedule for entry in project.schedules}
        self.on_end: Callable[[Run], None] = lambda _run: None
        self.on_approval: Callable[[RunId, str], None] = lambda _run, _task: None
        self.runs: dict[RunId, PlayedRun] = {}
        self.workflow_of: dict[RunId, str] = {}
        self.schedule_of: dict[
            RunId, str
        ] = {}  # the workflow whose schedule led to the run, also through sub-workflows
        self.pending: dict[RunId, datetime] = {}  # when runs that have not started were created
        self.attempts: list[Attempt] = []  # that have ended
        self.waited: list[Waited] = []
        self.missed: list[Missed] = []
        self.problems: dict[str, int] = {}  # failures that no script asked for, and how often they occurred
        self.unfinished = 0
        self.limits = {name: LimitRecord(name, slots) for name, slots in project.rules.limits.items()}
        self._active: dict[str, int] = {}  # started runs of each workflow
        self._holding: dict[AttemptKey, tuple[str, ...]] = {}  # the limits whose slots an attempt holds

    # ── verbs ────────────────────────────────────────────────────────────────────────────────────

    def fire(
        self,
        result: bool,
        workflow: str,
        expected: datetime | None,
        runs: Sequence[NewRun],
        next_fire: datetime | None,  # noqa: ARG002
        now: datetime,
        *,
        missed: str | None = None,
    ) -> None:
        if not result:
            return
        self._create(runs, now)
        if missed is not None and expected is not None:
            jitter = jitter_of(self._schedules[workflow], workflow)
            first = expected - jitter
            due = sum(1 for _ in times_between(self._schedules[workflow], first, now - jitter))
            self.missed.append(Missed(workflow, first, due - len(runs), missed))

    def create_runs(self, _result: Sequence[Run], runs: Sequence[NewRun], now: datetime) -> None:
        self._create(runs, now)

    def _create(self, runs: Iterable[NewRun], now: datetime) -> None:
        for run in runs:
            if run.id not in self.workflow_of:
                self.workflow_of[run.id] = run.workflow
                above = RunId((run.parent or "").partition("/")[0])
                self.schedule_of[run.id] = self.schedule_of.get(above, run.workflow)
                self.pending[run.id] = now
                self.unfinished += 1

    def commit(self, result: Committed, _scheduler: object, changes: Sequence[RunChanges], now: datetime) -> None:
        written = [each for each in changes if each.run_id not in result.fenced and each.run_id not in result.overruled]
        for each in written:
            if each.run is not None:
                self._note_run(each.run)
            for task in each.tasks:
                self._note_task(each.run_id, task, now)
        admitted = [request for each in written for request in each.launches if request.attempt.key in result.admitted]
        blamed = [self._blame(request.attempt, now) for request in admitted]  # before the slots are counted
        for each in written:
            for attempt in each.attempts:
                self._note_attempt(attempt, now)
        for request, limit in zip(admitted, blamed, strict=True):
            self._note_launch(request.attempt, limit, now)

    # ── parts of a commit ────────────────────────────────────────────────────────────────────────

    def _note_run(self, row: Run) -> None:
        run = self.runs.get(row.id)
        if run is None:
            run = self.runs[row.id] = PlayedRun(row, others=self._active.get(row.workflow, 0))
            self._active[row.workflow] = run.others + 1
            self._note_queued(row.workflow, self.pending.pop(row.id), row.started_at or row.created_at)
        had_ended, run.row = run.row.status.is_final and run.row is not row, row
        if row.status.is_final and not had_ended:
            self.unfinished -= 1
            self._active[row.workflow] -= 1
            run.settled.clear()
            self.on_end(row)

    def _note_queued(self, workflow: str, since: datetime, until: datetime) -> None:
        if until - since >= NOTICED:
            has_limit = self._project.workflows[workflow].max_active_runs is not None
            limit = f"max_active_runs of {workflow}" if has_limit else "runs of one scheduler"
            self.waited.append(Waited(limit, workflow, None, since, until))

    def finish(self, now: datetime) -> None:
        """Nothing more is played: runs that have not started waited until now."""
        for run, since in self.pending.items():
            self._note_queued(self.workflow_of[run], since, now)

    def _note_task(self, run: RunId, task: Task, now: datetime) -> None:
        if task.status.is_final and task.key.index is None:
            self.runs[run].settled[task.key.name] = now
        if task.retry_at is not None:
            self.runs[run].retry_at[task.key] = task.retry_at
        if task.status is TaskStatus.RUNNING and task.key.index is None:
            spec = self._project.tasks[self.workflow_of[run], task.key.name]
            if isinstance(spec.action, Approval):
                self.on_approval(run, task.key.name)

    def _note_attempt(self, attempt: Attempt, now: datetime) -> None:
        if attempt.status.is_final or attempt.waits_for is not None:
            for name in self._holding.pop(attempt.key, ()):
                self.limits[name].change(-1, now)
        if attempt.status.is_final:
            self.attempts.append(attempt)
            if (
                attempt.failure is not None
                and attempt.failure.kind in _OWN_FAULTS
                and attempt.failure.message != SCRIPTED
            ):
                problem = f"{self.workflow_of[attempt.run]}.{attempt.key.task.name}: {attempt.failure.message}"
                self.problems[problem] = self.problems.get(problem, 0) + 1

    def _note_launch(self, attempt: Attempt, limit: str, now: datetime) -> None:
        run = self.runs[attempt.run]
        spec = self._spec(attempt)
        run.dispatched_at = run.dispatched_at or now
        held = tuple(name for name in limit_names(attempt.executor, attempt.pool) if name in self.limits)
        for name in held:
            self.limits[name].change(1, now)
        self._holding[attempt.key] = held
        ready = [run.settled[name] for name in spec.depends_on if name in run.settled]
        since = max([run.row.started_at or now, *ready])
        since = max(since, run.retry_at.pop(attempt.key.task, since))
        if now - since >= NOTICED:
            self.waited.append(Waited(limit, run.row.workflow, spec.name, since, now))

    def _blame(self, attempt: Attempt, now: datetime) -> str:
        """The limit that was full until now, the narrowest first; otherwise the rate or concurrency of the task."""
        for name in reversed(limit_names(attempt.executor, attempt.pool)):
            if name in self.limits and self.limits[name].was_full(now):
                return name
        spec, workflow = self._spec(attempt), self.workflow_of[attempt.run]
        rates: Mapping[str, Rate | None] = {task_rate(workflow, spec.name): spec.rate}
        if spec.pool is not None:
            rates = {**rates, pool_rate(spec.pool): self._project.rules.rates.get(f"pool:{spec.pool}")}
        for name in sorted(lane_of(workflow, spec)):
            if rates.get(name) is not None:
                return name
        return f"concurrency of {workflow}.{spec.name}" if spec.concurrency is not None else "the scheduler"

    def _spec(self, attempt: Attempt) -> TaskSpec:
        return self._project.tasks[self.workflow_of[attempt.run], attempt.key.task.name]
