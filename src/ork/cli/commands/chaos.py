"""`ork chaos`: kills parts of a sandbox of the project, and checks the promises."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from time import monotonic
from typing import TYPE_CHECKING

import click

from ork.cli.definitions import definition_error, parse_params, read_definitions, workflow_files
from ork.cli.errors import DONE, FAILED, TIMED_OUT
from ork.cli.session import current_settings, json_option, print_json, settings_of
from ork.errors import RefusedError, UsageError

if TYPE_CHECKING:
    from ork.chaos.conduct import Progress
    from ork.chaos.setting import Setting
    from ork.model.workflow import Version
    from ork.settings import Settings

_SHOW_SECONDS = 1.0
_LARGEST_SEED = 10**6
_ERASE = "\r\x1b[K"


@click.command(name="chaos")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option("--kills", type=click.IntRange(min=1), default=100, show_default=True, help="How many kills.")
@click.option("--seed", type=int, help="What is killed when is drawn from this number (default: a new one).")
@click.option(
    "--database",
    metavar="KIND",
    help="sqlite, postgres (a server of its own), or the URL of a Postgres that gets a new database. Default: like the project's.",
)
@click.option("--containers", "image", metavar="IMAGE", help="Run the stand-ins in containers of this image.")
@click.option(
    "--real", "is_real", is_flag=True, help="Run the real tasks, not stand-ins. They have their real effects!"
)
@click.option("--yes", "is_agreed", is_flag=True, help="With --real: do not ask.")
@click.option("-p", "--param", "params", multiple=True, metavar="KEY=VALUE", help="With --real: a param of every run.")
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Stop killing after this time.")
@click.option("--keep", is_flag=True, help="Keep the sandbox. It is always kept if a promise was broken.")
@json_option
def chaos_command(
    files: tuple[str, ...],
    kills: int,
    seed: int | None,
    database: str | None,
    image: str | None,
    is_real: bool,
    is_agreed: bool,
    params: tuple[str, ...],
    timeout: float | None,
    keep: bool,
    as_json: bool,
) -> int:
    """Kill schedulers, workers, tasks and the database of a sandbox, and check that nothing was lost and nothing ran twice.

    The sandbox is a temporary folder with a store of its own. The project, its store and its schedulers are not touched. Stand-ins
    that only sleep take the place of the tasks, in the same graph, with the same retries, limits and fan-outs; with --real a copy
    of the project runs its own code. FILE: workflows to try (default: all of the project).

    Exit code 1: a promise was broken; 124: --timeout passed before all kills were done.

    \b
    Example:  ork chaos
              ork chaos etl.yaml --kills 1000 --database postgres
              ork chaos --containers busybox --seed 7
    """
    from random import SystemRandom

    from ork.chaos.conduct import conduct
    from ork.chaos.report import report_json, report_lines
    from ork.chaos.setting import Setting

    _check_system()
    settings, versions = _read(files)
    if is_real:
        _ask(versions, is_agreed, as_json=as_json)
    if is_real and image is not None:
        raise UsageError("--containers is for stand-ins", hint="with --real, tasks run where they always do")
    if params and not is_real:
        raise UsageError("-p is for --real: stand-ins have no params")
    setting = Setting(
        settings,
        tuple(versions),
        _started(versions),
        kills,
        SystemRandom().randrange(_LARGEST_SEED) if seed is None else seed,
        database or _like(settings.store),
        is_real,
        image,
        settings.docker_host,
        {version.workflow.name: parse_params(version.workflow, params) for version in versions} if is_real else {},
    )
    names = ", ".join(sorted(setting.started))
    _say(
        f"chaos for {names}: {kills:,} kills, seed {setting.seed}, {setting.database.partition('://')[0]}, {_tasks(setting)}"
    )
    try:
        report = conduct(setting, _progress(kills), keep=keep, seconds=timeout)
    finally:
        if sys.stderr.isatty():
            print(_ERASE, end="", file=sys.stderr, flush=True)
    if as_json:
        print_json(report_json(report))
    else:
        for note in report.notes:
            _say(f"note: {note}")
        print("\n".join(report_lines(report)))
    if report.breaches:
        return FAILED
    return DONE if report.is_complete else TIMED_OUT


def _check_system() -> None:
    if not os.path.isdir("/proc/self"):
        raise UsageError(
            "`ork chaos` needs Linux: it finds the processes of its sandbox in /proc", hint="use WSL or a container"
        )


def _read(files: Sequence[str]) -> tuple[Settings, list[Version]]:
    """The settings of the project, and its valid workflows. DefinitionError with all problems of the files."""
    from ork.compile.content import make_version

    chosen = workflow_files(files) if files else _all_files(current_settings().root)
    settings = settings_of(*chosen)
    results = [read for file in chosen for read in read_definitions(file, settings)]
    problems = [problem for result in results for problem in result.problems]
    if problems:
        raise definition_error(problems)
    found = {read.workflow.name: read for read in results if read.workflow is not None}
    return settings, [make_version(read.workflow, read.root) for read in found.values() if read.workflow is not None]


def _all_files(root: str) -> tuple[str, ...]:
    from ork.locations.find import definition_files

    found = tuple(os.path.join(root, path) for path in definition_files(root))
    if not found:
        raise UsageError(f"there is no workflow in {root}", hint="name a file, or begin with `ork init`")
    return found


def _started(versions: Sequence[Version]) -> frozenset[str]:
    """The workflows that get runs of their own: those that no other one runs as a task; all if each is run by another."""
    from ork.locations.files import sub_workflows

    below = {name for version in versions for name in sub_workflows(version.workflow)}
    names = frozenset(version.workflow.name for version in versions)
    return names - below or names


def _ask(versions: Sequence[Version], is_agreed: bool, *, as_json: bool) -> None:
    """RefusedError unless a person, or --yes, agrees that the real tasks are run and killed."""
    tasks = sum(len(version.workflow.tasks) for version in versions)
    warning = f"--real runs {tasks:,} real tasks again and again, and kills them: what they do to files and services really happens"
    if is_agreed:
        return
    if as_json or not sys.stdin.isatty():
        raise RefusedError(warning, hint="add --yes if that is wanted")
    if not click.confirm(f"{warning}. Continue?", err=True):
        raise RefusedError("nothing was run")


def _like(store: str) -> str:
    """The kind of database in the sandbox that is most like the project's."""
    return "postgres" if store.startswith(("postgresql:", "postgres:")) else "sqlite"


def _tasks(setting: Setting) -> str:
    if setting.is_real:
        return "the real tasks"
    return f"stand-ins in {setting.image}" if setting.image is not None else "stand-ins for the tasks"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _progress(kills: int) -> Progress:
    """Shows the progress on a terminal, once a second in one line; nothing elsewhere."""
    shown = [monotonic()]

    def show(done: int, runs: int, unfinished: int) -> None:
        if not sys.stderr.isatty() or monotonic() - shown[0] < _SHOW_SECONDS:
            return
        shown[0] = monotonic()
        print(
            f"{_ERASE}{done:,} of {kills:,} kills · {runs:,} runs, {unfinished:,} unfinished",
            end="",
            file=sys.stderr,
            flush=True,
        )

    return show
