"""The entry of `ork`: which commands there are, and what becomes of whatever they raise.

Nothing here imports a command, a store, YAML or asyncio: `ork --help` and completion must feel instant.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from ork import __version__
from ork.cli.lazy import LazyGroup
from ork.cli.streams import write_what_can_be_written
from ork.errors import OrkError, UsageError
from ork.terminal import wants_ascii

SECTIONS: dict[str, dict[str, str]] = {
    "Start": {
        "init": "A project that runs, with a test",
        "run": "Run a workflow to its end and show how it goes",
        "dev": "Serve a project while you work on it, and deploy what changes",
        "validate": "All mistakes in workflow files at once",
        "plan": "What a deploy would change, and when schedules would fire",
        "deploy": "Register workflow files and their schedules",
        "trigger": "Create a run and print its id",
    },
    "Look": {
        "runs": "The latest runs, and what differs between two",
        "show": "One run and its tasks",
        "watch": "The live view of a run that goes on elsewhere",
        "logs": "What tasks printed",
        "output": "What a task returned",
        "why": "Why a run or task is (not) running, and what happens next",
        "workflows": "The workflows known here",
        "workflow": "Show, enable, disable or delete one workflow",
        "schedules": "What fires when",
        "locations": "Images and folders that workflows come from, and looking into them now",
        "workers": "Worker configs: where tasks run, how large they may be",
        "graph": "A workflow's graph as text, Mermaid or SVG",
        "alerts": "Who is told about failures, what could not be sent, and a test message",
        "report": "A run as one page: graph, timeline, logs",
        "status": "What goes on in this store right now",
    },
    "Act": {
        "cancel": "Stop a run and everything it runs",
        "pause": "Start nothing new in a run",
        "resume": "Go on with a paused run",
        "retry": "Run again what did not succeed",
        "rerun": "A new run like an earlier one, perhaps with other params",
        "backfill": "Runs for past times of a schedule",
        "approvals": "What waits for a person",
        "approve": "Say yes to a task that waits for a person",
        "reject": "Say no to it",
        "declare-dead": "Say that an attempt is over whose machine no longer answers",
        "debug": "Run one attempt again, here, under a debugger",
    },
    "Serve": {
        "serve": "Scheduler and HTTP API in one process",
        "scheduler": "Work on runs until stopped; pause, resume or drain those that do",
        "tick": "Work until nothing is due, then say when to wake next",
        "token": "Who may do what through the API: create, list, revoke",
        "audit": "Who changed what",
        "db": "The store's schema (migrate, status) and shared settings",
        "prune": "Forget old runs, and remove environments nobody uses any more",
    },
    "Help": {
        "help": "How a command is used",
        "explain": "What an error code means, with an example",
        "doctor": "Check everything Ork needs here",
        "schema": "JSON Schema of the YAML files, for editors",
        "completion": "A completion script for your shell",
        "bench": "Measure speed against the floor of this machine",
        "sim": "Simulate crashes and check every promise",
    },
}

MODULES = {
    "cancel": "act",
    "pause": "act",
    "resume": "act",
    "retry": "act",
    "approvals": "decide",
    "approve": "decide",
    "reject": "decide",
    "declare-dead": "declare",
    "rerun": "run",
    "show": "runs",
    "watch": "run",
    "trigger": "deploy",
    "workflow": "workflows",
    "tick": "scheduler",
    "audit": "token",
    "help": "reference",
    "explain": "reference",
    "schema": "reference",
    "completion": "reference",
    "bench": "measure",
    "sim": "measure",
}


class _ReaderLeftError(Exception):
    """Nobody reads what we write any more."""


class _Ork(LazyGroup):
    sections = SECTIONS
    modules = MODULES

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _ReaderLeftError from error  # click would call it a failure


@click.command(cls=_Ork, name="ork", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="ork %(version)s")
@click.option("--store", metavar="URL", help="The state store (default: SQLite in .ork/ of the project).")
@click.option("--objects", metavar="URL", help="The object store (default: .ork/objects).")
@click.option("--server", metavar="URL", help="Go through the API of `ork serve` instead, with the token in ORK_TOKEN.")
@click.pass_context
def ork(context: click.Context, store: str | None, objects: str | None, server: str | None) -> None:
    """Ork runs workflows of plain functions and scripts.

    First minutes:  ork init hello && cd hello && ork run
    """
    context.obj = {"store": store, "objects": objects, "server": server}


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    # Importing makes many objects and no garbage: looking for it after every 700 costs a tenth of a short command.
    gc.set_threshold(50_000, 20, 20)
    write_what_can_be_written(sys.stdout, sys.stderr, ascii_only=wants_ascii())
    code = run(list(sys.argv[1:] if arguments is None else arguments))
    if _is_whole_program():
        sys.stderr.flush()
        # Everything has been closed by now. Taking the interpreter apart as well costs as much as starting it twice.
        os._exit(code)
    sys.exit(code)


def _is_whole_program() -> bool:
    """Whether this process is `ork` and nothing else, not a test or a program that calls it."""
    file = getattr(sys.modules.get("__main__"), "__file__", None) or ""
    return file.endswith(("/bin/ork", "/ork/__main__.py"))


def run(arguments: list[str]) -> int:
    """Runs one command line and gives its exit code; nothing it raises goes further."""
    as_json = wants_json(arguments)
    try:
        result = ork.main(args=arguments, prog_name="ork", standalone_mode=False)
        sys.stdout.flush()  # here, where a reader that has gone is understood
        return result if isinstance(result, int) else 0
    except (BrokenPipeError, _ReaderLeftError):
        return _leave_broken_pipe()
    except BaseException as error:
        return _code_of(error, arguments, as_json)


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether errors are for a program, known before anything is parsed."""
    return "--json" in arguments or "--format=json" in arguments or "--format json" in " ".join(arguments)


def _code_of(error: BaseException, arguments: list[str], as_json: bool) -> int:
    from ork.cli import errors

    match error:
        case click.exceptions.Exit():
            return error.exit_code
        case click.UsageError() if type(error).__name__ == "NoArgsIsHelpError":  # since click 8.2
            print(error.format_message(), file=sys.stderr)
            return errors.WRONG_USE
        case click.ClickException():
            context = getattr(error, "ctx", None)
            path = context.command_path if context else "ork"
            hint = f"try `{path} --help`"
            if isinstance(error, click.MissingParameter) and error.param is not None and error.param.name == "run":
                hint = f"the newest one is `{path} @last`; `ork runs` lists them"
            return errors.report_usage(error.format_message(), hint, as_json=as_json)
        case KeyboardInterrupt() | click.Abort():
            return errors.INTERRUPTED
        case UsageError(hint=None) if not _debug():
            error.hint = _help_for(arguments)
            return errors.report(error, as_json=as_json)
        case OrkError() if not _debug():
            return errors.report(error, as_json=as_json)
        case SystemExit(code=int(code)):
            return code
        case Exception() if not _debug():
            return errors.report_internal(error, as_json=as_json)
    raise error


def _help_for(arguments: list[str]) -> str:
    commands = {name for section in SECTIONS.values() for name in section}
    command = next((word for word in arguments if word in commands), None)
    return f"try `ork {command} --help`" if command else "try `ork --help`"


def _debug() -> bool:
    from ork.settings import wants_debug

    return wants_debug()


def _leave_broken_pipe() -> int:
    # The reader has gone (`ork logs … | head`): nobody is left to tell, and the flush at exit must not complain.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
