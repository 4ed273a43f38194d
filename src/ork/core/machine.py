"""RunMachine: events in, rows and effects out.

One object per run, in the manner of h11: it does nothing but decide. Whoever owns the run feeds it events with the
time they are judged at, takes what it decided, commits that, and only then acts on it. Its whole state is in the
rows: a machine rebuilt from them decides the same. An event costs its task's own edges, never the size of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from datetime import datetime
from heapq import heappop, heappush
from typing import assert_never

from ork.core import events as ev
from ork.core import rows
from ork.core.commands import reset_for_retry, tasks_to_retry
from ork.core.decisions import Decisions, Draft
from ork.core.effects import Alert, Stop, Wish
from ork.core.graph import Node, link
from ork.core.ready import ReadyTasks
from ork.core.retry import is_worth_retrying, retry_delay
from ork.core.rules import Verdict, judge
from ork.core.transitions import RunStep, TaskStep, next_run_status
from ork.model.ids import AttemptKey, TaskKey
from ork.model.run import CommandKind, Run, RunCommand, RunStatus
from ork.model.task import Attempt, AttemptStatus, Failure, FailureKind, GiveUp, Output, Task, TaskStatus
from ork.model.workflow import CompiledWorkflow, RunIf, TaskSpec

NameAttempt = Callable[[AttemptKey, TaskSpec], tuple[str, str]]
"""Gives an attempt's external name and the hash of its token."""


class RunMachine:
    def __init__(
        self, workflow: CompiledWorkflow, run: Run, tasks: Iterable[Task] = (), attempts: Iterable[Attempt] = ()
    ) -> None:
        self.run = run
        self.workflow = workflow
        self.tasks: dict[TaskKey, Task] = {task.key: task for task in tasks}
        self.active: dict[TaskKey, Attempt] = {attempt.key.task: attempt for attempt in attempts}
        self.ignored = 0
        self._nodes = link(workflow)
        self._unfinished = 0
        self._ready = ReadyTasks()
        self._offered: dict[TaskKey, Wish] = {}
        self._timers: list[tuple[datetime, int, TaskKey]] = []
        self._draft = Draft()
        self._survey()

    # ── feeding ──────────────────────────────────────────────────────────────────────────────────

    def handle(self, event: ev.Event, now: datetime) -> None:
        match event:
            case ev.Created():
                self._create(now)
            case ev.Commanded(command):
                self._command(command, now)
            case ev.TimerDue():
                self._wake_retries(now)
            case ev.Started() | ev.Beat() | ev.Succeeded() | ev.Failed() | ev.GivenUp() | ev.Closed():
                attempt = self.active.get(event.key)
                if attempt is None or attempt.key.number != event.attempt:
                    self.ignored += 1  # an older attempt, or one that has ended: late news changes nothing
                    return
                self._attempt_event(event, attempt, now)
            case _:
                assert_never(event)

    def take(self) -> Decisions:
        """Everything decided since the last call. The caller commits it, or forgets this machine."""
        draft, self._draft = self._draft, Draft()
        return draft.finish()

    def offer(self, limit: int, name: NameAttempt, now: datetime, full: Collection[str] = ()) -> tuple[Wish, ...]:
        """Up to `limit` launches, most urgent first, none that counts against a limit known to be full.

        Nothing is launched until `settle` says which were admitted.
        """
        wishes: list[Wish] = []
        while self.run.status is RunStatus.RUNNING and len(wishes) < limit:
            key = self._ready.pop(full)
            if key is None:
                break
            task = self.tasks[key]
            if task.status is TaskStatus.PENDING and key not in self._offered:
                wish = self._wish(task, name, now)
                self._offered[key] = wish
                wishes.append(wish)
        return tuple(wishes)

    def settle(self, admitted: frozenset[AttemptKey]) -> tuple[Attempt, ...]:
        """The commit has spoken: admitted wishes are facts now, and returned; the others stay ready."""
        launched = []
        for key, wish in self._offered.items():
            if wish.attempt.key in admitted:
                self.tasks[key] = wish.task
                self.active[key] = wish.attempt
                launched.append(wish.attempt)
            else:
                self._push_ready(key)
        self._offered = {}
        return tuple(launched)

    def save_heartbeats(self) -> None:
        """Before letting go: whoever comes next knows since when each worker has been silent."""
        for attempt in self.active.values():
            if attempt.seen_at is not None:
                self._draft.attempts[attempt.key] = attempt

    # ── asking ───────────────────────────────────────────────────────────────────────────────────

    def has_ready(self, full: Collection[str] = ()) -> bool:
        """Something could be offered that counts against no limit known to be full."""
        return self.run.status is RunStatus.RUNNING and self._ready.has_any(full)

    @property
    def next_timer(self) -> datetime | None:
        return self._timers[0][0] if self._timers else None

    @property
    def rests(self) -> bool:
        """Nothing about this run needs an owner until a person asks for something."""
        return self.run.status.is_final or (self.run.status is RunStatus.PAUSED and not self.active)

    def spec(self, key: TaskKey) -> TaskSpec:
        return self._nodes[key.name].spec

    def output_of(self, name: str) -> Output | None:
        return self.tasks[TaskKey(name)].output

    # ── the run ──────────────────────────────────────────────────────────────────────────────────

    def _create(self, now: datetime) -> None:
        self._set_run(RunStep.START, started_at=now)
        self._create_tasks(now)

    def _create_tasks(self, now: datetime) -> None:
        for name, node in self._nodes.items():
            self._write(Task(TaskKey(name), TaskStatus.PENDING, node.spec.executor))
        self._begin_round(now)

    def _begin_round(self, now: datetime) -> None:
        """Some tasks are pending now. Those whose rule cannot hold any more are skipped before anything starts."""
        for key in self._survey():
            task, node = self.tasks[key], self._nodes[key.name]
            if task.status is TaskStatus.PENDING:  # not skipped meanwhile because of one before it
                self._end_task(rows.set_aside(task, TaskStep.SKIP, node.skip_reason, node.upstream.cause, now), now)
        self._finish_if_done(now)

    def _finish_if_done(self, now: datetime) -> None:
        if self._unfinished or self.run.status.is_final:
            return
        failed = next((task for task in self.tasks.values() if task.status is TaskStatus.FAILED), None)
        if self.run.cancel_requested_at is not None:
            self._set_run(RunStep.CANCEL, finished_at=now)
        elif failed is not None:
            error = f"task `{failed.key}` failed: {failed.failure.message if failed.failure else 'unknown'}"
            self._set_run(RunStep.FAIL, finished_at=now, error=error)
            self._draft.effects.append(Alert(None, failed.failure))
        else:
            self._set_run(RunStep.SUCCEED, finished_at=now)

    def _command(self, command: RunCommand, now: datetime) -> None:
        """Commands are checked when they are submitted; one that has been overtaken since changes nothing."""
        status = self.run.status
        match command.kind:
            case CommandKind.CANCEL if not status.is_final:
                self._cancel(command.by, now)
            case CommandKind.PAUSE if status is RunStatus.RUNNING:
                self._set_run(RunStep.PAUSE, note=f"paused by {command.by}")
            case CommandKind.RESUME if status is RunStatus.PAUSED:
                self._set_run(RunStep.RESUME, note=None)
                if not self.tasks:  # it was set aside before it began
                    self._create_tasks(now)
            case CommandKind.RETRY if status.is_final:
                self._retry_run(command, now)
            case CommandKind.CANCEL | CommandKind.PAUSE | CommandKind.RESUME | CommandKind.RETRY:
                self.ignored += 1
            case _:
                assert_never(command.kind)

    def _cancel(self, by: str, now: datetime) -> None:
        reason = f"cancelled by {by}"
        asked_at = self.run.cancel_requested_at or now
        self.run = self._draft.run = replace(self.run, cancel_requested_at=asked_at, note=reason)
        self._end_everything(now, reason, TaskStep.CANCEL)
        self._finish_if_done(now)

    def _retry_run(self, command: RunCommand, now: datetime) -> None:
        for key in tasks_to_retry(self.workflow, self.tasks, command):
            self._write(reset_for_retry(self.tasks[key]))
        self._set_run(
            RunStep.REVIVE,
            finished_at=None,
            error=None,
            note=None,
            cancel_requested_at=None,
            round=self.run.round + 1,
        )
        self._begin_round(now)

    # ── attempts ─────────────────────────────────────────────────────────────────────────────────

    def _attempt_event(self, event: ev.AttemptEvent, attempt: Attempt, now: datetime) -> None:
        match event:
            case ev.Started() | ev.Beat() | ev.Succeeded() | ev.Failed() if event.seq <= attempt.seq:
                self.ignored += 1
            case ev.Beat(seq=seq):
                self.active[event.key] = replace(attempt, seq=seq, seen_at=now)
            case ev.Started():
                self._started(event, attempt, now)
            case ev.Succeeded():
                self._succeeded(event, attempt, now)
            case ev.Failed():
                ended = rows.failed(attempt, event, now)
                self._ended_badly(ended, ended.failure or event.failure, now)
            case ev.GivenUp(reason=reason, failure=failure):
                if attempt.closing is None:
                    self._close(attempt, reason, failure, now)
                else:
                    self.ignored += 1
            case ev.Closed():
                self._closed(attempt, now)
            case _:
                assert_never(event)

    def _started(self, event: ev.Started, attempt: Attempt, now: datetime) -> None:
        if attempt.status is AttemptStatus.RUNNING:
            self.active[event.key] = replace(attempt, seq=event.seq, seen_at=now)
            return
        task, running = rows.started(self.tasks[event.key], attempt, event, now)
        self._write(task)
        self.active[event.key] = running
        self._draft.attempts[running.key] = running

    def _succeeded(self, event: ev.Succeeded, attempt: Attempt, now: datetime) -> None:
        """Also for one that is being given up: a success that was reached is a success."""
        task, ended = rows.succeeded(self.tasks[event.key], attempt, event, now)
        self._end_attempt(ended)
        self._end_task(task, now)

    def _close(self, attempt: Attempt, reason: GiveUp, failure: Failure, now: datetime) -> None:
        """From here on the attempt cannot be retried until it is certain that it is over."""
        closing = replace(attempt, closing=reason, closing_since=now, failure=failure)
        self.active[attempt.key.task] = closing
        self._draft.attempts[attempt.key] = closing
        self._draft.effects.append(Stop(closing, reason))

    def _closed(self, attempt: Attempt, now: datetime) -> None:
        if attempt.closing is None:
            self.ignored += 1
            return
        failure = attempt.failure or Failure(FailureKind.LOST, "given up")
        self._ended_badly(rows.ended_badly(attempt, failure, now), failure, now)

    def _ended_badly(self, attempt: Attempt, failure: Failure, now: datetime) -> None:
        self._end_attempt(attempt)
        task = self.tasks[attempt.key.task]
        spec, tries = self.spec(task.key), task.attempt - task.earlier_attempts
        if failure.kind is FailureKind.CANCELLED:
            ended = rows.after_failure(task, attempt, TaskStep.CANCEL)
            self._end_task(replace(ended, reason=failure.message), now)
        elif is_worth_retrying(spec, failure, tries):
            at = now + retry_delay(spec, failure, tries, attempt.key)
            self._write(replace(rows.after_failure(task, attempt, TaskStep.RETRY), retry_at=at))
            self._push_timer(at, task.key)
        else:
            self._draft.effects.append(Alert(task.key, failure))
            self._end_task(rows.after_failure(task, attempt, TaskStep.FAIL), now)

    def _end_attempt(self, attempt: Attempt) -> None:
        del self.active[attempt.key.task]
        self._draft.attempts[attempt.key] = attempt

    # ── the graph ────────────────────────────────────────────────────────────────────────────────

    def _end_task(self, task: Task, now: datetime) -> None:
        """Writes a final task and everything that follows from it, however far down, without recursion."""
        self._write_end(task)
        spread = [task]
        while spread:
            last = spread.pop()
            for node in self._nodes[last.key.name].below:
                skipped = self._hear_of(node, last, now)
                if skipped is not None:
                    self._write_end(skipped)  # before it spreads: it may be reached on another way, too
                    spread.append(skipped)
        if task.status is TaskStatus.FAILED and self.workflow.fail_fast:
            self._fail_fast(task, now)
        self._finish_if_done(now)

    def _hear_of(self, node: Node, ended: Task, now: datetime) -> Task | None:
        """One task above `node` has ended: it becomes ready, goes on waiting, or is skipped (and returned)."""
        node.hear_of(ended)
        task = self.tasks[TaskKey(node.spec.name)]
        if task.status is not TaskStatus.PENDING:
            return None
        match judge(node.spec.run_if, node.upstream):
            case Verdict.START:
                self._push_ready(task.key)
            case Verdict.SKIP:
                return rows.set_aside(task, TaskStep.SKIP, node.skip_reason, node.upstream.cause, now)
            case Verdict.WAIT:
                pass
        return None

    def _fail_fast(self, failed: Task, now: datetime) -> None:
        keep = frozenset(name for name, node in self._nodes.items() if node.spec.run_if is RunIf.ALWAYS)
        self._end_everything(now, f"fail_fast: {failed.key} failed", TaskStep.SKIP, cause=failed.key, keep=keep)
        for name in sorted(keep):
            node, key = self._nodes[name], TaskKey(name)
            if self.tasks[key].status is TaskStatus.PENDING and judge(node.spec.run_if, node.upstream) is Verdict.START:
                self._push_ready(key)

    def _end_everything(
        self,
        now: datetime,
        reason: str,
        step: TaskStep,
        cause: TaskKey | None = None,
        keep: frozenset[str] = frozenset(),
    ) -> None:
        """Pending tasks end at once; active ones are stopped and end as cancelled, whatever they were closed for."""
        for key, task in list(self.tasks.items()):
            if key.name in keep:
                continue
            attempt = self.active.get(key)
            if attempt is not None and attempt.closing is not GiveUp.CANCEL:
                self._close(attempt, GiveUp.CANCEL, Failure(FailureKind.CANCELLED, reason), now)
            elif task.status is TaskStatus.PENDING:
                ended = rows.set_aside(task, step, reason, cause, now)
                self._write_end(ended)
                for node in self._nodes[key.name].below:
                    node.hear_of(ended)

    # ── readiness and timers ─────────────────────────────────────────────────────────────────────

    def _survey(self) -> list[TaskKey]:
        """Counts everything anew from the rows: after a rebuild, and after a person's retry.

        Returns the pending tasks whose rule can no longer hold; between two commits there are none.
        """
        for node in self._nodes.values():
            node.forget_upstream()
        self._ready, self._timers = ReadyTasks(), []
        self._unfinished = sum(not task.status.is_final for task in self.tasks.values())
        for key, task in self.tasks.items():
            if task.status.is_final:
                for node in self._nodes[key.name].below:
                    node.hear_of(task)
        hopeless = []
        for key, task in self.tasks.items():
            if task.status is not TaskStatus.PENDING:
                continue
            node = self._nodes[key.name]
            verdict = judge(node.spec.run_if, node.upstream)
            if task.retry_at is not None:
                self._push_timer(task.retry_at, key)
            elif verdict is Verdict.START:
                self._push_ready(key)
            elif verdict is Verdict.SKIP:
                hopeless.append(key)
        return hopeless

    def _wake_retries(self, now: datetime) -> None:
        while self._timers and self._timers[0][0] <= now:
            at, _, key = heappop(self._timers)
            task = self.tasks[key]
            if task.status is TaskStatus.PENDING and task.retry_at == at:
                self._push_ready(key)

    def _push_ready(self, key: TaskKey) -> None:
        self._ready.push(key, self._nodes[key.name])

    def _push_timer(self, at: datetime, key: TaskKey) -> None:
        heappush(self._timers, (at, self._nodes[key.name].ordinal, key))

    def _wish(self, task: Task, name: NameAttempt, now: datetime) -> Wish:
        spec = self.spec(task.key)
        key = AttemptKey(self.run.id, task.key, task.attempt + 1)
        row, attempt = rows.dispatched(task, spec, key, *name(key, spec), now)
        return Wish(row, attempt, spec.priority + self.run.priority)

    # ── writing ──────────────────────────────────────────────────────────────────────────────────

    def _write(self, task: Task) -> None:
        self.tasks[task.key] = task
        self._draft.tasks[task.key] = task

    def _write_end(self, task: Task) -> None:
        self._write(task)
        self._unfinished -= 1

    def _set_run(self, step: RunStep, **fields: object) -> None:
        status = next_run_status(self.run.id, self.run.status, step)
        self.run = self._draft.run = replace(self.run, status=status, **fields)  # type: ignore[arg-type]
