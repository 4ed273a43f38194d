"""Schedulers that a person has paused or drains, in words and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from ork.model.installation import ALL_SCHEDULERS, Control, control_for
from ork.model.run import SchedulerEntry
from ork.status.shapes import time_json
from ork.status.words import ago


def control_words(control: Control, now: datetime) -> str:
    """Who did what, when and why, and how to undo it."""
    is_all = control.target == ALL_SCHEDULERS
    what = "the installation is" if is_all else f"{control.target} is"
    reason = f" ({control.reason})" if control.reason else ""
    undo = f"ork scheduler resume {'--all' if is_all else control.target}"
    return f"{what} {control.mode} since {ago(control.at, now)}, by {control.by}{reason}: nothing new starts; `{undo}`"


def controls_of_run(
    controls: Sequence[Control], owner: str | None, schedulers: Iterable[SchedulerEntry]
) -> list[Control]:
    """Those that keep a run from going on: its owner's, or, where it has none, those of all schedulers there are."""
    entries = [entry for entry in schedulers if owner is None or entry.id == owner]
    found = [control_for(controls, entry.id, entry.identity) for entry in entries]
    held = [control for control in found if control is not None]
    if entries and len(held) == len(entries):
        return list(dict.fromkeys(held))
    return [control for control in controls if control.target == ALL_SCHEDULERS]


def control_json(control: Control) -> dict[str, Any]:
    return {
        "target": control.target,
        "mode": control.mode.value,
        "by": control.by,
        "at": time_json(control.at),
        "reason": control.reason,
    }
