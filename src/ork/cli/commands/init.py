"""`ork init`: a project that runs, with a test."""

from __future__ import annotations

import os

import click

from ork.cli.session import json_option, print_json
from ork.errors import RefusedError, UsageError

WORKFLOW = """\
name: {name}
description: Reads orders, counts the active ones, writes the result to a file

tasks:
  extract:
    file: tasks.py
    function: extract
  transform:
    file: tasks.py
    function: transform
    depends_on: [extract]
  load:
    file: tasks.py
    function: load
    depends_on: [transform]
"""

TASKS = '''\
"""Plain functions. A parameter named after an upstream task receives what that task returned."""

import json
from pathlib import Path


def extract() -> dict:
    print("reading orders")
    return {"rows": 12}


def transform(extract: dict) -> dict:
    active = [number for number in range(extract["rows"]) if number % 4 != 0]
    return {"active": len(active)}


def load(transform: dict) -> dict:
    path = Path("out/active.json")
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(transform))
    return {"path": str(path)}
'''

TESTS = '''\
"""Tasks are plain functions, so their tests are plain tests: `python -m pytest`."""

from tasks import extract, load, transform


def test_every_fourth_order_is_inactive():
    assert transform({"rows": 4}) == {"active": 3}


def test_the_three_tasks_fit_together(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert load(transform(extract())) == {"path": "out/active.json"}
    assert (tmp_path / "out/active.json").read_text() == '{"active": 9}'
'''

FILES = {
    "workflow.yaml": (WORKFLOW, "3 tasks, {lines} lines"),
    "tasks.py": (TASKS, "plain functions, nothing imported from Ork"),
    "test_tasks.py": (TESTS, "tests the functions as they are"),
}


@click.command(name="init")
@click.argument("folder", default=".")
@json_option
def init_command(folder: str, as_json: bool) -> None:
    """A project that runs, with a test. Never overwrites a file.

    \b
    Example:  ork init hello && cd hello && ork run
    """
    taken = [name for name in FILES if os.path.lexists(os.path.join(folder, name))]
    if taken:
        raise RefusedError(
            f"{', '.join(taken)} already there: nothing was written", hint="give another folder: ork init DIR"
        )
    name = _workflow_name(folder)
    try:
        os.makedirs(folder, exist_ok=True)
        for file, (text, _) in FILES.items():
            # "x" refuses a file that appeared meanwhile.
            with open(os.path.join(folder, file), "x", encoding="utf-8") as out:
                out.write(text.replace("{name}", name))
    except OSError as error:
        raise UsageError(f"cannot write to {folder}: {error.strerror}") from error
    if as_json:
        print_json({"folder": os.path.abspath(folder), "workflow": name, "files": list(FILES)})
        return
    print(f"Created {'files in this folder' if folder == '.' else folder.rstrip('/') + '/'}")
    for file, (text, about) in FILES.items():
        print(f"  {file:<15} {about.format(lines=text.count(chr(10)))}")
    print("Next:  ork run" + ("" if folder == "." else f"   (in {folder.rstrip('/')}/)"))


def _workflow_name(folder: str) -> str:
    """The folder's name, as far as it can name a workflow."""
    import re

    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", os.path.basename(os.path.abspath(folder))).strip("-.")
    return name[:100] or "hello"
