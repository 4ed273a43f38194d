"""Columns of aligned text."""

from __future__ import annotations

from collections.abc import Sequence

from ork.cli.paint import Line, Span
from ork.cli.visible import columns

GAP = "   "


def table(titles: Sequence[str], rows: Sequence[Sequence[Span | str]]) -> list[Line]:
    """Each column as wide as its widest cell; ids and names are never cut."""
    cells = [[Span(title, "dim") for title in titles]]
    cells += [[cell if isinstance(cell, Span) else Span(cell) for cell in row] for row in rows]
    widths = [max(columns(row[place].text) for row in cells) for place in range(len(titles))]
    return [_row(row, widths) for row in cells]


def _row(row: Sequence[Span], widths: Sequence[int]) -> Line:
    spans: list[Span] = []
    for cell, width in zip(row, widths, strict=True):
        spans += [cell, Span(" " * (width - columns(cell.text)) + GAP)]
    return tuple(spans)
