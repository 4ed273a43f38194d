"""Tables of keys: what a map may hold, how each key is parsed, and its JSON Schema.

To add a key, add a row. Parsing, rejection of unknown keys, suggestions, schema and documentation follow from it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ork.definition.nodes import Kind, Node, is_null
from ork.definition.problems import quoted
from ork.definition.report import ProblemReport, Suggester

if TYPE_CHECKING:
    from ork.model.types import TypeJson

KIND_NAMES = {Kind.PLAIN: "a single value", Kind.QUOTED: "text", Kind.LIST: "a list", Kind.MAP: "a map"}


NO_CUSTOM: Mapping[str, tuple[str, Any]] = {}


class Reading:
    """The context of parsers: where to report problems, and the names in the file."""

    def __init__(
        self, report: ProblemReport, executors: Collection[str] = (), custom: Mapping[str, tuple[str, Any]] = NO_CUSTOM
    ) -> None:
        self.report = report
        self.executors = executors
        self.custom = custom  # custom executors: their class and config
        self.task_names: Collection[str] = ()
        self.types: dict[str, TypeJson] = {}

    def refuse(self, code: str, message: str, node: Node, *, hint: str | None = None) -> None:
        self.report.add(code, message, node, hint=hint)

    def expected(self, what: str, node: Node, *, hint: str | None = None) -> None:
        """Report a value of the wrong type, unless its node was reported already."""
        if node.kind == Kind.BAD:
            return
        found = quoted(node.value) if node.kind in (Kind.PLAIN, Kind.QUOTED) else KIND_NAMES[node.kind]
        self.report.add("ORK103", f"expected {what}, found {'nothing' if is_null(node) else found}", node, hint=hint)


# Returns None after reporting a problem. Never called with null, unless its key is `nullable`.
Reader: TypeAlias = Callable[[Node, Reading], Any]


NO_SYNONYMS: Mapping[str, str] = {}


class Key(NamedTuple):
    """One row of a table. Tables are built at every start of Ork, so a row must be cheap."""

    name: str
    read: Reader
    description: str
    schema: Mapping[str, Any]
    required: bool = False
    nullable: bool = False


class KeyTable:
    """The keys of one kind of map. `what` names the map in messages, e.g. "a task"; `elsewhere` has the names that
    other tools use for some keys."""

    def __init__(self, what: str, keys: tuple[Key, ...], synonyms: Mapping[str, str] = NO_SYNONYMS) -> None:
        self.what = what
        self.keys = keys
        self.by_name = {key.name: key for key in keys}
        self._synonyms = synonyms

    def read(self, node: Node, reading: Reading) -> dict[str, Any] | None:
        """The parsed values by key, without invalid ones. None if the node is no map."""
        if node.kind != Kind.MAP:
            reading.expected(f"{self.what} as a map of keys", node)
            return None
        values: dict[str, Any] = {}
        for name, value in node.pairs():
            key = self.by_name.get(name.value)
            if key is None:
                self._refuse_unknown(name, reading)
            elif key.nullable or not is_null(value):
                found = key.read(value, reading)
                if found is not None:
                    values[key.name] = found
        return values

    def missing(self, node: Node) -> list[str]:
        """Required keys that are missing or have no value. A misspelled one is reported already."""
        written = {name.value for name, value in node.pairs() if not is_null(value)}
        missing = [key.name for key in self.keys if key.required and key.name not in written]
        return [name for name in missing if name not in self.meant(node)] if missing else []

    def meant(self, node: Node) -> set[str]:
        """The keys that unknown keys of this map are probably meant to be."""
        unknown = [name.value for name, _ in node.pairs() if name.value not in self.by_name]
        found = (self._synonyms.get(name) or Suggester(self.by_name).closest(name) for name in unknown)
        return {name for name in found if name is not None}

    def _refuse_unknown(self, name: Node, reading: Reading) -> None:
        suggestion = self._synonyms.get(name.value)
        hint = f"that is {quoted(suggestion)} here" if suggestion else Suggester(self.by_name).hint(name.value)
        hint = hint or f"known here: {', '.join(self.by_name)}"
        reading.refuse("ORK101", f"{quoted(name.value)} is not a key of {self.what}", name, hint=hint)
