"""The projects that `ork init` can create. Their files are in `templates/NAME`, each with `.txt` after its name."""

from __future__ import annotations

import re
from importlib import resources
from typing import NamedTuple

_SUFFIX = ".txt"


class Template(NamedTuple):
    """`files`: what is said about each file that is worth a word. `next`: the commands to begin with. `base`: the template
    whose files it has as well."""

    files: dict[str, str]
    next: tuple[str, ...] = ("ork run",)
    base: str | None = None


_TESTS = "tests of the functions"
_FUNCTIONS = "plain functions, nothing imported from Ork"

TEMPLATES: dict[str, Template] = {
    "hello": Template(
        {"workflow.yaml": "{tasks} tasks, {lines} lines", "tasks.py": _FUNCTIONS, "test_tasks.py": _TESTS},
    ),
    "etl": Template(
        {
            "workflow.yaml": "{tasks} tasks, params, a schedule to switch on",
            "tasks.py": _FUNCTIONS,
            "test_tasks.py": _TESTS,
            "orders.csv": "the table it reads",
        },
        ("ork run", "ork output @last totals"),
    ),
    "dbt": Template(
        {
            "workflow.yaml": "the models of warehouse/, and a report",
            "ork.yaml": "one writer at a time",
            "report.py": _FUNCTIONS,
            "test_report.py": "a test of the function; dbt tests its models",
            "warehouse/": "the dbt project: a seed, two models, their tests",
        },
        ("ork run", "ork output @last report"),
    ),
    "ml": Template(
        {
            "workflow.yaml": "{tasks} tasks: a fan-out, a cache, a condition",
            "tasks.py": _FUNCTIONS,
            "test_tasks.py": _TESTS,
            "houses.csv": "the data",
        },
        ("ork run", "ork output @last choose"),
    ),
    "docker": Template(
        {
            "Dockerfile": "builds an image of the workflow and its functions",
            "locations.yaml": "makes Ork check that image every minute",
        },
        ("docker build -t __IMAGE__ . && ork locations refresh __NAME__ && ork run __NAME__",),
        base="hello",
    ),
}


class NewProject(NamedTuple):
    files: dict[str, str]  # texts by name
    about: dict[str, str]
    next: tuple[str, ...]


def new_project(template: str, name: str) -> NewProject:
    """The files of a project whose workflow has this name, what is said about them, and the next commands."""
    chosen = TEMPLATES[template]
    base = new_project(chosen.base, name) if chosen.base is not None else NewProject({}, {}, ())
    files = {**base.files, **{file: _filled(text, name) for file, text in _texts(template).items()}}
    about = {**base.about, **{file: _described(text, files.get(file, "")) for file, text in chosen.files.items()}}
    return NewProject(files, about, tuple(_filled(command, name) for command in chosen.next))


def _texts(template: str) -> dict[str, str]:
    """The files of a template, those with a description first, in that order."""
    found: dict[str, str] = {}
    waiting = [("", resources.files("ork.cli").joinpath("templates", template))]
    while waiting:
        below, folder = waiting.pop()
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
            if entry.is_dir():
                waiting.append((f"{below}{entry.name}/", entry))
            elif entry.name.endswith(_SUFFIX):
                found[below + entry.name.removesuffix(_SUFFIX)] = entry.read_text("utf-8")
    first = [file for file in TEMPLATES[template].files if file in found]
    return {file: found[file] for file in dict.fromkeys([*first, *sorted(found)])}


def _described(about: str, text: str) -> str:
    tasks = len(re.findall(r"^  \w+:$", text.partition("\ntasks:\n")[2], re.MULTILINE))
    return about.replace("{lines}", str(text.count("\n"))).replace("{tasks}", str(tasks))


def _filled(text: str, name: str) -> str:
    return text.replace("__NAME__", name).replace("__IMAGE__", _image_name(name))


def _image_name(name: str) -> str:
    """The workflow's name in lower case, with single dashes, as an image name requires."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "hello"
