"""The result of a run in this process."""

from __future__ import annotations

from html import escape
from typing import Any

from ork.model.record import Record, made

_SHOWN_CHARACTERS = 120
_GLYPHS = {"success": "✓", "failed": "✗", "skipped": "–", "cancelled": "–"}


class TaskResult(Record):
    """`output` is what downstream tasks received: dates as text, objects as dicts, data frames as they were. `error` is the exception of the
    task."""

    name: str
    status: str
    output: Any = None
    reason: str | None = None
    error: BaseException | None = None
    attempts: int = 0
    seconds: float = 0.0


class Result(Record):
    """`result["task"]` is a task's output. Nothing is stored elsewhere."""

    workflow: str
    status: str
    tasks: dict[str, TaskResult] = made(default_factory=dict)
    seconds: float = 0.0
    folder: Any = None  # of the files among the outputs; it is removed with the result

    def __getitem__(self, task: str) -> Any:
        if task not in self.tasks:
            raise KeyError(f"{self.workflow} has no task {task!r}; it has {', '.join(self.tasks)}")
        return self.tasks[task].output

    def __repr__(self) -> str:
        head = f"{self.workflow}: {self.status} in {self.seconds:.1f} s"
        return "\n".join(
            [head, *(f"  {_glyph(task)} {task.name}  {_told(task)}".rstrip() for task in self.tasks.values())]
        )

    def _repr_html_(self) -> str:
        """For notebooks. All values are escaped."""
        rows = "".join(
            f"<tr><td>{_glyph(task)}</td><td>{escape(task.name)}</td><td>{task.seconds:.2f} s</td>"
            f'<td style="text-align:left"><code>{escape(_told(task))}</code></td></tr>'
            for task in self.tasks.values()
        )
        head = f"{escape(self.workflow)}: {escape(self.status)} in {self.seconds:.1f} s"
        return f"<table><caption>{head}</caption>{rows}</table>"


def _glyph(task: TaskResult) -> str:
    return _GLYPHS.get(task.status, "?")


def _told(task: TaskResult) -> str:
    if task.status == "success":
        text = "" if task.output is None else repr(task.output)
    else:
        text = task.reason or task.status
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"
