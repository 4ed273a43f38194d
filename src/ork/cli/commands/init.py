"""`ork init`: creates a project that runs, with a test."""

from __future__ import annotations

import json
import os
from contextlib import suppress

import click

from ork.cli.session import json_option, print_json
from ork.errors import RefusedError, UsageError

SCHEMA = ".ork/workflow.schema.json"  # recreated by `ork schema > .ork/workflow.schema.json`

WORKFLOW = """\
# yaml-language-server: $schema=.ork/workflow.schema.json
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

DOCKERFILE = """\
# The image contains the code, its dependencies, and Ork, whose `ork-parse` lists the workflows in the image.
ARG PYTHON=python:3.12-slim
FROM ${PYTHON}
RUN pip install --no-cache-dir ork-orchestrator
WORKDIR /app
COPY workflow.yaml tasks.py ./
"""

LOCATIONS = """\
# Where workflows come from: the image as it was last built on this machine. Once it is in a registry, write its full
# name (registry.example.org/{image}:latest) and remove `pull`.
- name: {name}
  image: {image}
  pull: never
  refresh: "* * * * *"
"""

FILES = {
    "workflow.yaml": (WORKFLOW, "3 tasks, {lines} lines"),
    "tasks.py": (TASKS, "plain functions, nothing imported from Ork"),
    "test_tasks.py": (TESTS, "tests of the functions"),
}
DOCKER_FILES = {
    "Dockerfile": (DOCKERFILE, "builds an image of the workflow and its functions"),
    "locations.yaml": (LOCATIONS, "makes Ork check that image every minute"),
}


@click.command(name="init")
@click.argument("folder", default=".")
@click.option("--docker", is_flag=True, help="Add a Dockerfile, and a locations.yaml for the image.")
@json_option
def init_command(folder: str, docker: bool, as_json: bool) -> None:
    """Create a project that runs, with a test. Never overwrites a file.

    \b
    Example:  ork init hello && cd hello && ork run
    """
    files = FILES | DOCKER_FILES if docker else FILES
    name = _workflow_name(folder)
    _write(folder, {file: _filled(text, name) for file, (text, _) in files.items()})
    write_schema(folder)
    if as_json:
        print_json({"folder": os.path.abspath(folder), "workflow": name, "files": list(files)})
        return
    print(f"Created {'files in this folder' if folder == '.' else folder.rstrip('/') + '/'}")
    for file, (text, about) in files.items():
        print(f"  {file:<15} {about.format(lines=text.count(chr(10)))}")
    where = "" if folder == "." else f"   (in {folder.rstrip('/')}/)"
    print(f"Next:  {_next(name) if docker else 'ork run'}{where}")


def _write(folder: str, files: dict[str, str]) -> None:
    taken = [name for name in files if os.path.lexists(os.path.join(folder, name))]
    if taken:
        raise RefusedError(
            f"{', '.join(taken)} already exists: nothing was written", hint="name another folder: ork init DIR"
        )
    written: list[str] = []
    try:
        os.makedirs(folder, exist_ok=True)
        for path, text in ((os.path.join(folder, file), text) for file, text in files.items()):
            # "x" refuses a file that appeared meanwhile.
            with open(path, "x", encoding="utf-8") as out:
                written.append(path)
                out.write(text)
    except OSError as error:
        for path in written:  # an incomplete project would block the next try
            os.unlink(path)
        raise UsageError(f"cannot write to {folder}: {error.strerror}; nothing was left there") from error


def write_schema(folder: str) -> None:
    """Writes the schema that workflow.yaml refers to, for completion and checks in editors. Optional: errors are ignored."""
    from ork.definition.schema import workflow_schema

    path = os.path.join(folder, SCHEMA)
    with suppress(OSError):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            json.dump(workflow_schema(), out)


def _filled(text: str, name: str) -> str:
    return text.replace("{name}", name).replace("{image}", _image_name(name))


def _next(name: str) -> str:
    image = _image_name(name)
    return f"docker build -t {image} . && ork locations refresh {name} && ork run {name}"


def _workflow_name(folder: str) -> str:
    """The folder's name without characters that are not allowed in a workflow's name."""
    import re

    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", os.path.basename(os.path.abspath(folder))).strip("-.")
    return name[:100] or "hello"


def _image_name(name: str) -> str:
    """The workflow's name in lower case, with single dashes, as an image name requires."""
    import re

    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "hello"
