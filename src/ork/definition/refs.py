"""Parses references: `tasks.extract.output.rows[0]`, `params.day`, `run.id`, `item`, and the short form `extract.rows`."""

from __future__ import annotations

import re
from collections.abc import Collection

from ork.definition.problems import quoted
from ork.model.workflow import Ref

RUN_FIELDS = ("id", "scheduled_for", "attempt")
MAX_REF_LENGTH = 1000
_STEP = re.compile(r"\.([^.\[\]\s]+)|\[(\d{1,9})\]")
_HEAD = re.compile(r"[^.\[\]\s]+")


class RefSyntaxError(Exception):
    """The text is no valid reference. `hint` suggests one."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def parse_ref(text: str, task_names: Collection[str]) -> Ref:
    """Parse a reference. Task names may contain dots, so the existing names decide where a name ends."""
    if len(text) > MAX_REF_LENGTH:
        raise RefSyntaxError("the path is too long")
    head = _HEAD.match(text)
    if head is None:
        raise RefSyntaxError(f"{quoted(text)} is not a path", _examples())
    if head.group() == "tasks":
        return _task_ref(text, task_names)
    if head.group() == "run":
        return _run_ref(text)
    if head.group() == "params":
        steps = _steps(text, head.end())
        if not steps or isinstance(steps[0], int):
            raise RefSyntaxError(f"{quoted(text)} names no param", "write `params.<name>`")
        return Ref(("params", *steps))
    if head.group() == "item":
        return Ref(("item", *_steps(text, head.end())))
    return _short_ref(text, task_names)


def _task_ref(text: str, task_names: Collection[str]) -> Ref:
    ends = [found.start() for found in re.finditer(r"\.output(?=[.\[]|$)", text) if found.start() > len("tasks.")]
    if not ends or not text.startswith("tasks."):
        raise RefSyntaxError(f"{quoted(text)} does not say which output", "write `tasks.<name>.output`")
    names = [text[len("tasks.") : end] for end in ends]
    chosen = next((index for index, name in enumerate(names) if name in task_names), 0)
    return Ref(("tasks", names[chosen], "output", *_steps(text, ends[chosen] + len(".output"))))


def _run_ref(text: str) -> Ref:
    field = text[len("run.") :]
    if field not in RUN_FIELDS:
        raise RefSyntaxError(
            f"{quoted(text)} is not known of a run", f"one of: {', '.join(f'run.{f}' for f in RUN_FIELDS)}"
        )
    return Ref(("run", field))


def _short_ref(text: str, task_names: Collection[str]) -> Ref:
    """Parse `extract.files` (or `extract.output.files`) as `tasks.extract.output.files`.

    The longest prefix that is a task name is used.
    """
    ends = [found.start() for found in re.finditer(r"[.\[]", text)] + [len(text)]
    end = next((end for end in reversed(ends) if text[:end] in task_names), ends[0])
    steps = _steps(text, end)
    return Ref(("tasks", text[:end], "output", *(steps[1:] if steps[:1] == ["output"] else steps)))


def _steps(text: str, position: int) -> list[str | int]:
    steps: list[str | int] = []
    while position < len(text):
        found = _STEP.match(text, position)
        if found is None:
            raise RefSyntaxError(f"{quoted(text)} is not a path after {quoted(text[:position])}", _examples())
        steps.append(int(found[2]) if found[1] is None else found[1])
        position = found.end()
    return steps


def _examples() -> str:
    return "paths look like `tasks.extract.output.rows[0]`, `params.day` or `run.id`"
