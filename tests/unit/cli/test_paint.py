from __future__ import annotations

import io

import pytest

from ork.cli.paint import NAME, Palette, Span, fit, line, plain
from ork.cli.tables import table
from ork.terminal import wants_colour


def test_without_colour_a_line_is_its_text() -> None:
    assert Palette(False, 80).render(line("a ", Span("b", "bad"), "  ")) == "a b"


def test_with_colour_only_styled_spans_get_codes() -> None:
    assert Palette(True, 80).render(line("a ", Span("b", "bad"), Span("", "good"))) == "a \x1b[31mb\x1b[0m"


def test_a_line_too_long_ends_in_an_ellipsis_within_the_width() -> None:
    assert plain(fit(line("abc", Span("defgh", "bad")), 6)) == "abcde…"


def test_a_line_of_wide_letters_is_cut_by_columns() -> None:
    assert plain(fit(line("日本語の文"), 5)) == "日本…"


def test_where_there_is_little_room_bars_and_names_give_way_to_numbers() -> None:
    name = Span("a_name_of_thirty_characters_xx".ljust(34), NAME)
    assert plain(fit(line("  ▶ ", name, "41.0s"), 41)) == "  ▶ a_name_of_thirty_characters_xx  41.0s"
    assert plain(fit(line("  ▶ ", name, "41.0s"), 31)) == "  ▶ a_name_of_thirty_ch…  41.0s"
    bar = Span("█" * 20, "good"), Span("░" * 8, "dim")
    assert plain(fit(line("  ", *bar, "  881 of 1,204 · 4m 12s"), 39)).endswith("  881 of 1,204 · 4m 12s")


def test_lines_are_written_in_one_piece() -> None:
    out = io.StringIO()
    Palette(False, 80).write(out, [line("a"), line("b")])
    assert out.getvalue() == "a\nb\n"


def test_table_columns_are_as_wide_as_their_widest_cell() -> None:
    lines = [plain(row) for row in table(("run", "workflow"), [("7f3k", "x"), ("8", Span("longer", "bad"))])]
    assert lines == ["run    workflow", "7f3k   x", "8      longer"]


@pytest.mark.parametrize(
    ("environment", "terminal", "colour"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, False),
    ],
)
def test_colour_follows_the_terminal_and_the_wishes_in_the_environment(
    environment: dict[str, str], terminal: bool, colour: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert wants_colour(terminal) is colour
