"""Reads and compiles workflow files, each relative to its own folder, and checks types across a workflow.

User code is only loaded by child processes, which describe its functions.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from ork.compile.described import FunctionSignature, UninspectedFunction, function_key, read_signature
from ork.compile.load import Loaded, WorkflowDraft, finish_draft
from ork.compile.signatures import check_signatures
from ork.errors import NotFoundError, UsageError
from ork.model.workflow import CompiledWorkflow, ParamType, PythonCall, TaskSpec

if TYPE_CHECKING:
    from ork.compile.dbt import DbtNode
    from ork.compile.load import Loaded
    from ork.definition.problems import Problem
    from ork.definition.project import Project
    from ork.definition.workflow_file import ParsedImport
    from ork.locations.inspect import Inspected


YAML = (".yaml", ".yml")
PYTHON = ".py"


class Definition(NamedTuple):
    """A file and its workflow; `workflow` is None if it has problems."""

    file: str
    root: str
    workflow: CompiledWorkflow | None
    problems: tuple[Problem, ...]
    is_own: bool = True  # False for a file that is only used by a workflow of the given file


class FileContext(NamedTuple):
    """The context of files: the project, its absolute `script_dir`, the folder of the cache, and that of built environments."""

    project: Project | None = None
    cache_dir: str | None = None
    builds_dir: str | None = None


def read_definitions(file: str, context: FileContext, *, strict: bool = False) -> list[Definition]:
    """All workflows of a file: one for a YAML file (and those next to it that it runs), any number for a Python file.

    `strict` requires types. Raises NotFoundError if the file is missing.
    """
    if file.endswith(PYTHON):
        return _read_python(file, context, strict)
    return _with_neighbours(read_definition(file, context, strict=strict), context, strict)


def read_project_file(file: str) -> Definition | None:
    """The problems of an `ork.yaml`, `workers.yaml` or `locations.yaml`; None for any other file."""
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
    return Definition(file, os.path.dirname(os.path.abspath(file)), None, problems)


def read_definition(file: str, context: FileContext, *, strict: bool = False) -> Definition:
    """Read and compile one YAML file."""
    from ork.compile.load import load_workflow

    root = os.path.dirname(os.path.abspath(file))
    reader = _Reader(root)
    loaded = load_workflow(
        _read_bytes(file),
        file,
        read=reader,
        exists=reader.has,
        root=root,
        project=context.project,
        imports=lambda entry: _imported(entry, root, context),
    )
    loaded = _with_types_checked(loaded, root, context, strict)
    return Definition(file, root, loaded.workflow, loaded.problems)


def sub_workflows(workflow: CompiledWorkflow | None) -> list[str]:
    """The names of the workflows that its tasks run."""
    from ork.model.workflow import SubWorkflow

    actions = [task.action for task in workflow.tasks] if workflow is not None else []
    return [action.name for action in actions if isinstance(action, SubWorkflow)]


def _with_neighbours(first: Definition, context: FileContext, strict: bool) -> list[Definition]:
    """Include the workflows that tasks run, if their files are next to the one that names them."""
    reads = [first]
    for read in reads:  # grows during iteration
        known = {each.workflow.name for each in reads if each.workflow is not None}
        for name in sub_workflows(read.workflow):
            stem = os.path.join(os.path.dirname(read.file), name)
            file = next((stem + suffix for suffix in YAML if os.path.isfile(stem + suffix)), None)
            if file is not None and name not in known:
                known.add(name)
                reads.append(read_definition(file, context, strict=strict)._replace(is_own=False))
    return reads


def _read_python(file: str, context: FileContext, strict: bool) -> list[Definition]:
    from ork.executors.local_worker import InterpreterError, project_python
    from ork.locations.inspect import inspect_file
    from ork.locations.python_files import load_python

    _read_bytes(file)
    root = os.path.dirname(os.path.abspath(file))
    paths = _import_paths(root, context)
    try:
        interpreter = project_python(root, *paths)
    except InterpreterError as error:
        raise UsageError(str(error)) from None
    name, cache_dir = os.path.basename(file), _cache_folder(context, "inspect")
    inspected = inspect_file(name, root=root, paths=paths, interpreter=interpreter, cache_dir=cache_dir)
    reader = _Reader(root)
    found = load_python(
        inspected,
        file,
        root=root,
        interpreter=interpreter,
        read=reader,
        exists=reader.has,
        project=context.project,
        imports=lambda entry: _imported(entry, root, context),
    )
    if found.problems:
        return [Definition(file, root, None, found.problems)]
    known = {(name, interpreter): inspected}
    checked = [(each, _with_types_checked(each.loaded, root, context, strict, known)) for each in found.workflows]
    return [Definition(each.file, root, loaded.workflow, loaded.problems, each.is_own) for each, loaded in checked]


def _imported(entry: ParsedImport, root: str, context: FileContext) -> Sequence[DbtNode]:
    from ork.executors.local_worker import InterpreterError, project_python
    from ork.locations.dbt import DbtProjects, Environments

    environments = None
    if context.builds_dir is not None:
        with suppress(InterpreterError):  # reported at run time
            python = project_python(root, *_import_paths(root, context))
            environments = Environments(python, root, context.builds_dir)
    return DbtProjects(root, _cache_folder(context, "dbt"), environments)(entry)


def _with_types_checked(
    loaded: Loaded,
    root: str,
    context: FileContext,
    strict: bool,
    known: dict[tuple[str, str], Inspected] | None = None,
) -> Loaded:
    from ork.executors.local_worker import InterpreterError, project_python

    paths = _import_paths(root, context)
    try:
        interpreter: str | None = project_python(root, *paths)
    except InterpreterError:
        interpreter = None  # reported at run time, with its reason
    cache_dir = _cache_folder(context, "inspect")
    return check_types(
        loaded, root=root, paths=paths, interpreter=interpreter, cache_dir=cache_dir, strict=strict, known=known
    )


def _import_paths(root: str, context: FileContext) -> tuple[str, ...]:
    """The folders that tasks of a workflow in this folder import from, after the folder itself."""
    from ork.compile.project import import_folders, import_paths

    return import_paths(root, **import_folders(context.project, root))


def _cache_folder(context: FileContext, kind: str) -> str | None:
    return None if context.cache_dir is None else os.path.join(context.cache_dir, kind)


class _Reader:
    """Reads each file once; None if it does not exist."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._deployed: dict[str, bytes | None] = {}

    def __call__(self, path: str) -> bytes | None:
        if path not in self._deployed:
            try:
                self._deployed[path] = _read_bytes(os.path.join(self._root, path))
            except NotFoundError:
                self._deployed[path] = None
        return self._deployed[path]

    def has(self, path: str) -> bool:
        return os.path.exists(os.path.join(self._root, path))


def _read_bytes(path: str) -> bytes:
    """The whole file, or one byte more than the limit."""
    from ork.definition.yaml_tree import MAX_BYTES

    try:
        # Non-blocking: opening a pipe without a writer would block.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UsageError(f"{path} is not a regular file", hint="name a YAML or Python file")
            return file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFoundError(f"there is no file {path}", hint="ork validate FILE") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error


def check_types(
    loaded: Loaded,
    *,
    root: str,
    interpreter: str | None,
    cache_dir: str | None,
    paths: Sequence[str] = (),
    strict: bool = False,
    known: dict[tuple[str, str], Inspected] | None = None,
) -> Loaded:
    """The result with all type problems added. User code is loaded only if a function has annotations, or if `strict`;
    a file that cannot be loaded is reported at run time, unless `strict`.

    `known` caches inspections by file and interpreter.
    """
    draft = loaded.draft
    if draft is None or draft.report.is_full:
        return loaded
    asked = list(_functions_to_check(draft, strict))
    if not asked and not strict and not _has_types(draft.workflow):
        return loaded
    files = _InspectedFiles(root, paths, interpreter, cache_dir, {} if known is None else known)
    seen = draft.found.checked | draft.found.annotated
    functions = {function_key(action): files.function(action, spec, spec.name in seen) for action, spec in asked}
    check_signatures(draft, functions, strict=strict)
    return finish_draft(draft)


def _functions_to_check(draft: WorkflowDraft, strict: bool) -> Iterator[tuple[PythonCall, TaskSpec]]:
    for spec in draft.workflow.tasks:
        action = spec.action
        if not isinstance(action, PythonCall) or spec.image is not None or spec.name in draft.found.missing:
            continue
        # Modules are not inspected yet: their file is, if it belongs to the project.
        if strict or spec.name in draft.found.annotated or action.file is None:
            yield action, spec


def _has_types(workflow: CompiledWorkflow) -> bool:
    return any(param.type != ParamType.ANY for param in workflow.params) or any(
        spec.input_types or spec.output_type for spec in workflow.tasks
    )


class _InspectedFiles:
    """Inspects each file once, with the interpreter of its tasks."""

    def __init__(
        self,
        root: str,
        paths: Sequence[str],
        interpreter: str | None,
        cache_dir: str | None,
        known: dict[tuple[str, str], Inspected],
    ) -> None:
        self._root = os.path.abspath(root)
        self._paths = paths
        self._interpreter = interpreter
        self._cache_dir = cache_dir
        self._inspected = known

    def function(
        self, action: PythonCall, spec: TaskSpec, is_seen: bool
    ) -> FunctionSignature | UninspectedFunction | None:
        """None only if the function certainly does not exist: neither described nor, by `is_seen`, found in the source."""
        file = self._file(action)
        interpreter = self._interpreter_of(spec)
        if file is None:
            return UninspectedFunction(f"the module {action.module} is not in {self._root}")
        if interpreter is None:
            return UninspectedFunction("the Python it runs in is not there yet")
        inspected = self._look(file, interpreter)
        if inspected.errors:
            error = inspected.errors[0]
            return UninspectedFunction(f"{file}: {error['type']}: {error['message']}".partition("\n")[0])
        described = inspected.functions.get(f"{file}:{action.function}")
        if described is not None:
            return read_signature(f"{file}:{action.function}", described)
        is_undescribable = "." in action.function or action.function.startswith("_") or not inspected.functions
        return UninspectedFunction("it cannot be described") if is_seen or is_undescribable else None

    def _look(self, file: str, interpreter: str) -> Inspected:
        # Most workflows need no inspection: import late to start faster.
        from ork.locations.inspect import inspect_file

        key = (file, interpreter)
        if key not in self._inspected:
            self._inspected[key] = inspect_file(
                file, root=self._root, paths=self._paths, interpreter=interpreter, cache_dir=self._cache_dir
            )
        return self._inspected[key]

    def _file(self, action: PythonCall) -> str | None:
        """Relative to the root, like the keys of described functions."""
        if action.file is not None:
            return os.path.normpath(os.path.relpath(os.path.join(self._root, action.file), self._root))
        path = str(action.module).replace(".", "/")
        for folder in (self._root, *self._paths):
            for file in (os.path.join(folder, f"{path}.py"), os.path.join(folder, path, "__init__.py")):
                if os.path.isfile(file):
                    return os.path.relpath(file, self._root)
        return None

    def _interpreter_of(self, spec: TaskSpec) -> str | None:
        if spec.environment is None:
            return self._interpreter
        if spec.environment.path is None:
            return None
        python = os.path.join(self._root, spec.environment.path, "bin", "python")
        return python if os.access(python, os.X_OK) else None
