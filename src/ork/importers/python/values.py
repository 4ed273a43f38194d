"""What expressions evaluate to: Python's own values where they are known, and the classes below."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any, NamedTuple


@dataclass
class Module:
    """A parsed source file. `name` is how it is imported; `scope` has the values of its names once it was evaluated."""

    name: str
    path: str  # as it is shown
    text: str
    tree: ast.Module
    scope: NameScope
    is_evaluated: bool = False


class NameScope:
    """Names and their values. `parent` is the enclosing scope; `module` the file."""

    def __init__(self, module: Module | None, parent: NameScope | None = None) -> None:
        self.names: dict[str, Any] = {}
        self.parent = parent
        self.body: list[ast.stmt] = []  # of the function that this is the scope of
        self.module: Module | None = module if module is not None else (parent.module if parent else None)

    def get(self, name: str, default: Any = None) -> Any:
        scope: NameScope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.parent
        return default

    def local(self, name: str) -> bool:
        """Whether the name is bound inside a function, not by the module."""
        scope: NameScope | None = self
        while scope is not None and scope.parent is not None:
            if name in scope.names:
                return True
            scope = scope.parent
        return False


class Imported(NamedTuple):
    """A name of a module that is not one of the sources: `airflow.operators.bash.BashOperator`."""

    dotted: str

    @property
    def last(self) -> str:
        return self.dotted.rpartition(".")[2]


@dataclass
class Unknown:
    """A value that is known only when the code runs. Its source can be copied."""

    node: ast.expr | None = None
    scope: NameScope | None = None
    uses: list[Any] = field(default_factory=list)  # outputs of tasks that it is computed from


@dataclass
class SourceFunction:
    """A function of the sources, with the values of its decorators."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: NameScope
    decorators: list[Any] = field(default_factory=list)
    overrides: dict[str, Any] = field(default_factory=dict)  # of `f.override(…)`, `f.with_options(…)`

    @property
    def name(self) -> str:
        return "<lambda>" if isinstance(self.node, ast.Lambda) else self.node.name

    @property
    def parameters(self) -> list[str]:
        given = self.node.args
        return [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]

    @property
    def has_keywords(self) -> bool:
        return self.node.args.kwarg is not None

    @property
    def defaults(self) -> dict[str, ast.expr]:
        given = self.node.args
        positional = [*given.posonlyargs, *given.args]
        found = {each.arg: value for each, value in zip(reversed(positional), reversed(given.defaults), strict=False)}
        found |= {each.arg: value for each, value in zip(given.kwonlyargs, given.kw_defaults, strict=True) if value}
        return found


@dataclass
class Class:
    """A class of the sources."""

    node: ast.ClassDef
    scope: NameScope
    bases: list[Any] = field(default_factory=list)


class Bound(NamedTuple):
    """A method of a value: `dag.task`, `task.set_upstream`."""

    owner: Any
    name: str


class ForeignCall(NamedTuple):
    """A call of something that is not one of the sources, kept as it is: `Param("x", type="string")`."""

    function: Imported
    args: list[Any]
    keywords: dict[str, Any]
    node: ast.Call
    scope: NameScope


class Later(str):
    """A text that is known only when tasks run, written as a template. `default` is its value if nothing else is set."""

    default: Any = None

    def __new__(cls, text: str, default: Any = None) -> Later:
        made = super().__new__(cls, text)
        made.default = default
        return made


class LaterParam(Later):
    """A param of the workflow: passed as it is, not as text."""

    name: str = ""


def is_known(value: Any) -> bool:
    """Whether the value is plain data."""
    if isinstance(value, Imported | ForeignCall | Bound):
        return False
    if isinstance(value, list | tuple | set):
        return all(map(is_known, value))
    if isinstance(value, dict):
        return all(is_known(key) and is_known(item) for key, item in value.items())
    return value is None or isinstance(value, str | int | float | bool | bytes)
