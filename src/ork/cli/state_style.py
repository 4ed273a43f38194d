"""The glyph and colour of each status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ork.cli.paint import Span
from ork.model.quarantine import SET_ASIDE

if TYPE_CHECKING:
    from ork.model.run import Run

_STYLES = {
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
    symbol, style = _STYLES[state]
    return Span(symbol, style)


def status_span(state: str) -> Span:
    """Glyph and status text, so that colour is never the only sign."""
    return Span(state_text(state), style_of(state))


def run_status_span(run: Run) -> Span:
    """Like `status_span`; a quarantined or damaged run is shown as such instead."""
    if run.status == "paused" and (run.note or "").startswith(SET_ASIDE):
        return status_span("set aside")
    return status_span("unreadable" if run.unreadable else run.status)


def state_text(state: str) -> str:
    return f"{_STYLES[state][0]} {state}"


def style_of(state: str) -> str:
    return _STYLES[state][1]
