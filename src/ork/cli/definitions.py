"""Workflow files as a person names them: found, read, compiled, and their mistakes shown."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ork.cli.session import palette
from ork.errors import DefinitionError, NotFoundError, UsageError
from ork.settings import Settings

if TYPE_CHECKING:
    from ork.definition.problems import Problem
    from ork.model.workflow import CompiledWorkflow, Version

DEFAULT_FILES = ("workflow.yaml", "workflow.yml")
SUFFIXES = (".yaml", ".yml")
MAX_SHOWN = 50
MAX_NAMED = 3
_ROLES = {"error": "bold bad", "title": "bold", "frame": "dim", "help": "busy"}


class Read(NamedTuple):
    """A file and what it means; `workflow` is None when it has problems."""

    file: str
    root: str
    workflow: CompiledWorkflow | None
    problems: tuple[Problem, ...]


def default_file() -> str:
    for name in DEFAULT_FILES:
        if os.path.isfile(name):
            return name
    raise UsageError(
        "there is no workflow.yaml in this folder", hint="name a file or a workflow, or begin with `ork init`"
    )


def is_file_name(text: str) -> bool:
    """A person who writes a path or a YAML suffix means a file, any other word a workflow's name."""
    return text.endswith(SUFFIXES) or "/" in text or os.path.isfile(text)


def read_definition(file: str, settings: Settings) -> Read:
    """Reads and compiles one file, relative to its own folder. A missing file is NotFoundError."""
    from dataclasses import replace

    from ork.compile.load import load_workflow

    root = os.path.dirname(os.path.abspath(file))
    reader = _Reader(root)
    # Seen from the workflow's folder, script_dir is where the project has it.
    project = settings.project and replace(settings.project, script_dir=settings.script_dir)
    loaded = load_workflow(_read_bytes(file), file, read=reader, exists=reader.has, root=root, project=project)
    return Read(file, root, loaded.workflow, loaded.problems)


def read_version(file: str, settings: Settings) -> Version:
    """The file as a version, ready to be saved. Mistakes are a DefinitionError that holds them all."""
    from ork.compile.content import make_version

    read = read_definition(file, settings)
    if read.workflow is None:
        raise mistakes(read.problems)
    return make_version(read.workflow, read.root, os.path.abspath(file))


def mistakes(problems: Sequence[Problem]) -> DefinitionError:
    """The problems as an error: the first few in its message, all of them in its keeping."""
    from ork.definition.problems import render_concise

    rest = f"; and {len(problems) - MAX_NAMED:,} more" if len(problems) > MAX_NAMED else ""
    return DefinitionError("; ".join(map(render_concise, problems[:MAX_NAMED])) + rest, tuple(problems))


def parse_params(workflow: CompiledWorkflow, pairs: Sequence[str]) -> dict[str, Any]:
    """`-p key=value` pairs, checked against the workflow's params, with defaults filled in."""
    from ork.compile import params

    given: dict[str, str] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"`{pair}` is not key=value")
        given[name] = text
    return params.parse_params(workflow, given)


def print_problems(problems: Sequence[object]) -> None:
    """All problems in full on stderr (the first fifty of a hopeless file)."""
    from ork.cli.paint import line
    from ork.definition.problems import render_full

    colours = palette(sys.stderr)

    def style(role: str, text: str) -> str:
        from ork.cli.paint import Span

        return colours.render(line(Span(text, _ROLES.get(role))))

    for problem in problems[:MAX_SHOWN]:
        print(render_full(problem, style), end="\n\n", file=sys.stderr)  # type: ignore[arg-type]
    if len(problems) > MAX_SHOWN:
        print(f"… and {len(problems) - MAX_SHOWN:,} more\n", file=sys.stderr)


class _Reader:
    """Files a workflow speaks of, each read once; None for one that is not there."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._known: dict[str, bytes | None] = {}

    def __call__(self, path: str) -> bytes | None:
        if path not in self._known:
            try:
                self._known[path] = _read_bytes(os.path.join(self._root, path))
            except NotFoundError:
                self._known[path] = None
        return self._known[path]

    def has(self, path: str) -> bool:
        return os.path.exists(os.path.join(self._root, path))


def _read_bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError(f"there is no file {path}") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
