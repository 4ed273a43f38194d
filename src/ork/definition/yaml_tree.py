"""Parses YAML text into a tree of small nodes with positions. Strict, and linear in the size of the text.

Built directly from the parser's events, without an intermediate tree. Text that cannot be decoded is reported with its position,
and so is a `{{ … }}` template of another tool that stands where a reference would: Ork evaluates none.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import yaml

from ork.definition.nodes import Kind, Node
from ork.definition.problems import quoted
from ork.definition.refs import RefSyntaxError, parse_ref
from ork.definition.report import ProblemReport, line_and_column

if TYPE_CHECKING:
    from collections.abc import Callable


MAX_BYTES = 64 * 1024 * 1024

# Characters that YAML does not allow; checked here because the parser's message has no position.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def decode_source(data: bytes, report: ProblemReport) -> str | None:
    if len(data) > MAX_BYTES:
        message = f"the file has {len(data):,} bytes; {MAX_BYTES:,} are allowed"
        report.add_file("ORK111", message, hint="split the workflow")
        return None
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        report.add_file("ORK110", "the file is UTF-16, not UTF-8", hint="save it as UTF-8")
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        readable = data[: error.start].decode("utf-8-sig")
        report.text = readable
        message = f"the file is not UTF-8: byte 0x{data[error.start]:02x} is invalid here"
        report.add_at("ORK110", message, *line_and_column(readable, len(readable)), hint="save it as UTF-8")
        return None
    forbidden = _FORBIDDEN.search(text)
    if forbidden:
        report.text = text
        message = f"the character U+{ord(forbidden.group()):04X} is not allowed"
        report.add_at("ORK110", message, *line_and_column(text, forbidden.start()), hint="remove it")
        return None
    return text


# A name or a path, optionally with a filter or a call. `{{.Names}}` is a Go template, which is valid text for commands.
_TEMPLATE = re.compile(r"\{\{-?\s*([A-Za-z_][\w.\[\]]*)[^{}]*\}\}")
_MESSAGE = "templates are not supported: `{{{{ {name} }}}}` would be passed to the task as text"


def template_in(text: str) -> str | None:
    """The name in the first `{{ … }}` that looks like a reference."""
    found = _TEMPLATE.search(text) if "{{" in text else None
    return found.group(1) if found else None


def refuse_template(name: str, node: Node, report: ProblemReport) -> None:
    hint = f"write `{{ref: {_as_ref(name)}}}` for the whole value; if the text is meant as it stands: `{{const: …}}`"
    report.add("ORK210", _MESSAGE.format(name=name), node, hint=hint)


def refused_as_key(key: Node, report: ProblemReport) -> bool:
    """Unquoted, YAML reads `{{ x }}` as a map whose key is the map `{x: null}`."""
    if key.kind != Kind.MAP or len(key.value) != 2 or key.value[0].kind not in (Kind.PLAIN, Kind.QUOTED):
        return False
    refuse_template(str(key.value[0].value), key, report)
    return True


def _as_ref(name: str) -> str:
    """What to write instead: the name itself if it is a valid path, else an example of one."""
    if name.endswith(".output") and not name.startswith("tasks."):
        return f"tasks.{name}"
    try:
        parse_ref(name, ())
    except RefSyntaxError:
        return f"params.{name}"
    return name if "." in name else f"params.{name}"


MAX_DEPTH = 64
# A task takes about ten events. The limit keeps a small hostile file (such as `[,,,`) from filling the memory.
MAX_EVENTS = 2_500_000


def parse_yaml(data: bytes, report: ProblemReport, *, may_be_list: bool = False) -> Node | None:
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
    def __init__(self, text: str, report: ProblemReport, may_be_list: bool) -> None:
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
        stack: list[_OpenList] = []
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

    def _open(self, event: Any, depth: int) -> _OpenList:
        if depth >= MAX_DEPTH:
            raise _Unreadable("ORK111", f"nested more than {MAX_DEPTH} levels deep", event)
        if depth == 0 and type(event) is yaml.SequenceStartEvent and not self.may_be_list:
            raise _Unreadable("ORK103", "expected a map of keys, found a list", event)
        if event.anchor is not None or event.tag is not None:
            self._refuse_marks(event)
        if type(event) is yaml.SequenceStartEvent:
            return _OpenList(_node(Kind.LIST, (), event))
        return _OpenMap(_node(Kind.MAP, (), event))

    def _refuse_marks(self, event: Any) -> None:
        if event.anchor is not None:
            self._report_problem("ORK108", f"anchors are not allowed: `&{event.anchor}`", event, "write the value out")
        if event.tag is not None:
            hint = "quote the value to make it text; other types follow from the syntax"
            self._report_problem("ORK109", f"tags are not allowed: {quoted(event.tag)}", event, hint)

    def _report_problem(self, code: str, message: str, event: Any, hint: str | None) -> None:
        self.report.add(code, message, _node(Kind.BAD, None, event), hint=hint)


class _OpenList:
    """A list whose end is not reached yet."""

    __slots__ = ("children", "node")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.children: list[Node] = []

    def add(self, child: Node, report: ProblemReport) -> None:  # noqa: ARG002 - only a map reports problems
        self.children.append(child)

    def closed(self) -> Node:
        self.node.value = tuple(self.children)
        return self.node


class _OpenMap(_OpenList):
    __slots__ = ("key", "seen")

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self.key: Node | None = None
        self.seen: dict[str, Node] = {}

    def add(self, child: Node, report: ProblemReport) -> None:
        if self.key is None:
            self.key = child
            return
        key, self.key = self.key, None
        if not self._refused(key, report):
            # Keys repeat in every task: share one copy.
            key.value = sys.intern(key.value)
            self.seen[key.value] = key
            self.children += (key, child)

    def _refused(self, key: Node, report: ProblemReport) -> bool:
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


def _report_syntax(error: yaml.YAMLError, report: ProblemReport) -> None:
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
