"""Workflows in Python: decorators build the same document as a YAML file.

Nothing is checked here. `document()` is parsed by the same code as a YAML file, so that both have the same meaning and
the same error messages; for this reason options are passed on unchecked.
"""

from __future__ import annotations

import os
import sys

from ork.sdk.parameters import Parameter, as_param, parameters_of, type_name, unwrapped
from ork.sdk.values import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Protocol, TypeVar, Unpack, overload

    from ork.sdk.options import TaskOptions, WorkflowOptions
    from ork.sdk.parameters import DescribeType

    F = TypeVar("F", bound=Callable[..., Any])

    class Result(Protocol):
        """See `ork.in_process.result.Result`."""

        @property
        def status(self) -> str: ...

        @property
        def tasks(self) -> dict[str, Any]: ...

        def __getitem__(self, task: str) -> Any: ...

        def _repr_html_(self) -> str: ...

else:

    def overload(function):
        return function


_INSTALLED = ("/site-packages/", "/dist-packages/", "/lib/python")


class TaskEntry:
    """A task, and where it was defined. `function` is None if the task is not a Python function of this process."""

    __slots__ = ("child", "function", "keys", "line", "name")

    def __init__(self, name: str, keys: dict[str, Any], line: int) -> None:
        self.name = name
        self.keys = keys
        self.line = line
        self.function: Callable[..., Any] | None = None
        self.child: Workflow | None = None


class Mistake:
    """A mistake that only a Python file can have; all others are found when the document is parsed."""

    __slots__ = ("code", "hint", "line", "message")

    def __init__(self, code: str, message: str, line: int, hint: str) -> None:
        self.code = code
        self.message = message
        self.line = line
        self.hint = hint


class Workflow:
    """A workflow. `@workflow.task`, `command`, `workflow` and `approval` add tasks; functions are left unchanged.

    `file` and `line` are where it was defined, in the module that was being loaded.
    """

    def __init__(self, name: str, *, schedule: Any = None, **options: Unpack[WorkflowOptions]) -> None:
        places = _caller_positions(sys._getframe(1))
        self.name = name
        self.file, self.line = _defining_module(places)
        self.tasks: dict[str, TaskEntry] = {}
        self._names: dict[int, str] = {}  # by id() of functions, which the entries keep alive
        keys: dict[str, Any] = {"name": name, "schedule": schedule, **options}
        params = keys.pop("params", None)
        self._keys = {key: plain(value, key) for key, value in keys.items() if value is not None}
        self._params = {key: _declared(value, key) for key, value in (params or {}).items()}

    @overload
    def task(self, function: F, /) -> F: ...

    @overload
    def task(self, *, name: str | None = None, **options: Unpack[TaskOptions]) -> Callable[[F], F]: ...  # noqa: F811

    def task(self, function: Any = None, /, *, name: str | None = None, **options: Any) -> Any:  # type: ignore[misc]  # noqa: F811
        """Make a function a task. Its parameters say what it needs: outputs of tasks, params of the run, the context."""
        places = _caller_positions(sys._getframe(1))

        def add(decorated: Any) -> Any:
            entry = self._add(name or decorated.__name__, options, places)
            entry.function = decorated
            self._names.setdefault(id(decorated), entry.name)
            return decorated

        return add if function is None else add(function)

    def command(self, name: str, command: str | Iterable[Any], **options: Unpack[TaskOptions]) -> None:
        """Add a task that runs a program: a list of arguments, or text that is split into words."""
        words = command if isinstance(command, str) else list(command)
        self._add(name, {"command": words, **options}, _caller_positions(sys._getframe(1)))

    def workflow(self, name: str, workflow: Workflow | str, **options: Unpack[TaskOptions]) -> None:
        """Add a task that runs another workflow, with its `inputs` as params."""
        child = workflow if isinstance(workflow, Workflow) else None
        entry = self._add(
            name, {"workflow": child.name if child else workflow, **options}, _caller_positions(sys._getframe(1))
        )
        entry.child = child

    def approval(self, name: str, message: str, *, not_by: str | None = None, **options: Unpack[TaskOptions]) -> None:
        """Add an approval; `timeout` limits the wait, `not_by="starter"` excludes the person who started the run."""
        asked = message if not_by is None else {"message": message, "not_by": not_by}
        self._add(name, {"approval": asked, **options}, _caller_positions(sys._getframe(1)))

    def add(self, name: str, **keys: Any) -> None:
        """Add any other task, by the keys of a YAML file."""
        self._add(name, keys, _caller_positions(sys._getframe(1)))

    def run(self, *, check: bool = True, **params: Any) -> Result:
        """Run the workflow in this process, for tests and notebooks: no store, nothing is saved.

        With `check`, the exception of a failed task is raised; otherwise see the result.
        """
        # By name: `in_process` imports this package, and packages import downwards only.
        from importlib import import_module

        result: Result = import_module("ork.in_process.run").run_in_process(self, params, check=check)
        return result

    def document(self, root: str | None, type_of: DescribeType | None = None) -> dict[str, Any]:
        """The document of a YAML file in the folder `root`. Without a folder, functions are not looked up in files.

        `type_of` describes annotations that are more than a name.
        """
        params = dict(self._params)
        tasks = {entry.name: self._task_document(entry, root) for entry in self.tasks.values()}
        params.update(self._derived_params(type_of))
        return {**self._keys, **({"params": params} if params else {}), "tasks": tasks}

    def implied(self, entry: TaskEntry) -> list[str]:
        """The tasks it depends on because a parameter has their name."""
        given = _inputs(entry)
        names = [parameter.name for parameter in parameters_of(entry.function)] if entry.function else []
        return [name for name in names if name in self.tasks and name != entry.name and name not in given]

    def children(self) -> list[Workflow]:
        return [entry.child for entry in self.tasks.values() if entry.child is not None]

    def __repr__(self) -> str:
        return f"<Workflow {self.name}: {len(self.tasks)} tasks>"

    def _add(self, name: str, keys: dict[str, Any], places: list[tuple[str, int]]) -> TaskEntry:
        if name in self.tasks:
            raise ValueError(f"workflow {self.name} has two tasks named {name}: give one another `name`")
        line = next((line for file, line in places if file == self.file), self.line)
        named = {key: self._task_names(value) for key, value in keys.items() if value is not None}
        entry = TaskEntry(name, {key: plain(value, f"{name}.{key}") for key, value in named.items()}, line)
        self.tasks[name] = entry
        return entry

    def _task_names(self, value: Any) -> Any:
        """Replace functions that are tasks by their names."""
        if isinstance(value, (list, tuple)):
            return [self._task_names(each) for each in value]
        if callable(value):
            return self._names.get(id(value), value)
        return value

    def _task_document(self, entry: TaskEntry, root: str | None) -> dict[str, Any]:
        document = dict(entry.keys)
        if entry.function is not None:
            document = {**_function_location(entry.function, root), **document}
        written = document.get("depends_on") or []
        depends_on = [written] if isinstance(written, str) else list(written)
        depends_on += [name for name in self.implied(entry) if name not in depends_on]
        return {**document, "depends_on": depends_on} if depends_on else document

    def mistakes(self, root: str | None, type_of: DescribeType | None = None) -> list[Mistake]:
        """Mistakes that are not in the document. If there are any, use `document` only to find more of them."""
        found = []
        if root is not None:
            entries = [entry for entry in self.tasks.values() if entry.function is not None]
            found = [_unreachable_mistake(entry) for entry in entries if not _is_importable(entry.function)]
        first: dict[str, dict[str, Any]] = {}
        for entry, name, param in self._implied_params(type_of):
            wrong = _differing(first.setdefault(name, param), param)
            if wrong is not None:
                hint = f"declare it: Workflow({self.name!r}, params={{{name!r}: …}})"
                found.append(Mistake("ORK404", f"tasks want different {wrong}s for `{name}`", entry.line, hint))
        return found

    def _derived_params(self, type_of: DescribeType | None) -> dict[str, dict[str, Any]]:
        """Parameters without another source. They are required if any task has no default for them."""
        found: dict[str, dict[str, Any]] = {}
        for _, name, param in self._implied_params(type_of):
            found[name] = _merged(found[name], param) if name in found else param
        return found

    def _implied_params(self, type_of: DescribeType | None) -> Iterable[tuple[TaskEntry, str, dict[str, Any]]]:
        for entry in self.tasks.values():
            for parameter in self._unprovided(entry):
                param = as_param(parameter, entry.function, type_of)
                if param is not None:
                    yield entry, parameter.name, param

    def _unprovided(self, entry: TaskEntry) -> list[Parameter]:
        """The parameters of its function without an input, task, item or context."""
        provided = {*_inputs(entry), *self.implied(entry), *self._params}
        if "foreach" in entry.keys:
            provided.add("item")
        parameters = parameters_of(entry.function) if entry.function is not None else ()
        return [each for each in parameters if not each.wants_context and each.name not in provided]


def _inputs(entry: TaskEntry) -> dict[str, Any]:
    """The named inputs. Any other value is rejected when the document is parsed."""
    inputs = entry.keys.get("inputs")
    return inputs if isinstance(inputs, dict) else {}


def _differing(one: dict[str, Any], other: dict[str, Any]) -> str | None:
    """What two functions that use a param disagree on; one without a type or default agrees."""
    return next((key for key in ("type", "default") if key in one and key in other and one[key] != other[key]), None)


def _merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    merged = {**one, **other}
    if not ("default" in one and "default" in other):
        merged.pop("default", None)
    if _differing(one, other) == "type":
        del merged["type"]  # reported as a mistake of its own; consequences would only be noise
    return merged


def _caller_positions(frame: Any) -> list[tuple[str, int]]:
    """File and line of the caller, of its caller, and so on up to the module being loaded."""
    places = []
    while frame is not None:
        places.append((frame.f_code.co_filename, frame.f_lineno))
        frame = None if frame.f_code.co_name == "<module>" else frame.f_back
    return places


def _defining_module(places: list[tuple[str, int]]) -> tuple[str, int]:
    """The module being loaded, even if a helper defined the workflow; else (in a test, say) the caller."""
    module = places[-1][0]
    is_users = module.endswith(".py") and not any(part in module for part in _INSTALLED)
    return places[-1] if is_users else places[0]


def _is_importable(function: Any) -> bool:
    return str(getattr(function, "__qualname__", "")).isidentifier() and hasattr(unwrapped(function), "__code__")


def _unreachable_mistake(entry: TaskEntry) -> Mistake:
    message = f"task `{entry.name}` is not a function at the top level of a module, so a worker cannot import it"
    return Mistake("ORK503", message, entry.line, "write it as `def` at the top level of the file")


def _function_location(function: Any, root: str | None) -> dict[str, str]:
    if root is None or not _is_importable(function):
        return {"module": "here"}
    found = unwrapped(function)
    file = os.path.relpath(found.__code__.co_filename, root)
    if file.startswith("../") or not file.endswith(".py"):
        return {"module": found.__module__, "function": function.__qualname__}
    return {"file": file, "function": function.__qualname__}


def _declared(value: Any, name: str) -> Any:
    """A param as in a definition; types may be given as Python types."""
    if isinstance(value, dict) and isinstance(value.get("type"), type):
        value = {**value, "type": type_name(value["type"]) or value["type"].__name__}
    found = type_name(value)
    return plain({"type": found} if found else value, f"params.{name}")
