"""`ork cancel`, `pause`, `resume` and `retry`: what a person may ask of a run."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

import click

from ork.cli.errors import DONE
from ork.cli.naming import run_argument
from ork.cli.session import json_option, look, now, print_json, store_options
from ork.errors import NotFoundError

if TYPE_CHECKING:
    from ork.app import Installation
    from ork.model.ids import TaskKey
    from ork.model.run import Run, SchedulerEntry
    from ork.status.follow import RunView
    from ork.status.ids import Target

NOBODY_YET = "no scheduler is running: `ork tick` or `ork scheduler` carries it out"
SAID = {
    "cancel": "run {run} is being cancelled",
    "pause": "run {run} starts nothing new",
    "resume": "run {run} goes on",
    "retry": "run {run} runs again what did not succeed",
    "retry task": "run {run} runs {task} again, and what is below it",
    "retry all": "run {run} runs everything again",
    "approve": "{task} of run {run} is approved",
    "reject": "{task} of run {run} is rejected",
    "declare-dead": "{task} of run {run} is declared dead",
}


@click.command(name="cancel")
@run_argument
@json_option
@store_options
def cancel_command(run: str, as_json: bool) -> int:
    """Stop a run and everything it runs. Tasks that had succeeded keep their success.

    If no scheduler is running here, this process itself stops what is left.

    \b
    Example:  ork cancel 7f3k
    """
    asked = ask(run, Wish("cancel"), as_json)
    if asked.is_served:
        return DONE
    from ork.cli.commands.run import finish_quietly

    finish_quietly(asked.run.id)
    return DONE


@click.command(name="pause")
@run_argument
@json_option
@store_options
def pause_command(run: str, as_json: bool) -> None:
    """Start nothing new in a run; what runs goes on to its end.

    \b
    Example:  ork pause 7f3k
    """
    ask(run, Wish("pause"), as_json)


@click.command(name="resume")
@run_argument
@json_option
@store_options
def resume_command(run: str, as_json: bool) -> None:
    """Go on with a paused run.

    \b
    Example:  ork resume 7f3k
    """
    ask(run, Wish("resume"), as_json)


@click.command(name="retry")
@run_argument
@click.option("--task", metavar="TASK", help="Only this task, or instance TASK[3], and what is below it.")
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
    asked = ask(run, Wish("retry", task, everything=everything), as_json, detach=detach)
    if detach or asked.is_served_lastingly:
        return DONE
    from ork.cli.commands.run import go_on

    return go_on(asked.run.id, quietly=as_json)


class Wish(NamedTuple):
    """What a person asks of a run; see `ork.model.run.RunCommand`. `choose` says which task is meant, or refuses."""

    kind: str
    task: str | None = None
    everything: bool = False
    comment: str | None = None
    choose: Callable[[RunView, Target], str | None] | None = None
    check: Callable[[Installation, RunView, TaskKey], Awaitable[None]] | None = None  # or refuses, having looked closer


class Asked(NamedTuple):
    run: Run
    short: str
    task: str | None
    schedulers: tuple[SchedulerEntry, ...]  # those that are certainly alive
    is_expected: bool  # a scheduler is alive, or may be
    can_work: bool  # whether this process could do it itself

    @property
    def is_served(self) -> bool:
        return bool(self.schedulers) or not self.can_work

    @property
    def is_served_lastingly(self) -> bool:
        """By a scheduler that does not leave when some other run has ended."""
        return any(entry.kind == "scheduler" for entry in self.schedulers) or not self.can_work


def ask(run: str, wish: Wish, as_json: bool, *, detach: bool = False) -> Asked:
    """Asks, and says what comes of it; with `detach` this process will not carry it out itself."""
    asked = look(lambda installation: _submit(installation, run, wish))
    if as_json:
        from ork.status.shapes import run_json

        print_json({"accepted": wish.kind, "run": run_json(asked.run)})
        sys.stdout.flush()
        return asked
    if asked.can_work and not asked.is_expected and (detach or wish.kind in ("pause", "resume")):
        of = " of everything" if wish.everything else f" of {asked.task}" if asked.task else ""
        print(f"run {asked.short}: {wish.kind}{of} asked for; {NOBODY_YET}", flush=True)
        return asked
    print(SAID[_kind_of(wish)].format(run=asked.short, task=asked.task), flush=True)
    if asked.is_served:
        print(f"  ork watch {asked.short}", file=sys.stderr)
    return asked


def _kind_of(wish: Wish) -> str:
    if wish.everything:
        return f"{wish.kind} all"
    return "retry task" if wish.kind == "retry" and wish.task is not None else wish.kind


async def _submit(installation: Installation, run: str, wish: Wish) -> Asked:
    from ork.model.ids import TaskKey
    from ork.model.run import CommandKind, RunCommand
    from ork.state.store import Accepted, TooLate
    from ork.status.damage import check_readable
    from ork.status.follow import open_view
    from ork.status.ids import parse_target, resolve_run, short_id
    from ork.status.refusals import check_retry, too_late
    from ork.status.serving import live_schedulers, present_schedulers

    store = installation.store
    target = parse_target(run, wish.task)
    found = await resolve_run(store, target.run)
    task = None
    if target.task is not None or wish.choose is not None:
        from ork.status.questions import check_approver, named_task

        view, _ = await open_view(store, found)
        task = (wish.choose or named_task)(view, target)
        if wish.check is not None and target.task is not None:
            await wish.check(installation, view, TaskKey(target.task, target.instance))
        if wish.kind == "approve" and task is not None:
            await check_approver(store, view, task, who_asks())
    command = RunCommand(found, CommandKind(wish.kind), who_asks(), task, wish.everything, wish.comment)
    short = await short_id(store, found)
    before = await store.get_run(found)
    check_retry(command, before, short)
    if installation.can_work:  # else the server looks
        await check_readable(store, command, before, short)
    answer = await store.submit_command(command, now())
    match answer:
        case Accepted(run=row):
            detail = json.dumps({"task": task}) if task else None
            await installation.record(who_asks(), f"run.{wish.kind}", found, detail)
            served_by = tuple(await live_schedulers(store, None))
            is_expected = bool(await present_schedulers(store, None))
            return Asked(row, short, task, served_by, is_expected, installation.can_work)
        case TooLate(run=row):
            raise too_late(command, row, short)
        case None:
            raise NotFoundError(f"no run `{run}`", hint="`ork runs` lists them")


def who_asks() -> str:
    """The person's login name, for the record."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"
