"""Draws when each attempt waited and ran, as bars."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from html import escape
from typing import NamedTuple

from ork.cli.paint import shorten, style_of, visible
from ork.model.task import Attempt
from ork.status.formatting import duration

MOST_ROWS = 200
_ROW, _BAR, _LABEL, _WIDTH, _HEAD = 20, 12, 220, 1050, 24
_LONGEST_LABEL = 26
_TICKS = 6
_STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 86400)


class TimeRange(NamedTuple):
    """The time range of the timeline."""

    start: datetime
    end: datetime

    @property
    def seconds(self) -> float:
        return max((self.end - self.start).total_seconds(), 0.001)

    def x(self, time: datetime) -> float:
        share = (time - self.start).total_seconds() / self.seconds
        return _LABEL + min(max(share, 0.0), 1.0) * (_WIDTH - _LABEL)


def chosen(attempts: Sequence[Attempt]) -> list[Attempt]:
    """At most MOST_ROWS attempts, preferring unsuccessful and then long ones, in their original order."""
    if len(attempts) <= MOST_ROWS:
        return list(attempts)
    ranked = sorted(range(len(attempts)), key=lambda place: _rank(attempts[place]))
    return [attempts[place] for place in sorted(ranked[:MOST_ROWS])]


def draw_timeline(attempts: Sequence[Attempt], span: TimeRange) -> str:
    height = _HEAD + len(attempts) * _ROW + 4
    rows = [_row(attempt, _HEAD + number * _ROW, span) for number, attempt in enumerate(attempts)]
    return (
        f'<svg class="timeline" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" role="img">'
        f"<title>Timeline</title>{''.join(_ticks(span, height))}{''.join(rows)}</svg>"
    )


def _rank(attempt: Attempt) -> tuple[bool, float]:
    started, finished = attempt.started_at, attempt.finished_at
    took = (finished - started).total_seconds() if started and finished else 0.0
    return attempt.status == "success", -took


def _ticks(span: TimeRange, height: int) -> list[str]:
    step = next((step for step in _STEPS if span.seconds / step <= _TICKS), span.seconds / _TICKS)
    drawn = []
    for number in range(int(span.seconds / step) + 1):
        x = _LABEL + number * step / span.seconds * (_WIDTH - _LABEL)
        label = f"{number * step:g}s" if number * step < 60 else duration(number * step)
        anchor = "end" if x > _WIDTH - 40 else "start"
        drawn.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_HEAD - 6}" y2="{height}"/>')
        drawn.append(f'<text class="tick" x="{x:.1f}" y="12" text-anchor="{anchor}">{label}</text>')
    return drawn


def _row(attempt: Attempt, top: int, span: TimeRange) -> str:
    started, finished = attempt.started_at, attempt.finished_at or span.end
    name = f"{attempt.key.task} · {attempt.key.number}" if attempt.key.number > 1 else str(attempt.key.task)
    label = escape(shorten(visible(name), _LONGEST_LABEL))
    bars = _bar(attempt.dispatched_at, started or finished, top, span, "queued")
    if started is not None:
        bars += _bar(started, finished, top, span, style_of(attempt.status))
    waited = duration(((started or finished) - attempt.dispatched_at).total_seconds())
    ran = duration((finished - started).total_seconds()) if started else "never"
    title = f"{attempt.key.task} attempt {attempt.key.number}: {attempt.status}, waited {waited}, ran {ran}"
    return f'<g><title>{escape(visible(title))}</title><text x="0" y="{top + _BAR - 1}">{label}</text>{bars}</g>'


def _bar(start: datetime, end: datetime, top: int, span: TimeRange, kind: str) -> str:
    left, right = span.x(start), span.x(end)
    return f'<rect class="{kind}" x="{left:.1f}" y="{top}" width="{max(right - left, 1):.1f}" height="{_BAR}" rx="2"/>'
