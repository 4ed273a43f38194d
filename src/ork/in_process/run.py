"""Runs a whole workflow in this process: the state machine decides, attempts are performed one after the other."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from tempfile import TemporaryDirectory
from typing import Any

from ork.compile.load import load_tree
from ork.compile.params import check_params
from ork.core import events as ev
from ork.core.bind import Scope
from ork.core.machine import RunMachine
from ork.definition.document_tree import document_tree
from ork.definition.report import ProblemReport
from ork.errors import UsageError
from ork.in_process.perform import AttemptOutcome, Performer
from ork.in_process.result import Result, TaskResult
from ork.model.ids import AttemptKey, RunId, TaskKey, VersionId
from ork.model.run import CommandKind, Run, RunCommand, RunStatus
from ork.model.task import Attempt, Failure, Task, TaskStatus
from ork.model.workflow import Approval, CompiledWorkflow, Custom, SubWorkflow, TaskSpec, Trigger
from ork.objects.opening import FILE, open_objects
from ork.sdk.errors import TaskError
from ork.sdk.values import plain
from ork.sdk.workflow import Workflow
from ork.settings import Settings, load_settings
from ork.worker.inspect import type_in_words

MAX_DEPTH = 10


def run_in_process(workflow: Workflow, params: dict[str, Any], *, check: bool = True, depth: int = 0) -> Result:
    """Raises DefinitionError or UsageError before anything runs; with `check`, the exception of the first failed task."""
    if depth > MAX_DEPTH:
        raise TaskError(f"workflow {workflow.name} runs itself, {MAX_DEPTH} levels deep", retry=False)
    settings = _settings_of(workflow)
    compiled = _compiled(workflow, settings)
    _check_supported(compiled)
    values = check_params(compiled, {name: plain(value, name) for name, value in params.items()})
    result = _InProcessRun(workflow, compiled, values, settings, depth).result()
    if check and result.status != "success":
        raise _first_error(result)
    return result


class _InProcessRun:
    """Skips waiting times: retries are immediate."""

    def __init__(
        self, workflow: Workflow, compiled: CompiledWorkflow, params: dict[str, Any], settings: Settings, depth: int
    ) -> None:
        begun = datetime.now(UTC)
        run = Run(
            RunId("in-process"),
            workflow.name,
            VersionId("in-process"),
            RunStatus.PENDING,
            Trigger.MANUAL,
            params,
            begun,
            fresh=True,
        )
        self._depth = depth
        self._compiled = compiled
        self._machine = RunMachine(compiled, run)
        root = os.path.dirname(workflow.file) if os.path.isfile(workflow.file) else os.getcwd()
        self._folder = TemporaryDirectory(prefix="ork-in-process-")  # of values that are not JSON
        values = open_objects(FILE + self._folder.name)
        self._performer = Performer(workflow, self._machine, root, self._secret, self._run_child, values)
        self._find_secret = settings.secrets.value
        self._skipped = timedelta()
        self._errors: dict[str, BaseException] = {}
        self._seconds: dict[str, float] = {}

    def _secret(self, name: str) -> str:
        return self._find_secret(name, self._compiled.name, waits=True)

    def result(self) -> Result:
        start = time.monotonic()
        machine = self._machine
        machine.handle(ev.Created(), self._now())
        while not machine.run.status.is_final:
            launches = machine.offer(1, _name, self._now())
            for attempt in machine.settle(frozenset(request.attempt.key for request in launches)):
                self._perform(attempt)
            if not launches and not self._approve_waiting() and not self._skip_time():
                raise RuntimeError(f"{machine.run.workflow} has nothing left to do and is not over")
            machine.take()
        tasks = {spec.name: self._told(machine.tasks[TaskKey(spec.name)]) for spec in self._compiled.tasks}
        seconds = time.monotonic() - start
        return Result(machine.run.workflow, str(machine.run.status), tasks, seconds, self._folder)

    def _perform(self, attempt: Attempt) -> None:
        key, begun = attempt.key, self._now()
        start = time.monotonic()
        ended = self._performer.perform(key)
        name = key.task.name
        self._seconds[name] = self._seconds.get(name, 0.0) + time.monotonic() - start
        if ended.failure is None:
            done = ev.Succeeded(key.task, key.number, attempt.seq + 1, ended.output, begun, self._now())
            self._machine.handle(done, self._now())
        else:
            self._failed(attempt, ended, ended.failure, begun)

    def _failed(self, attempt: Attempt, ended: AttemptOutcome, failure: Failure, begun: datetime) -> None:
        key = attempt.key
        if ended.error is not None:
            self._errors[key.task.name] = ended.error
        event = ev.Failed(key.task, key.number, attempt.seq + 1, failure, begun, self._now())
        self._machine.handle(event, self._now())

    def _approve_waiting(self) -> bool:
        """Approve everything that waits for a person."""
        machine = self._machine
        asked = [spec.name for spec in self._compiled.tasks if isinstance(spec.action, Approval)]
        waiting = [name for name in asked if machine.tasks[TaskKey(name)].status is TaskStatus.RUNNING]
        for name in waiting:
            command = RunCommand(machine.run.id, CommandKind.APPROVE, by="a run in process", task=name)
            machine.handle(ev.Commanded(command), self._now())
        return bool(waiting)

    def _skip_time(self) -> bool:
        due = self._machine.next_timer
        if due is not None:
            self._skipped += max(due - self._now(), timedelta())
            self._machine.handle(ev.TimerDue(), self._now())
        return due is not None

    def _now(self) -> datetime:
        return datetime.now(UTC) + self._skipped

    def _told(self, task: Task) -> TaskResult:
        name = task.key.name
        bound = Scope(self._machine.run, {name: self._machine.output_of(name)}).upstream(name)
        is_failed = task.status is TaskStatus.FAILED
        return TaskResult(
            name,
            str(task.status),
            self._performer.outcome_value(bound),
            task.failure.message if task.failure and is_failed else task.reason,
            self._errors.get(name) if is_failed else None,
            self._attempts(name),
            self._seconds.get(name, 0.0),
        )

    def _attempts(self, name: str) -> int:
        return sum(task.attempt for key, task in self._machine.tasks.items() if key.name == name)

    def _run_child(self, workflow: Workflow, params: dict[str, Any]) -> Any:
        result = run_in_process(workflow, params, depth=self._depth + 1)
        compiled = _compiled(workflow, _settings_of(workflow))
        used = {name for spec in compiled.tasks for name in spec.depends_on}
        last = {spec.name: result[spec.name] for spec in compiled.tasks if spec.name not in used}
        return next(iter(last.values())) if len(last) == 1 else last


def _compiled(workflow: Workflow, settings: Settings) -> CompiledWorkflow:
    from linecache import getlines

    document = workflow.document(None, type_in_words)
    source = "".join(getlines(workflow.file))
    lines = {entry.name: entry.line for entry in workflow.tasks.values()}
    tree = document_tree(document, source, workflow.line, lines)
    report = ProblemReport(workflow.file, source)
    for mistake in workflow.mistakes(None, type_in_words):
        report.add_at(mistake.code, mistake.message, mistake.line - 1, 0, hint=mistake.hint)
    return load_tree(tree, report, read=None, project=settings.project).require()


def _check_supported(workflow: CompiledWorkflow) -> None:
    """Raise before anything runs: running half of a workflow does not help a test."""
    for spec in workflow.tasks:
        is_local = isinstance(spec.action, Custom | SubWorkflow | Approval) or spec.executor in ("python", "process")
        if not is_local:
            message = (
                f"task `{spec.name}` needs the executor `{spec.executor}`, which a run in this process does not support"
            )
            raise UsageError(message, hint="`ork run` runs it; for a test make it a function")


def _settings_of(workflow: Workflow) -> Settings:
    return load_settings(folder=os.path.dirname(workflow.file) if os.path.isfile(workflow.file) else None)


def _name(key: AttemptKey, _spec: TaskSpec, _group: str | None) -> tuple[str, str]:
    return str(key), ""


def _first_error(result: Result) -> BaseException:
    failed = next((task for task in result.tasks.values() if task.status == "failed"), None)
    if failed is not None and failed.error is not None:
        return failed.error
    return TaskError(f"{failed.name}: {failed.reason}" if failed else f"{result.workflow}: {result.status}")
