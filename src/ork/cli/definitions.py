"""Finds, reads and compiles the workflow files that a person names, and prints their errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ork.cli.session import palette
from ork.errors import DefinitionError, NotFoundError, UsageError
from ork.settings import Settings

if TYPE_CHECKING:
    from ork.definition.problems import Problem
    from ork.locations.files import Definition, FileContext
    from ork.model.workflow import CompiledWorkflow, Version

DEFAULT_FILES = ("workflow.yaml", "workflow.yml", "workflow.py")
SETTINGS_FILES = ("ork.yaml", "workers.yaml", "locations.yaml")
SUFFIXES = (".yaml", ".yml", ".py")
MAX_SHOWN = 50
MAX_NAMED = 3
_ROLES = {"error": "bold bad", "title": "bold", "frame": "dim", "help": "busy"}


def default_file() -> str:
    for name in DEFAULT_FILES:
        if os.path.isfile(name):
            return name
    raise UsageError(
        "there is no workflow.yaml in this folder", hint="name a file or a workflow, or begin with `ork init`"
    )


def workflow_files(files: Sequence[str]) -> tuple[str, ...]:
    """The named files without settings such as ork.yaml, which `*.yaml` includes; the default file if none is named."""
    if not files:
        return (default_file(),)
    found = tuple(file for file in files if os.path.basename(file) not in SETTINGS_FILES)
    if not found:
        raise UsageError(f"{files[0]} has settings, not a workflow", hint="`ork validate` checks it")
    return found


def is_file_name(text: str) -> bool:
    """A path or a name with one of the suffixes is a file; any other word is a workflow's name."""
    return text.endswith(SUFFIXES) or "/" in text or os.path.isfile(text)


def read_definitions(file: str, settings: Settings, *, strict: bool = False) -> list[Definition]:
    """Everything a file defines; `strict` requires types. NotFoundError if the file is missing."""
    from ork.locations import files

    return files.read_definitions(file, around(settings), strict=strict)


def around(settings: Settings) -> FileContext:
    """The project settings that definitions are checked against."""
    from ork.locations.files import FileContext
    from ork.model.record import replaced

    # script_dir is absolute, so that it does not depend on the workflow's folder.
    project = replaced(settings.project_with_secrets, script_dir=settings.script_dir)
    # Reading a file must not create a project folder.
    cache_dir = os.path.join(settings.home, "cache") if os.path.isdir(settings.home) else None
    return FileContext(project, cache_dir, settings.home)


def read_versions(file: str, settings: Settings, name: str | None = None) -> list[Version]:
    """The workflow in the file (named `name` if it has several), then its sub-workflows; all ready to be saved.

    DefinitionError holds all problems.
    """
    reads = read_definitions(file, settings)
    problems = [problem for read in reads for problem in read.problems]
    if problems:
        raise definition_error(problems)
    chosen = _chosen(file, reads, name)
    return all_versions(_used(chosen, reads))


def all_versions(reads: Iterable[tuple[Definition, CompiledWorkflow]]) -> list[Version]:
    """The versions of these workflows, with the code of their projects as it is now."""
    from ork.source_code.read import CodeReader

    code = CodeReader()
    return [code.version(workflow, read.root, os.path.abspath(read.file)) for read, workflow in reads]


def _chosen(file: str, reads: Sequence[Definition], name: str | None) -> Definition:
    own = [read for read in reads if read.is_own]
    names = [read.workflow.name for read in own if read.workflow is not None]
    if name is None and len(own) == 1:
        return own[0]
    if name is None:
        raise UsageError(f"{file} has {len(own)} workflows", hint=f"name one of: {', '.join(names)}", code="ORK511")
    if name not in names:
        raise NotFoundError(f"{file} has no workflow `{name}`", hint=f"it has: {', '.join(names)}", code="ORK511")
    return own[names.index(name)]


def _used(chosen: Definition, reads: Sequence[Definition]) -> list[tuple[Definition, CompiledWorkflow]]:
    """The chosen workflow and its sub-workflows from the same file."""
    from ork.locations.files import sub_workflows

    by_name = {read.workflow.name: (read, read.workflow) for read in reads if read.workflow is not None}
    wanted = [chosen.workflow.name] if chosen.workflow is not None else []
    for name in wanted:  # grows during iteration
        below = [each for each in sub_workflows(by_name[name][1]) if each in by_name]
        wanted += [each for each in below if each not in wanted]
    return [by_name[name] for name in wanted]


def definition_error(problems: Sequence[Problem]) -> DefinitionError:
    """An error with all problems, the first few in its message."""
    from ork.definition.problems import render_concise

    rest = f"; and {len(problems) - MAX_NAMED:,} more" if len(problems) > MAX_NAMED else ""
    return DefinitionError("; ".join(map(render_concise, problems[:MAX_NAMED])) + rest, tuple(problems))


def parse_params(
    workflow: CompiledWorkflow, pairs: Sequence[str], kept: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """`-p key=value` pairs checked against the workflow's params, completed from `kept` and defaults."""
    from ork.compile import params

    given: dict[str, str] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"`{pair}` is not key=value", hint=f"write `-p {name or 'key'}=VALUE`")
        given[name] = text
    return params.parse_params(workflow, given, kept)


def print_problems(problems: Sequence[object]) -> None:
    """Prints the problems in full on stderr, at most fifty."""
    from ork.cli.paint import line
    from ork.definition.problems import render_full

    colours = palette(sys.stderr)

    def style(role: str, text: str) -> str:
        from ork.cli.paint import Span

        return colours.render(line(Span(text, _ROLES.get(role))))

    for problem in problems[:MAX_SHOWN]:
        print(render_full(problem, style), end="\n\n", file=sys.stderr)  # type: ignore[arg-type]
    if len(problems) > MAX_SHOWN:
        more = len(problems) - MAX_SHOWN
        print(f"… {more:,} more (`ork validate --format concise` shows all)\n", file=sys.stderr)
