"""Identifiers. A run id is random text; task, instance and attempt keys are relative to it."""

from __future__ import annotations

from typing import NamedTuple, NewType

RunId = NewType("RunId", str)
VersionId = NewType("VersionId", str)
SchedulerId = NewType("SchedulerId", str)

NAME_PATTERN = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"

# Crockford's base32 alphabet, without letters that are easily mistaken for digits.
ID_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
RUN_ID_LENGTH = 12


class TaskKey(NamedTuple):
    """A task or an instance of a run; `index` is None for the task itself."""

    name: str
    index: int | None = None  # type: ignore[assignment]  # shadows tuple.index, which is not used

    def __str__(self) -> str:
        return self.name if self.index is None else f"{self.name}[{self.index}]"


class AttemptKey(NamedTuple):
    """One attempt of one task of one run. Globally unique."""

    run: RunId
    task: TaskKey
    number: int

    def __str__(self) -> str:
        return f"{self.run}/{self.task.name}/{self.task.index or 0}/{self.number}"
