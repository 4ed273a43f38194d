"""Workflow files found, read and compiled, each relative to its own folder. User code is only loaded by children."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ork.errors import NotFoundError, UsageError
from ork.model.workflow import CompiledWorkflow

if TYPE_CHECKING:
    from ork.compile.dbt import DbtNode
    from ork.compile.load import Loaded
    from ork.definition.imports import ParsedImport
    from ork.definition.problems import Problem
    from ork.definition.project import Project
    from ork.locations.inspect import Inspected

YAML = (".yaml", ".yml")
PYTHON = ".py"


class Read(NamedTuple):
    """A file and what it means; `workflow` is None when it has problems."""

    file: str
    root: str
    workflow: CompiledWorkflow | None
    problems: tuple[Problem, ...]
    is_own: bool = True  # not only used by a workflow of the file that was named


class Around(NamedTuple):
    """What files are read in the light of: the project, its `script_dir` absolute, and where answers are kept."""

    project: Project | None = None
    cache_dir: str | None = None


def read_definitions(file: str, around: Around, *, strict: bool = False) -> list[Read]:
    """Everything a file defines: a YAML file one workflow (and those beside it that it runs), a Python file any number.

    `strict` asks for types. A missing file is NotFoundError.
    """
    if file.endswith(PYTHON):
        return _read_python(file, around, strict)
    return _with_neighbours(read_definition(file, around, strict=strict), around, strict)


def read_project_file(file: str) -> Read | None:
    """The mistakes in an `ork.yaml`, `workers.yaml` or `locations.yaml`; None for any other file."""
    load: Callable[[bytes, str], tuple[Any, tuple[Problem, ...]]]
    match os.path.basename(file):
        case "ork.yaml":
            from ork.definition.project_file import load_project as load
        case "workers.yaml":
            from ork.definition.workers_file import load_workers as load
        case "locations.yaml":
            from ork.definition.locations_file import load_locations as load
        case _:
            return None
    _, problems = load(_read_bytes(file), file)
    return Read(file, os.path.dirname(os.path.abspath(file)), None, problems)


def read_definition(file: str, around: Around, *, strict: bool = False) -> Read:
    """Reads and compiles one YAML file."""
    from ork.compile.load import load_workflow

    root = os.path.dirname(os.path.abspath(file))
    reader = _Reader(root)
    loaded = load_workflow(
        _read_bytes(file),
        file,
        read=reader,
        exists=reader.has,
        root=root,
        project=around.project,
        imports=lambda entry: _imported(entry, root, around),
    )
    loaded = _with_types_checked(loaded, root, around, strict)
    return Read(file, root, loaded.workflow, loaded.problems)


def sub_workflows(workflow: CompiledWorkflow | None) -> list[str]:
    """The names of the workflows its tasks run."""
    from ork.model.workflow import SubWorkflow

    actions = [task.action for task in workflow.tasks] if workflow is not None else []
    return [action.name for action in actions if isinstance(action, SubWorkflow)]


def _with_neighbours(first: Read, around: Around, strict: bool) -> list[Read]:
    """A workflow that a task runs is taken along, if the file of its name stands beside the one that names it."""
    reads = [first]
    for read in reads:  # grows while it is walked
        known = {each.workflow.name for each in reads if each.workflow is not None}
        for name in sub_workflows(read.workflow):
            stem = os.path.join(os.path.dirname(read.file), name)
            file = next((stem + suffix for suffix in YAML if os.path.isfile(stem + suffix)), None)
            if file is not None and name not in known:
                known.add(name)
                reads.append(read_definition(file, around, strict=strict)._replace(is_own=False))
    return reads


def _read_python(file: str, around: Around, strict: bool) -> list[Read]:
    from ork.executors.local_python import InterpreterError, project_python
    from ork.locations.inspect import inspect_file
    from ork.locations.python_files import load_python

    _read_bytes(file)
    root = os.path.dirname(os.path.abspath(file))
    paths = _import_paths(root, around)
    try:
        interpreter = project_python(root, *paths)
    except InterpreterError as error:
        raise UsageError(str(error)) from None
    name, cache_dir = os.path.basename(file), _kept_in(around, "inspect")
    inspected = inspect_file(name, root=root, paths=paths, interpreter=interpreter, cache_dir=cache_dir)
    reader = _Reader(root)
    found = load_python(
        inspected,
        file,
        root=root,
        interpreter=interpreter,
        read=reader,
        exists=reader.has,
        project=around.project,
        imports=lambda entry: _imported(entry, root, around),
    )
    if found.problems:
        return [Read(file, root, None, found.problems)]
    known = {(name, interpreter): inspected}
    checked = [(each, _with_types_checked(each.loaded, root, around, strict, known)) for each in found.workflows]
    return [Read(each.file, root, loaded.workflow, loaded.problems, each.is_own) for each, loaded in checked]


def _imported(entry: ParsedImport, root: str, around: Around) -> Sequence[DbtNode]:
    from ork.locations.dbt import DbtProjects

    return DbtProjects(root, _kept_in(around, "dbt"))(entry)


def _with_types_checked(
    loaded: Loaded,
    root: str,
    around: Around,
    strict: bool,
    known: dict[tuple[str, str], Inspected] | None = None,
) -> Loaded:
    from ork.executors.local_python import InterpreterError, project_python
    from ork.locations.check import check_types

    paths = _import_paths(root, around)
    try:
        interpreter: str | None = project_python(root, *paths)
    except InterpreterError:
        interpreter = None  # the run says so, with its reason
    cache_dir = _kept_in(around, "inspect")
    return check_types(
        loaded, root=root, paths=paths, interpreter=interpreter, cache_dir=cache_dir, strict=strict, known=known
    )


def _import_paths(root: str, around: Around) -> tuple[str, ...]:
    """What the tasks of a workflow in this folder will import from, after the folder itself."""
    from ork.compile.project import import_folders, import_paths

    return import_paths(root, **import_folders(around.project, root))


def _kept_in(around: Around, kind: str) -> str | None:
    return None if around.cache_dir is None else os.path.join(around.cache_dir, kind)


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
