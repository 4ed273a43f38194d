"""What commands share: options, settings, an open installation, and the two ways to run its coroutines."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

from ork.cli.paint import Palette
from ork.cli.region import terminal_width
from ork.errors import StoreUnavailableError, UsageError
from ork.settings import Settings, find_root, load_settings, project_folder
from ork.terminal import wants_colour

if TYPE_CHECKING:
    from ork.app.installation import Installation

LAST_PAUSE_SECONDS = 8.0

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def store_options(command: F) -> F:
    """`--store`, `--objects` and `--server`, as on the program itself."""
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
    return click.option("--json", "as_json", is_flag=True, help="Answer in JSON.")(command)


def current_settings() -> Settings:
    """Those of the current folder's project, or of the files that `settings_of` was called with."""
    given = click.get_current_context().ensure_object(dict)
    return _load(given, given.get("folder"))


def settings_of(*files: str) -> Settings:
    """The settings of the project that these workflow files belong to, wherever the command was started.

    They hold for the rest of the command: `look` and `serve` open the store of that project.
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
    """The settings for reading one file; the rest of the command keeps its own."""
    return _load(click.get_current_context().ensure_object(dict), project_folder(file))


def note_other_project(settings: Settings) -> None:
    """Tells a person on stderr where the history is, if commands in the current folder would not find it."""
    if settings.server is None and settings.home in settings.store and find_root(os.getcwd()) != settings.root:
        print(f"note: the project is {settings.root}; run `ork` there to see what becomes of it", file=sys.stderr)


def _load(given: dict[str, Any], folder: str | None) -> Settings:
    if given.get("store") and not given.get("is_warned"):
        given["is_warned"] = _warn_of_password(given["store"])
    return load_settings(
        store=given.get("store"),
        objects=given.get("objects"),
        server=given.get("server"),
        task_user=given.get("task_user"),
        folder=folder,
    )


def _warn_of_password(store: str) -> bool:
    """A command's arguments can be read by every user of the machine."""
    from ork.state.urls import without_password

    if without_password(store) != store:
        print(
            "warning: the password in --store is visible in the process list; set ORK_STORE, or ORK_STORE_FILE to a file "
            "that holds the URL",
            file=sys.stderr,
        )
    return True


def settings_beside_the_store(command: str) -> Settings:
    """For commands that need the store itself, or the machine it is on."""
    settings = current_settings()
    if settings.server is not None:
        hint = "leave --server and ORK_SERVER away, where the store can be reached"
        raise UsageError(f"`ork {command}` cannot go through a server", hint=hint)
    return settings


def palette(stream: IO[str]) -> Palette:
    is_terminal = stream.isatty()
    return Palette(wants_colour(is_terminal), terminal_width(stream), is_terminal=is_terminal)


def now() -> datetime:
    return datetime.now(UTC)


def print_json(value: object) -> None:
    json.dump(value, sys.stdout, ensure_ascii=sys.stdout.encoding == "ascii")
    sys.stdout.write("\n")


def look(
    work: Callable[[Installation], Coroutine[Any, Any, T]], *, creates: bool = False, may_be_new: bool = False
) -> T:
    """Opens the installation for a few reads or one small write and runs `work`, without an event loop if it can.

    A store in a file never waits for anything but the disk, so that there is nothing to loop over, and the command
    does not pay for importing asyncio.
    """
    from ork.app.installation import answers_at_once, open_for_a_look

    settings = current_settings()
    looking = _with_installation(open_for_a_look(settings, creates=creates, may_be_new=may_be_new), work)
    if answers_at_once(settings):
        return _drive(looking)
    import asyncio

    return asyncio.run(looking)


def serve(work: Callable[[Installation], Coroutine[Any, Any, T]]) -> T:
    """Opens the installation for work that goes on for a while and runs it in an event loop."""
    import asyncio

    from ork.app.installation import open_installation

    settings = current_settings()
    warn_of_workers(settings)
    return asyncio.run(_with_installation(open_installation(settings), work))


def warn_of_workers(settings: Settings) -> None:
    """A mistake in workers.yaml stops only the tasks that need it, so it is shown and work goes on."""
    problems = settings.project.worker_problems if settings.project is not None else ()
    if problems and settings.server is None:
        from ork.cli.definitions import print_problems

        print_problems(problems)
        broken = ", ".join(sorted(settings.project.broken_workers)) if settings.project is not None else ""
        what = f"tasks that use them ({broken}) fail" if broken else "the rest of the file holds"
        print(f"warning: workers.yaml has mistakes; {what} until it is corrected", file=sys.stderr)


def keep_serving(work: Callable[[Installation], Coroutine[Any, Any, None]], log: Callable[..., None]) -> None:
    """Like `serve`, for services: one that is started before its database, or while that restarts, says so and tries
    again. Once it runs it goes on through such times by itself."""
    from time import sleep

    from ork.telemetry import TelemetryEvent

    pause = 1.0
    while True:
        try:
            return serve(work)
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


def _drive(coroutine: Coroutine[Any, Any, T]) -> T:
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise RuntimeError("something waited where nothing can wait")
