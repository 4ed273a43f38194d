"""What Airflow's names evaluate to during an import: DAGs, tasks, groups, outputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ork.importers.project import SourcePlace
from ork.importers.python.values import Class, SourceFunction


@dataclass(eq=False)
class Dag:
    dag_id: str
    keywords: dict[str, Any]
    place: SourcePlace
    module: Any
    tasks: list[Operator] = field(default_factory=list)
    edges: list[tuple[Any, Any]] = field(default_factory=list)
    problems: list[tuple[str, SourcePlace]] = field(default_factory=list)  # what could not be followed
    function: SourceFunction | None = None  # of `@dag`: its parameters are params

    @property
    def defaults(self) -> dict[str, Any]:
        found = self.keywords.get("default_args")
        return found if isinstance(found, dict) else {}


@dataclass(eq=False)
class TaskGroup:
    """A TaskGroup. Its children are tasks and groups."""

    group_id: str
    dag: Dag | None
    parent: TaskGroup | None = None
    children: list[Any] = field(default_factory=list)
    prefixes: bool = True
    defaults: dict[str, Any] = field(default_factory=dict)

    @property
    def prefix(self) -> str:
        outer = self.parent.prefix if self.parent else ""
        return f"{outer}{self.group_id}." if self.prefixes else outer

    def tasks(self) -> list[Operator]:
        return [task for each in self.children for task in (each.tasks() if isinstance(each, TaskGroup) else [each])]


@dataclass(eq=False)
class Operator:
    """A task. `kind` is the last part of its class's name; `function` the callable of a decorated task."""

    kind: str
    dotted: str
    task_id: str
    keywords: dict[str, Any]
    place: SourcePlace
    dag: Dag | None = None
    args: list[Any] = field(default_factory=list)
    function: SourceFunction | None = None
    decorator: str = ""  # of a decorated task: "task", "task.branch" …
    mapped: dict[str, Any] | None = None  # the arguments of `expand`
    is_mapped_by_item: bool = False  # `expand_kwargs`
    custom: Class | None = None
    is_of_loop: bool = False  # made by a loop over values that are known only when the file is run
    upstream: list[Operator] = field(default_factory=list)

    def get(self, name: str, default: Any = None) -> Any:
        """An argument of the operator, else of `default_args`."""
        if name in self.keywords:
            return self.keywords[name]
        return self.dag.defaults.get(name, default) if self.dag else default


@dataclass(frozen=True)
class TaskOutput:
    """The output of a task, or a part of it, while the DAG is built (XComArg)."""

    task: Operator
    path: tuple[str | int, ...] = ()


@dataclass(eq=False)
class TaskFunction:
    """A function with `@task`; calling it makes a task."""

    function: SourceFunction
    decorator: str
    keywords: dict[str, Any]
    partial: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False)
class DagFunction:
    function: SourceFunction
    keywords: dict[str, Any]
    args: list[Any]


@dataclass(eq=False)
class GroupFunction:
    function: SourceFunction
    keywords: dict[str, Any]


@dataclass(eq=False)
class Partial:
    """`BashOperator.partial(…)`."""

    dotted: str
    keywords: dict[str, Any]
    custom: Class | None = None


@dataclass(frozen=True)
class Label:
    """An edge's label."""


@dataclass(frozen=True)
class Decorator:
    """`@task(…)`, `@dag(…)`, `@task_group(…)` with arguments."""

    name: str
    args: tuple[Any, ...]
    keywords: tuple[tuple[str, Any], ...]


FRAMEWORK_OBJECTS = (Dag, TaskGroup, Operator, TaskOutput, DagFunction, GroupFunction, Partial)


def outputs_in(value: Any) -> list[TaskOutput]:
    """All outputs of tasks inside a value."""
    if isinstance(value, TaskOutput):
        return [value]
    if isinstance(value, dict):
        return [found for item in value.values() for found in outputs_in(item)]
    if isinstance(value, list | tuple | set):
        return [found for item in value for found in outputs_in(item)]
    return []
