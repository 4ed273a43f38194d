"""The entry point of `ork`: lists the commands, runs one, and turns exceptions into exit codes.

This module imports no command, store, YAML or asyncio, so that `ork --help` and completion are fast.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import ClassVar, NoReturn

import click

from ork import __version__
from ork.errors import OrkError, UsageError
from ork.terminal import replace_unencodable, wants_ascii

NO_WINDOWS = (
    "ork: Windows itself is not supported. Install Ork in WSL, the Linux of Windows: run `wsl --install` once,\n"
    "open a WSL terminal, and install Ork there (https://learn.microsoft.com/windows/wsl)."
)


class LazyGroup(click.Group):
    """`sections` maps commands to their one-line help; `modules` maps commands to modules with another name."""

    sections: ClassVar[dict[str, dict[str, str]]] = {}
    modules: ClassVar[dict[str, str]] = {}

    def list_commands(self, _context: click.Context) -> list[str]:
        return [name for commands in self.sections.values() for name in commands]

    def get_command(self, _context: click.Context, name: str) -> click.Command | None:
        if not any(name in commands for commands in self.sections.values()):
            return None
        module = import_module(f"ork.cli.commands.{self.modules.get(name, name)}")
        command = getattr(module, f"{name.replace('-', '_')}_command")
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = arguments[0]
        if not name.startswith("-") and name not in self.list_commands(context):
            context.fail(f"no command `{name}`.{self._suggestion(context, name)}")
        return super().resolve_command(context, arguments)

    def _suggestion(self, context: click.Context, name: str) -> str:
        from difflib import get_close_matches

        close = get_close_matches(name, self.list_commands(context), 1)
        return f" Did you mean `{close[0]}`?" if close else ""

    def format_commands(self, _context: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in self.sections.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))


SECTIONS: dict[str, dict[str, str]] = {
    "Start": {
        "init": "Create a project that runs, with a test",
        "run": "Run a workflow and show its progress",
        "dev": "Serve a project and deploy workflows when files change",
        "validate": "Check workflow files and show all errors",
        "plan": "Show what a deploy would change, and when schedules would fire",
        "deploy": "Register workflow files and their schedules",
        "trigger": "Create a run and print its id",
        "import": "Write a project from a crontab, Airflow, GitHub Actions, Prefect or Dagster",
        "eject": "Write a workflow as a Makefile and a shell script that need no Ork",
    },
    "Look": {
        "runs": "List the latest runs, or compare two",
        "show": "Show a run and its tasks",
        "watch": "Follow a run in a live view",
        "logs": "Show the logs of tasks",
        "output": "Show the output of a task",
        "cost": "Estimate what runs cost, by task and operation",
        "why": "Explain why a run or task is (not) running, and what happens next",
        "workflows": "List the deployed workflows",
        "workflow": "Show, enable, disable or delete one workflow",
        "schedules": "List schedules and their next times, or play months of them",
        "locations": "List or refresh the images and folders that workflows come from",
        "workers": "List worker configs: where tasks run, and their limits",
        "graph": "Draw a workflow's graph as text, Mermaid or SVG",
        "alerts": "List alert targets and unsent alerts, or send a test message",
        "report": "Write a run as one HTML page: graph, timeline, logs",
        "status": "Show schedulers, unfinished runs and limits in use",
    },
    "Act": {
        "cancel": "Cancel a run and stop its tasks",
        "pause": "Start nothing new in a run",
        "resume": "Continue a paused run",
        "retry": "Retry the failed tasks of a finished run",
        "rerun": "Start a new run with the params of an earlier one",
        "backfill": "Create runs for past times of a schedule",
        "approvals": "List the tasks that wait for approval",
        "approve": "Approve a task that waits for approval",
        "reject": "Reject a task that waits for approval",
        "declare-dead": "Declare an attempt dead whose machine does not respond",
        "debug": "Run an attempt again in this terminal, under a debugger",
    },
    "Serve": {
        "serve": "Scheduler and HTTP API in one process",
        "ui": "Open the web UI in a browser, signed in",
        "mcp": "Offer tools to assistants: the Model Context Protocol",
        "scheduler": "Run a scheduler; pause, resume, drain or list schedulers",
        "tick": "Do all work that is due, then print when to wake next",
        "token": "Create, list, rotate and revoke API tokens",
        "audit": "List who changed what",
        "db": "Manage the store's schema and shared settings",
        "store": "Copy one store to another",
        "prune": "Delete old runs and unused environments",
    },
    "Help": {
        "help": "Show the help of a command",
        "explain": "Explain an error code, with an example",
        "doctor": "Check everything that Ork needs on this machine",
        "schema": "Print the JSON Schema of the YAML files, for editors",
        "completion": "Print a completion script for your shell",
        "bench": "Measure speed, compared with the limits of this machine",
        "sim": "Simulate crashes and check all guarantees",
        "chaos": "Kill parts of a sandbox copy of your project and check all guarantees",
    },
}

MODULES = {
    "import": "imports",
    "cancel": "run_commands",
    "pause": "run_commands",
    "resume": "run_commands",
    "retry": "run_commands",
    "approve": "approvals",
    "reject": "approvals",
    "declare-dead": "declare_dead",
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


class _ClosedPipeError(Exception):
    """The reader of our output has closed the pipe."""


class _Ork(LazyGroup):
    sections = SECTIONS
    modules = MODULES

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise _ClosedPipeError from error  # click would report a failure


@click.command(cls=_Ork, name="ork", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, message="ork %(version)s")
@click.option("--store", metavar="URL", help="The state store (default: SQLite in .ork/ of the project).")
@click.option("--objects", metavar="URL", help="The object store (default: .ork/objects).")
@click.option("--server", metavar="URL", help="Use the API of `ork serve` instead, with the token in ORK_TOKEN.")
@click.pass_context
def ork(context: click.Context, store: str | None, objects: str | None, server: str | None) -> None:
    """Ork runs workflows of plain functions and scripts.

    First minutes:  ork init hello && cd hello && ork run
    """
    context.obj = {"store": store, "objects": objects, "server": server}


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    if sys.platform == "win32":
        sys.exit(NO_WINDOWS)
    # Imports create many objects and no garbage; the default threshold costs a tenth of a short command's time.
    gc.set_threshold(50_000, 20, 20)
    replace_unencodable(sys.stdout, sys.stderr, ascii_only=wants_ascii())
    code = run(list(sys.argv[1:] if arguments is None else arguments))
    if _is_whole_program():
        sys.stderr.flush()
        # Everything is closed by now. A regular interpreter shutdown takes twice as long as its start.
        os._exit(code)
    sys.exit(code)


def _is_whole_program() -> bool:
    """Whether this process is `ork` itself, not a test or a program that calls it."""
    file = getattr(sys.modules.get("__main__"), "__file__", None) or ""
    return file.endswith(("/bin/ork", "/ork/__main__.py"))


def run(arguments: list[str]) -> int:
    """Runs one command line and returns its exit code. Exceptions do not propagate."""
    as_json = wants_json(arguments)
    try:
        result = ork.main(args=arguments, prog_name="ork", standalone_mode=False)
        sys.stdout.flush()  # here, where a closed pipe is handled
        return result if isinstance(result, int) else 0
    except (BrokenPipeError, _ClosedPipeError):
        return _exit_on_closed_pipe()
    except BaseException as error:
        return _code_of(error, arguments, as_json)


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether errors are printed as JSON; determined before the arguments are parsed."""
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


def _exit_on_closed_pipe() -> int:
    # The reader has closed the pipe (`ork logs … | head`): the flush at exit must not fail.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
