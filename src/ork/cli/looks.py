"""How states look: a glyph and a colour, always with the word beside it."""

from __future__ import annotations

from ork.cli.paint import Span

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
}


def glyph(state: str) -> Span:
    symbol, style = _LOOKS[state]
    return Span(symbol, style)


def state_word(state: str) -> Span:
    """Glyph and word together: a state is never told by colour alone."""
    return Span(state_text(state), style_of(state))


def state_text(state: str) -> str:
    return f"{_LOOKS[state][0]} {state}"


def style_of(state: str) -> str:
    return _LOOKS[state][1]
