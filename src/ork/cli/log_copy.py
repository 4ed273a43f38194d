"""Copying the logs of a run's tasks to stdout, once or for as long as they grow."""

from __future__ import annotations

import sys

from ork.app.installation import Installation
from ork.cli.log_text import CHUNK, ExactSink, JsonSink, PrefixedSink, Sink, TerminalSink
from ork.model.ids import AttemptKey, TaskKey
from ork.model.task import Task
from ork.status.ids import Target, pick_tasks
from ork.status.instances import is_group
from ork.status.run_view import RunView, refresh

# How long growth of a log may go unnoticed: logs send no news, only the store does.
LOOK_SECONDS = 0.25


class LogCopier:
    """The logs a target means, each copied from where the last copy ended."""

    def __init__(self, installation: Installation, view: RunView, target: Target, *, as_json: bool = False) -> None:
        self._objects = installation.objects
        self._store = installation.store
        self.view = view
        self._target = target
        self._places: dict[AttemptKey, int] = {}
        self._sinks: dict[AttemptKey, Sink] = {}
        self._width: int | None = None
        self._as_json = as_json

    @property
    def keys(self) -> list[TaskKey]:
        """What can have a log: of a task with instances these, not the whole."""
        if not self.view.tasks:
            return []
        picked = pick_tasks(self.view.tasks, self._target)
        return [key for key in picked if not is_group(self.view.tasks[key])]

    @property
    def missing_store(self) -> str | None:
        """Where the object store should be, if it is not there."""
        return self._objects.missing_place()

    @property
    def missing_folder(self) -> str | None:
        """Where the logs of the run should be, if that folder is not there. A task that prints nothing has no log."""
        return self._objects.missing_place(self.view.run.id)

    def copy(self, task: Task, number: int) -> None:
        """What the attempt's log holds beyond the last copy; a finished attempt's last line is ended."""
        attempt = AttemptKey(self.view.run.id, task.key, number)
        sink = self._sinks.get(attempt) or self._sinks.setdefault(attempt, self._sink(attempt))
        name, place = str(attempt), self._places.get(attempt, 0)
        while data := self._objects.read_log(name, place, CHUNK):
            sink.write(data)
            place += len(data)
        self._places[attempt] = place
        if task.status.is_final or number < task.attempt:
            sink.close()

    async def follow(self) -> None:
        """Until every task meant has ended, or the run has."""
        done: set[AttemptKey] = set()
        while True:
            # The state is read before the log: what a task printed before it ended is then surely copied.
            tasks = [self.view.tasks[key] for key in self.keys]
            for task in tasks:
                self._copy_news(task, done)
            if await self._is_over(tasks):
                return
            await self._store.wait_for_change(LOOK_SECONDS)
            await refresh(self._store, self.view)

    async def _is_over(self, tasks: list[Task]) -> bool:
        """A retry that somebody asked for and nobody has begun yet is worth waiting for."""
        if not self.view.run.status.is_final and not (tasks and all(task.status.is_final for task in tasks)):
            return False
        return not await self._store.pending_commands(self.view.run.id)

    def _copy_news(self, task: Task, done: set[AttemptKey]) -> None:
        for number in range(1, task.attempt + 1):
            attempt = AttemptKey(self.view.run.id, task.key, number)
            if attempt in done:
                continue
            if number < task.attempt and attempt not in self._places and self._target.task is None:
                done.add(attempt)  # tries that were over before we came are not news
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
            # Instances that come later may have longer names: they stand out of line rather than cost another look.
            self._width = max(len(str(each)) for each in keys) if len(keys) > 1 else 0
        prefix = f"{key!s:<{self._width}} | " if self._width else ""
        if sys.stdout.isatty():
            return TerminalSink(sys.stdout.buffer, prefix)
        return PrefixedSink(sys.stdout.buffer, prefix.encode()) if prefix else ExactSink(sys.stdout.buffer)
