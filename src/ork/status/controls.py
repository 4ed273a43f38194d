"""Paused and draining schedulers: finds the target that a person named, and shows controls as text and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from ork.errors import NotFoundError, UsageError
from ork.model.installation import ALL_SCHEDULERS, Control, control_for, host_name, host_of
from ork.model.run import SchedulerEntry
from ork.status.formatting import ago
from ork.status.shapes import time_json


def find_target(schedulers: Iterable[SchedulerEntry], asked: str) -> str:
    """The target of a new control. `asked` is a host, with or without its machine id, or a prefix of a scheduler's id."""
    if asked == ALL_SCHEDULERS:
        return asked
    entries = list(schedulers)
    hosts = sorted({host_of(entry.identity) for entry in entries})
    if asked in hosts:
        return asked
    machines = [host for host in hosts if host_name(host) == asked]
    if len(machines) > 1:
        raise UsageError(f"several machines are called {asked}", hint=f"name one of: {', '.join(machines)}")
    if machines:
        return machines[0]
    found = [entry.id for entry in entries if entry.id.startswith(asked)]
    if asked not in found and len(found) > 1:
        raise UsageError(f"{asked} is the beginning of several ids", hint=f"name one of: {', '.join(found)}")
    if not found:
        raise NotFoundError(
            f"no scheduler and no host is called {asked}",
            hint="`ork scheduler list` and GET /api/v1/schedulers show ids and hosts",
        )
    return asked if asked in found else found[0]


def find_control_target(controls: Iterable[Control], asked: str) -> str | None:
    """The target of an existing control, named as in `find_target`; its schedulers may be gone. None if there is none."""
    targets = [control.target for control in controls]
    found = [target for target in targets if target == asked]
    if not found and asked != ALL_SCHEDULERS:
        found = [target for target in targets if host_name(target) == asked]
        found = found or [target for target in targets if target.startswith(asked)]
    if len(found) > 1:
        raise UsageError(f"{asked} matches several paused schedulers", hint=f"name one of: {', '.join(found)}")
    return found[0] if found else None


def control_text(control: Control, now: datetime) -> str:
    """One sentence: who paused what, when and why, and the command that undoes it."""
    is_all = control.target == ALL_SCHEDULERS
    what = "the installation is" if is_all else f"{control.target} is"
    reason = f" ({control.reason})" if control.reason else ""
    undo = f"ork scheduler resume {'--all' if is_all else control.target}"
    return f"{what} {control.mode} since {ago(control.at, now)}, by {control.by}{reason}: nothing new starts; `{undo}`"


def controls_of_run(
    controls: Sequence[Control], owner: str | None, schedulers: Iterable[SchedulerEntry]
) -> list[Control]:
    """The controls that hold a run: its owner's, or, if it has no owner, those of all schedulers if each has one."""
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
