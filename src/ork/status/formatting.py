"""Formats durations, times and counts as text."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ork.model.task import Attempt


def duration(seconds: float) -> str:
    """0.2s, 12.1s, 4m 12s, 2h 5m, 3d 4h."""
    seconds = max(seconds, 0.0)
    if seconds < 59.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 3600:
        return _pair(whole, 60, "m", 1, "s")
    if whole < 86400:
        return _pair(whole, 3600, "h", 60, "m")
    return _pair(whole, 86400, "d", 3600, "h")


def _pair(whole: int, large: int, large_unit: str, small: int, small_unit: str) -> str:
    rest = whole % large // small
    return f"{whole // large}{large_unit}" + (f" {rest}{small_unit}" if rest else "")


def rough(seconds: float) -> str:
    """A duration in a single unit, for estimates: 40s, 2m, 3h, 5d."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{round(seconds / size)}{unit}"
    return f"{max(round(seconds), 0)}s"


def ago(time: datetime | None, now: datetime) -> str:
    """`just now`, `5m ago`, `in 40s`; a dash for None."""
    if time is None:
        return "–"
    seconds = (now - time).total_seconds()
    if abs(seconds) < 1:
        return "just now"
    return f"{rough(seconds)} ago" if seconds > 0 else f"in {rough(-seconds)}"


def between(start: datetime | None, end: datetime | None) -> str:
    if start is None or end is None:
        return "–"
    return duration((end - start).total_seconds())


def clock_time(time: datetime, now: datetime) -> str:
    """Local time of day, with the date if it is not today."""
    local, today = time.astimezone(), now.astimezone()
    return local.strftime("%H:%M:%S" if local.date() == today.date() else "%Y-%m-%d %H:%M:%S")


def slot_time(time: datetime, timezone: str | None) -> str:
    """The time that a scheduled run is for, in the schedule's time zone, or in UTC if that is unknown."""
    from zoneinfo import ZoneInfo

    return f"{time.astimezone(ZoneInfo(timezone or 'UTC')):%a %Y-%m-%d %H:%M %Z}"


def argument(name: object) -> str:
    """A task's name quoted for a shell, which would treat `load[3]` as a pattern."""
    text = str(name)
    return f"'{text}'" if "[" in text else text


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def metrics_text(attempt: Attempt | None) -> str:
    """`rows=12 seconds=0.5`, in the order in which the task set them."""
    values = (attempt.metrics or {}) if attempt is not None else {}
    return " ".join(
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in values.items()
    )


def ran_in_text(attempt: Attempt) -> str:
    """The attempt's external name, process or container, and image."""
    facts = attempt.ran_in or {}
    parts = [attempt.external_name]
    if "pid" in facts and "container" not in facts:
        parts.append(f"pid {facts['pid']} on {facts.get('host', 'an unknown host')}")
    if "container" in facts:
        on = f" on {str(facts['engine']).rpartition('@')[2]}" if facts.get("engine") else ""
        parts.append(f"container {str(facts['container'])[:12]}{on}")
    image = facts.get("digest") or facts.get("image")
    if image:
        parts.append(f"image {image}")
    return " · ".join(part for part in parts if part)
