"""Shows the progress of a run: as a live region, plain lines, JSON lines, or not at all.

Each class is given the changes and the current time, and returns after how many seconds to call it again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import IO, Protocol

from ork.cli.live import render
from ork.cli.paint import Line, Palette, line
from ork.cli.region import Region
from ork.cli.task_lines import MAX_INSTANCES, ended_lines, header, past_attempt_line, retry_lines, started_line
from ork.model.ids import TaskKey
from ork.model.task import Attempt, Task, TaskStatus
from ork.status.history import History
from ork.status.run_view import RunView
from ork.status.shapes import time_json
from ork.terminal import terminal_width

FRAME_SECONDS = 0.1
# Between changes only durations change in the region.
IDLE_FRAME_SECONDS = 0.5
# A task that ends sooner than this gets no line for its start.
ANNOUNCE_AFTER_SECONDS = 2.0


class ProgressDisplay(Protocol):
    wants_history: bool
    shows_attempts: bool  # whether attempts that started and failed between two refreshes are shown

    def screen(self) -> AbstractContextManager[object]:
        """A context that is active while the run is followed."""
        ...

    def show(self, view: RunView, changed: list[Task], now: datetime, history: History | None) -> float | None:
        """Shows the changes. Returns after how many seconds to call again without changes (None: never)."""
        ...

    def add_missed(self, attempts: Sequence[Attempt]) -> None:
        """Attempts that failed between two refreshes, to be shown before the next changes."""
        ...

    def note(self, text: str) -> None:
        """Shows a sentence between the lines of tasks."""
        ...


class QuietProgress:
    wants_history = False
    shows_attempts = False

    def screen(self) -> AbstractContextManager[object]:
        return nullcontext()

    def show(self, view: RunView, changed: list[Task], now: datetime, history: History | None) -> float | None:  # noqa: ARG002
        return None

    def add_missed(self, attempts: Sequence[Attempt]) -> None:
        pass

    def note(self, text: str) -> None:
        pass


class NotesOnly(QuietProgress):
    """Shows notes only."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def note(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


class JsonProgress(QuietProgress):
    """Writes one JSON object per change."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def show(self, view: RunView, changed: list[Task], now: datetime, history: History | None) -> float | None:  # noqa: ARG002
        for task in changed:
            event = {
                "at": time_json(now),
                "run": view.run.id,
                "task": task.key.name,
                "index": task.key.index,
                "status": task.status.value,
                "attempt": task.attempt,
                "error": task.failure.message if task.failure else None,
                "reason": task.reason,
            }
            self._stream.write(json.dumps(event) + "\n")
        self._stream.flush()
        return None

    def note(self, text: str) -> None:
        self._stream.write(json.dumps({"note": text}) + "\n")
        self._stream.flush()


class PlainProgress:
    """Writes one line per change; the start of a task only if it takes a while."""

    wants_history = False
    shows_attempts = True

    def __init__(self, stream: IO[str], palette: Palette, *, full: bool = False) -> None:
        self._stream = stream
        self._palette = palette
        self._full = full
        self._permanent = PermanentLines(full, shows_retries=True)
        self._announced: set[tuple[TaskKey, int]] = set()
        self._missed: Sequence[Attempt] = ()

    def screen(self) -> AbstractContextManager[object]:
        return nullcontext()

    def show(self, view: RunView, changed: list[Task], now: datetime, history: History | None) -> float | None:  # noqa: ARG002
        lines = self._permanent.take(view, changed, now, self._missed)
        self._missed = ()
        wait: float | None = None
        for task in view.by_status[TaskStatus.RUNNING].values():
            if task.key.index is not None:
                continue
            left = self._until_announced(task, now)
            if left is not None and left <= 0:
                self._announced.add((task.key, task.attempt))
                lines.append(started_line(view, task))
            elif left is not None:
                wait = left if wait is None else min(wait, left)
        self._palette.write(self._stream, lines)
        return wait

    def _until_announced(self, task: Task, now: datetime) -> float | None:
        if (task.key, task.attempt) in self._announced or task.started_at is None:
            return None
        return ANNOUNCE_AFTER_SECONDS - (now - task.started_at).total_seconds()

    def add_missed(self, attempts: Sequence[Attempt]) -> None:
        self._missed = attempts

    def note(self, text: str) -> None:
        self._stream.write(text + "\n")
        self._stream.flush()


class LiveProgress:
    """Writes permanent lines, and a live region below them."""

    wants_history = True
    shows_attempts = False

    def __init__(self, stream: IO[str], palette: Palette, *, full: bool = False) -> None:
        self._stream = stream
        self._region = Region(stream, palette, lambda: terminal_width(stream))
        self._permanent = PermanentLines(full, shows_retries=False)  # the region shows retries
        self._notes: list[Line] = []

    def screen(self) -> AbstractContextManager[object]:
        return self._region

    def show(self, view: RunView, changed: list[Task], now: datetime, history: History | None) -> float | None:
        lines = self._permanent.take(view, changed, now) + self._notes
        self._notes = []
        moving = [] if view.run.status.is_final else render(view, now, terminal_width(self._stream), history)
        self._region.draw(lines, moving)
        return IDLE_FRAME_SECONDS

    def add_missed(self, attempts: Sequence[Attempt]) -> None:
        pass

    def note(self, text: str) -> None:
        self._notes.append(line(text))


class PermanentLines:
    """The lines that stay on the screen: the header first, then one entry for the end of each task."""

    def __init__(self, full: bool, *, shows_retries: bool) -> None:
        self._full = full
        self._tells_retries = shows_retries
        self._has_header = False
        self._shown: dict[TaskKey, tuple[TaskStatus, int]] = {}
        self._instances: dict[tuple[str, TaskStatus], set[TaskKey]] = {}

    def take(self, view: RunView, changed: list[Task], now: datetime, missed: Sequence[Attempt] = ()) -> list[Line]:
        lines: list[Line] = []
        if not self._has_header:
            self._has_header = True
            lines.append(header(view))
        for task in changed:
            lines += [past_attempt_line(view, task, each) for each in missed if each.key.task == task.key]
            if not self._is_shown(task):
                continue
            if task.status.is_final and self._is_new(task):
                lines += ended_lines(view, task, full=self._full)
            elif self._tells_retries and task.key in view.retrying and self._is_new(task):
                lines += retry_lines(view, task, now)
        return lines

    def _is_shown(self, task: Task) -> bool:
        """Instances are shown only if they are among the first few that failed or are retried."""
        if task.key.index is None:
            return True
        if task.status is not TaskStatus.FAILED and (task.status.is_final or task.retry_at is None):
            return False
        shown = self._instances.setdefault((task.key.name, task.status), set())
        if len(shown) < MAX_INSTANCES:
            shown.add(task.key)
        return task.key in shown

    def _is_new(self, task: Task) -> bool:
        shown = self._shown.get(task.key)
        self._shown[task.key] = (task.status, task.attempt)
        return shown != (task.status, task.attempt)
