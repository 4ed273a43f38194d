"""`ork run` and `ork watch`: stay with a run until it ends."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ork.cli.errors import DONE, FAILED, INTERRUPTED, TIMED_OUT, WAITING
from ork.cli.naming import complete_file_or_workflow, run_argument
from ork.cli.session import json_option, look, now, palette, print_json, serve, store_options
from ork.errors import NotFoundError
from ork.model.ids import RunId
from ork.terminal import is_dumb_terminal

if TYPE_CHECKING:
    from ork.app.installation import Installation
    from ork.cli.attend import Ending, Interrupts
    from ork.cli.progress import Progress
    from ork.model.run import Run
    from ork.status.approvals import PendingApproval
    from ork.status.run_view import RunView

PROGRESS = click.option(
    "--progress",
    "mode",
    type=click.Choice(["auto", "plain", "json", "quiet"]),
    default="auto",
    help="How to show what goes on (auto: live on a terminal, else one line per change).",
)
TIMEOUT = click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="After this long, cancel the run if this process does its work; else only stop waiting for it.",
)
PARAMS = click.option(
    "-p", "--param", "params", multiple=True, metavar="KEY=VALUE", help="A param of the run; may be repeated."
)
NO_CACHE = click.option("--no-cache", "fresh", is_flag=True, help="Run every task, also where an output is cached.")
FULL = click.option("--full", is_flag=True, help="Every frame of a failure.")


@click.command(name="run")
@click.argument("workflow", required=False, metavar="[FILE|NAME]", shell_complete=complete_file_or_workflow)
@click.argument("name", required=False)
@PARAMS
@NO_CACHE
@click.option("--detach", is_flag=True, help="Create the run, print its id and leave; a scheduler does the work.")
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
    """Run a workflow to its end and show how it goes.

    A file is validated and registered first; without one it is workflow.yaml in this folder. NAME says which workflow
    of a Python file is meant. If a scheduler serves this store it does the work, else this process does. Ctrl-C
    cancels the run. Where nothing can go on before a person approves, it ends with exit code 5.

    \b
    Example:  ork run etl.yaml -p day=2026-01-01
    """
    from ork.cli.starting import create_run, prepare

    prepared = prepare(workflow, params, as_json=as_json, chosen=name)
    if prepared is None:
        return 2

    create = partial(create_run, prepared=prepared._replace(fresh=fresh))
    if detach:
        created_for_others(create, as_json=as_json, creates=True)
        return DONE
    return _run_to_its_end(create, Attended(RunId(""), _progress(mode, full), timeout, as_json))


def created_for_others(
    create: Callable[[Installation], Coroutine[Any, Any, Run]], *, as_json: bool, creates: bool
) -> Run:
    """Creates a run for a scheduler to work on, prints its id, and says if there is nobody to do it."""
    from ork.cli.commands.act import NOBODY_YET

    async def work(installation: Installation) -> tuple[Run, bool]:
        from ork.status.schedulers import present_schedulers

        run = await create(installation)
        return run, bool(await present_schedulers(installation.store, None))

    run, is_served = look(work, creates=creates)
    if as_json:
        print_json({"id": run.id})
    else:
        print(run.id, flush=True)
    if not is_served and not run.status.is_final:
        print(f"  {NOBODY_YET}", file=sys.stderr, flush=True)
    return run


@click.command(name="rerun")
@run_argument
@PARAMS
@click.option("--latest", is_flag=True, help="The workflow as it is now, not as it was then.")
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
    fresh: bool,
    timeout: float | None,
    mode: str,
    full: bool,
    as_json: bool,
) -> int:
    """A new run like an earlier one, linked to it: the same version and params, where no others are given.

    \b
    Example:  ork rerun 7f3k -p day=2026-01-02
    """
    from ork.cli.starting import create_rerun
    from ork.status.ids import parse_target, resolve_run

    async def create(installation: Installation) -> Run:
        found = await resolve_run(installation.store, parse_target(run).run)
        earlier = await installation.store.get_run(found)
        if earlier is None:
            raise NotFoundError(f"no run `{run}`", hint="`ork runs` lists them")
        return await create_rerun(installation, earlier, params, fresh=fresh, latest=latest)

    return _run_to_its_end(create, Attended(RunId(""), _progress(mode, full), timeout, as_json))


def _run_to_its_end(create: Callable[[Installation], Coroutine[Any, Any, Run]], attended: Attended) -> int:
    async def work(installation: Installation) -> int:
        from ork.cli.attend import Interrupts

        await _refuse_if_paused(installation)
        # Before there is a run: Ctrl-C at any later moment cancels it or says who goes on with it.
        with Interrupts() as interrupts:
            run = await create(installation)
            return await _attend(installation, attended._replace(run=run.id), interrupts)

    return serve(work)


async def _refuse_if_paused(installation: Installation) -> None:
    """A run that nobody may start would be waited for in vain."""
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
    """The live view of a run that goes on elsewhere. Ctrl-C only stops watching.

    \b
    Example:  ork watch @last
    """

    async def work(installation: Installation) -> int:
        from ork.cli.attend import Interrupts
        from ork.status.ids import parse_target, resolve_run

        found = await resolve_run(installation.store, parse_target(run).run)
        with Interrupts() as interrupts:
            attended = Attended(found, _progress(mode, full), timeout, as_json, may_work=False, waits_for_people=True)
            return await _attend(installation, attended, interrupts)

    return serve(work)


class Attended(NamedTuple):
    """A run to stay with, and how."""

    run: RunId
    progress: Progress
    timeout: float | None = None
    as_json: bool = False
    may_work: bool = True
    is_quiet: bool = False
    waits_for_people: bool = False
    waits_for_machines: bool = True


async def _attend(installation: Installation, attended: Attended, interrupts: Interrupts) -> int:
    from ork.cli.attend import Attendant

    run, progress, timeout, as_json, may_work, is_quiet, waits_for_people, waits_for_machines = attended
    attendant = Attendant(
        installation,
        run,
        progress,
        interrupts,
        may_work=may_work,
        timeout=timeout,
        waits_for_people=waits_for_people,
        waits_for_machines=waits_for_machines,
    )
    view, ending = await attendant.stay()
    if as_json:
        from ork.status.shapes import full_run_json

        attempts = await installation.store.list_attempts(run)
        print_json(full_run_json(view.run, view.version, view.tasks.values(), attempts))
    elif not is_quiet and attendant.questions:
        _print_questions(attendant.questions)
    elif not is_quiet:
        _conclude(view, ending)
    return _exit_code(view, ending)


def _print_questions(questions: list[PendingApproval]) -> None:
    """What is asked on stdout; how to go on on stderr."""
    from ork.cli.paint import Span, line

    sys.stderr.write("\n")
    for asked in questions:
        words = line(Span("◷", "wait"), f" run {asked.short} waits for a person: {asked.task}: {asked.message}")
        palette(sys.stdout).write(sys.stdout, [words])
        sys.stdout.flush()
        named = f"{asked.short} {asked.task}"
        who = "" if asked.whom == "anyone" else f"   ({asked.whom} may approve it)"
        palette(sys.stderr).write(sys.stderr, [line(f"  ork approve {named}   ork reject {named}{who}")])


def _conclude(view: RunView, ending: Ending) -> None:
    """The result on stdout; what to do next on stderr."""
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
    print(f"{ending.value}: run {view.short} goes on", file=sys.stderr)
    palette(sys.stderr).write(sys.stderr, [line(f"  ork watch {view.short}   ork cancel {view.short}")])


def _exit_code(view: RunView, ending: Ending) -> int:
    from ork.cli.attend import Ending

    match ending:
        case Ending.TIMED_OUT:
            return TIMED_OUT
        case Ending.LOST:
            return DONE
        case Ending.INTERRUPTED | Ending.DETACHED:
            return INTERRUPTED
        case Ending.WAITING:
            return WAITING
        case Ending.FINAL:
            return DONE if view.run.status == "success" else FAILED


def _progress(mode: str, full: bool) -> Progress:
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
    """Waits without showing anything; 0 only if the run succeeded."""
    return _stay(Attended(run, _progress("quiet", False), may_work=False, is_quiet=True, waits_for_people=True))


def go_on(run: RunId, *, quietly: bool) -> int:
    """Works on a run that was asked to go on, as `ork run` would."""
    return _stay(Attended(run, _progress("quiet" if quietly else "auto", False), is_quiet=quietly))


def finish_quietly(run: RunId) -> None:
    """Works on a run that is being cancelled until nothing of it is left, or until only a person can end what is left."""
    from ork.cli.progress import NotesOnly

    progress = NotesOnly(sys.stderr)
    _stay(Attended(run, progress, is_quiet=True, waits_for_people=True, waits_for_machines=False))


def _stay(attended: Attended) -> int:
    async def work(installation: Installation) -> int:
        from ork.cli.attend import Interrupts

        with Interrupts() as interrupts:
            return await _attend(installation, attended, interrupts)

    return serve(work)
