"""`ork import`: writes a project from a crontab, Airflow DAGs, a GitHub Actions workflow, Prefect flows or Dagster jobs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ork.cli.session import json_option, print_json
from ork.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from ork.importers.project import ImportedProject

F = TypeVar("F", bound=Callable[..., Any])


@click.group(name="import")
def import_command() -> None:
    """Write a project from what you have: nothing of it is run, and the originals stay as they are.

    Each form writes a folder with workflows that pass `ork validate`, and REPORT.md: what was translated, and what needs a
    person, with the lines of the original. A task that could not be translated fails, and names its place.

    \b
    Example:  ork import crontab -o jobs
              ork import airflow ~/airflow/dags -o flows
    """


def _output(command: F) -> F:
    command = json_option(command)
    return click.option("-o", "--output", required=True, metavar="DIR", help="The new folder; it must be empty.")(
        command
    )


@import_command.command("crontab")
@click.argument("file", required=False)
@click.option("--timezone", metavar="ZONE", help="The zone of the times (default: CRON_TZ, else that of this machine).")
@click.option(
    "--system/--user", "has_user", default=None, help="The file has (no) column with the user, as /etc/crontab."
)
@click.option("--retries", type=click.IntRange(0, 1000), default=0, help="Retry failed commands so often.")
@_output
def crontab_command(
    file: str | None, timezone: str | None, has_user: bool | None, retries: int, output: str, as_json: bool
) -> None:
    """Import a crontab: one workflow for each line. Without FILE your own (`crontab -l`); `-` is standard input.

    \b
    Example:  ork import crontab /etc/crontab --retries 2 -o jobs
    """
    from ork.importers.crontab import CrontabOptions, import_crontab

    text, name = _crontab_text(file)
    zone = timezone or _local_zone()
    _finish(import_crontab(text, name, CrontabOptions(zone, has_user, retries)), output, as_json)


@import_command.command("airflow")
@click.argument("folder", metavar="DAGS_FOLDER")
@_output
def airflow_command(folder: str, output: str, as_json: bool) -> None:
    """Import the DAGs of a folder, or of one file.

    \b
    Example:  ork import airflow ~/airflow/dags -o flows
    """
    from ork.importers.airflow import import_airflow

    _finish(import_airflow(_existing(folder)), output, as_json)


@import_command.command("github-actions")
@click.argument("file")
@_output
def github_actions_command(file: str, output: str, as_json: bool) -> None:
    """Import a workflow of GitHub Actions, or all of a folder.

    \b
    Example:  ork import github-actions .github/workflows/nightly.yml -o flows
    """
    from ork.importers.github_actions import import_github_actions

    _finish(import_github_actions(_existing(file)), output, as_json)


@import_command.command("prefect")
@click.argument("file")
@_output
def prefect_command(file: str, output: str, as_json: bool) -> None:
    """Import the flows of a Prefect file or folder.

    \b
    Example:  ork import prefect flows.py -o flows
    """
    from ork.importers.prefect import import_prefect

    _finish(import_prefect(_existing(file)), output, as_json)


@import_command.command("dagster")
@click.argument("file")
@_output
def dagster_command(file: str, output: str, as_json: bool) -> None:
    """Import the jobs and assets of a Dagster file or folder.

    \b
    Example:  ork import dagster definitions.py -o flows
    """
    from ork.importers.dagster import import_dagster

    _finish(import_dagster(_existing(file)), output, as_json)


def _existing(path: str) -> str:
    if not os.path.exists(path):
        raise NotFoundError(f"there is no {path}")
    return path


def _crontab_text(file: str | None) -> tuple[str, str]:
    if file == "-":
        return sys.stdin.read(), "standard input"
    if file is None:
        return _own_crontab(), "crontab"
    from ork.importers.sources import read_text

    return read_text(_existing(file)), file


def _own_crontab() -> str:
    import subprocess

    try:
        listed = subprocess.run(["crontab", "-l"], capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise UsageError("there is no program `crontab` here", hint="name a file: ork import crontab FILE") from error
    if listed.returncode:
        raise NotFoundError(
            f"crontab -l: {listed.stderr.strip() or 'failed'}", hint="name a file: ork import crontab FILE"
        )
    return listed.stdout


def _local_zone() -> str:
    """The time zone of this machine by its IANA name; UTC if it has none."""
    from ork.importers.sources import local_zone

    return local_zone()


def _finish(project: ImportedProject, output: str, as_json: bool) -> None:
    """Writes the project and prints the summary."""
    from ork.cli.commands.init import write_schema
    from ork.importers.report import terminal_lines, to_json
    from ork.importers.write import write_project

    if not project.workflows:
        todo = [f"{note.place}: {note.text}" for note in project.notes if note.place][:3]
        raise UsageError(f"nothing to import in {project.source}{': ' if todo else ''}{'; '.join(todo)}")
    files = write_project(project, output)
    write_schema(output)
    if as_json:
        print_json({"folder": os.path.abspath(output), "files": files} | to_json(project))
        return
    print("\n".join(terminal_lines(project)))
    first = project.workflows[0].name
    print(f"Written to {output.rstrip('/')}/, with REPORT.md.")
    print(f"Next:  cd {output.rstrip('/')} && ork run {first}.yaml && ork deploy *.yaml && ork schedules && ork serve")
