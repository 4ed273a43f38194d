"""The ways to show a run going on: a live region, plain lines, JSON lines, or nothing.

Each takes what changed and the moment, and says after how many seconds it wants to be asked again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import IO, Protocol

from ork.cli.live import render
from ork.cli.paint import Line, Palette, line
from ork.cli.region import Region, terminal_width
from ork.cli.task_lines import MAX_INSTANCES, ended_lines, header, past_try_line, retry_lines, started_line
from ork.model.ids import TaskKey
from ork.model.task import Attempt, Task, TaskStatus
from ork.status.history import History
from ork.status.run_view import RunView
from ork.status.shapes import time_json

FRAME_SECONDS = 0.1
# Between changes only clocks move in the region.
IDLE_FRAME_SECONDS = 0.5
# A task that ends sooner than this gets one line, the one that tells how it ended.
ANNOUNCE_AFTER_SECONDS = 2.0


class Progress(Protocol):
    wants_history: bool
    tells_attempts: bool  # whether it wants to know of tries that came and went between two looks

    def screen(self) -> AbstractContextManager[object]:
        """Held while the run is being followed."""
        ...

    def show(self, view: RunView, changed: list[Task], now: datetime, history: History | None) -> float | None:
        """Shows what changed; the answer is when to call again even if nothing changes (None: never)."""
        ...

    def add_missed(self, attempts: Sequence[Attempt]) -> None:
        """Tries that failed between two looks; they belong before what is shown next."""
        ...

    def note(self, text: str) -> None:
        """A sentence for the person, between the tasks' lines."""
        ...


class QuietProgress:
    wants_history = False
    tells_attempts = False

    def screen(self) -> AbstractContextManager[object]:
        return nullcontext()

    def show(self, view: RunView, changed: list[Task], now: datetime, history: History | None) -> float | None:  # noqa: ARG002
        return None

    def add_missed(self, attempts: Sequence[Attempt]) -> None:
        pass

    def note(self, text: str) -> None:
        pass


class NotesOnly(QuietProgress):
    """What keeps the run from its end, and nothing else."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def note(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


class JsonProgress(QuietProgress):
    """One JSON object per change."""

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
    """One line per change; that a task has started is told only when it takes a while."""

    wants_history = False
    tells_attempts = True

    def __init__(self, stream: IO[str], palette: Palette, *, full: bool = False) -> None:
        self._stream = stream
        self._palette = palette
        self._full = full
        self._lasting = LastingLines(full, tells_retries=True)
        self._announced: set[tuple[TaskKey, int]] = set()
        self._missed: Sequence[Attempt] = ()

    def screen(self) -> AbstractContextManager[object]:
        return nullcontext()

    def show(self, view: RunView, changed: list[Task], now: datetime, history: History | None) -> float | None:  # noqa: ARG002
        lines = self._lasting.take(view, changed, now, self._missed)
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
    """Lasting lines above, a region of what moves below."""

    wants_history = True
    tells_attempts = False

    def __init__(self, stream: IO[str], palette: Palette, *, full: bool = False) -> None:
        self._stream = stream
        self._region = Region(stream, palette, lambda: terminal_width(stream))
        self._lasting = LastingLines(full, tells_retries=False)  # the region shows those
        self._notes: list[Line] = []

    def screen(self) -> AbstractContextManager[object]:
        return self._region

    def show(self, view: RunView, changed: list[Task], now: datetime, history: History | None) -> float | None:
        lines = self._lasting.take(view, changed, now) + self._notes
        self._notes = []
        moving = [] if view.run.status.is_final else render(view, now, terminal_width(self._stream), history)
        self._region.draw(lines, moving)
        return IDLE_FRAME_SECONDS

    def add_missed(self, attempts: Sequence[Attempt]) -> None:
        pass

    def note(self, text: str) -> None:
        self._notes.append(line(text))


class LastingLines:
    """The lines each change leaves behind for good: the header first, then every end of a task once."""

    def __init__(self, full: bool, *, tells_retries: bool) -> None:
        self._full = full
        self._tells_retries = tells_retries
        self._begun = False
        self._told: dict[TaskKey, tuple[TaskStatus, int]] = {}
        self._instances: dict[tuple[str, TaskStatus], set[TaskKey]] = {}

    def take(self, view: RunView, changed: list[Task], now: datetime, missed: Sequence[Attempt] = ()) -> list[Line]:
        lines: list[Line] = []
        if not self._begun:
            self._begun = True
            lines.append(header(view))
        for task in changed:
            lines += [past_try_line(view, task, each) for each in missed if each.key.task == task.key]
            if not self._is_worth_telling(task):
                continue
            if task.status.is_final and self._is_news(task):
                lines += ended_lines(view, task, full=self._full)
            elif self._tells_retries and task.key in view.retrying and self._is_news(task):
                lines += retry_lines(view, task, now)
        return lines

    def _is_worth_telling(self, task: Task) -> bool:
        """Of a fan-out the first few failed and retried instances; how the others went is told by its own line."""
        if task.key.index is None:
            return True
        if task.status is not TaskStatus.FAILED and (task.status.is_final or task.retry_at is None):
            return False
        told = self._instances.setdefault((task.key.name, task.status), set())
        if len(told) < MAX_INSTANCES:
            told.add(task.key)
        return task.key in told

    def _is_news(self, task: Task) -> bool:
        told = self._told.get(task.key)
        self._told[task.key] = (task.status, task.attempt)
        return told != (task.status, task.attempt)
