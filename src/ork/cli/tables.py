"""Columns of aligned text."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ork.cli.paint import Line, Span, columns, cut
from ork.terminal import terminal_width

GAP = "   "
NARROW_GAP = "  "
LEAST_COLUMN = 12


def table(titles: Sequence[str], rows: Sequence[Sequence[Span | str]], *, less: Sequence[int] = ()) -> list[Line]:
    """Each column is as wide as its widest cell. On a narrow terminal, the columns in `less` are omitted in that order
    until the rest fits; then the widest columns except the first are shortened, so that rows do not wrap."""
    cells = [[Span(title, "dim") for title in titles]]
    cells += [[cell if isinstance(cell, Span) else Span(cell) for cell in row] for row in rows]
    widths = [max(columns(row[place].text) for row in cells) for place in range(len(titles))]
    room = terminal_width(sys.stdout) if sys.stdout.isatty() else None
    kept, gap = list(range(len(titles))), GAP
    if room is not None and _total(widths, kept, gap) > room:
        gap = NARROW_GAP
        kept = _fewer(widths, less, room)
        widths = _narrower(widths, kept, room)
    return [_row([row[place] for place in kept], [widths[place] for place in kept], gap) for row in cells]


def _total(widths: Sequence[int], kept: Sequence[int], gap: str) -> int:
    return sum(widths[place] for place in kept) + len(gap) * (len(kept) - 1)


def _fewer(widths: Sequence[int], less: Sequence[int], room: int) -> list[int]:
    kept = list(range(len(widths)))
    for place in less:
        if _total(widths, kept, NARROW_GAP) <= room:
            break
        kept.remove(place)
    return kept


def _narrower(widths: Sequence[int], kept: Sequence[int], room: int) -> list[int]:
    narrowed = list(widths)
    while (over := _total(narrowed, kept, NARROW_GAP) - room) > 0:
        widest = max(kept[1:], key=lambda place: narrowed[place], default=0)
        if narrowed[widest] <= LEAST_COLUMN:
            break  # too narrow for anything; the terminal will have to wrap
        narrowed[widest] = max(LEAST_COLUMN, narrowed[widest] - over)
    return narrowed


def _row(row: Sequence[Span], widths: Sequence[int], gap: str) -> Line:
    spans: list[Span] = []
    for cell, width in zip(row, widths, strict=True):
        shown = cell if columns(cell.text) <= width else Span(cut(cell.text, width), cell.style)
        spans += [shown, Span(" " * (width - columns(shown.text)) + gap)]
    return tuple(spans)
