"""Parses YAML text into a tree of small nodes with positions. Strict, and linear in the size of the text.

Built directly from the parser's events, without an intermediate tree.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import yaml

from ork.definition.nodes import Kind, Node
from ork.definition.problems import quoted
from ork.definition.report import Report
from ork.definition.source_text import decode_source
from ork.definition.templates import refused_as_key

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_DEPTH = 64
# A task takes about ten events. The limit keeps a small hostile file (such as `[,,,`) from filling the memory.
MAX_EVENTS = 2_500_000


def parse_yaml(data: bytes, report: Report, *, may_be_list: bool = False) -> Node | None:
    """The root of the only document, or None if it cannot be parsed; problems are added to the report.

    An empty file is null. A list is rejected unless `may_be_list`.
    """
    text = decode_source(data, report)
    if text is None:
        return None
    report.text = text
    try:
        return _Builder(text, report, may_be_list).document()
    except yaml.YAMLError as error:
        _report_syntax(error, report)
        return None
    except _Unreadable as refused:
        report.add_at(refused.code, refused.message, refused.line, refused.column)
        return None


class _Unreadable(Exception):  # noqa: N818 - leaves the loop; not an error that callers see
    """Parsing cannot continue."""

    def __init__(self, code: str, message: str, event: Any) -> None:
        super().__init__(message)
        self.code, self.message = code, message
        self.line, self.column = event.start_mark.line, event.start_mark.column


class _Builder:
    def __init__(self, text: str, report: Report, may_be_list: bool) -> None:
        self.report = report
        self.may_be_list = may_be_list
        self.next_event = _parser(text).get_event

    def document(self) -> Node:
        event = self.next_event()
        while isinstance(event, yaml.StreamStartEvent):
            event = self.next_event()
        if isinstance(event, yaml.StreamEndEvent):
            return Node(Kind.PLAIN, "", 0, 0, 0)
        root = self.tree()
        self.next_event()  # the end of the document
        following = self.next_event()
        if not isinstance(following, yaml.StreamEndEvent):
            self._report_problem("ORK112", "a second document begins here", following, "keep one workflow per file")
        return root

    def tree(self) -> Node:
        """The next value with all its children. Uses a stack of open containers instead of recursion."""
        stack: list[_Open] = []
        for _ in range(MAX_EVENTS):
            event = self.next_event()
            event_type = type(event)
            if event_type is yaml.ScalarEvent:
                node = self._scalar(event)
            elif event_type is yaml.MappingStartEvent or event_type is yaml.SequenceStartEvent:
                stack.append(self._open(event, len(stack)))
                continue
            elif event_type is yaml.AliasEvent:
                self._report_problem(
                    "ORK108", f"aliases are not allowed: `*{event.anchor}`", event, "write the value out"
                )
                node = _node(Kind.BAD, None, event)
            else:
                node = stack.pop().closed()
            if not stack:
                return node
            stack[-1].add(node, self.report)
        raise _Unreadable("ORK111", "the file has too many values", event)

    def _scalar(self, event: Any) -> Node:
        if event.anchor is not None or event.tag is not None:
            self._refuse_marks(event)
        if "\0" in event.value:
            self._report_problem("ORK110", "NUL characters are not allowed", event, None)
            return _node(Kind.BAD, None, event)
        return _node(Kind.QUOTED if event.style else Kind.PLAIN, event.value, event)

    def _open(self, event: Any, depth: int) -> _Open:
        if depth >= MAX_DEPTH:
            raise _Unreadable("ORK111", f"nested more than {MAX_DEPTH} levels deep", event)
        if depth == 0 and type(event) is yaml.SequenceStartEvent and not self.may_be_list:
            raise _Unreadable("ORK103", "expected a map of keys, found a list", event)
        if event.anchor is not None or event.tag is not None:
            self._refuse_marks(event)
        if type(event) is yaml.SequenceStartEvent:
            return _Open(_node(Kind.LIST, (), event))
        return _OpenMap(_node(Kind.MAP, (), event))

    def _refuse_marks(self, event: Any) -> None:
        if event.anchor is not None:
            self._report_problem("ORK108", f"anchors are not allowed: `&{event.anchor}`", event, "write the value out")
        if event.tag is not None:
            hint = "quote the value to make it text; other types follow from the syntax"
            self._report_problem("ORK109", f"tags are not allowed: {quoted(event.tag)}", event, hint)

    def _report_problem(self, code: str, message: str, event: Any, hint: str | None) -> None:
        self.report.add(code, message, _node(Kind.BAD, None, event), hint=hint)


class _Open:
    """A list whose end is not reached yet."""

    __slots__ = ("children", "node")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.children: list[Node] = []

    def add(self, child: Node, report: Report) -> None:  # noqa: ARG002 - only a map reports problems
        self.children.append(child)

    def closed(self) -> Node:
        self.node.value = tuple(self.children)
        return self.node


class _OpenMap(_Open):
    __slots__ = ("key", "seen")

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self.key: Node | None = None
        self.seen: dict[str, Node] = {}

    def add(self, child: Node, report: Report) -> None:
        if self.key is None:
            self.key = child
            return
        key, self.key = self.key, None
        if not self._refused(key, report):
            # Keys repeat in every task: share one copy.
            key.value = sys.intern(key.value)
            self.seen[key.value] = key
            self.children += (key, child)

    def _refused(self, key: Node, report: Report) -> bool:
        if refused_as_key(key, report):
            self.node.kind = Kind.BAD
        elif key.kind in (Kind.LIST, Kind.MAP):
            hint = "if this was meant as text, put it in quotes"
            report.add("ORK103", "a key must be text, not a list or a map", key, hint=hint)
        elif key.kind == Kind.PLAIN and key.value == "<<":
            report.add("ORK108", "merge keys are not allowed: `<<`", key, hint="write the keys out, or use `defaults`")
        elif key.kind != Kind.BAD and key.value in self.seen:
            first = self.seen[key.value]
            message = f"{quoted(key.value)} is a duplicate key: first used in line {first.line + 1}"
            report.add("ORK106", message, key, hint="keep one of them")
        else:
            return key.kind == Kind.BAD
        return True


def _node(kind: Kind, value: Any, event: Any) -> Node:
    start, end = event.start_mark, event.end_mark
    line = start.line
    width = end.column - start.column if end.line == line else 1
    return Node(kind, value, line, start.column, width)


def _parser(text: str) -> Any:
    try:
        from yaml._yaml import CParser

        parser: Callable[[str], Any] = CParser
    except ImportError:  # PyYAML built without libyaml: the same events, slower
        parser = yaml.SafeLoader
    return parser(text)


_SYNTAX_HINTS = {
    "mapping values are not allowed in this context": "a value that contains `: ` must be in quotes",
    "did not find expected key": "check the indentation, and that every key ends with `:`",
    "could not find expected ':'": "check the indentation, and that every key ends with `:`",
    "did not find expected '-' indicator": "check the indentation of this list",
    "found unexpected end of stream": "a quote is opened and never closed",
    "did not find expected ',' or '}'": "inside { } a value with [ ] { } or a comma in it must be in quotes",
    "did not find expected ',' or ']'": "close the list with `]`; a value with [ ] { } or a comma in it must be in quotes",
    "found unknown escape character": "use single quotes, where a backslash is just a backslash",
}


def _report_syntax(error: yaml.YAMLError, report: Report) -> None:
    mark = getattr(error, "problem_mark", None)
    reason = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be read"
    if mark is None:
        report.add_file("ORK107", f"invalid YAML: {reason}")
        return
    hint = _SYNTAX_HINTS.get(reason)
    if "cannot start any token" in reason:
        found = report.character_at(mark.line, mark.column)
        reason = (
            "a tab is used where only spaces are allowed"
            if found == "\t"
            else f"no value can begin with {quoted(found)}"
        )
        hint = "indent with spaces" if found == "\t" else "put the value in quotes"
    report.add_at("ORK107", f"invalid YAML: {reason}", mark.line, mark.column, hint=hint)
