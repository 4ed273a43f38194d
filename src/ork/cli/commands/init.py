"""`ork init`: creates a project that runs, with a test."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress

import click

from ork.cli.session import json_option, print_json
from ork.errors import RefusedError, UsageError

SCHEMA = ".ork/workflow.schema.json"  # recreated by `ork schema > .ork/workflow.schema.json`
NAMES = ("hello", "etl", "dbt", "ml", "docker")
_WIDTH = 15


@click.command(name="init")
@click.argument("folder", default=".")
@click.option("--template", type=click.Choice(NAMES), help="What to begin with.  [default: hello]")
@click.option("--docker", is_flag=True, help="The same as --template docker.")
@json_option
def init_command(folder: str, template: str | None, docker: bool, as_json: bool) -> None:
    """Create a project that runs, with a test. Never overwrites a file.

    \b
    hello    three functions, one after the other
    etl      a table in, a table out: checked, retried, loaded in one transaction
    dbt      a dbt project on DuckDB, each model a task, and a report
    ml       models trained side by side, the best one published if it is good enough
    docker   hello, delivered as an image

    \b
    Example:  ork init hello && cd hello && ork run
              ork init --template etl nightly
    """
    from ork.cli.init_templates import new_project

    if docker and template not in (None, "docker"):
        raise UsageError(f"--docker and --template {template} exclude each other")
    chosen = "docker" if docker else template or "hello"
    name = _workflow_name(folder)
    project = new_project(chosen, name)
    _write(folder, project.files)
    write_schema(folder)
    if as_json:
        shape = {"folder": os.path.abspath(folder), "workflow": name, "files": list(project.files)}
        print_json({**shape, "template": chosen, "next": list(project.next)})
        return
    print(f"Created {'files in this folder' if folder == '.' else folder.rstrip('/') + '/'}")
    width = max(_WIDTH, *(len(file) + 1 for file in project.about))
    for file, about in project.about.items():
        print(f"  {file:<{width}} {about}")
    where = "" if folder == "." else f"   (in {folder.rstrip('/')}/)"
    print("Next:  " + "\n       ".join(project.next) + where)


def _write(folder: str, files: dict[str, str]) -> None:
    taken = [name for name in files if os.path.lexists(os.path.join(folder, name))]
    if taken:
        raise RefusedError(
            f"{', '.join(taken)} already exists: nothing was written", hint="name another folder: ork init DIR"
        )
    written: list[str] = []
    made: list[str] = []
    try:
        os.makedirs(folder, exist_ok=True)
        for name, text in files.items():
            _make_folders(folder, os.path.dirname(name), made)
            path = os.path.join(folder, name)
            # "x" refuses a file that appeared meanwhile.
            with open(path, "x", encoding="utf-8") as out:
                written.append(path)
                out.write(text)
    except OSError as error:
        for path in written:  # an incomplete project would block the next try
            os.unlink(path)
        for path in reversed(made):
            with suppress(OSError):
                os.rmdir(path)
        raise UsageError(f"cannot write to {folder}: {error.strerror}; nothing was left there") from error


def _make_folders(folder: str, below: str, made: list[str]) -> None:
    """Makes the folders on the way to a file, and adds them to `made`."""
    path = folder
    for part in below.split("/") if below else ():
        path = os.path.join(path, part)
        if not os.path.isdir(path):
            os.mkdir(path)
            made.append(path)


def write_schema(folder: str) -> None:
    """Writes the schema that workflow.yaml refers to, for completion and checks in editors. Optional: errors are ignored."""
    from ork.definition.schema import workflow_schema

    path = os.path.join(folder, SCHEMA)
    with suppress(OSError):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            json.dump(workflow_schema(), out)


def _workflow_name(folder: str) -> str:
    """The folder's name without characters that are not allowed in a workflow's name."""
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", os.path.basename(os.path.abspath(folder))).strip("-.")
    return name[:100] or "hello"
