"""Tables fit the terminal they are printed on, and are whole everywhere else."""

from __future__ import annotations

import sys

import pytest

from ork.cli import tables
from ork.cli.paint import plain

TITLES = ("workflow", "schedule", "catchup", "next", "here")
ROWS = [("morning_report", "30 6 * * * Europe/Prague", "last", "Tue 2026-11-17 06:30:00 CET", "2026-11-17 05:30:00")]


class Terminal:
    def isatty(self) -> bool:
        return True


def shown(monkeypatch: pytest.MonkeyPatch, width: int | None) -> list[str]:
    if width is not None:
        monkeypatch.setattr(sys, "stdout", Terminal())
        monkeypatch.setattr(tables, "terminal_width", lambda _stream: width)
    return [plain(row) for row in tables.table(TITLES, ROWS, less=(2, 4))]


def test_a_table_that_is_no_terminal_has_all_its_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, None)[1].split("   ")[0] == "morning_report"
    assert all(cell in shown(monkeypatch, None)[1] for cell in ROWS[0])


@pytest.mark.parametrize(("width", "last"), [(100, "here"), (80, "next"), (60, "next"), (45, "next")])
def test_on_a_terminal_columns_are_left_out_and_then_cut_but_never_wrap(
    monkeypatch: pytest.MonkeyPatch, width: int, last: str
) -> None:
    head, row = shown(monkeypatch, width)
    assert max(len(head), len(row)) <= width
    assert head.split()[-1] == last
    assert row.startswith("morning_report  30 6")
