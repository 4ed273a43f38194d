"""`ork scheduler pause|resume|drain|list`: maintenance of one scheduler, one host or the whole installation."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

import click

from ork.cli.session import current_user, json_option, now, palette, print_json, run_short, store_options
from ork.errors import RefusedError, UsageError
from ork.model.installation import ALL_SCHEDULERS, Control, Mode, control_for, host_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ork.app.installation import Installation
    from ork.model.installation import Control
    from ork.model.run import SchedulerEntry

POLL_SECONDS = 0.5

_target = click.argument("target", required=False, metavar="[ID|HOST]")
_all = click.option("--all", "is_all", is_flag=True, help="The whole installation, including schedulers started later.")
_reason = click.option("--reason", metavar="TEXT", help="Shown by `ork status` and `ork why`.")


@click.command(name="pause")
@_target
@_all
@_reason
@json_option
@store_options
def pause_command(target: str | None, is_all: bool, reason: str | None, as_json: bool) -> None:
    """Start no new tasks and fire no schedules; running tasks are watched to their end. Lasts until `resume`, across restarts.

    Takes a scheduler's id or a host name, as shown by `ork scheduler list`. Other schedulers take over its runs.

    \b
    Example:  ork scheduler pause --all --reason "database upgrade"
    """
    _set(target, is_all, Mode.PAUSED, reason, as_json)


@click.command(name="drain")
@_target
@_all
@_reason
@click.option("--wait", "waits", is_flag=True, help="Return when none of their tasks is running.")
@json_option
@store_options
def drain_command(target: str | None, is_all: bool, reason: str | None, waits: bool, as_json: bool) -> None:
    """Like pause, and take over no runs. A scheduler drained by ID exits when done; drained by host or --all, it waits.

    \b
    Example:  ork scheduler drain host-b --wait
    """
    where = _set(target, is_all, Mode.DRAINING, reason, as_json)
    while waits and (left := run_short(lambda installation: _busy(installation, where))):
        if not as_json:
            print(f"waiting for {left}", file=sys.stderr)
        time.sleep(POLL_SECONDS)
    if waits and not as_json:
        print("drained")


@click.command(name="resume")
@_target
@_all
@json_option
@store_options
def resume_command(target: str | None, is_all: bool, as_json: bool) -> None:
    """End a pause or a drain. Missed times of schedules are handled by their `catchup`.

    \b
    Example:  ork scheduler resume --all
    """
    where = run_short(lambda installation: _resume(installation, _chosen(target, is_all)))
    if as_json:
        print_json({"target": where, "mode": None})
    else:
        print(f"{_named(where)} is resumed")


@click.command(name="list")
@json_option
@store_options
def list_command(as_json: bool) -> None:
    """List schedulers with their ids and hosts, and pauses.

    \b
    Example:  ork scheduler list
    """
    from ork.cli.paint import line
    from ork.cli.tables import table
    from ork.status.controls import control_json, control_text
    from ork.status.formatting import ago
    from ork.status.schedulers import Liveness, liveness, unverified_text

    entries, controls = run_short(_read)
    rows = []
    for entry in entries:
        control = control_for(controls, entry.id, entry.identity)
        state = "working" if control is None else control.mode.value
        if liveness(entry) is Liveness.UNVERIFIED:
            state = unverified_text(entry) if control is None else f"{state}; {unverified_text(entry)}"
        rows.append(
            (entry.id, host_of(entry.identity), entry.kind, ago(entry.started_at, now()), f"{entry.active_runs}", state)
        )
    if as_json:
        names = ("id", "host", "kind", "started", "runs", "state")
        shown = [
            {**dict(zip(names, row, strict=True)), "liveness": liveness(entry)}
            for entry, row in zip(entries, rows, strict=True)
        ]
        print_json({"schedulers": shown, "controls": [control_json(control) for control in controls]})
        return
    lines = [line(control_text(control, now())) for control in controls]
    lines += table(("id", "host", "kind", "started", "runs", "state"), rows) if rows else [line("none is running")]
    palette(sys.stdout).write(sys.stdout, lines)


def _set(target: str | None, is_all: bool, mode: Mode, reason: str | None, as_json: bool) -> str:
    from ork.status.controls import find_target

    asked = _chosen(target, is_all)

    async def change(installation: Installation) -> str:
        where = find_target((await _read(installation))[0], asked)
        await installation.store.set_control(Control(where, mode, current_user(), now(), reason))
        action = "scheduler.pause" if mode is Mode.PAUSED else "scheduler.drain"
        await installation.record(current_user(), action, where, reason and json.dumps({"reason": reason}))
        return where

    where: str = run_short(change, creates=True)
    if as_json:
        print_json({"target": where, "mode": mode.value, "reason": reason})
    else:
        print(f"{_named(where)} is {mode.value}; `ork scheduler resume {'--all' if is_all else where}` ends this")
    return where


async def _resume(installation: Installation, asked: str) -> str:
    from ork.status.controls import find_control_target

    controls = await installation.store.list_controls()
    found = find_control_target(controls, asked)
    if found is None:
        others = f"; paused are: {', '.join(control.target for control in controls)}" if controls else ""
        raise RefusedError(f"{_named(asked)} is not paused{others}", hint="ork scheduler list")
    await installation.store.clear_control(found)
    await installation.record(current_user(), "scheduler.resume", found)
    return found


def _chosen(target: str | None, is_all: bool) -> str:
    if (target is None) == (not is_all):
        raise UsageError("name a scheduler, or --all", hint="`ork scheduler list` shows ids and hosts")
    return target or ALL_SCHEDULERS


async def _read(installation: Installation) -> tuple[Sequence[SchedulerEntry], Sequence[Control]]:
    from ork.status.schedulers import present_schedulers

    return await present_schedulers(installation.store, None), await installation.store.list_controls()


async def _busy(installation: Installation, where: str) -> str | None:
    """The schedulers that still own runs, or have not exited yet, as text."""
    entries, _ = await _read(installation)
    mine = [entry for entry in entries if where in (ALL_SCHEDULERS, entry.id, host_of(entry.identity))]
    left = [entry for entry in mine if entry.active_runs or entry.id == where]
    return ", ".join(f"{entry.id} ({_activity(entry)})" for entry in left) or None


def _activity(entry: SchedulerEntry) -> str:
    from ork.status.schedulers import Liveness, liveness, unverified_text

    return unverified_text(entry) if liveness(entry) is Liveness.UNVERIFIED else f"{entry.active_runs} runs"


def _named(target: str) -> str:
    return "the installation" if target == ALL_SCHEDULERS else target


COMMANDS: Sequence[click.Command] = (pause_command, resume_command, drain_command, list_command)
