"""Workflow files as a person names them: found, read, compiled, and their mistakes shown."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ork.cli.session import palette
from ork.errors import DefinitionError, NotFoundError, UsageError
from ork.settings import Settings

if TYPE_CHECKING:
    from ork.compile.dbt import DbtNode
    from ork.compile.load import Loaded
    from ork.definition.imports import WrittenImport
    from ork.definition.problems import Problem
    from ork.locations.inspect import Inspected
    from ork.model.workflow import CompiledWorkflow, Version

DEFAULT_FILES = ("workflow.yaml", "workflow.yml", "workflow.py")
YAML = (".yaml", ".yml")
PYTHON = ".py"
SUFFIXES = (*YAML, PYTHON)
MAX_SHOWN = 50
MAX_NAMED = 3
_ROLES = {"error": "bold bad", "title": "bold", "frame": "dim", "help": "busy"}


class Read(NamedTuple):
    """A file and what it means; `workflow` is None when it has problems."""

    file: str
    root: str
    workflow: CompiledWorkflow | None
    problems: tuple[Problem, ...]
    is_own: bool = True  # not only used by a workflow of the file that was named


def default_file() -> str:
    for name in DEFAULT_FILES:
        if os.path.isfile(name):
            return name
    raise UsageError(
        "there is no workflow.yaml in this folder", hint="name a file or a workflow, or begin with `ork init`"
    )


def is_file_name(text: str) -> bool:
    """A person who writes a path or such a suffix means a file, any other word a workflow's name."""
    return text.endswith(SUFFIXES) or "/" in text or os.path.isfile(text)


def read_definition(file: str, settings: Settings, *, strict: bool = False) -> Read:
    """Reads and compiles one file, relative to its own folder. A missing file is NotFoundError."""
    from ork.compile.load import load_workflow
    from ork.model.record import replaced

    root = os.path.dirname(os.path.abspath(file))
    reader = _Reader(root)
    # Seen from the workflow's folder, script_dir is where the project has it.
    project = settings.project and replaced(settings.project, script_dir=settings.script_dir)
    loaded = load_workflow(
        _read_bytes(file),
        file,
        read=reader,
        exists=reader.has,
        root=root,
        project=project,
        imports=lambda entry: _imported(entry, root, settings),
    )
    loaded = _with_types_checked(loaded, root, settings, strict)
    return Read(file, root, loaded.workflow, loaded.problems)


def _imported(entry: WrittenImport, root: str, settings: Settings) -> Sequence[DbtNode]:
    from ork.locations.dbt import DbtProjects

    cache_dir = os.path.join(settings.home, "cache", "dbt") if os.path.isdir(settings.home) else None
    return DbtProjects(root, cache_dir)(entry)


def _with_types_checked(
    loaded: Loaded,
    root: str,
    settings: Settings,
    strict: bool,
    known: dict[tuple[str, str], Inspected] | None = None,
) -> Loaded:
    from ork.executors.local_python import InterpreterError, project_python
    from ork.locations.check import check_types

    try:
        interpreter: str | None = project_python(root)
    except InterpreterError:
        interpreter = None  # the run says so, with its reason
    return check_types(
        loaded, root=root, interpreter=interpreter, cache_dir=_cache_dir(settings), strict=strict, known=known
    )


def _cache_dir(settings: Settings) -> str | None:
    """Looking at a file must not make a folder a project."""
    return os.path.join(settings.home, "cache", "inspect") if os.path.isdir(settings.home) else None


def read_definitions(file: str, settings: Settings, *, strict: bool = False) -> list[Read]:
    """Everything a file defines: a YAML file one workflow (and those beside it that it runs), a Python file any number.

    `strict` asks for types.
    """
    if file.endswith(PYTHON):
        return _read_python(file, settings, strict)
    return _with_neighbours(read_definition(file, settings, strict=strict), settings, strict)


def _with_neighbours(first: Read, settings: Settings, strict: bool) -> list[Read]:
    """A workflow that a task runs is taken along, if the file of its name stands beside the one that names it."""
    reads = [first]
    for read in reads:  # grows while it is walked
        known = {each.workflow.name for each in reads if each.workflow is not None}
        for name in sub_workflows(read.workflow):
            stem = os.path.join(os.path.dirname(read.file), name)
            file = next((stem + suffix for suffix in YAML if os.path.isfile(stem + suffix)), None)
            if file is not None and name not in known:
                known.add(name)
                reads.append(read_definition(file, settings, strict=strict)._replace(is_own=False))
    return reads


def sub_workflows(workflow: CompiledWorkflow | None) -> list[str]:
    """The names of the workflows its tasks run."""
    from ork.model.workflow import SubWorkflow

    actions = [task.action for task in workflow.tasks] if workflow is not None else []
    return [action.name for action in actions if isinstance(action, SubWorkflow)]


def _read_python(file: str, settings: Settings, strict: bool) -> list[Read]:
    from ork.executors.local_python import InterpreterError, project_python
    from ork.locations.inspect import inspect_file
    from ork.locations.python_files import load_python
    from ork.model.record import replaced

    _read_bytes(file)
    root = os.path.dirname(os.path.abspath(file))
    try:
        interpreter = project_python(root)
    except InterpreterError as error:
        raise UsageError(str(error)) from None
    inspected = inspect_file(os.path.basename(file), root=root, interpreter=interpreter, cache_dir=_cache_dir(settings))
    reader = _Reader(root)
    project = settings.project and replaced(settings.project, script_dir=settings.script_dir)
    found = load_python(
        inspected,
        file,
        root=root,
        interpreter=interpreter,
        read=reader,
        exists=reader.has,
        project=project,
        imports=lambda entry: _imported(entry, root, settings),
    )
    if found.problems:
        return [Read(file, root, None, found.problems)]
    known = {(os.path.basename(file), interpreter): inspected}
    checked = [(each, _with_types_checked(each.loaded, root, settings, strict, known)) for each in found.workflows]
    return [Read(each.file, root, loaded.workflow, loaded.problems, each.is_own) for each, loaded in checked]


def read_versions(file: str, settings: Settings, name: str | None = None) -> list[Version]:
    """The workflow meant by a file (and a name, if it has several), then those it uses; all ready to be saved.

    Mistakes are a DefinitionError that holds them all.
    """
    from ork.compile.content import make_version

    reads = read_definitions(file, settings)
    problems = [problem for read in reads for problem in read.problems]
    if problems:
        raise mistakes(problems)
    chosen = _chosen(file, reads, name)
    return [make_version(workflow, read.root, os.path.abspath(read.file)) for read, workflow in _used(chosen, reads)]


def _chosen(file: str, reads: Sequence[Read], name: str | None) -> Read:
    own = [read for read in reads if read.is_own]
    names = [read.workflow.name for read in own if read.workflow is not None]
    if name is None and len(own) == 1:
        return own[0]
    if name is None:
        raise UsageError(f"{file} has {len(own)} workflows", hint=f"name one of: {', '.join(names)}", code="ORK511")
    if name not in names:
        raise NotFoundError(f"{file} has no workflow `{name}`", hint=f"it has: {', '.join(names)}", code="ORK511")
    return own[names.index(name)]


def _used(chosen: Read, reads: Sequence[Read]) -> list[tuple[Read, CompiledWorkflow]]:
    """The one chosen and, of the same file, whatever it runs as tasks."""
    by_name = {read.workflow.name: (read, read.workflow) for read in reads if read.workflow is not None}
    wanted = [chosen.workflow.name] if chosen.workflow is not None else []
    for name in wanted:  # grows while it is walked
        below = [each for each in sub_workflows(by_name[name][1]) if each in by_name]
        wanted += [each for each in below if each not in wanted]
    return [by_name[name] for name in wanted]


def mistakes(problems: Sequence[Problem]) -> DefinitionError:
    """The problems as an error: the first few in its message, all of them in its keeping."""
    from ork.definition.problems import render_concise

    rest = f"; and {len(problems) - MAX_NAMED:,} more" if len(problems) > MAX_NAMED else ""
    return DefinitionError("; ".join(map(render_concise, problems[:MAX_NAMED])) + rest, tuple(problems))


def parse_params(
    workflow: CompiledWorkflow, pairs: Sequence[str], kept: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """`-p key=value` pairs, checked against the workflow's params, with what is kept and defaults filled in."""
    from ork.compile import params

    given: dict[str, str] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"`{pair}` is not key=value", hint=f"write `-p {name or 'key'}=VALUE`")
        given[name] = text
    return params.parse_params(workflow, given, kept)


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
        more = len(problems) - MAX_SHOWN
        print(f"… {more:,} more (`ork validate --format concise` shows all)\n", file=sys.stderr)


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
    """The whole file, or one byte more than a file may have."""
    from ork.definition.source_text import MAX_BYTES

    try:
        # Without blocking: a pipe nobody writes to would be waited for before it could be refused.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UsageError(f"{path} is not a regular file", hint="name a YAML or Python file")
            return file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError(f"there is no file {path}", hint="ork validate FILE") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
