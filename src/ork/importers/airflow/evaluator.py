"""Evaluates a DAG file: which DAGs, tasks and edges it makes."""

from __future__ import annotations

import ast
import os
from itertools import pairwise
from typing import Any

from ork.importers.airflow.objects import (
    Dag,
    DagFunction,
    Decorator,
    GroupFunction,
    Label,
    Operator,
    Partial,
    TaskFunction,
    TaskGroup,
    TaskOutput,
    outputs_in,
)
from ork.importers.python.evaluate import Evaluator
from ork.importers.python.known_calls import NOT_KNOWN
from ork.importers.python.modules import Sources
from ork.importers.python.values import (
    Bound,
    Class,
    ForeignCall,
    Imported,
    Later,
    LaterParam,
    NameScope,
    SourceFunction,
    Unknown,
)

_DECORATORS = ("task", "dag", "task_group", "setup", "teardown")
_CHAINS = ("chain", "chain_linear", "cross_downstream")
_POSITIONAL = {"DAG": ["dag_id", "description", "schedule"], "TaskGroup": ["group_id"]}


class AirflowEvaluator(Evaluator):
    def __init__(self, sources: Sources) -> None:
        super().__init__(sources)
        self.dags: list[Dag] = []
        self._open: list[Dag] = []
        self._groups: list[TaskGroup] = []
        self._unknown_loops = 0

    # Names that are known only when tasks run become templates, as a person would write them.

    def environment(self, name: str, default: Any) -> Any:
        given = f", {default!r}" if isinstance(default, str | int) else ""
        return Later("{{ os_env(" + repr(name) + given + ") }}", default if given else None)

    def text_of(self, value: Any) -> Any:
        if isinstance(value, TaskOutput):
            return template_of(value)
        return super().text_of(value)

    def settled(self, value: Any, node: ast.AST, scope: NameScope) -> Any:
        found = super().settled(value, node, scope)
        if found is not value and not isinstance(found, Unknown) and self._open:
            self._problem(f"the DAG depends on `{value}`; its default {found!r} was taken", node, scope)
        return found

    def imported(self, dotted: str) -> Any:
        known = {
            "datetime.timezone.utc": "UTC",
            "datetime.UTC": "UTC",
            "pendulum.UTC": "UTC",
            "pytz.utc": "UTC",
            "pytz.UTC": "UTC",
        }
        return known.get(dotted) or Imported(dotted)

    # Calls.

    def on_call(self, target: Any, args: list[Any], keywords: dict[str, Any], node: ast.Call, scope: NameScope) -> Any:
        match target:
            case TaskFunction():
                return self._call_task(target, args, keywords, node, scope)
            case DagFunction():
                return self._call_dag(target)
            case GroupFunction():
                return self._call_group(target, args, keywords)
            case Decorator():
                return self._decorate(target, args[0]) if args and isinstance(args[0], SourceFunction) else NOT_KNOWN
            case Bound():
                return self._call_method(target, args, keywords, node, scope)
            case Class():
                return self._call_class(target, args, keywords, node, scope)
            case Imported():
                return self._call_airflow(target, args, keywords, node, scope)
        return NOT_KNOWN

    def _call_airflow(
        self, target: Imported, args: list[Any], keywords: dict[str, Any], node: ast.Call, scope: NameScope
    ) -> Any:
        name, dotted = target.last, target.dotted
        is_airflow = dotted.startswith("airflow")
        if name == "DAG" and is_airflow:
            return self._new_dag(args, keywords, node, scope)
        if name == "TaskGroup" and is_airflow:
            return self._new_group(args, keywords)
        if dotted == "os.listdir" and args and isinstance(args[0], str):
            found = self._listed(args[0])
            return Unknown(node, scope) if found is None else found
        if dotted == "os.getcwd":
            return self.sources.root
        if name in _CHAINS and is_airflow:
            self._chain(name, args)
            return None
        if is_decorator(dotted):
            if args and isinstance(args[0], SourceFunction):
                return self._decorate(Decorator(decorator_name(dotted), (), tuple(keywords.items())), args[0])
            return Decorator(decorator_name(dotted), tuple(args), tuple(keywords.items()))
        if dotted.endswith("Variable.get") and is_airflow and args and isinstance(args[0], str):
            return self._variable(args, keywords, node, scope)
        if name == "Label" and is_airflow:
            return Label()
        if name == "Param" and is_airflow:
            return ForeignCall(target, args, keywords, node, scope)
        if name == "XComArg" and args and isinstance(args[0], Operator):
            return TaskOutput(args[0])
        if name == "partial" and dotted.rpartition(".")[0].endswith(("Operator", "Sensor")):
            return Partial(dotted.rpartition(".")[0], keywords)
        if name.endswith(("Operator", "Sensor", "OperatorAsync", "SensorAsync")):
            return self._new_operator(dotted, args, keywords, node, scope)
        return NOT_KNOWN

    def _variable(self, args: list[Any], keywords: dict[str, Any], node: ast.Call, scope: NameScope) -> Any:
        if keywords.get("deserialize_json"):
            return Unknown(node, scope)
        default = args[1] if len(args) > 1 else keywords.get("default_var", keywords.get("default"))
        if isinstance(default, str | int):
            return Later("{{ var.value.get(" + repr(args[0]) + f", {default!r}" + ") }}", default)
        return (
            "{{ var.value." + args[0] + " }}"
            if args[0].isidentifier()
            else "{{ var.value.get(" + repr(args[0]) + ") }}"
        )

    def _listed(self, folder: str) -> list[str] | None:
        """The files of a folder of the sources, by the longest end of its path that exists."""
        parts = [part for part in folder.split("/") if part]
        for index in range(len(parts)):
            path = os.path.join(self.sources.root, *parts[index:])
            if os.path.isdir(path):
                return sorted(os.listdir(path))
        return None

    def _new_dag(self, args: list[Any], keywords: dict[str, Any], node: ast.AST, scope: NameScope) -> Dag:
        given = dict(zip(_POSITIONAL["DAG"], args, strict=False)) | keywords
        module = scope.module
        assert module is not None
        dag_id = given.get("dag_id")
        dag = Dag(dag_id if isinstance(dag_id, str) else "dag", given, self.sources.place(module, node), module)
        self.dags.append(dag)
        return dag

    def _new_group(self, args: list[Any], keywords: dict[str, Any]) -> TaskGroup:
        given = dict(zip(_POSITIONAL["TaskGroup"], args, strict=False)) | keywords
        name = given.get("group_id")
        parent = given.get("parent_group") or (self._groups[-1] if self._groups else None)
        dag = given.get("dag") or (self._open[-1] if self._open else None)
        defaults = given.get("default_args")
        group = TaskGroup(
            name if isinstance(name, str) else "group",
            dag if isinstance(dag, Dag) else None,
            parent if isinstance(parent, TaskGroup) else None,
            prefixes=given.get("prefix_group_id") is not False,
            defaults=defaults if isinstance(defaults, dict) else {},
        )
        if group.parent is not None:
            group.parent.children.append(group)
        return group

    def _call_class(
        self, target: Class, args: list[Any], keywords: dict[str, Any], node: ast.Call, scope: NameScope
    ) -> Any:
        base = operator_base(target)
        if base is None:
            return ForeignCall(Imported(target.node.name), args, keywords, node, scope)
        made = self._new_operator(f"{base}/{target.node.name}", args, keywords, node, scope)
        made.custom = target
        return made

    def _new_operator(
        self, dotted: str, args: list[Any], keywords: dict[str, Any], node: ast.AST, scope: NameScope
    ) -> Operator:
        module = scope.module
        assert module is not None
        kind = dotted.rpartition("/")[2] if "/" in dotted else dotted.rpartition(".")[2]
        given = dict(keywords)
        dag = given.pop("dag", None)
        dag = dag if isinstance(dag, Dag) else (self._open[-1] if self._open else None)
        group = given.pop("task_group", None)
        group = group if isinstance(group, TaskGroup) else (self._groups[-1] if self._groups else None)
        task_id = given.pop("task_id", args[0] if args and isinstance(args[0], str) else None)
        name = task_id if isinstance(task_id, str) else kind
        for outer in self._outer(group):
            given = {**outer.defaults, **given}
        made = Operator(kind, dotted, name, given, self.sources.place(module, node), args=list(args))
        self._enter(made, dag, group)
        for output in outputs_in(list(given.values())):
            made.upstream.append(output.task)
        return made

    @staticmethod
    def _outer(group: TaskGroup | None) -> list[TaskGroup]:
        found = []
        while group is not None:
            found.append(group)
            group = group.parent
        return found

    def _enter(self, task: Operator, dag: Dag | None, group: TaskGroup | None) -> None:
        """Adds the task to its DAG and group, with a name that is unique there."""
        if group is not None:
            task.task_id = f"{group.prefix}{task.task_id}"
            group.children.append(task)
        task.dag = dag
        task.is_of_loop = self._unknown_loops > 0
        if dag is not None:
            taken = {each.task_id for each in dag.tasks}
            if task.task_id in taken and task.function is not None:
                number = 1
                while f"{task.task_id}__{number}" in taken:
                    number += 1
                task.task_id = f"{task.task_id}__{number}"
            dag.tasks.append(task)

    # Decorated functions.

    def on_function(self, function: SourceFunction) -> Any:
        for decorator in reversed(function.decorators):
            if isinstance(decorator, Imported) and is_decorator(decorator.dotted):
                return self._decorate(Decorator(decorator_name(decorator.dotted), (), ()), function)
            if isinstance(decorator, Decorator):
                return self._decorate(decorator, function)
        return function

    def _decorate(self, decorator: Decorator, function: SourceFunction) -> Any:
        keywords = dict(decorator.keywords)
        if decorator.name == "dag":
            return DagFunction(function, keywords, list(decorator.args))
        if decorator.name == "task_group":
            return GroupFunction(function, keywords)
        return TaskFunction(function, decorator.name, keywords)

    def _call_dag(self, target: DagFunction) -> Dag:
        given = dict(zip(["dag_id"], target.args, strict=False)) | target.keywords
        given.setdefault("dag_id", target.function.name)
        dag = self._new_dag([], given, target.function.node, target.function.scope)
        dag.function = target.function
        self._open.append(dag)
        groups, self._groups = self._groups, []
        try:
            params = {name: LaterParam(f"{{{{ params.{name} }}}}") for name in target.function.parameters}
            for name, value in params.items():
                value.name = name
            self.call_function(target.function, [], params)
        finally:
            self._open.pop()
            self._groups = groups
        return dag

    def _call_group(self, target: GroupFunction, args: list[Any], keywords: dict[str, Any]) -> Any:
        given = {"group_id": target.function.name} | target.keywords | target.function.overrides
        group = self._new_group([], given)
        self._groups.append(group)
        try:
            found = self.call_function(target.function, args, keywords)
        finally:
            self._groups.pop()
        return found if outputs_in(found) else group

    def _call_task(
        self,
        target: TaskFunction,
        args: list[Any],
        keywords: dict[str, Any],
        node: ast.Call,
        scope: NameScope,
        mapped: dict[str, Any] | None = None,
        by_item: bool = False,
    ) -> TaskOutput:
        settings = {"task_id": target.function.name} | target.keywords
        dag, group = settings.pop("dag", None), self._groups[-1] if self._groups else None
        dag = dag if isinstance(dag, Dag) else (self._open[-1] if self._open else None)
        name = settings.pop("task_id")
        for outer in self._outer(group):
            settings = {**outer.defaults, **settings}
        module = scope.module
        assert module is not None
        made = Operator(
            f"@{target.decorator}",
            f"@{target.decorator}",
            name if isinstance(name, str) else target.function.name,
            settings | {"op_kwargs": {**target.partial, **keywords}},
            self.sources.place(module, node),
            args=list(args),
            function=target.function,
            decorator=target.decorator,
            mapped=mapped,
            is_mapped_by_item=by_item,
        )
        self._enter(made, dag, group)
        for output in outputs_in([args, keywords, target.partial, mapped]):
            made.upstream.append(output.task)
        return TaskOutput(made)

    # Methods and attributes.

    def attribute(self, owner: Any, name: str, node: ast.Attribute, scope: NameScope) -> Any:
        match owner:
            case Operator() if name == "output":
                return TaskOutput(owner)
            case Operator() if name in ("task_id", "dag_id"):
                return owner.task_id if name == "task_id" else (owner.dag.dag_id if owner.dag else Unknown(node, scope))
            case TaskOutput() if name == "operator":
                return owner.task
            case Dag() if name == "dag_id":
                return owner.dag_id
            case Dag() if name == "default_args":
                return owner.defaults
            case Dag() if name == "task":
                return Bound(owner, "task")
            case Imported() if owner.last == "TriggerRule":
                return name.lower()
            case Imported() if owner.last == "WeekDay":
                return name
            case Operator() | TaskOutput() | TaskGroup() | Dag() | TaskFunction() | Partial() | GroupFunction():
                return Bound(owner, name)
        return NOT_KNOWN

    def _call_method(
        self, bound: Bound, args: list[Any], keywords: dict[str, Any], node: ast.Call, scope: NameScope
    ) -> Any:
        owner, name = bound
        owner = owner.task if isinstance(owner, TaskOutput) else owner
        match owner, name:
            case ((Operator() | TaskGroup()), "set_upstream"):
                self._edges(args[0], owner)
                return None
            case ((Operator() | TaskGroup()), "set_downstream"):
                self._edges(owner, args[0])
                return None
            case Operator(), ("as_setup" | "as_teardown"):
                if name == "as_teardown":
                    owner.keywords.setdefault("trigger_rule", "all_done")
                    for each in args or [keywords.get("setups")]:
                        self._edges(each, owner)
                return bound.owner
            case TaskFunction(), "override":
                return TaskFunction(owner.function, owner.decorator, {**owner.keywords, **keywords}, owner.partial)
            case TaskFunction(), "partial":
                return TaskFunction(owner.function, owner.decorator, owner.keywords, {**owner.partial, **keywords})
            case TaskFunction(), "expand":
                return self._call_task(owner, [], {}, node, scope, mapped=keywords)
            case TaskFunction(), "expand_kwargs":
                return self._call_task(owner, [], {}, node, scope, mapped={"item": args[0]}, by_item=True)
            case GroupFunction(), "override":
                return GroupFunction(owner.function, {**owner.keywords, **keywords})
            case Partial(), ("expand" | "expand_kwargs"):
                made = self._new_operator(owner.dotted, [], owner.keywords, node, scope)
                made.mapped = keywords if name == "expand" else {"item": args[0]}
                made.is_mapped_by_item = name == "expand_kwargs"
                made.upstream += [output.task for output in outputs_in(made.mapped)]
                return TaskOutput(made)
            case Dag(), "task":
                return Decorator("task", tuple(args), tuple((keywords | {"dag": owner}).items()))
            case Dag(), _:
                return None
            case ((Operator() | TaskGroup() | Partial() | TaskFunction()), _):
                return Unknown(node, scope)
            case Class(), "partial":
                return Partial(f"{operator_base(owner)}/{owner.node.name}", keywords, owner)
        return NOT_KNOWN

    def item_of(self, owner: Any, key: Any) -> Any:
        if isinstance(owner, TaskOutput) and isinstance(key, str | int):
            return TaskOutput(owner.task, (*owner.path, key))
        return NOT_KNOWN

    def set_attribute(self, owner: Any, name: str, value: Any) -> None:
        if isinstance(owner, Dag | Operator):
            owner.keywords[name] = value

    # Edges.

    def binary_of_objects(self, left: Any, op: ast.operator, right: Any, node: ast.AST, scope: NameScope) -> Any:  # noqa: ARG002
        if not isinstance(op, ast.RShift | ast.LShift):
            return NOT_KNOWN
        if not (_is_node(left) or _is_node(right)):
            return NOT_KNOWN
        if isinstance(right, Label):
            return left
        if isinstance(left, Label):
            return right
        self._edges(*((left, right) if isinstance(op, ast.RShift) else (right, left)))
        return right

    def _edges(self, before: Any, after: Any) -> None:
        for left in _nodes(before):
            for right in _nodes(after):
                owner = next((each.dag for each in (left, right) if each.dag is not None), None)
                if owner is not None:
                    owner.edges.append((left, right))

    def _chain(self, name: str, args: list[Any]) -> None:
        if name == "cross_downstream":
            self._edges(args[0], args[1])
            return
        steps = [each for each in args if not isinstance(each, Label)]
        for left, right in pairwise(steps):
            if name == "chain" and isinstance(left, list | tuple) and isinstance(right, list | tuple):
                for one, other in zip(left, right, strict=False):
                    self._edges(one, other)
            else:
                self._edges(left, right)

    # Blocks.

    def on_with(self, value: Any, scope: NameScope, is_enter: bool) -> Any:  # noqa: ARG002
        stack: list[Any] | None = (
            self._open if isinstance(value, Dag) else self._groups if isinstance(value, TaskGroup) else None
        )
        if stack is not None:
            stack.append(value) if is_enter else stack.pop()
        return value

    def on_condition(self, node: ast.If | ast.While | ast.IfExp, scope: NameScope) -> None:
        self._problem("a condition that is known only when the file is run: its first branch was taken", node, scope)

    def on_unknown_loop(self, node: ast.For | ast.AsyncFor, scope: NameScope) -> None:
        self._unknown_loops += 1
        super().on_unknown_loop(node, scope)
        self._unknown_loops -= 1

    def _problem(self, text: str, node: ast.AST, scope: NameScope) -> None:
        if scope.module is None:
            return
        place = self.sources.place(scope.module, node)
        if self._open:
            self._open[-1].problems.append((text, place))


def is_decorator(dotted: str) -> bool:
    parts = dotted.split(".")
    return (
        parts[0] == "airflow"
        and any(each in _DECORATORS for each in parts[-2:])
        and not dotted.endswith((".models", ".sdk"))
    )


def decorator_name(dotted: str) -> str:
    parts = dotted.split(".")
    begin = next((index for index in (len(parts) - 2, len(parts) - 1) if parts[index] in _DECORATORS), len(parts) - 1)
    name = ".".join(parts[begin:])
    return "task" if name in ("setup", "teardown", "task.python") else name


def operator_base(target: Class, depth: int = 0) -> str | None:
    """The class of Airflow that a class of the sources is made from; None if there is none."""
    for base in target.bases:
        if isinstance(base, Imported) and base.last.endswith(("Operator", "Sensor", "SensorOperator")):
            return base.dotted
        if isinstance(base, Class) and depth < 10:
            found = operator_base(base, depth + 1)
            if found is not None:
                return found
    return None


def _is_node(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_is_node, value))
    return isinstance(value, Operator | TaskGroup | TaskOutput)


def _nodes(value: Any) -> list[Any]:
    if isinstance(value, list | tuple | set):
        return [found for each in value for found in _nodes(each)]
    if isinstance(value, TaskOutput):
        return [value.task]
    return [value] if isinstance(value, Operator | TaskGroup) else []


def template_of(output: TaskOutput) -> str:
    steps = "".join(f"[{step!r}]" for step in output.path)
    return "{{ ti.xcom_pull(task_ids=" + repr(output.task.task_id) + ")" + steps + " }}"
