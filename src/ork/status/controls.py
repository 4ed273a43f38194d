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


def find_target(schedulers: Iterable[SchedulerEntry], name: str) -> str:
    """The target of a new control. `name` is a host, with or without its machine id, or a prefix of a scheduler's id."""
    if name == ALL_SCHEDULERS:
        return name
    entries = list(schedulers)
    hosts = sorted({host_of(entry.identity) for entry in entries})
    if name in hosts:
        return name
    machines = [host for host in hosts if host_name(host) == name]
    if len(machines) > 1:
        raise UsageError(f"several machines are called {name}", hint=f"name one of: {', '.join(machines)}")
    if machines:
        return machines[0]
    found = [entry.id for entry in entries if entry.id.startswith(name)]
    if name not in found and len(found) > 1:
        raise UsageError(f"{name} matches several ids", hint=f"name one of: {', '.join(found)}")
    if not found:
        raise NotFoundError(
            f"no scheduler and no host is called {name}",
            hint="`ork scheduler list` and GET /api/v1/schedulers show ids and hosts",
        )
    return name if name in found else found[0]


def find_control_target(controls: Iterable[Control], name: str) -> str | None:
    """The target of an existing control, named as in `find_target`; its schedulers may be gone. None if there is none."""
    targets = [control.target for control in controls]
    found = [target for target in targets if target == name]
    if not found and name != ALL_SCHEDULERS:
        found = [target for target in targets if host_name(target) == name]
        found = found or [target for target in targets if target.startswith(name)]
    if len(found) > 1:
        raise UsageError(f"{name} matches several paused schedulers", hint=f"name one of: {', '.join(found)}")
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
