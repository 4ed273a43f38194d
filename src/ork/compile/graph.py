"""Checks the graph of a workflow: names exist, references imply dependencies, no cycles. Linear in the number of edges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from ork.definition.nodes import Kind, Node
from ork.definition.problems import quoted
from ork.definition.report import ProblemReport, Suggester
from ork.definition.tasks import ParsedTask
from ork.definition.workflow_file import ParsedWorkflow
from ork.model.trees import pointers
from ork.model.workflow import CloudRunJob, Command, Container, Custom, Ref, RustProgram, Value

# Keys and indexes from a task's body to a position in it.
Path: TypeAlias = tuple[str | int, ...]

_SHOWN_IN_CYCLE = 12
# Evaluated once for the whole task, before instances exist.
_FOR_SENSITIVE = ("inputs", "env", "config")
_BEFORE_INSTANCES = frozenset({"foreach", "parallel", "when"})


def link(parsed: ParsedWorkflow, report: ProblemReport) -> dict[str, tuple[str, ...]]:
    """The dependencies of every task, explicit and implied, without duplicates. Problems are added to the report."""
    names = _KnownNames(parsed)
    links = {name: tuple(_dependencies(task, names, report)) for name, task in parsed.tasks.items()}
    cycle = find_cycle(links)
    if cycle is not None:
        _refuse_cycle(cycle, parsed.tasks, report)
    return links


def refs_of(task: ParsedTask) -> Iterator[tuple[Ref, Path]]:
    """Yield the references of a task, each with its path in the body."""
    for name, value in task.spec.inputs:
        yield from _ref_at(value, "inputs", name)
    for name, value in task.spec.env:
        yield from _ref_at(value, "env", name)
    if isinstance(task.spec.action, Command | Container):
        for index, value in enumerate(task.spec.action.argv):
            yield from _ref_at(value, "command", index)
    elif isinstance(task.spec.action, RustProgram | CloudRunJob):
        for index, value in enumerate(task.spec.action.args):
            yield from _ref_at(value, "args", index)
    if isinstance(task.spec.action, Custom):
        for pointer, place in pointers(task.spec.action.task):
            if isinstance(pointer, Ref):
                yield pointer, ("config", *place, "ref")
    for name in ("foreach", "parallel"):
        if isinstance(getattr(task.spec, name), Ref):
            yield getattr(task.spec, name), (name, "ref")
    for index, condition in enumerate(task.spec.when):
        yield condition.ref, _condition_path(task, index)


def find_cycle(links: Mapping[str, tuple[str, ...]]) -> list[str] | None:
    """One cycle, each task before the one that depends on it; None if there is none."""
    in_order = in_topological_order(links)
    if len(in_order) == len(links):
        return None
    left = set(links).difference(in_order)
    # Every remaining task depends on a remaining one, so following dependencies must reach a known task again.
    name = next(name for name in links if name in left)
    seen: dict[str, int] = {}
    path: list[str] = []
    while name not in seen:
        seen[name] = len(path)
        path.append(name)
        name = next(dependency for dependency in links[name] if dependency in left)
    return path[seen[name] :][::-1]


def in_topological_order(links: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Every task after its dependencies; tasks on or downstream of a cycle are omitted."""
    waiting = {name: len(dependencies) for name, dependencies in links.items()}
    downstream: dict[str, list[str]] = {}
    for name, dependencies in links.items():
        for dependency in dependencies:
            downstream.setdefault(dependency, []).append(name)
    order = [name for name, count in waiting.items() if count == 0]
    for name in order:  # grows during iteration
        for below in downstream.get(name, ()):
            waiting[below] -= 1
            if waiting[below] == 0:
                order.append(below)
    return order


class _KnownNames:
    """The names that references may use, with suggestions for misspelt ones."""

    def __init__(self, parsed: ParsedWorkflow) -> None:
        self.tasks = parsed.tasks
        self.params = parsed.declared_params
        self.sensitive = {param.name for param in parsed.params if param.sensitive}
        self.similar_task = Suggester(self.tasks)
        self.similar_param = Suggester(self.params)


def _dependencies(task: ParsedTask, names: _KnownNames, report: ProblemReport) -> dict[str, None]:
    found: dict[str, None] = {}
    for index, dependency in enumerate(task.spec.depends_on):
        if _is_dependency(task, index, dependency, names, report):
            found[dependency] = None
    for ref, path in refs_of(task):
        if _is_ref(task, ref, path, names, report) and ref.task is not None:
            found[ref.task] = None
    return found


def _is_dependency(task: ParsedTask, index: int, dependency: str, names: _KnownNames, report: ProblemReport) -> bool:
    name = task.spec.name
    if dependency == name:
        message = f"task {quoted(name)} depends on itself"
        report.add("ORK202", message, task.node_at("depends_on", index), hint="remove it")
        return False
    if dependency not in names.tasks:
        message = f"task {quoted(name)} depends on {quoted(dependency)}, which is not a task"
        report.add("ORK201", message, task.node_at("depends_on", index), hint=names.similar_task.hint(dependency))
        return False
    return True


def _is_ref(task: ParsedTask, ref: Ref, path: Path, names: _KnownNames, report: ProblemReport) -> bool:
    if ref.task is not None and ref.task not in names.tasks:
        message = f"{quoted(str(ref))} points at {quoted(ref.task)}, which is not a task"
        report.add("ORK205", message, task.node_at(*path), hint=names.similar_task.hint(ref.task))
        return False
    if ref.task == task.spec.name:
        message = f"task {quoted(task.spec.name)} uses its own output as input"
        report.add("ORK202", message, task.node_at(*path), hint="point at a task that ends before it")
        return False
    if ref.path[0] == "item" and (task.spec.foreach is None or path[0] in _BEFORE_INSTANCES):
        message = f"{quoted(str(ref))}: there is no item here"
        hint = (
            "only the instances of a `foreach` have one" if task.spec.foreach is None else "instances come after this"
        )
        report.add("ORK209", message, task.node_at(*path), hint=hint)
        return False
    if ref.path[0] == "params" and ref.path[1] not in names.params:
        name = str(ref.path[1])
        hint = names.similar_param.hint(name) or f"declare it: `params: {{{name}: {{type: str}}}}`"
        report.add("ORK206", f"the workflow has no param {quoted(name)}", task.node_at(*path), hint=hint)
        return False
    if ref.path[0] == "params" and ref.path[1] in names.sensitive and path[0] not in _FOR_SENSITIVE:
        message = f"param {quoted(str(ref.path[1]))} is sensitive and would be visible here"
        report.add("ORK122", message, task.node_at(*path), hint="use it in `inputs` or `env`")
        return False
    return True


def _refuse_cycle(cycle: list[str], tasks: Mapping[str, ParsedTask], report: ProblemReport) -> None:
    shown = [*cycle, cycle[0]]
    if len(shown) > _SHOWN_IN_CYCLE:
        half = _SHOWN_IN_CYCLE // 2
        shown = [*shown[:half], "…", *shown[-half:]]
    place = _dependency_node(tasks[cycle[0]], cycle[-1])
    message = f"circular dependency: {' → '.join(shown)}"
    report.add("ORK203", message, place, hint="remove one of these dependencies")


def _dependency_node(task: ParsedTask, dependency: str) -> Node:
    if dependency in task.spec.depends_on:
        return task.node_at("depends_on", task.spec.depends_on.index(dependency))
    path = next((path for ref, path in refs_of(task) if ref.task == dependency), ())
    return task.node_at(*path)


def _condition_path(task: ParsedTask, index: int) -> Path:
    """`when` is a map with several comparisons of one value, or a list of such maps."""
    conditions = task.body.get("when")
    if conditions is None or conditions.kind != Kind.LIST:
        return ("when", "ref")
    owners = [number for number, child in enumerate(conditions.value) for key, _ in child.pairs() if key.value != "ref"]
    return ("when", owners[index] if index < len(owners) else 0, "ref")


def _ref_at(value: Value, *path: str | int) -> Iterator[tuple[Ref, Path]]:
    if isinstance(value, Ref):
        yield value, (*path, "ref")
