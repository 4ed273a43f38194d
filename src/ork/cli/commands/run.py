"""`ork run`, `rerun` and `watch`: follow a run until it ends."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from ork.cli.arguments import complete_file_or_workflow, run_argument
from ork.cli.errors import DONE, FAILED, INTERRUPTED, TIMED_OUT, WAITING
from ork.cli.session import json_option, now, palette, print_json, run_long, run_short, store_options
from ork.errors import NotFoundError, UsageError
from ork.model.ids import RunId
from ork.terminal import is_dumb_terminal

if TYPE_CHECKING:
    from ork.app.installation import Installation
    from ork.cli.progress import ProgressDisplay
    from ork.cli.run_follower import FollowEnd, FollowOptions, Interrupts
    from ork.model.run import Run
    from ork.status.approvals import PendingApproval
    from ork.status.run_view import RunView

PROGRESS = click.option(
    "--progress",
    "mode",
    type=click.Choice(["auto", "plain", "json", "quiet"]),
    default="auto",
    help="How to show progress (auto: live on a terminal, else one line per change).",
)
TIMEOUT = click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="After this time, cancel the run if this process schedules it; otherwise only stop waiting.",
)
PARAMS = click.option(
    "-p", "--param", "params", multiple=True, metavar="KEY=VALUE", help="A param of the run; may be repeated."
)
NO_CACHE = click.option("--no-cache", "fresh", is_flag=True, help="Run every task, even if its output is cached.")
FULL = click.option("--full", is_flag=True, help="Show every frame of a failure.")


@click.command(name="run")
@click.argument("workflow", required=False, metavar="[FILE|NAME]", shell_complete=complete_file_or_workflow)
@click.argument("name", required=False)
@PARAMS
@NO_CACHE
@click.option("--detach", is_flag=True, help="Create the run, print its id and exit; a scheduler does the work.")
@TIMEOUT
@PROGRESS
@FULL
@json_option
@store_options
def run_command(
    workflow: str | None,
    name: str | None,
    params: tuple[str, ...],
    fresh: bool,
    detach: bool,
    timeout: float | None,
    mode: str,
    full: bool,
    as_json: bool,
) -> int:
    """Run a workflow and show its progress.

    A file is validated and deployed first; the default is workflow.yaml in this folder. NAME selects a workflow of a
    Python file. A scheduler service does the work; if none is running, this process does. Ctrl-C cancels the run. If
    the run waits only for approval, the command ends with exit code 5.

    \b
    Example:  ork run etl.yaml -p day=2026-01-01
    """
    from ork.cli.new_run import create_run, prepare

    prepared = prepare(workflow, params, as_json=as_json, chosen=name)
    if prepared is None:
        return 2

    create = partial(create_run, prepared=prepared._replace(fresh=fresh))
    if detach:
        create_detached(create, as_json=as_json, creates=True)
        return DONE
    return _create_and_follow(create, _progress(mode, full), timeout, as_json=as_json)


def create_detached(create: Callable[[Installation], Coroutine[Any, Any, Run]], *, as_json: bool, creates: bool) -> Run:
    """Creates a run, prints its id, and warns if no scheduler is running."""
    from ork.cli.commands.run_commands import NO_SCHEDULER_YET

    async def work(installation: Installation) -> tuple[Run, bool]:
        from ork.status.schedulers import present_schedulers

        run = await create(installation)
        is_woken = installation.clock is not None and installation.alarm_failure is None
        return run, is_woken or bool(await present_schedulers(installation.store, None))

    run, is_served = run_short(work, creates=creates)
    if as_json:
        print_json({"id": run.id})
    else:
        print(run.id, flush=True)
    if not is_served and not run.status.is_final:
        print(f"  {NO_SCHEDULER_YET}", file=sys.stderr, flush=True)
    return run


@click.command(name="rerun")
@run_argument
@PARAMS
@click.option("--latest", is_flag=True, help="Use the current version of the workflow, not the run's.")
@click.option(
    "--same-code", is_flag=True, help="Run the code of that run, from its Git commit if it has changed since."
)
@NO_CACHE
@TIMEOUT
@PROGRESS
@FULL
@json_option
@store_options
def rerun_command(
    run: str,
    params: tuple[str, ...],
    latest: bool,
    same_code: bool,
    fresh: bool,
    timeout: float | None,
    mode: str,
    full: bool,
    as_json: bool,
) -> int:
    """Start a new run with the version and params of an earlier one, except for the params given.

    \b
    Example:  ork rerun 7f3k -p day=2026-01-02
              ork rerun 7f3k --same-code
    """
    from ork.cli.new_run import create_rerun
    from ork.status.ids import parse_target, resolve_run

    if latest and same_code:
        raise UsageError("--latest and --same-code exclude each other")

    async def create(installation: Installation) -> Run:
        found = await resolve_run(installation.store, parse_target(run).run)
        earlier = await installation.store.get_run(found)
        if earlier is None:
            raise NotFoundError(f"no run `{run}`", hint="`ork runs` lists them")
        return await create_rerun(installation, earlier, params, fresh=fresh, latest=latest, same_code=same_code)

    return _create_and_follow(create, _progress(mode, full), timeout, as_json=as_json)


def _create_and_follow(
    create: Callable[[Installation], Coroutine[Any, Any, Run]],
    progress: ProgressDisplay,
    timeout: float | None,
    *,
    as_json: bool,
) -> int:
    async def work(installation: Installation) -> int:
        from ork.cli.run_follower import FollowOptions, Interrupts

        await _refuse_if_paused(installation)
        # Installed before the run exists, so that Ctrl-C at any time cancels it or reports that it continues.
        with Interrupts() as interrupts:
            run = await create(installation)
            options = FollowOptions(progress, timeout)
            return await _follow_run(installation, run.id, options, interrupts, as_json=as_json)

    return run_long(work)


async def _refuse_if_paused(installation: Installation) -> None:
    """RefusedError if the installation is paused: the run would not start."""
    for control in await installation.store.list_controls():
        if control.target == "*":
            from ork.errors import RefusedError
            from ork.status.controls import control_text

            raise RefusedError(control_text(control, now()), hint="`ork trigger` creates a run that starts then")


@click.command(name="watch")
@run_argument
@TIMEOUT
@PROGRESS
@FULL
@json_option
@store_options
def watch_command(run: str, timeout: float | None, mode: str, full: bool, as_json: bool) -> int:
    """Follow a run in a live view. Ctrl-C only stops watching.

    \b
    Example:  ork watch @last
    """

    async def work(installation: Installation) -> int:
        from ork.cli.run_follower import FollowOptions, Interrupts
        from ork.status.ids import parse_target, resolve_run

        found = await resolve_run(installation.store, parse_target(run).run)
        with Interrupts() as interrupts:
            options = FollowOptions(_progress(mode, full), timeout, may_work=False, waits_for_people=True)
            return await _follow_run(installation, found, options, interrupts, as_json=as_json)

    return run_long(work)


async def _follow_run(
    installation: Installation,
    run: RunId,
    options: FollowOptions,
    interrupts: Interrupts,
    *,
    as_json: bool = False,
    is_quiet: bool = False,
) -> int:
    """Follows the run and prints how it ended. Returns the exit code."""
    from ork.cli.run_follower import RunFollower

    follower = RunFollower(installation, run, options, interrupts)
    view, ending = await follower.follow()
    if as_json:
        from ork.status.shapes import full_run_json

        attempts = await installation.store.list_attempts(run)
        print_json(full_run_json(view.run, view.version, view.tasks.values(), attempts))
    elif not is_quiet and follower.pending:
        _print_pending(follower.pending)
    elif not is_quiet:
        _conclude(view, ending)
    return _exit_code(view, ending)


def _print_pending(pending: list[PendingApproval]) -> None:
    """Prints the pending approvals on stdout and the next commands on stderr."""
    from ork.cli.paint import Span, line

    sys.stderr.write("\n")
    for each in pending:
        words = line(Span("◷", "wait"), f" run {each.short} waits for a person: {each.task}: {each.message}")
        palette(sys.stdout).write(sys.stdout, [words])
        sys.stdout.flush()
        named = f"{each.short} {each.task}"
        who = "" if each.whom == "anyone" else f"   ({each.whom} may approve it)"
        palette(sys.stderr).write(sys.stderr, [line(f"  ork approve {named}   ork reject {named}{who}")])


def _conclude(view: RunView, ending: FollowEnd) -> None:
    """Prints the result on stdout and the next commands on stderr."""
    from ork.cli.paint import line
    from ork.cli.task_lines import next_steps, summary

    if view.run.status.is_final:
        sys.stderr.write("\n")
        palette(sys.stdout).write(sys.stdout, [summary(view)])
        palette(sys.stderr).write(sys.stderr, next_steps(view))
        return
    if view.run.cancel_requested_at is not None:
        print(f"run {view.short} is being cancelled; `ork tick` finishes it", file=sys.stderr)
        return
    print(f"{ending.value}: run {view.short} continues", file=sys.stderr)
    palette(sys.stderr).write(sys.stderr, [line(f"  ork watch {view.short}   ork cancel {view.short}")])


def _exit_code(view: RunView, ending: FollowEnd) -> int:
    from ork.cli.run_follower import FollowEnd

    match ending:
        case FollowEnd.TIMED_OUT:
            return TIMED_OUT
        case FollowEnd.LOST:
            return DONE
        case FollowEnd.INTERRUPTED | FollowEnd.DETACHED:
            return INTERRUPTED
        case FollowEnd.WAITING:
            return WAITING
        case FollowEnd.FINAL:
            return DONE if view.run.status == "success" else FAILED


def _progress(mode: str, full: bool) -> ProgressDisplay:
    from ork.cli import progress

    stream = sys.stderr
    match mode:
        case "quiet":
            return progress.QuietProgress()
        case "json":
            return progress.JsonProgress(stream)
        case "auto" if stream.isatty() and not is_dumb_terminal():
            return progress.LiveProgress(stream, palette(stream), full=full)
        case _:
            return progress.PlainProgress(stream, palette(stream), full=full)


def wait_for_end(run: RunId) -> int:
    """Waits silently. Returns 0 only if the run succeeded."""
    from ork.cli.run_follower import FollowOptions

    options = FollowOptions(_progress("quiet", False), may_work=False, waits_for_people=True)
    return _follow(run, options, is_quiet=True)


def continue_run(run: RunId, *, quietly: bool) -> int:
    """Schedules and follows a run that a command continues, as `ork run` does."""
    from ork.cli.run_follower import FollowOptions

    return _follow(run, FollowOptions(_progress("quiet" if quietly else "auto", False)), is_quiet=quietly)


def finish_cancelled(run: RunId) -> None:
    """Schedules a run that is being cancelled until it has ended, or until only `ork declare-dead` can end it."""
    from ork.cli.progress import NotesOnly
    from ork.cli.run_follower import FollowOptions

    options = FollowOptions(NotesOnly(sys.stderr), waits_for_people=True, waits_for_machines=False)
    _follow(run, options, is_quiet=True)


def _follow(run: RunId, options: FollowOptions, *, is_quiet: bool) -> int:
    async def work(installation: Installation) -> int:
        from ork.cli.run_follower import Interrupts

        with Interrupts() as interrupts:
            return await _follow_run(installation, run, options, interrupts, is_quiet=is_quiet)

    return run_long(work)
