"""How states look: a glyph and a colour, always with the word beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ork.cli.paint import Span
from ork.model.quarantine import SET_ASIDE

if TYPE_CHECKING:
    from ork.model.run import Run

_LOOKS = {
    "success": ("✓", "good"),
    "failed": ("✗", "bad"),
    "lost": ("✗", "bad"),
    "timed_out": ("✗", "bad"),
    "skipped": ("⊘", "dim"),
    "cancelled": ("⊘", "wait"),
    "running": ("▶", "busy"),
    "dispatched": ("▷", "busy"),
    "pending": ("◷", "dim"),
    "paused": ("‖", "wait"),
    "unreadable": ("✗", "bad"),
    "set aside": ("✗", "bad"),
}


def glyph(state: str) -> Span:
    symbol, style = _LOOKS[state]
    return Span(symbol, style)


def state_word(state: str) -> Span:
    """Glyph and word together: a state is never told by colour alone."""
    return Span(state_text(state), style_of(state))


def run_word(run: Run) -> Span:
    """A run that was set aside, or whose row is damaged, says so instead of its status."""
    if run.status == "paused" and (run.note or "").startswith(SET_ASIDE):
        return state_word("set aside")
    return state_word("unreadable" if run.unreadable else run.status)


def state_text(state: str) -> str:
    return f"{_LOOKS[state][0]} {state}"


def style_of(state: str) -> str:
    return _LOOKS[state][1]
