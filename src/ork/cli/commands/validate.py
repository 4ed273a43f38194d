"""`ork validate`: checks workflow files and shows all errors."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ork.cli.definitions import default_file, print_problems, read_definitions
from ork.cli.errors import DONE, WRONG_USE
from ork.cli.session import json_option, print_json, settings_for, store_options

if TYPE_CHECKING:
    from ork.locations.files import Definition


@click.command(name="validate")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option("--format", "form", type=click.Choice(["full", "concise", "json", "github"]), default="full")
@click.option("--strict", is_flag=True, help="Every input and output must have a type.")
@json_option
@store_options
def validate_command(files: tuple[str, ...], form: str, strict: bool, as_json: bool) -> int:
    """Check workflow files and show all errors, each with its location and a fix.

    ork.yaml, workers.yaml and locations.yaml are checked as well.

    \b
    Example:  ork validate flows/*.yaml etl.py --format concise
    """
    results = [read for file in files or (default_file(),) for read in _read(file, strict)]
    problems = [problem for result in results for problem in result.problems]
    if as_json or form == "json":
        _print_json(results)
    elif form == "full":
        _print_full(results)
    else:
        from ork.definition.problems import render_concise, render_github

        for problem in problems:
            print(render_github(problem) if form == "github" else render_concise(problem))
    return WRONG_USE if problems else DONE


def _read(file: str, strict: bool) -> list[Definition]:
    from ork.locations.files import read_project_file

    found = read_project_file(file)
    return [found] if found is not None else read_definitions(file, settings_for(file), strict=strict)


def _print_full(results: list[Definition]) -> None:
    problems = [problem for result in results for problem in result.problems]
    print_problems(problems)
    for result in results:
        if result.workflow is not None:
            tasks = len(result.workflow.tasks)
            print(f"✓ {result.file}: workflow {result.workflow.name}, {tasks:,} task{'' if tasks == 1 else 's'}")
        elif not result.problems:
            print(f"✓ {result.file}")
    if problems:
        print(f"{len(problems):,} error{'' if len(problems) == 1 else 's'}.", file=sys.stderr)


def _print_json(results: list[Definition]) -> None:
    from ork.definition.problems import to_json

    workflows = [{"name": read.workflow.name, "tasks": len(read.workflow.tasks)} for read in results if read.workflow]
    problems = [to_json(problem) for read in results for problem in read.problems]
    print_json({"ok": not problems, "workflows": workflows, "problems": problems})
