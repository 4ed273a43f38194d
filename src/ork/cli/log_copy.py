"""Copies the logs of a run's tasks to stdout, once or while they grow."""

from __future__ import annotations

import sys

from ork.app.installation import Installation
from ork.cli.log_text import CHUNK, ExactSink, JsonSink, PrefixedSink, Sink, TerminalSink
from ork.model.ids import AttemptKey, TaskKey
from ork.model.task import Task
from ork.status.ids import RunTarget, pick_tasks
from ork.status.run_view import RunView, is_group, refresh

# Polling interval: the store notifies about changes, logs do not.
POLL_SECONDS = 0.25


class LogCopier:
    """Copies the logs of a target, each from where the last copy ended."""

    def __init__(self, installation: Installation, view: RunView, target: RunTarget, *, as_json: bool = False) -> None:
        self._objects = installation.objects
        self._store = installation.store
        self.view = view
        self._target = target
        self._offsets: dict[AttemptKey, int] = {}
        self._sinks: dict[AttemptKey, Sink] = {}
        self._width: int | None = None
        self._as_json = as_json

    @property
    def keys(self) -> list[TaskKey]:
        """The tasks that can have a log: instances instead of their fan-out."""
        if not self.view.tasks:
            return []
        picked = pick_tasks(self.view.tasks, self._target)
        return [key for key in picked if not is_group(self.view.tasks[key])]

    @property
    def missing_store(self) -> str | None:
        """The folder of the object store if it is missing, else None."""
        return self._objects.missing_place()

    @property
    def missing_folder(self) -> str | None:
        """The folder of the run's logs if it is missing, else None. A task that prints nothing has no log."""
        return self._objects.missing_place(self.view.run.id)

    def copy(self, task: Task, number: int) -> None:
        """Copies what was added to the attempt's log since the last copy; ends the last line if the attempt is over."""
        attempt = AttemptKey(self.view.run.id, task.key, number)
        sink = self._sinks.get(attempt) or self._sinks.setdefault(attempt, self._sink(attempt))
        name, offset = str(attempt), self._offsets.get(attempt, 0)
        while data := self._objects.read_log(name, offset, CHUNK):
            sink.write(data)
            offset += len(data)
        self._offsets[attempt] = offset
        if task.status.is_final or number < task.attempt:
            sink.close()

    async def follow(self) -> None:
        """Copies until all tasks of the target, or the run, have ended."""
        done: set[AttemptKey] = set()
        while True:
            # The status is read before the log, so that everything a finished task printed is copied.
            tasks = [self.view.tasks[key] for key in self.keys]
            for task in tasks:
                self._copy_new(task, done)
            if await self._is_over(tasks):
                return
            await self._store.wait_for_change(POLL_SECONDS)
            await refresh(self._store, self.view)

    async def _is_over(self, tasks: list[Task]) -> bool:
        """True if the target has ended and no command, such as a retry, is pending."""
        if not self.view.run.status.is_final and not (tasks and all(task.status.is_final for task in tasks)):
            return False
        return not await self._store.pending_commands(self.view.run.id)

    def _copy_new(self, task: Task, done: set[AttemptKey]) -> None:
        for number in range(1, task.attempt + 1):
            attempt = AttemptKey(self.view.run.id, task.key, number)
            if attempt in done:
                continue
            if number < task.attempt and attempt not in self._offsets and self._target.task is None:
                done.add(attempt)  # attempts that ended before we started are not shown
                continue
            self.copy(task, number)
            if task.status.is_final or number < task.attempt:
                done.add(attempt)

    def _sink(self, attempt: AttemptKey) -> Sink:
        key = attempt.task
        if self._as_json:
            return JsonSink(sys.stdout.buffer, {"task": key.name, "index": key.index, "attempt": attempt.number})
        if self._width is None:
            keys = self.keys
            # The width is computed once: later instances with longer names are not aligned.
            self._width = max(len(str(each)) for each in keys) if len(keys) > 1 else 0
        prefix = f"{key!s:<{self._width}} | " if self._width else ""
        if sys.stdout.isatty():
            return TerminalSink(sys.stdout.buffer, prefix)
        return PrefixedSink(sys.stdout.buffer, prefix.encode()) if prefix else ExactSink(sys.stdout.buffer)
