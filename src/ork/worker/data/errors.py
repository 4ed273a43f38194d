"""What is wrong with the result or the input of a task, as sentences for its author."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class InputError(Exception):
    """The reason why the task's input cannot be built, as a sentence."""


class ResultError(Exception):
    """What in the result cannot be stored, and where, as a sentence."""


class NotStoredError(ResultError):
    """The object store could not be used. Another try may succeed."""


def type_name(value: Any) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def place_of(path: str) -> str:
    """Where in the result, from the steps that lead there; each step begins with a NUL."""
    return f" at {path.replace(chr(0), '')}" if path else ""
