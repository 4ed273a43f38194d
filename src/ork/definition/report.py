"""Collects all problems found in a file, in source order."""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection, Iterable
from typing import Protocol

from ork.definition.problems import Problem, quoted

# Bounds the output for a file that is wrong everywhere.
MAX_PROBLEMS = 1000

# The line breaks that the YAML parser counts, so that line numbers agree.
_LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


class HasPosition(Protocol):
    line: int
    column: int
    width: int


class ProblemReport:
    """Collects the problems of one file. `text` is set once it is decoded, for showing source lines."""

    def __init__(self, file: str, text: str = "") -> None:
        self.file = file
        self._found: list[Problem] = []
        self.text = text

    @property
    def text(self) -> str:
        return self._text

    @text.setter
    def text(self, text: str) -> None:
        self._text = text
        self._breaks = _LINE_BREAK.finditer(text)
        self._starts = array("Q", [0])

    def add(self, code: str, message: str, place: HasPosition, *, hint: str | None = None) -> None:
        self.add_at(code, message, place.line, place.column, width=place.width, hint=hint)

    def add_at(
        self, code: str, message: str, line: int, column: int, *, width: int = 1, hint: str | None = None
    ) -> None:
        if not self.is_full:
            source = self._line(line)
            end = column + max(width, 1)
            self._found.append(Problem(code, message, self.file, line + 1, column + 1, end + 1, source, hint))

    def add_file(self, code: str, message: str, *, hint: str | None = None) -> None:
        """Add a problem of the whole file."""
        self._found.append(Problem(code, message, self.file, hint=hint))

    def add_problem(self, problem: Problem) -> None:
        """Add a problem of another file that this one refers to."""
        if not self.is_full:
            self._found.append(problem)

    @property
    def is_clean(self) -> bool:
        return not self._found

    @property
    def is_full(self) -> bool:
        """True if no further problems are kept, so checks can stop."""
        return len(self._found) >= MAX_PROBLEMS

    def problems(self) -> tuple[Problem, ...]:
        """The problems of this file in source order, then those of other files."""
        return tuple(sorted(self._found, key=self._order))

    def _order(self, found: Problem) -> tuple[bool, str, int, int]:
        return found.file != self.file, found.file, found.line, found.column

    def character_at(self, line: int, column: int) -> str:
        return self._line(line)[column : column + 1]

    def _line(self, line: int) -> str:
        starts = self._starts
        while len(starts) <= line + 1:  # computed on demand: a large file rarely has mistakes at its end
            found = next(self._breaks, None)
            if found is None:
                starts.append(len(self._text) + 1)
            else:
                starts.append(found.end())
        return self._text[starts[line] : starts[line + 1]].rstrip("\r\n\x85\u2028\u2029")


class Suggester:
    """Suggests similar names. Fast for few names, bounded for many."""

    _MANY = 2000
    _MAX_SEARCHES = 20

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._searches = 0

    def hint(self, written: str) -> str | None:
        found = self.closest(written)
        return f"did you mean {quoted(found)}?" if found else None

    def closest(self, written: str) -> str | None:
        candidates: Iterable[str] = self._names
        if len(self._names) > self._MANY:
            self._searches += 1
            if self._searches > self._MAX_SEARCHES:
                return None
            candidates = self._likely(written)
        return _closest(written, candidates)

    def _likely(self, written: str) -> list[str]:
        """Candidates with the same prefix or suffix, those with both first."""
        begin, end, length = written[:2], written[-2:], len(written)
        similar = [
            name for name in self._names if (name[:2] == begin or name[-2:] == end) and abs(len(name) - length) < 3
        ]
        likely = [name for name in similar if name[:2] == begin and name[-2:] == end]
        return [*likely, *similar][: self._MANY]


def _closest(written: str, candidates: Iterable[str]) -> str | None:
    from difflib import get_close_matches

    by_plain = {_plain(name): name for name in candidates}
    matches = get_close_matches(_plain(written)[:128], by_plain, n=1, cutoff=0.6)
    return by_plain[matches[0]] if matches else None


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    line = start = 0
    for found in _LINE_BREAK.finditer(text, 0, offset):
        line, start = line + 1, found.end()
    return line, offset - start
