"""Moves a run along its graph: tasks become ready, fan out, are skipped or end, and downstream tasks follow.

Ending a task costs only its own edges. Nothing recurses along the graph, however deep it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, assert_never

from ork.core import rows
from ork.core.bind import BindError, Scope
from ork.core.effects import Alert, Stop
from ork.core.events import CacheAnswer
from ork.core.fanout import Group, concurrency_of, group_failure, output_of
from ork.core.graph import StartVerdict, TaskNode, judge, link
from ork.core.launch_groups import GroupSize
from ork.core.limits import Capacity
from ork.core.prepare import CACHE, Expand, Question, Skip, Start, Unanswerable, prepare
from ork.core.ready import ReadyTasks, Timers
from ork.core.run_rows import RunRows
from ork.core.transitions import TaskStep
from ork.model.ids import TaskKey
from ork.model.record import replaced
from ork.model.run import RunStatus
from ork.model.task import Attempt, Failure, FailureKind, GiveUp, InlineOutput, Task, TaskStatus
from ork.model.workflow import Approval, CompiledWorkflow, RunIf


class Flow:
    def __init__(self, workflow: CompiledWorkflow, run_rows: RunRows, group_size: GroupSize) -> None:
        self._workflow = workflow
        self._rows = run_rows
        self._nodes = link(workflow, group_size)
        self._ready = ReadyTasks()
        self._timers = Timers()
        self._questions: list[Question] = []
        self._answers: dict[TaskKey, dict[str, Any]] = {}
        self._failing_fast = False
        self._to_consider: deque[TaskNode] = deque()
        self._considering = False

    def node(self, key: TaskKey) -> TaskNode:
        return self._nodes[key.name]

    # ── starting ─────────────────────────────────────────────────────────────────────────────────

    def create_tasks(self, now: datetime) -> None:
        """Create all tasks. They are new, so no counters have to be rebuilt."""
        self._rows.add(Task(node.key, TaskStatus.PENDING, node.spec.executor) for node in self._nodes.values())
        self._skip(self._rebuild_pending(now), now)

    def begin_round(self, now: datetime) -> None:
        """Start a round. Pending tasks whose `run_if` can no longer hold are skipped before any task starts."""
        self._skip(self.rebuild(now), now)

    def _skip(self, unsatisfiable: list[TaskKey], now: datetime) -> None:
        for key in unsatisfiable:
            task, node = self._rows.tasks[key], self.node(key)
            if task.status is TaskStatus.PENDING:  # not skipped meanwhile as a downstream task
                self.end_task(rows.not_run(task, TaskStep.SKIP, node.skip_reason, node.upstream.cause, now), now)
        self.finish_if_done(now)

    def rebuild(self, now: datetime) -> list[TaskKey]:
        """Rebuild all counters from the rows: after a restart, and after a manual retry.

        Returns the pending tasks whose `run_if` can no longer hold; between two commits there are none.
        """
        self._ready, self._timers, self._questions = ReadyTasks(), Timers(), []
        self._answers, self._failing_fast = {}, False
        for node in self._nodes.values():
            node.forget_upstream()
            node.group = None
        for key, task in self._rows.tasks.items():
            if key.index is None:
                self._rebuild_node(self._nodes[key.name], task)
        for key, task in self._rows.tasks.items():  # before any fan-out creates instances
            if key.index is not None:
                self._rebuild_instance(task)
            elif task.status is TaskStatus.RUNNING and key not in self._rows.active:
                self._set_approval_timer(task)
        unsatisfiable = self._rebuild_pending(now)
        for node in self._nodes.values():
            if node.group is not None and self._rows.tasks[node.key].status is TaskStatus.RUNNING:
                self._continue_group(node, now)
        return unsatisfiable

    def _rebuild_node(self, node: TaskNode, task: Task) -> None:
        if task.status.is_final:
            for below in node.below:
                below.count_upstream_end(task)
        elif task.instances is not None:
            node.group = Group(task.instances, concurrency_of(node))

    def _rebuild_instance(self, task: Task) -> None:
        group, index = self.node(task.key).group, task.key.index
        if group is None or index is None or index >= group.total:
            return
        group.unfinished += 1
        if task.status.is_final:
            group.note_end(task)
        elif task.status.is_active:
            group.busy.add(index)
        elif task.retry_at is not None:
            self.set_timer(task.retry_at, task.key)
            group.retries.add(task.retry_at)
        else:
            group.enqueue(index)

    def _rebuild_pending(self, now: datetime) -> list[TaskKey]:
        """Pending tasks whose `run_if` can no longer hold."""
        unsatisfiable = []
        for node in self._nodes.values():
            task = self._rows.tasks.get(node.key)  # an earlier node of this loop may have ended it
            if task is None or task.status is not TaskStatus.PENDING:
                continue
            verdict = judge(node.spec.run_if, node.upstream)
            if verdict is StartVerdict.SKIP:
                unsatisfiable.append(node.key)
            if task.retry_at is not None:
                self.set_timer(task.retry_at, task.key)
            elif verdict is StartVerdict.START:
                self._consider(node, now)
        return unsatisfiable

    # ── from "may start" to "ready" ──────────────────────────────────────────────────────────────

    def _consider(self, node: TaskNode, now: datetime) -> None:
        """Evaluate the conditions and fan-out of a task whose `run_if` holds. Asks for values that are not inline."""
        key = node.key
        if node.is_plain:
            self._make_ready(node, key, now)
            return
        task = self._rows.tasks[key]
        try:
            found = prepare(node.spec, self.scope(key), self._answers.get(key, {}))
        except BindError as problem:
            self.end_task(
                rows.ended(task, TaskStep.FAIL, now, failure=Failure(FailureKind.INPUT, problem.message)), now
            )
            return
        match found:
            case Question():
                self._questions.append(found)
            case Skip(reason):
                self.end_task(rows.not_run(task, TaskStep.SKIP, reason, None, now), now)
            case Expand():
                self._expand(node, task, found, now)
            case Start():
                self._make_ready(node, key, now)
            case _:
                assert_never(found)

    def _make_ready(self, node: TaskNode, key: TaskKey, now: datetime) -> None:
        """Mark a task or instance as ready: only limits can delay it now."""
        if isinstance(node.spec.action, Approval):
            self._rows.write(task := rows.begun(self._rows.tasks[key], now))
            self._rows.add_effect(Alert(key, None, asks=True))
            self._set_approval_timer(task)
        elif node.spec.cache is not None and not self._rows.run.fresh and CACHE not in self._answers.get(key, {}):
            self._questions.append(Question(key, CACHE))
        elif node.group_size:
            self.push_ready(key)
        else:
            self._ready.push(key, node)

    def _set_approval_timer(self, task: Task) -> None:
        """Set a timer so that an approval fails without a decision within the task's timeout."""
        spec = self.node(task.key).spec
        if isinstance(spec.action, Approval) and spec.timeout is not None and task.started_at is not None:
            self.set_timer(task.started_at + timedelta(seconds=spec.timeout), task.key)

    def take_questions(self) -> list[Question]:
        questions, self._questions = self._questions, []
        return questions

    def answer(self, question: Question, answer: Any, now: datetime) -> None:
        key = question.key
        task = self._rows.tasks[key]
        if task.status is not TaskStatus.PENDING:
            return  # it was cancelled or skipped meanwhile
        if isinstance(answer, Unanswerable):
            self.end_task(rows.ended(task, TaskStep.FAIL, now, failure=Failure(FailureKind.INPUT, answer.why)), now)
            return
        self._answers.setdefault(key, {})[question.about] = answer
        if question.about != CACHE:
            self._consider(self.node(key), now)
        elif answer.source is None:
            self._rows.write(replaced(task, cache_key=answer.key))
            self._make_ready(self.node(key), key, now)
        else:
            self._take_from_cache(task, answer, now)

    def _take_from_cache(self, task: Task, answer: CacheAnswer, now: datetime) -> None:
        reason = f"cached: the same as in run {answer.source}"
        self.end_task(rows.from_cache(task, reason, answer.output, now), now)

    # ── fan-out ──────────────────────────────────────────────────────────────────────────────────

    def _expand(self, node: TaskNode, task: Task, expand: Expand, now: datetime) -> None:
        if node.group is not None:  # a retry of some instances: keep the existing fan-out
            self._rows.write(rows.begun(task, now))
            self._continue_group(node, now)
            return
        total = len(expand.items)
        begun = rows.begun(task, now, instances=total, item=None if expand.width is None else str(expand.width))
        if not total:
            self._rows.write(begun)
            self.end_task(rows.ended(begun, TaskStep.SUCCEED, now, output=InlineOutput("[]")), now)
            return
        self._rows.write(begun)
        node.group = Group(total, concurrency_of(node), unfinished=total)
        for index, item in enumerate(expand.items):
            key = TaskKey(node.spec.name, index)
            earlier = self._rows.tasks.get(key)
            if earlier is None:
                self._rows.write(Task(key, TaskStatus.PENDING, node.spec.executor, item=item))
            else:
                self._rows.write(replaced(earlier, item=item))
            node.group.enqueue(index)
        self._drop_instances(self._rows.tasks[task.key], total, now)
        self._fill_slots(node, now)

    def _drop_instances(self, task: Task, first: int, now: datetime) -> None:
        """End pending instances of an earlier round that have no item any more, or whose task has ended."""
        step = TaskStep.CANCEL if task.status is TaskStatus.CANCELLED else TaskStep.SKIP
        index = first
        while (old := self._rows.tasks.get(TaskKey(task.key.name, index))) is not None:
            if old.status is TaskStatus.PENDING:
                reason = task.reason or "no longer part of the fan-out"
                self._rows.write(rows.not_run(old, step, reason, task.cause, now))
            index += 1

    def _fill_slots(self, node: TaskNode, now: datetime) -> None:
        if node.group is not None:
            for index in node.group.take_slots():
                self._make_ready(node, TaskKey(node.spec.name, index), now)
            self.push_group(node)

    def free_slot(self, key: TaskKey, now: datetime) -> None:
        """Give the slot of an instance whose attempt has ended to the next one."""
        node = self.node(key)
        if key.index is not None and node.group is not None:
            node.group.busy.discard(key.index)
            self._fill_slots(node, now)

    def _end_instance(self, instance: Task, now: datetime) -> None:
        node, index = self.node(instance.key), instance.key.index
        group = node.group
        if group is not None and index is not None and index < group.total:
            group.busy.discard(index)
            group.note_end(instance)
            self._continue_group(node, now)

    def _continue_group(self, node: TaskNode, now: datetime) -> None:
        """Give free slots to more instances; after the last one, end the task."""
        group = node.group
        if group is None or group.unfinished:
            self._fill_slots(node, now)
            return
        node.group, task = None, self._rows.tasks[node.key]
        if group.failed is not None:
            failure = group_failure(group.failed)
            self.end_task(rows.ended(task, TaskStep.FAIL, now, failure=failure, exit_code=group.failed.exit_code), now)
        elif group.cancelled is not None:
            self.end_task(rows.ended(task, TaskStep.CANCEL, now, reason=group.cancelled.reason), now)
        else:
            self.end_task(rows.ended(task, TaskStep.SUCCEED, now), now)

    # ── ending ───────────────────────────────────────────────────────────────────────────────────

    def end_task(self, task: Task, now: datetime) -> None:
        """Write a final task and all consequences, however far downstream."""
        self._rows.write(task)
        if task.status is TaskStatus.FAILED and task.key.index is None:
            self._rows.add_effect(Alert(task.key, task.failure))
        if task.key.index is None:
            self._end_group(task, now)
            if self.node(task.key).below:
                self._propagate(task, now)
        else:
            self._end_instance(task, now)
        if task.status is TaskStatus.FAILED and self._workflow.fail_fast and not self._failing_fast:
            self._fail_fast(task, now)
        self.finish_if_done(now)

    def _end_group(self, task: Task, now: datetime) -> None:
        node = self.node(task.key)
        if not node.is_plain and node.spec.fans_out:
            node.group = None
            self._drop_instances(task, 0, now)

    def _propagate(self, task: Task, now: datetime) -> None:
        ended_tasks = [task]
        while ended_tasks:
            last = ended_tasks.pop()
            for node in self._nodes[last.key.name].below:
                node.count_upstream_end(last)
                waiting = self._rows.tasks[node.key]
                if waiting.status is not TaskStatus.PENDING:
                    continue
                verdict = judge(node.spec.run_if, node.upstream)
                if verdict is StartVerdict.START:
                    self._to_consider.append(node)
                elif verdict is StartVerdict.SKIP:
                    skipped = rows.not_run(waiting, TaskStep.SKIP, node.skip_reason, node.upstream.cause, now)
                    self._rows.write(skipped)  # before its downstream tasks: it may be reached again on another path
                    self._end_group(skipped, now)
                    ended_tasks.append(skipped)
        self._consider_all(now)

    def _consider_all(self, now: datetime) -> None:
        """Consider queued tasks. One that ends at once queues its downstream tasks here, not on the call stack."""
        if self._considering:
            return
        self._considering = True
        while self._to_consider:
            node = self._to_consider.popleft()
            if self._rows.tasks[node.key].status is TaskStatus.PENDING:
                self._consider(node, now)
        self._considering = False

    def _fail_fast(self, failed: Task, now: datetime) -> None:
        self._failing_fast = True
        keep = frozenset(name for name, node in self._nodes.items() if node.spec.run_if is RunIf.ALWAYS)
        self.end_everything(now, f"fail_fast: {failed.key} failed", TaskStep.SKIP, cause=failed.key, keep=keep)

    def end_everything(
        self,
        now: datetime,
        reason: str,
        step: TaskStep,
        cause: TaskKey | None = None,
        keep: frozenset[str] = frozenset(),
    ) -> None:
        """End all unfinished tasks: waiting ones at once; active ones are stopped and end as cancelled."""
        was_considering, self._considering = self._considering, True  # no task starts meanwhile
        for key in list(self._rows.tasks):
            task, attempt = self._rows.tasks[key], self._rows.active.get(key)
            if key.name in keep or task.status.is_final:
                continue
            if attempt is not None:
                if not rows.is_cancelled(attempt):
                    self.close(attempt, rows.cancel_reason(attempt), Failure(FailureKind.CANCELLED, reason), now)
            elif task.status is TaskStatus.PENDING:
                self.end_task(rows.not_run(task, step, reason, cause, now), now)
            elif task.instances is None:  # an approval
                self.end_task(rows.ended(task, TaskStep.CANCEL, now, reason=reason), now)
        self._considering = was_considering
        self._consider_all(now)

    def close(self, attempt: Attempt, reason: GiveUp, failure: Failure, now: datetime) -> None:
        """Begin to end an attempt. The task is not retried until the attempt is known to be over."""
        closing = replaced(attempt, closing=reason, closing_since=now, failure=failure)
        self._rows.write_attempt(closing)
        self._rows.add_effect(Stop(closing, reason))

    def finish_if_done(self, now: datetime) -> None:
        if not self._rows.unfinished and len(self._rows.tasks) >= len(self._nodes):
            self._rows.end_run(now)

    # ── timers, readiness, values ────────────────────────────────────────────────────────────────

    @property
    def next_timer(self) -> datetime | None:
        return self._timers.next_at

    def set_timer(self, at: datetime, key: TaskKey) -> None:
        self._timers.set(at, self.node(key).ordinal, key)

    def wake(self, now: datetime) -> None:
        """Start retries that are due, and fail approvals that timed out."""
        for at, key in self._timers.pop_due(now):
            task, node = self._rows.tasks[key], self.node(key)
            if task.status is TaskStatus.PENDING and task.retry_at == at:
                if key.index is not None and node.group is not None:
                    node.group.enqueue(key.index)
                    self._fill_slots(node, now)
                else:
                    self._make_ready(node, key, now)
            elif task.status is TaskStatus.RUNNING and isinstance(node.spec.action, Approval):
                late = Failure(FailureKind.TIMEOUT, f"no decision within {node.spec.timeout:g} s")
                self.end_task(rows.ended(task, TaskStep.FAIL, now, failure=late), now)

    def pop_ready(self, capacity: Capacity, min_priority: int | None) -> Iterator[TaskKey]:
        """Yield ready tasks, highest priority first. Some may have ended since they became ready."""
        return self._ready.pop_open(capacity, min_priority) if self._rows.run.status is RunStatus.RUNNING else iter(())

    def push_ready(self, key: TaskKey) -> None:
        node = self._nodes[key.name]
        if node.group_size and key.index is not None:
            if node.group is not None:
                node.group.ready.add(key.index)
                self.push_group(node)
        else:
            self._ready.push(key, node)

    def push_group(self, node: TaskNode) -> None:
        """Queue the instances that start as a launch group, under the key of their task."""
        if node.group is not None and node.group.ready:
            self._ready.push(node.key, node)

    def retry_time(self, attempt: Attempt, at: datetime) -> datetime:
        """When a failed attempt that could be retried from `at` on is retried: those of a launch group, together."""
        group = self.node(attempt.key.task).group
        if attempt.group is None or group is None:
            return at
        return group.join_retries(at, is_last=not self._rows.launch_groups.working(attempt.group.id))

    def highest_priority(self, capacity: Capacity) -> int | None:
        return self._ready.highest_priority(capacity) if self._rows.run.status is RunStatus.RUNNING else None

    def has_ready(self, capacity: Capacity) -> bool:
        return self._rows.run.status is RunStatus.RUNNING and self._ready.has_any(capacity)

    def scope(self, key: TaskKey) -> Scope:
        outputs = {name: output_of(self._rows.tasks, name) for name in self.node(key).spec.depends_on}
        return Scope(self._rows.run, outputs, None if key.index is None else self._rows.tasks[key].item)
