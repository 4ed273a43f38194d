"""`ork cancel`, `pause`, `resume` and `retry`: commands for a run."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

import click

from ork.cli.arguments import run_argument
from ork.cli.errors import DONE
from ork.cli.session import current_user, json_option, now, print_json, run_short, store_options
from ork.errors import NotFoundError

if TYPE_CHECKING:
    from ork.app.installation import Installation
    from ork.model.ids import TaskKey
    from ork.model.run import Run, SchedulerEntry
    from ork.status.ids import RunTarget
    from ork.status.run_view import RunView

NO_SCHEDULER_YET = "no scheduler is running: `ork tick` or `ork scheduler` carries it out"
CONFIRMATIONS = {
    "cancel": "run {run} is being cancelled",
    "pause": "run {run} starts nothing new",
    "resume": "run {run} continues",
    "retry": "run {run}: retrying failed tasks",
    "retry task": "run {run}: retrying {task} and everything downstream of it",
    "retry all": "run {run}: retrying all tasks",
    "approve": "{task} of run {run} is approved",
    "reject": "{task} of run {run} is rejected",
    "declare-dead": "{task} of run {run} is declared dead",
}


@click.command(name="cancel")
@run_argument
@json_option
@store_options
def cancel_command(run: str, as_json: bool) -> int:
    """Cancel a run and stop its tasks. Tasks that have succeeded stay successful.

    If no scheduler is running, this process stops the tasks itself.

    \b
    Example:  ork cancel 7f3k
    """
    submitted = submit(run, CommandRequest("cancel"), as_json)
    if submitted.is_served:
        return DONE
    from ork.cli.commands.run import finish_cancelled

    finish_cancelled(submitted.run.id)
    return DONE


@click.command(name="pause")
@run_argument
@json_option
@store_options
def pause_command(run: str, as_json: bool) -> None:
    """Start no new tasks of a run; running tasks continue.

    \b
    Example:  ork pause 7f3k
    """
    submit(run, CommandRequest("pause"), as_json)


@click.command(name="resume")
@run_argument
@json_option
@store_options
def resume_command(run: str, as_json: bool) -> None:
    """Continue a paused run.

    \b
    Example:  ork resume 7f3k
    """
    submit(run, CommandRequest("resume"), as_json)


@click.command(name="retry")
@run_argument
@click.option("--task", metavar="TASK", help="Only this task, or instance TASK[3], and everything downstream of it.")
@click.option("--all", "everything", is_flag=True, help="All tasks, including those that succeeded.")
@click.option("--detach", is_flag=True, help="Only submit the command; a scheduler does the work.")
@json_option
@store_options
def retry_command(run: str, task: str | None, everything: bool, detach: bool, as_json: bool) -> int:
    """Retry the tasks of a finished run that did not succeed.

    A scheduler service does the work; if none is running, this process does, and shows the progress.

    \b
    Example:  ork retry 7f3k --task transform
    """
    submitted = submit(run, CommandRequest("retry", task, everything=everything), as_json, detach=detach)
    if detach or submitted.has_service:
        return DONE
    from ork.cli.commands.run import continue_run

    return continue_run(submitted.run.id, quietly=as_json)


class CommandRequest(NamedTuple):
    """A command for a run, see `ork.model.run.RunCommand`. `choose` returns the task that it is for, or raises."""

    kind: str
    task: str | None = None
    everything: bool = False
    comment: str | None = None
    choose: Callable[[RunView, RunTarget], str | None] | None = None
    check: Callable[[Installation, RunView, TaskKey], Awaitable[None]] | None = None  # raises if not allowed


class Submitted(NamedTuple):
    run: Run
    short: str
    task: str | None
    schedulers: tuple[SchedulerEntry, ...]  # those that are certainly alive
    is_expected: bool  # a scheduler is alive, or may be
    can_work: bool  # whether this process can execute the command itself

    @property
    def is_served(self) -> bool:
        return bool(self.schedulers) or not self.can_work

    @property
    def has_service(self) -> bool:
        """Whether a scheduler service is running, which does not exit when its own run ends."""
        return any(entry.kind == "scheduler" for entry in self.schedulers) or not self.can_work


def submit(run: str, request: CommandRequest, as_json: bool, *, detach: bool = False) -> Submitted:
    """Submits the command and prints the result. With `detach` this process will not execute it itself."""
    submitted = run_short(lambda installation: _submit(installation, run, request))
    if as_json:
        from ork.status.shapes import run_json

        print_json({"accepted": request.kind, "run": run_json(submitted.run)})
        sys.stdout.flush()
        return submitted
    if submitted.can_work and not submitted.is_expected and (detach or request.kind in ("pause", "resume")):
        of = " of everything" if request.everything else f" of {submitted.task}" if submitted.task else ""
        print(f"run {submitted.short}: {request.kind}{of} requested; {NO_SCHEDULER_YET}", flush=True)
        return submitted
    print(CONFIRMATIONS[_kind_of(request)].format(run=submitted.short, task=submitted.task), flush=True)
    if submitted.is_served:
        print(f"  ork watch {submitted.short}", file=sys.stderr)
    return submitted


def _kind_of(request: CommandRequest) -> str:
    if request.everything:
        return f"{request.kind} all"
    return "retry task" if request.kind == "retry" and request.task is not None else request.kind


async def _submit(installation: Installation, run: str, request: CommandRequest) -> Submitted:
    from ork.model.ids import TaskKey
    from ork.model.run import CommandKind, RunCommand
    from ork.state.records import Accepted, TooLate
    from ork.status.damage import check_readable
    from ork.status.ids import parse_target, resolve_run, short_id
    from ork.status.refusals import check_retry, command_refused
    from ork.status.run_view import open_view
    from ork.status.schedulers import live_schedulers, present_schedulers

    store = installation.store
    target = parse_target(run, request.task)
    found = await resolve_run(store, target.run)
    task = None
    if target.task is not None or request.choose is not None:
        from ork.status.approval_targets import check_approver, named_task

        view, _ = await open_view(store, found)
        task = (request.choose or named_task)(view, target)
        if request.check is not None and target.task is not None:
            await request.check(installation, view, TaskKey(target.task, target.instance))
        if request.kind == "approve" and task is not None:
            await check_approver(store, view, task, current_user())
    command = RunCommand(found, CommandKind(request.kind), current_user(), task, request.everything, request.comment)
    short = await short_id(store, found)
    before = await store.get_run(found)
    check_retry(command, before, short)
    if installation.can_work:  # otherwise the server checks
        await check_readable(store, command, before, short)
    answer = await store.submit_command(command, now())
    match answer:
        case Accepted(run=row):
            detail = json.dumps({"task": task}) if task else None
            await installation.record(current_user(), f"run.{request.kind}", found, detail)
            served_by = tuple(await live_schedulers(store, None))
            is_expected = bool(await present_schedulers(store, None))
            return Submitted(row, short, task, served_by, is_expected, installation.can_work)
        case TooLate(run=row):
            raise command_refused(command, row, short)
        case None:
            raise NotFoundError(f"no run `{run}`", hint="`ork runs` lists them")
