"""How a run moves along its graph: what becomes ready, fans out, is skipped, ends, and what follows from that.

An end costs the task's own edges. Nothing here recurses along the graph, however deep it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, assert_never

from ork.core import rows
from ork.core.bind import BindError, Scope
from ork.core.book import Book
from ork.core.effects import Alert, Stop
from ork.core.events import CacheAnswer
from ork.core.fanout import Group, group_failure, output_of
from ork.core.graph import Node, link
from ork.core.limits import Room
from ork.core.prepare import CACHE, Expand, Go, Question, Skip, Unanswerable, prepare
from ork.core.ready import ReadyTasks
from ork.core.rules import Verdict, judge
from ork.core.timers import Timers
from ork.core.transitions import TaskStep
from ork.model.ids import TaskKey
from ork.model.record import replaced
from ork.model.run import RunStatus
from ork.model.task import Attempt, Failure, FailureKind, GiveUp, InlineOutput, Task, TaskStatus
from ork.model.workflow import Approval, CompiledWorkflow, RunIf


class Flow:
    def __init__(self, workflow: CompiledWorkflow, book: Book) -> None:
        self._workflow = workflow
        self._book = book
        self._nodes = link(workflow)
        self._ready = ReadyTasks()
        self._timers = Timers()
        self._questions: list[Question] = []
        self._known: dict[TaskKey, dict[str, Any]] = {}
        self._failing_fast = False
        self._to_consider: deque[Node] = deque()
        self._considering = False

    def node(self, key: TaskKey) -> Node:
        return self._nodes[key.name]

    # ── beginning ────────────────────────────────────────────────────────────────────────────────

    def create_tasks(self, now: datetime) -> None:
        """Nothing has happened to any of them: there is nothing to survey."""
        self._book.add(Task(node.key, TaskStatus.PENDING, node.spec.executor) for node in self._nodes.values())
        self._skip(self._survey_pending(now), now)

    def begin_round(self, now: datetime) -> None:
        """Some tasks are pending. Those whose rule cannot hold any more are skipped before anything starts."""
        self._skip(self.survey(now), now)

    def _skip(self, hopeless: list[TaskKey], now: datetime) -> None:
        for key in hopeless:
            task, node = self._book.tasks[key], self.node(key)
            if task.status is TaskStatus.PENDING:  # not skipped meanwhile because of one before it
                self.end_task(rows.set_aside(task, TaskStep.SKIP, node.skip_reason, node.upstream.cause, now), now)
        self.finish_if_done(now)

    def survey(self, now: datetime) -> list[TaskKey]:
        """Counts everything anew from the rows: after a rebuild, and after a person's retry.

        Returns the pending tasks whose rule can no longer hold; between two commits there are none.
        """
        self._ready, self._timers, self._questions = ReadyTasks(), Timers(), []
        self._known, self._failing_fast = {}, False
        for node in self._nodes.values():
            node.forget_upstream()
            node.group = None
        for key, task in self._book.tasks.items():
            if key.index is None:
                self._survey_node(self._nodes[key.name], task)
        for key, task in self._book.tasks.items():  # before anything fans out, and makes instances of its own
            if key.index is not None:
                self._survey_instance(task)
            elif task.status is TaskStatus.RUNNING and key not in self._book.active:
                self._set_patience(task)
        hopeless = self._survey_pending(now)
        for node in self._nodes.values():
            if node.group is not None and self._book.tasks[node.key].status is TaskStatus.RUNNING:
                self._go_on_with(node, now)
        return hopeless

    def _survey_node(self, node: Node, task: Task) -> None:
        if task.status.is_final:
            for below in node.below:
                below.hear_of(task)
        elif task.instances is not None:
            node.group = Group(task.instances, node.spec.concurrency)

    def _survey_instance(self, task: Task) -> None:
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
        else:
            group.enqueue(index)

    def _survey_pending(self, now: datetime) -> list[TaskKey]:
        """Those whose rule can no longer hold."""
        hopeless = []
        for node in self._nodes.values():
            task = self._book.tasks.get(node.key)  # one before it may have ended it
            if task is None or task.status is not TaskStatus.PENDING:
                continue
            verdict = judge(node.spec.run_if, node.upstream)
            if verdict is Verdict.SKIP:
                hopeless.append(node.key)
            if task.retry_at is not None:
                self.set_timer(task.retry_at, task.key)
            elif verdict is Verdict.START:
                self._consider(node, now)
        return hopeless

    # ── from "may start" to "ready" ──────────────────────────────────────────────────────────────

    def _consider(self, node: Node, now: datetime) -> None:
        """Its rule holds. Conditions and fan-out come next; what is too large to be known here is asked for."""
        key = node.key
        if node.is_plain:
            self._make_ready(node, key, now)
            return
        task = self._book.tasks[key]
        try:
            found = prepare(node.spec, self.scope(key), self._known.get(key, {}))
        except BindError as problem:
            self.end_task(
                rows.ended(task, TaskStep.FAIL, now, failure=Failure(FailureKind.INPUT, problem.message)), now
            )
            return
        match found:
            case Question():
                self._questions.append(found)
            case Skip(reason):
                self.end_task(rows.set_aside(task, TaskStep.SKIP, reason, None, now), now)
            case Expand():
                self._expand(node, task, found, now)
            case Go():
                self._make_ready(node, key, now)
            case _:
                assert_never(found)

    def _make_ready(self, node: Node, key: TaskKey, now: datetime) -> None:
        """The task, or instance, waits for nothing but room."""
        if isinstance(node.spec.action, Approval):
            self._book.write(task := rows.begun(self._book.tasks[key], now))
            self._book.want(Alert(key, None, asks=True))
            self._set_patience(task)
        elif node.spec.cache is not None and not self._book.run.fresh and CACHE not in self._known.get(key, {}):
            self._questions.append(Question(key, CACHE))
        else:
            self._ready.push(key, node)

    def _set_patience(self, task: Task) -> None:
        """A person has as long as the task's timeout says."""
        spec = self.node(task.key).spec
        if isinstance(spec.action, Approval) and spec.timeout is not None and task.started_at is not None:
            self.set_timer(task.started_at + timedelta(seconds=spec.timeout), task.key)

    def take_questions(self) -> list[Question]:
        questions, self._questions = self._questions, []
        return questions

    def answer(self, question: Question, answer: Any, now: datetime) -> None:
        key = question.key
        task = self._book.tasks[key]
        if task.status is not TaskStatus.PENDING:
            return  # it was cancelled or skipped while we waited
        if isinstance(answer, Unanswerable):
            self.end_task(rows.ended(task, TaskStep.FAIL, now, failure=Failure(FailureKind.INPUT, answer.why)), now)
            return
        self._known.setdefault(key, {})[question.about] = answer
        if question.about != CACHE:
            self._consider(self.node(key), now)
        elif answer.source is None:
            self._book.write(replaced(task, cache_key=answer.key))
            self._make_ready(self.node(key), key, now)
        else:
            self._take_from_cache(task, answer, now)

    def _take_from_cache(self, task: Task, answer: CacheAnswer, now: datetime) -> None:
        reason = f"cached: the same as in run {answer.source}"
        self.end_task(rows.from_cache(task, reason, answer.output, now), now)

    # ── fan-out ──────────────────────────────────────────────────────────────────────────────────

    def _expand(self, node: Node, task: Task, expand: Expand, now: datetime) -> None:
        if node.group is not None:  # some instances are to run again: those it has stay what they are
            self._book.write(rows.begun(task, now))
            self._go_on_with(node, now)
            return
        total = len(expand.items)
        begun = rows.begun(task, now, instances=total, item=None if expand.width is None else str(expand.width))
        if not total:
            self._book.write(begun)
            self.end_task(rows.ended(begun, TaskStep.SUCCEED, now, output=InlineOutput("[]")), now)
            return
        self._book.write(begun)
        node.group = Group(total, node.spec.concurrency, unfinished=total)
        for index, item in enumerate(expand.items):
            key = TaskKey(node.spec.name, index)
            earlier = self._book.tasks.get(key)
            if earlier is None:
                self._book.write(Task(key, TaskStatus.PENDING, node.spec.executor, item=item))
            else:
                self._book.write(replaced(earlier, item=item))
            node.group.enqueue(index)
        self._drop_instances(self._book.tasks[task.key], total, now)
        self._pump(node, now)

    def _drop_instances(self, task: Task, first: int, now: datetime) -> None:
        """Instances of an earlier round that the list has no item for, or that the task has ended without."""
        step = TaskStep.CANCEL if task.status is TaskStatus.CANCELLED else TaskStep.SKIP
        index = first
        while (old := self._book.tasks.get(TaskKey(task.key.name, index))) is not None:
            if old.status is TaskStatus.PENDING:
                reason = task.reason or "no longer part of the fan-out"
                self._book.write(rows.set_aside(old, step, reason, task.cause, now))
            index += 1

    def _pump(self, node: Node, now: datetime) -> None:
        if node.group is not None:
            for index in node.group.next_up():
                self._make_ready(node, TaskKey(node.spec.name, index), now)

    def free_slot(self, key: TaskKey, now: datetime) -> None:
        """The instance's attempt has ended; whether it comes back or not, another may go."""
        node = self.node(key)
        if key.index is not None and node.group is not None:
            node.group.busy.discard(key.index)
            self._pump(node, now)

    def _end_instance(self, instance: Task, now: datetime) -> None:
        node, index = self.node(instance.key), instance.key.index
        group = node.group
        if group is not None and index is not None and index < group.total:
            group.busy.discard(index)
            group.note_end(instance)
            self._go_on_with(node, now)

    def _go_on_with(self, node: Node, now: datetime) -> None:
        """More instances get a slot; after the last one the task as a whole ends."""
        group = node.group
        if group is None or group.unfinished:
            self._pump(node, now)
            return
        node.group, task = None, self._book.tasks[node.key]
        if group.failed is not None:
            failure = group_failure(group.failed)
            self.end_task(rows.ended(task, TaskStep.FAIL, now, failure=failure, exit_code=group.failed.exit_code), now)
        elif group.cancelled is not None:
            self.end_task(rows.ended(task, TaskStep.CANCEL, now, reason=group.cancelled.reason), now)
        else:
            self.end_task(rows.ended(task, TaskStep.SUCCEED, now), now)

    # ── ending ───────────────────────────────────────────────────────────────────────────────────

    def end_task(self, task: Task, now: datetime) -> None:
        """Writes a final task and everything that follows from it, however far down."""
        self._book.write(task)
        if task.status is TaskStatus.FAILED and task.key.index is None:
            self._book.want(Alert(task.key, task.failure))
        if task.key.index is None:
            self._end_group(task, now)
            if self.node(task.key).below:
                self._spread(task, now)
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

    def _spread(self, task: Task, now: datetime) -> None:
        spread = [task]
        while spread:
            last = spread.pop()
            for node in self._nodes[last.key.name].below:
                node.hear_of(last)
                waiting = self._book.tasks[node.key]
                if waiting.status is not TaskStatus.PENDING:
                    continue
                verdict = judge(node.spec.run_if, node.upstream)
                if verdict is Verdict.START:
                    self._to_consider.append(node)
                elif verdict is Verdict.SKIP:
                    skipped = rows.set_aside(waiting, TaskStep.SKIP, node.skip_reason, node.upstream.cause, now)
                    self._book.write(skipped)  # before it spreads: it may be reached on another way, too
                    self._end_group(skipped, now)
                    spread.append(skipped)
        self._consider_all(now)

    def _consider_all(self, now: datetime) -> None:
        """A task that is considered may end at once, and bring others up: they join this list, not the call stack."""
        if self._considering:
            return
        self._considering = True
        while self._to_consider:
            node = self._to_consider.popleft()
            if self._book.tasks[node.key].status is TaskStatus.PENDING:
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
        """What waits ends at once; what is active is stopped and ends as cancelled, whatever it was closed for."""
        was_considering, self._considering = self._considering, True  # nothing begins while everything ends
        for key in list(self._book.tasks):
            task, attempt = self._book.tasks[key], self._book.active.get(key)
            if key.name in keep or task.status.is_final:
                continue
            if attempt is not None:
                if not rows.is_cancelled(attempt):
                    self.close(attempt, rows.why_cancelled(attempt), Failure(FailureKind.CANCELLED, reason), now)
            elif task.status is TaskStatus.PENDING:
                self.end_task(rows.set_aside(task, step, reason, cause, now), now)
            elif task.instances is None:  # waits for a person
                self.end_task(rows.ended(task, TaskStep.CANCEL, now, reason=reason), now)
        self._considering = was_considering
        self._consider_all(now)

    def close(self, attempt: Attempt, reason: GiveUp, failure: Failure, now: datetime) -> None:
        """From here on the attempt cannot be retried until it is certain that it is over."""
        closing = replaced(attempt, closing=reason, closing_since=now, failure=failure)
        self._book.write_attempt(closing)
        self._book.want(Stop(closing, reason))

    def finish_if_done(self, now: datetime) -> None:
        if not self._book.unfinished and len(self._book.tasks) >= len(self._nodes):
            self._book.end_run(now)

    # ── timers, readiness, values ────────────────────────────────────────────────────────────────

    @property
    def next_timer(self) -> datetime | None:
        return self._timers.next_at

    def set_timer(self, at: datetime, key: TaskKey) -> None:
        self._timers.set(at, self.node(key).ordinal, key)

    def wake(self, now: datetime) -> None:
        """Retries whose time has come may start; a person who has not decided in time has decided."""
        for at, key in self._timers.pop_due(now):
            task, node = self._book.tasks[key], self.node(key)
            if task.status is TaskStatus.PENDING and task.retry_at == at:
                if key.index is not None and node.group is not None:
                    node.group.enqueue(key.index)
                    self._pump(node, now)
                else:
                    self._make_ready(node, key, now)
            elif task.status is TaskStatus.RUNNING and isinstance(node.spec.action, Approval):
                late = Failure(FailureKind.TIMEOUT, f"nobody decided within {node.spec.timeout:g} s")
                self.end_task(rows.ended(task, TaskStep.FAIL, now, failure=late), now)

    def pop_ready(self, room: Room, least: int | None) -> Iterator[TaskKey]:
        """Some may have ended since they became ready."""
        return self._ready.pop_open(room, least) if self._book.run.status is RunStatus.RUNNING else iter(())

    def push_ready(self, key: TaskKey) -> None:
        self._ready.push(key, self.node(key))

    def urgency(self, room: Room) -> int | None:
        return self._ready.urgency(room) if self._book.run.status is RunStatus.RUNNING else None

    def has_ready(self, room: Room) -> bool:
        return self._book.run.status is RunStatus.RUNNING and self._ready.has_any(room)

    def scope(self, key: TaskKey) -> Scope:
        outputs = {name: output_of(self._book.tasks, name) for name in self.node(key).spec.depends_on}
        return Scope(self._book.run, outputs, None if key.index is None else self._book.tasks[key].item)
