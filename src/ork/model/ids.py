"""Names of things. A run's id is random text; a task, an instance and an attempt are named below it."""

from __future__ import annotations

from typing import NamedTuple, NewType

RunId = NewType("RunId", str)
VersionId = NewType("VersionId", str)
SchedulerId = NewType("SchedulerId", str)

NAME_PATTERN = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"

# Crockford's alphabet without letters that are mistaken for digits when read aloud or typed.
ID_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
RUN_ID_LENGTH = 12


class TaskKey(NamedTuple):
    """One node instance of a run; `index` is None for a task without instances."""

    name: str
    index: int | None = None  # type: ignore[assignment]  # hides tuple.index, which nobody needs here

    def __str__(self) -> str:
        return self.name if self.index is None else f"{self.name}[{self.index}]"


class AttemptKey(NamedTuple):
    """One try of one task of one run: unique for ever."""

    run: RunId
    task: TaskKey
    number: int

    def __str__(self) -> str:
        return f"{self.run}/{self.task.name}/{self.task.index or 0}/{self.number}"
