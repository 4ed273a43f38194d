"""Shared by all commands: options, settings, and functions that open the installation and run a coroutine."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

from ork.cli.paint import Palette
from ork.errors import AlarmError, StoreUnavailableError, UsageError
from ork.settings import Settings, find_root, load_settings, project_folder
from ork.terminal import terminal_width, wants_colour

if TYPE_CHECKING:
    from ork.app.installation import Installation

LAST_PAUSE_SECONDS = 8.0

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def store_options(command: F) -> F:
    """`--store`, `--objects` and `--server`, as for `ork` itself."""
    command = click.option("--server", metavar="URL", hidden=True, expose_value=False, callback=_remember)(command)
    command = click.option("--objects", metavar="URL", hidden=True, expose_value=False, callback=_remember)(command)
    return click.option("--store", metavar="URL", hidden=True, expose_value=False, callback=_remember)(command)


def _remember(context: click.Context, option: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.ensure_object(dict)[option.name] = value


def task_user_option(command: F) -> F:
    return click.option(
        "--task-user",
        metavar="USER",
        expose_value=False,
        callback=_remember,
        help="Run local tasks as this user; also `task_user` in ork.yaml.",
    )(command)


def json_option(command: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def current_settings() -> Settings:
    """The settings of the current folder's project, or of the project set by `settings_of`."""
    given = click.get_current_context().ensure_object(dict)
    return _load(given, given.get("folder"))


def settings_of(*files: str) -> Settings:
    """The settings of the project that these workflow files belong to, regardless of the current folder.

    They apply to the rest of the command: `run_short` and `run_long` open the store of that project.
    """
    folders = {project_folder(file): file for file in files}
    if len(folders) > 1:
        (one, first), (other, second), *_ = folders.items()
        raise UsageError(
            f"{first} belongs to the project {one}, {second} to {other}", hint="name the files of one project at a time"
        )
    given = click.get_current_context().ensure_object(dict)
    given["folder"] = next(iter(folders), None)
    return current_settings()


def settings_for(file: str) -> Settings:
    """The settings for reading one file, without changing those of the command."""
    return _load(click.get_current_context().ensure_object(dict), project_folder(file))


def note_other_project(settings: Settings) -> None:
    """Prints on stderr which project is used, if it is not that of the current folder."""
    if settings.server is None and settings.home in settings.store and find_root(os.getcwd()) != settings.root:
        print(f"note: the project is {settings.root}; run `ork` there to see its runs", file=sys.stderr)


def _load(given: dict[str, Any], folder: str | None) -> Settings:
    if given.get("store") and not given.get("is_warned"):
        given["is_warned"] = _warn_about_password(given["store"])
    return load_settings(
        store=given.get("store"),
        objects=given.get("objects"),
        server=given.get("server"),
        task_user=given.get("task_user"),
        folder=folder,
    )


def _warn_about_password(store: str) -> bool:
    """Warns if --store contains a password: every user of the machine can read a command's arguments."""
    from ork.state.urls import without_password

    if without_password(store) != store:
        print(
            "warning: the password in --store is visible in the process list; set ORK_STORE, or ORK_STORE_FILE to a file "
            "that holds the URL",
            file=sys.stderr,
        )
    return True


def local_settings(command: str) -> Settings:
    """The settings for a command that cannot work through a server."""
    settings = current_settings()
    if settings.server is not None:
        hint = "run it without --server and ORK_SERVER, where the store can be reached"
        raise UsageError(f"`ork {command}` does not work through a server", hint=hint)
    return settings


def palette(stream: IO[str]) -> Palette:
    is_terminal = stream.isatty()
    return Palette(wants_colour(is_terminal), terminal_width(stream), is_terminal=is_terminal)


def now() -> datetime:
    return datetime.now(UTC)


def print_json(value: object) -> None:
    # Not json.dump, which writes piece by piece and is several times slower.
    sys.stdout.write(json.dumps(value, ensure_ascii=sys.stdout.encoding == "ascii") + "\n")


def run_short(
    work: Callable[[Installation], Coroutine[Any, Any, T]], *, creates: bool = False, may_be_new: bool = False
) -> T:
    """Opens the installation and runs `work`, which makes a few reads or one small write.

    A store in a file waits only for the disk, so it needs no event loop, and the command saves importing asyncio.
    """
    from ork.app.installation import open_briefly, runs_without_event_loop

    settings = current_settings()
    coroutine = _with_installation(open_briefly(settings, creates=creates, may_be_new=may_be_new), work)
    if runs_without_event_loop(settings):
        return _drive(coroutine)
    import asyncio

    return asyncio.run(coroutine)


def run_reads(work: Callable[[Installation], Coroutine[Any, Any, T]]) -> T:
    """Opens the installation and runs `work`, which makes many reads, in an event loop. Creates nothing."""
    import asyncio

    from ork.app.installation import open_briefly

    return asyncio.run(_with_installation(open_briefly(current_settings(), creates=False), work))


def run_long(work: Callable[[Installation], Coroutine[Any, Any, T]]) -> T:
    """Opens the installation and runs `work`, which takes a while, in an event loop."""
    import asyncio

    from ork.app.installation import open_installation

    settings = current_settings()
    warn_about_workers(settings)
    return asyncio.run(_with_installation(open_installation(settings), work))


def warn_about_workers(settings: Settings) -> None:
    """Prints errors in workers.yaml. They affect only the tasks that use the broken configs."""
    problems = settings.project.worker_problems if settings.project is not None else ()
    if problems and settings.server is None:
        from ork.cli.definitions import print_problems

        print_problems(problems)
        broken = ", ".join(sorted(settings.project.broken_workers)) if settings.project is not None else ""
        what = f"tasks that use them ({broken}) fail" if broken else "the rest of the file applies"
        print(f"warning: workers.yaml has errors; {what} until it is corrected", file=sys.stderr)


def run_service(work: Callable[[Installation], Coroutine[Any, Any, None]], log: Callable[..., None]) -> None:
    """Like `run_long`, but retries while the store is unavailable, for services that start before their database.

    A service that has started once handles outages of the store itself.
    """
    from time import sleep

    from ork.telemetry import TelemetryEvent

    pause = 1.0
    while True:
        try:
            return run_long(work)
        except StoreUnavailableError as problem:
            log(TelemetryEvent.STORE_FAILED, {"why": problem.message})
        sleep(pause)
        pause = min(2 * pause, LAST_PAUSE_SECONDS)


async def _with_installation(
    opening: Coroutine[Any, Any, Installation], work: Callable[[Installation], Coroutine[Any, Any, T]]
) -> T:
    installation = await opening
    try:
        return await work(installation)
    finally:
        await installation.close()
        if installation.alarm_failure is not None:
            _warn_about_alarm(installation.alarm_failure)


def _warn_about_alarm(error: AlarmError) -> None:
    hint = f" ({error.hint})" if error.hint else ""
    print(f"warning: it is stored, but no tick was called: {error.message}{hint}", file=sys.stderr)


def _drive(coroutine: Coroutine[Any, Any, T]) -> T:
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise RuntimeError("something waited where nothing can wait")


def current_user() -> str:
    """The login name of the user, for the audit log."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"
