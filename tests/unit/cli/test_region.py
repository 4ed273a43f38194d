from __future__ import annotations

import io

import pytest

from ork.cli.paint import Palette, line
from ork.cli.region import CLEAR_BELOW, HIDE_CURSOR, SHOW_CURSOR, Region


def region(out: io.StringIO, width: int = 80) -> Region:
    return Region(out, Palette(False, width), lambda: width)


def test_lasting_lines_are_written_once_and_moving_ones_replaced() -> None:
    out = io.StringIO()
    with region(out) as screen:
        screen.draw([], [line("a"), line("b")])
        screen.draw([line("done")], [line("c")])
    assert out.getvalue() == (f"{HIDE_CURSOR}a\nb\n\x1b[2A\r{CLEAR_BELOW}done\nc\n\x1b[1A\r{CLEAR_BELOW}{SHOW_CURSOR}")


def test_the_cursor_is_shown_again_whatever_happens() -> None:
    out = io.StringIO()

    def fail() -> None:
        with region(out) as screen:
            screen.draw([], [line("a")])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert out.getvalue().endswith(SHOW_CURSOR)


def test_a_narrower_window_is_cleaned_of_the_rows_its_lines_wrapped_into() -> None:
    out = io.StringIO()
    width = 80
    screen = Region(out, Palette(False, 80), lambda: width)
    screen.draw([], [line("x" * 79), line("y")])
    width = 40
    screen.draw([], [])
    assert f"\x1b[3A\r{CLEAR_BELOW}" in out.getvalue()


def test_the_alternate_screen_is_never_used() -> None:
    out = io.StringIO()
    with region(out) as screen:
        screen.draw([line("a")], [line("b")])
    assert "\x1b[?1049h" not in out.getvalue()
