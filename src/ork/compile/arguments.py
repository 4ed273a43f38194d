"""Hints for arguments that have no source."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ork.definition.problems import quoted
from ork.definition.report import Suggester


def missing_message(function: str, missing: Sequence[str]) -> str:
    it = "it" if len(missing) == 1 else "them"
    return f"function {quoted(function)} needs {', '.join(map(quoted, missing))}, but nothing provides {it}"


def missing_hint(name: str, where: str, given: Collection[str], tasks: Collection[str]) -> str:
    """How to provide the first missing argument: add a dependency, correct a misspelt name, or add an input."""
    if name in tasks:
        return f"add {quoted(name)} to `depends_on`; the function is at {where}"
    suggestion = Suggester(given).closest(name)
    if suggestion is not None:
        return f"did you mean {quoted(suggestion)}? Rename the parameter at {where}, or add `inputs: {{{name}: {{ref: {suggestion}}}}}`"
    return f"add `inputs: {{{name}: …}}`, a param of that name, or a default value at {where}"
