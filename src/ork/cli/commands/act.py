"""`ork cancel`, `pause`, `resume` and `retry`: what a person may ask of a run."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

import click

from ork.cli.errors import DONE
from ork.cli.session import json_option, look, now, print_json, store_options
from ork.errors import NotFoundError, RefusedError

if TYPE_CHECKING:
    from ork.app import Installation
    from ork.model.ids import RunId
    from ork.model.run import Run, RunCommand, SchedulerEntry
    from ork.status.ids import Target

SAID = {
    "cancel": "run {run} is being cancelled",
    "pause": "run {run} starts nothing new",
    "resume": "run {run} goes on",
    "retry": "run {run} runs again what did not succeed",
}


@click.command(name="cancel")
@click.argument("run")
@json_option
@store_options
def cancel_command(run: str, as_json: bool) -> int:
    """Stop a run and everything it runs. Tasks that had succeeded keep their success.

    If no scheduler is running here, this process itself stops what is left.

    \b
    Example:  ork cancel 7f3k
    """
    asked = _ask(run, "cancel", as_json)
    if asked.is_served:
        return DONE
    from ork.cli.commands.run import finish_quietly

    finish_quietly(asked.run.id)
    return DONE


@click.command(name="pause")
@click.argument("run")
@json_option
@store_options
def pause_command(run: str, as_json: bool) -> None:
    """Start nothing new in a run; what runs goes on to its end.

    \b
    Example:  ork pause 7f3k
    """
    _ask(run, "pause", as_json)


@click.command(name="resume")
@click.argument("run")
@json_option
@store_options
def resume_command(run: str, as_json: bool) -> None:
    """Go on with a paused run.

    \b
    Example:  ork resume 7f3k
    """
    _ask(run, "resume", as_json)


@click.command(name="retry")
@click.argument("run")
@click.option("--task", metavar="TASK", help="Only this task and what is below it.")
@click.option("--all", "everything", is_flag=True, help="Every task, also those that succeeded.")
@click.option("--detach", is_flag=True, help="Only ask for it; some scheduler will do the work.")
@json_option
@store_options
def retry_command(run: str, task: str | None, everything: bool, detach: bool, as_json: bool) -> int:
    """Run again what did not succeed in a run that has ended.

    A scheduler that serves this store does the work; if there is none, this process does, and shows how it goes.

    \b
    Example:  ork retry 7f3k --task transform
    """
    asked = _ask(run, "retry", as_json, task=task, everything=everything)
    if detach or asked.is_served_lastingly:
        return DONE
    from ork.cli.commands.run import go_on

    return go_on(asked.run.id, quietly=as_json)


class _Asked(NamedTuple):
    run: Run
    short: str
    schedulers: tuple[SchedulerEntry, ...]

    @property
    def is_served(self) -> bool:
        return bool(self.schedulers)

    @property
    def is_served_lastingly(self) -> bool:
        """By a scheduler that does not leave when some other run has ended."""
        return any(entry.kind == "scheduler" for entry in self.schedulers)


def _ask(run: str, kind: str, as_json: bool, task: str | None = None, everything: bool = False) -> _Asked:
    asked = look(lambda installation: _submit(installation, run, kind, task, everything))
    if as_json:
        from ork.status.shapes import run_json

        print_json({"accepted": kind, "run": run_json(asked.run)})
        sys.stdout.flush()
        return asked
    print(SAID[kind].format(run=asked.short), flush=True)
    if asked.is_served:
        print(f"  ork watch {asked.short}", file=sys.stderr)
    elif kind in ("pause", "resume"):
        print("  no scheduler is running here: `ork scheduler` or `ork tick` carries it out", file=sys.stderr)
    return asked


async def _submit(installation: Installation, run: str, kind: str, task: str | None, everything: bool) -> _Asked:
    from ork.model.run import CommandKind, RunCommand
    from ork.state.store import Accepted, TooLate
    from ork.status.ids import parse_target, resolve_run, short_id
    from ork.status.serving import live_schedulers

    store = installation.store
    target = parse_target(run, task)
    found = await resolve_run(store, target.run)
    if target.task is not None:
        await _check_task(installation, found, target)
    command = RunCommand(found, CommandKind(kind), by=who_asks(), task=target.task, everything=everything)
    answer = await store.submit_command(command, now())
    short = await short_id(store, found)
    match answer:
        case Accepted(run=row):
            return _Asked(row, short, tuple(await live_schedulers(store, None)))
        case TooLate(run=row):
            raise _refusal(command, row, short)
        case None:
            raise NotFoundError(f"no run `{run}`", hint="`ork runs` lists them")


async def _check_task(installation: Installation, run: RunId, target: Target) -> None:
    from ork.status.follow import open_view
    from ork.status.ids import pick_tasks

    view, _ = await open_view(installation.store, run)
    pick_tasks(view.tasks, target)


def _refusal(command: RunCommand, run: Run, short: str) -> RefusedError:
    hint = f"ork show {short}"
    if run.status.is_final:
        hint = f"ork retry {short}"
    elif command.kind == "retry":
        hint = f"wait for its end, or `ork cancel {short}`"
    return RefusedError(f"cannot {command.kind} run {short}: it is {run.status}", hint=hint)


def who_asks() -> str:
    """The person's login name, for the record."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"
