"""Checks types across a workflow: lets a child process describe its functions, then compares types."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ork.compile.described import Signature, UninspectedFunction, function_key, read_signature
from ork.compile.load import Loaded, WorkflowDraft, finish_draft
from ork.compile.signatures import check_signatures
from ork.model.workflow import CompiledWorkflow, ParamType, PythonCall, TaskSpec

if TYPE_CHECKING:
    from ork.locations.inspect import Inspected


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
    files = _Files(root, paths, interpreter, cache_dir, {} if known is None else known)
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


class _Files:
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

    def function(self, action: PythonCall, spec: TaskSpec, is_seen: bool) -> Signature | UninspectedFunction | None:
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
