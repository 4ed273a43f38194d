"""What to say about arguments that nothing provides."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ork.definition.problems import quoted
from ork.definition.report import Suggester


def lacking_message(function: str, lacking: Sequence[str]) -> str:
    it = "it" if len(lacking) == 1 else "them"
    return f"function {quoted(function)} needs {', '.join(map(quoted, lacking))}, and nothing provides {it}"


def lacking_hint(name: str, where: str, given: Collection[str], tasks: Collection[str]) -> str:
    """What provides the first of them: a dependency that was not written, a name one letter off, or a new input."""
    if name in tasks:
        return f"add {quoted(name)} to `depends_on`; the function is at {where}"
    meant = Suggester(given).closest(name)
    if meant is not None:
        return f"did you mean {quoted(meant)}? Rename the parameter at {where}, or add `inputs: {{{name}: {{ref: {meant}}}}}`"
    return f"add `inputs: {{{name}: …}}`, a param of that name, or a default value at {where}"
