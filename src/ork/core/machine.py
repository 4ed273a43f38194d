"""RunMachine: events in, rows and effects out.

One object per run; like h11, it only decides. The owner of the run feeds it events together with the current time,
takes its decisions, commits them, and only then acts. All its state is in the rows: a machine rebuilt from them decides
the same. An event costs the edges of its task, never the size of the run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, assert_never

from ork.core import events as ev
from ork.core import rows
from ork.core.bind import Gathered, Scope
from ork.core.commands import parse_key, reset_for_retry, tasks_to_retry
from ork.core.effects import Alert, LaunchRequest, Stop
from ork.core.fanout import InstancePosition, output_of, position_of, take_group
from ork.core.flow import Flow
from ork.core.graph import TaskNode
from ork.core.launch_groups import NO_GROUPS, GroupSize, granted, no_groups, slots_wanted
from ork.core.limits import UNLIMITED, Capacity, task_rate
from ork.core.prepare import Question
from ork.core.retry import retry_delay, should_retry, unreachable
from ork.core.run_rows import Decisions, RunRows
from ork.core.transitions import RunStep, TaskStep
from ork.model.ids import AttemptKey, TaskKey
from ork.model.record import replaced
from ork.model.run import CommandKind, Run, RunCommand, RunStatus
from ork.model.task import (
    Attempt,
    AttemptStatus,
    Failure,
    FailureKind,
    GiveUp,
    GroupPlace,
    InlineOutput,
    Output,
    Task,
    TaskStatus,
)
from ork.model.workflow import Approval, CompiledWorkflow, OnExceed, RustProgram, TaskSpec

if TYPE_CHECKING:
    from ork.core.budget import BudgetMeter

NameAttempt = Callable[[AttemptKey, TaskSpec, str | None], tuple[str, str]]
"""Returns an attempt's external name and the hash of its token; its group's id is the last argument."""


class RunMachine:
    def __init__(
        self,
        workflow: CompiledWorkflow,
        run: Run,
        tasks: Iterable[Task] = (),
        attempts: Iterable[Attempt] = (),
        group_size: GroupSize = no_groups,
        meter: BudgetMeter | None = None,
    ) -> None:
        self.workflow = workflow
        self.ignored = 0
        self._meter = meter
        self._rows = RunRows(run, tasks, attempts, meter)
        self.tasks = self._rows.tasks
        self.active = self._rows.active
        self._flow = Flow(workflow, self._rows, group_size)
        self._offered: dict[TaskKey, LaunchRequest] = {}
        self._offered_slots: dict[str, int] = {}  # of launch groups, by task
        if self._rows.tasks:
            self._flow.rebuild(run.created_at)

    # ── events in, decisions out ─────────────────────────────────────────────────────────────────

    def handle(self, event: ev.Event, now: datetime) -> None:
        match event:
            case ev.Started() | ev.Succeeded() | ev.HeartbeatReceived() | ev.AttemptDeferred() | ev.Failed():
                attempt = self._attempt_of(event)
                if attempt is not None and event.seq > attempt.seq:
                    self._on_status(event, attempt, now)
                else:
                    self.ignored += 1
            case ev.GivenUp() | ev.Closed():
                attempt = self._attempt_of(event)
                if attempt is not None:
                    self._end_attempt(event, attempt, now)
                else:
                    self.ignored += 1
            case ev.Created():
                self._rows.write_run(RunStep.START, started_at=now)
                self._flow.create_tasks(now)
            case ev.Commanded(command):
                self._command(command, now)
            case ev.Answered(question, answer):
                self._flow.answer(question, answer, now)
            case ev.TimerDue():
                self._flow.wake(now)
            case _:
                assert_never(event)
        if self._meter is not None:
            self._check_budget(self._meter, now)

    def take(self) -> Decisions:
        """All decisions since the last call. The caller commits them or discards this machine."""
        return self._rows.take()

    def take_questions(self) -> list[Question]:
        """Values needed before some tasks can continue; feed the answers as Answered. A rebuilt machine asks again."""
        return self._flow.take_questions()

    def offer(
        self,
        limit: int,
        name: NameAttempt,
        now: datetime,
        capacity: Capacity = UNLIMITED,
        min_priority: int | None = None,
    ) -> tuple[LaunchRequest, ...]:
        """Up to `limit` launches within `capacity`, highest priority first, none below `min_priority`. They are counted
        against `capacity`. A launch group is offered whole, also beyond `limit`.

        Nothing is launched until `settle` is called with those admitted.
        """
        launches: list[LaunchRequest] = []
        groups: list[TaskNode] = []
        min_priority = None if min_priority is None else min_priority - self.run.priority
        for key in self._flow.pop_ready(capacity, min_priority) if limit > 0 else ():
            task = self.tasks[key]
            if task.status is TaskStatus.PENDING and key not in self._offered:
                node = self._flow.node(key)
                request = self._offered[key] = self._request(task, node.spec, name, now)
                launches.append(request)
                capacity.reserve(node.lane)
            elif (node := self._flow.node(key)).group_size:
                offered = self._offer_group(node, name, now)
                if offered:
                    launches += offered
                    groups.append(node)
                    capacity.reserve(node.lane, slots_wanted(offered))
            if len(launches) >= limit:
                break
        for node in groups:  # its further instances are the next group
            self._flow.push_group(node)
        return tuple(launches)

    def _offer_group(self, node: TaskNode, name: NameAttempt, now: datetime) -> list[LaunchRequest]:
        """The next launch group of a task. Nothing if its `concurrency` is reached: the end of an attempt queues it again."""
        task, spec = node.spec.name, node.spec
        held = self._rows.launch_groups.slots_of(task) + self._offered_slots.get(task, 0)
        if spec.concurrency is not None:  # instances that another executor or scheduler started alone count, too
            held += sum(each.key.task.name == task and each.group is None for each in self.active.values())
            if held >= spec.concurrency:
                return []
        keys = take_group(node, self.tasks)
        if not keys:
            return []
        parallelism = len(keys) if spec.concurrency is None else min(len(keys), spec.concurrency - held)
        id = str(AttemptKey(self.run.id, keys[0], self.tasks[keys[0]].attempt + 1))
        self._offered_slots[task] = self._offered_slots.get(task, 0) + parallelism
        requests = []
        for index, key in enumerate(keys):
            place = GroupPlace(id, index, parallelism)
            request = self._offered[key] = self._request(self.tasks[key], spec, name, now, place)
            requests.append(request)
        return requests

    def settle(
        self, admitted: frozenset[AttemptKey], parallelism: Mapping[str, int] = NO_GROUPS
    ) -> tuple[Attempt, ...]:
        """Apply the result of the commit: admitted launches become active and are returned; the others stay ready.
        `parallelism` is what the commit gave to admitted groups."""
        launched = []
        for key, request in self._offered.items():
            if request.attempt.key in admitted:
                attempt = request.attempt
                if attempt.group is not None:
                    attempt = granted(attempt, parallelism)
                    self._rows.launch_groups.count(None, attempt)
                self.tasks[key] = request.task
                self.active[key] = attempt
                launched.append(attempt)
                if self._meter is not None:
                    self._meter.note(attempt)
            else:
                self._flow.push_ready(key)
        self._offered, self._offered_slots = {}, {}
        if self._meter is not None and launched:
            self._meter.look(launched[-1].dispatched_at)
        return tuple(launched)

    # ── queries ──────────────────────────────────────────────────────────────────────────────────

    @property
    def run(self) -> Run:
        return self._rows.run

    def highest_priority(self, capacity: Capacity) -> int | None:
        """The highest priority that could be offered; None if nothing could."""
        highest_priority = self._flow.highest_priority(capacity)
        return None if highest_priority is None else highest_priority + self.run.priority

    def has_ready(self, capacity: Capacity = UNLIMITED) -> bool:
        """True if a launch could be offered within `capacity`."""
        return self._flow.has_ready(capacity)

    @property
    def next_timer(self) -> datetime | None:
        """When a task of the run is due, or the run may have exceeded its budget."""
        times = (self._flow.next_timer, None if self._meter is None else self._meter.next_at)
        return min((time for time in times if time is not None), default=None)

    @property
    def is_idle(self) -> bool:
        """The run needs no owner until a person submits a command."""
        return self.run.status.is_final or (self.run.status is RunStatus.PAUSED and not self.active)

    def working(self, group: str) -> int:
        """How many attempts of the launch group are active and count for its slots."""
        return self._rows.launch_groups.working(group)

    def spec(self, key: TaskKey) -> TaskSpec:
        return self._flow.node(key).spec

    def scope(self, key: TaskKey) -> Scope:
        """The values that the task's references can resolve to, once all its upstream tasks have ended."""
        return self._flow.scope(key)

    def output_of(self, name: str) -> Output | Gathered | None:
        return output_of(self.tasks, name)

    def position(self, key: TaskKey) -> InstancePosition:
        return position_of(self.tasks, key)

    # ── commands ─────────────────────────────────────────────────────────────────────────────────

    def _command(self, command: RunCommand, now: datetime) -> None:
        """Carry out a command. It was checked when it was submitted; if it no longer applies, it changes nothing."""
        status = self.run.status
        match command.kind:
            case CommandKind.CANCEL if not status.is_final:
                self._cancel(f"cancelled by {command.by}", now)
            case CommandKind.PAUSE if status is RunStatus.RUNNING:
                self._rows.write_run(RunStep.PAUSE, note=f"paused by {command.by}")
            case CommandKind.RESUME if status is RunStatus.PAUSED:
                self._rows.write_run(RunStep.RESUME, note=None, started_at=self.run.started_at or now)
                if not self.tasks:  # it was quarantined before it began
                    self._flow.create_tasks(now)
            case CommandKind.RETRY if status.is_final:
                self._retry_run(command, now)
            case CommandKind.APPROVE | CommandKind.REJECT if self._waits_for_a_person(command):
                self._decide(command, now)
            case CommandKind.DECLARE_DEAD if self._is_given_up(command):
                self._declare_dead(command)
            case (
                CommandKind.CANCEL
                | CommandKind.PAUSE
                | CommandKind.RESUME
                | CommandKind.RETRY
                | CommandKind.APPROVE
                | CommandKind.REJECT
                | CommandKind.DECLARE_DEAD
            ):
                self.ignored += 1
            case _:
                assert_never(command.kind)

    def _cancel(self, reason: str, now: datetime) -> None:
        if not self.tasks:  # it was quarantined before it began
            self._flow.create_tasks(now)
        self._rows.write_run(None, cancel_requested_at=self.run.cancel_requested_at or now, note=reason)
        self._flow.end_everything(now, reason, TaskStep.CANCEL)
        self._flow.finish_if_done(now)

    def _check_budget(self, meter: BudgetMeter, now: datetime) -> None:
        """Alert people, once, if the run has exceeded its budget, and cancel the run if the budget says so."""
        if self.run.status.is_final or self.run.cancel_requested_at is not None:
            meter.rest()
        elif meter.look(now):
            meter.rest()
            self._rows.add_effect(Alert(None, None, is_over_budget=True))
            if meter.budget.on_exceed is OnExceed.CANCEL:
                from ork.model.prices import dollars

                self._cancel(f"cancelled by its budget of {dollars(meter.budget.usd)} (by estimate)", now)
            else:
                meter.is_spent = True

    def _retry_run(self, command: RunCommand, now: datetime) -> None:
        chosen = set(tasks_to_retry(self.workflow, self.tasks, command))
        partial = {key.name for key in self.tasks if key not in chosen}
        for key in list(self.tasks):
            if key in chosen:
                self._rows.write(reset_for_retry(self.tasks[key], is_whole=key.name not in partial))
        fresh_start = {"finished_at": None, "error": None, "note": None, "cancel_requested_at": None}
        self._rows.write_run(RunStep.REVIVE, round=self.run.round + 1, **fresh_start)
        self._flow.begin_round(now)

    def _waits_for_a_person(self, command: RunCommand) -> bool:
        task = self.tasks.get(parse_key(command.task or ""))
        if task is None or task.status is not TaskStatus.RUNNING:
            return False
        return isinstance(self.spec(task.key).action, Approval)

    def _decide(self, command: RunCommand, now: datetime) -> None:
        task = self.tasks[parse_key(command.task or "")]
        comment = f": {command.comment}" if command.comment else ""
        if command.kind is CommandKind.APPROVE:
            decision = {"approved": True, "by": command.by, "at": now.isoformat(), "comment": command.comment}
            ended = rows.ended(
                task,
                TaskStep.SUCCEED,
                now,
                output=InlineOutput(json.dumps(decision)),
                reason=f"approved by {command.by}{comment}",
            )
        else:
            failure = Failure(FailureKind.REJECTED, f"rejected by {command.by}{comment}")
            ended = rows.ended(task, TaskStep.FAIL, now, failure=failure)
        self._flow.end_task(ended, now)

    def _is_given_up(self, command: RunCommand) -> bool:
        """Only an attempt that is being ended can be declared dead: any other may be alive."""
        attempt = self.active.get(parse_key(command.task or ""))
        return attempt is not None and attempt.closing is not None

    def _declare_dead(self, command: RunCommand) -> None:
        attempt = self.active[parse_key(command.task or "")]
        failure = attempt.failure
        if failure is None or failure.kind is not FailureKind.CANCELLED:
            why = f"; {failure.message}" if failure is not None else ""
            failure = Failure(FailureKind.LOST, f"declared dead by {command.by}{why}")
        declared = replaced(attempt, closing=GiveUp.DECLARED_DEAD, failure=failure)
        self._rows.write_attempt(declared)
        self._rows.add_effect(Stop(declared, GiveUp.DECLARED_DEAD))

    # ── attempts ─────────────────────────────────────────────────────────────────────────────────

    def _attempt_of(self, event: ev.AttemptEvent) -> Attempt | None:
        """The active attempt of an event; None if the event is about an older attempt or one that has ended."""
        attempt = self.active.get(event.key)
        return attempt if attempt is not None and attempt.key.number == event.attempt else None

    def _end_attempt(self, event: ev.GivenUp | ev.Closed, attempt: Attempt, now: datetime) -> None:
        match event:
            case ev.GivenUp(reason=reason, failure=failure) if attempt.closing is None:
                self._flow.close(attempt, reason, failure, now)
            case ev.Closed(unconfirmed=unconfirmed) if attempt.closing is not None:
                failed = attempt.failure or Failure(FailureKind.LOST, "given up")
                if unconfirmed is not None:
                    failed = unreachable(self.spec(attempt.key.task), failed, unconfirmed)
                self._attempt_failed(rows.unsuccessful(attempt, failed, now), now)
            case _:
                self.ignored += 1

    def _on_status(self, event: ev.StatusEvent, attempt: Attempt, now: datetime) -> None:
        """Handle a status that is newer than the last one of its attempt."""
        match event:
            case ev.Started():
                self._started(event, attempt, now)
            case ev.Succeeded():
                task, ended = rows.succeeded(self.tasks[event.key], attempt, event, now)
                self._rows.write_attempt(ended)
                self._flow.end_task(task, now)
            case ev.HeartbeatReceived():
                self.active[event.key] = replaced(attempt, seq=event.seq, seen_at=now)
                self._note_preparation(self.tasks[event.key], event.is_preparing)
            case ev.AttemptDeferred():
                self._deferred(event, attempt, now)
            case ev.Failed():
                self._attempt_failed(rows.failed(attempt, event, now), now)
            case _:
                assert_never(event)

    def _started(self, event: ev.Started, attempt: Attempt, now: datetime) -> None:
        if attempt.status is AttemptStatus.RUNNING:
            self.active[event.key] = replaced(attempt, seq=event.seq, seen_at=now)
            self._note_preparation(self.tasks[event.key], event.is_preparing)
            return
        task, running = rows.started(self.tasks[event.key], attempt, event, now)
        self._rows.write(replaced(task, reason=self._preparation(task)) if event.is_preparing else task)
        self._rows.write_attempt(running)

    def _note_preparation(self, task: Task, is_preparing: bool) -> None:
        """Show to people that the environment is being built. The row is written when that begins and when it ends."""
        reason = self._preparation(task) if is_preparing else None
        if task.reason != reason:
            self._rows.write(replaced(task, reason=reason))

    def _preparation(self, task: Task) -> str:
        return (
            "compiling its program"
            if isinstance(self.spec(task.key).action, RustProgram)
            else "building its environment"
        )

    def _deferred(self, event: ev.AttemptDeferred, attempt: Attempt, now: datetime) -> None:
        """The attempt continues without a worker. Its start may not have been seen."""
        if attempt.status is AttemptStatus.DISPATCHED:
            started = ev.Started(event.key, event.attempt, event.seq, now)
            task, attempt = rows.started(self.tasks[event.key], attempt, started, now)
            self._rows.write(task)
        self._rows.write_attempt(replaced(attempt, seq=event.seq, seen_at=now, waits_for=event.jobs))

    def _attempt_failed(self, attempt: Attempt, now: datetime) -> None:
        failure = attempt.failure
        assert failure is not None
        self._rows.write_attempt(attempt)
        task = self.tasks[attempt.key.task]
        spec, tries = self.spec(task.key), task.attempt - task.earlier_attempts
        if failure.kind is FailureKind.CANCELLED:
            cancelled = rows.after_failure(task, attempt, TaskStep.CANCEL)
            self._flow.end_task(replaced(cancelled, reason=failure.message), now)
        elif should_retry(spec, failure, tries):
            unit = str(attempt.key) if attempt.group is None else attempt.group.id
            at = self._flow.retry_time(attempt, now + retry_delay(spec, failure, tries, unit))
            self._rows.write(replaced(rows.after_failure(task, attempt, TaskStep.RETRY), retry_at=at))
            self._flow.set_timer(at, task.key)
            self._flow.free_slot(task.key, now)
        else:
            self._flow.end_task(rows.after_failure(task, attempt, TaskStep.FAIL), now)

    def _request(
        self, task: Task, spec: TaskSpec, name: NameAttempt, now: datetime, group: GroupPlace | None = None
    ) -> LaunchRequest:
        run = self._rows.run
        key = AttemptKey(run.id, task.key, task.attempt + 1)
        row, attempt = rows.dispatched(task, spec, key, *name(key, spec, None if group is None else group.id), now)
        if group is not None:
            attempt = replaced(attempt, group=group)
        rate = None if spec.rate is None else (task_rate(self.workflow.name, spec.name), spec.rate)
        return LaunchRequest(row, attempt, spec.priority + run.priority, rate)
