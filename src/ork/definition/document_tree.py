"""A definition given as data (by a Python workflow) as a tree of nodes with source positions."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any

from ork.definition.nodes import Kind, Node
from ork.definition.python_positions import PythonPositions, SourceSpan

_CONSTANTS = {None: "null", True: "true", False: "false"}


def document_tree(document: Mapping[str, Any], source: str, line: int, task_lines: Mapping[str, int]) -> Node:
    """`line` is where the workflow was defined, `task_lines` where each task was; all count from 1."""
    positions = PythonPositions(source)
    own = {key: value for key, value in document.items() if key != "tasks"}
    root = _Writer(positions, line).body(own, positional={"name": 0})
    tasks: list[Node] = []
    for name, body in document["tasks"].items():
        writer = _Writer(positions, task_lines.get(name, line))
        positional = {"command": 1, "workflow": 1, "approval": 1}
        tasks += (_scalar(name, writer.span), writer.body(body, positional=positional))
    root.value += (_scalar("tasks", root_span(root)), Node(Kind.MAP, tuple(tasks), *root_span(root)))
    return root


def root_span(root: Node) -> SourceSpan:
    return SourceSpan(root.line, root.column, root.width)


class _Writer:
    """Creates the nodes for one call or decorator."""

    def __init__(self, positions: PythonPositions, line: int) -> None:
        self.span = positions.definition_span(line)
        self._positions = positions
        self._line = line
        self._call = positions.call(line)

    def body(self, keys: Mapping[str, Any], positional: Mapping[str, int]) -> Node:
        children: list[Node] = []
        for key, value in keys.items():
            keyword = self._keyword(key)
            name_span = self._positions.key(keyword) if keyword is not None else self.span
            written = keyword.value if keyword is not None else self._positional(positional.get(key))
            children.append(_scalar(key, name_span))
            if key == "depends_on" and isinstance(value, list):
                children.append(self._depends_on(value, written))
            else:
                children.append(self._node(value, written, self.span))
        return Node(Kind.MAP, tuple(children), *self.span)

    def _keyword(self, name: str) -> ast.keyword | None:
        keywords = self._call.keywords if self._call is not None else []
        return next((keyword for keyword in keywords if keyword.arg == name), None)

    def _positional(self, index: int | None) -> ast.expr | None:
        if self._call is None or index is None or index >= len(self._call.args):
            return None
        return self._call.args[index]

    def _depends_on(self, names: list[str], written: ast.expr | None) -> Node:
        """Explicit dependencies first, then those implied by parameters."""
        above = self.span if written is None else self._positions.of(written)
        items = written.elts if isinstance(written, ast.List | ast.Tuple) else [] if written is None else [written]
        nodes = []
        for index, name in enumerate(names):
            argument = self._positions.argument(self._line, name)
            if index < len(items):
                nodes.append(self._node(name, items[index], above))
            else:
                nodes.append(_scalar(name, above if argument is None else self._positions.of(argument)))
        return Node(Kind.LIST, tuple(nodes), *above)

    def _node(self, value: Any, written: ast.expr | None, above: SourceSpan) -> Node:
        place = above if written is None else self._positions.of(written)
        if isinstance(value, dict):
            children: list[Node] = []
            for key, below in value.items():
                expression = _member(written, key)
                children += (_scalar(key, place), self._node(below, expression, place))
            return Node(Kind.MAP, tuple(children), *place)
        if isinstance(value, list):
            items: Iterable[ast.expr | None] = written.elts if isinstance(written, ast.List | ast.Tuple) else ()
            pairs = zip(value, [*items, *([None] * len(value))], strict=False)
            return Node(Kind.LIST, tuple(self._node(below, item, place) for below, item in pairs), *place)
        return _scalar(value, place)


def _member(written: ast.expr | None, key: str) -> ast.expr | None:
    """The value of a key in `{key: …}`, `dict(key=…)` or `ref(…)`, as an expression."""
    if isinstance(written, ast.Dict):
        pairs = zip(written.keys, written.values, strict=True)
        return next((value for name, value in pairs if isinstance(name, ast.Constant) and name.value == key), None)
    if isinstance(written, ast.Call):
        named = next((keyword.value for keyword in written.keywords if keyword.arg == key), None)
        return named if named is not None or not written.args else written.args[0]
    return None


def _scalar(value: Any, place: SourceSpan) -> Node:
    if isinstance(value, str):
        return Node(Kind.QUOTED, value, *place)
    if value is None or isinstance(value, bool):
        return Node(Kind.PLAIN, _CONSTANTS[value], *place)
    return Node(Kind.PLAIN, _number(value), *place)


def _number(value: float) -> str:
    """A number as YAML."""
    if value != value:
        return ".nan"
    if value in (float("inf"), float("-inf")):
        return ".inf" if value > 0 else "-.inf"
    return repr(value)
