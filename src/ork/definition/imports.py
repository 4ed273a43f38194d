"""Tasks imported from a project of another tool: `import: [{dbt: warehouse}]`."""

from __future__ import annotations

from typing import Any, NamedTuple

from ork.definition.actions import read_path
from ork.definition.keys import Key, Reading, Table
from ork.definition.nodes import Kind, Node
from ork.definition.tasks import SHARED_KEYS, with_defaults
from ork.definition.values import NAME, items_of, read_text

# Not `executor`: imported tasks are commands.
_TASK_KEYS = tuple(key for key in SHARED_KEYS if key.name != "executor")


class ParsedImport(NamedTuple):
    """A dbt project (a folder), a selection of its nodes, and the fields that its tasks share."""

    dbt: str
    node: Node
    select: tuple[str, ...] = ()
    profiles_dir: str | None = None
    target: str | None = None
    prefix: str = ""
    fields: dict[str, Any] = {}  # noqa: RUF012 - never changed


def _read_prefix(node: Node, reading: Reading) -> str | None:
    text = read_text(node, reading)
    if text is not None and not NAME.fullmatch(text):
        reading.refuse("ORK105", f"`{text}` cannot begin a name", node, hint="write a prefix such as `dbt_`")
        return None
    return text


IMPORT_TABLE = Table(
    "an import",
    (
        Key("dbt", read_path, "The folder of a dbt project.", {"type": "string"}, required=True),
        Key(
            "select",
            items_of(read_text),
            "A selection of nodes, as for `dbt build --select`. Default: all.",
            {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        ),
        Key(
            "profiles_dir",
            read_path,
            "The folder of profiles.yml. Default: the project's folder, if it has one.",
            {"type": "string"},
        ),
        Key("target", read_text, "The target in the profile. Default: that of the profile.", {"type": "string"}),
        Key("prefix", _read_prefix, "The prefix of its task names. Default: none.", {"type": "string"}),
        *_TASK_KEYS,
    ),
)

IMPORT_KEY = Key(
    "import",
    lambda node, reading: check_imports(node, reading),
    "Tasks of other tools: dbt projects.",
    {"type": "array", "items": {"$ref": "#/$defs/import"}},
)


def check_imports(node: Node, reading: Reading) -> Node | None:
    """Return the list unread: imports are parsed last, when the defaults are known."""
    if node.kind != Kind.LIST:
        reading.expected("a list of imports", node, hint="write `import: [{dbt: folder}]`")
        return None
    return node


def read_imports(node: Node | None, defaults: dict[str, Any], reading: Reading) -> tuple[ParsedImport, ...]:
    entries = () if node is None else node.value
    found = [_read_import(entry, defaults, reading) for entry in entries]
    return tuple(entry for entry in found if entry is not None)


def _read_import(node: Node, defaults: dict[str, Any], reading: Reading) -> ParsedImport | None:
    values = IMPORT_TABLE.read(node, reading)
    if values is None:
        return None
    if IMPORT_TABLE.missing(node):
        reading.refuse("ORK102", "the import has no `dbt`", node, hint="name the project's folder: `{dbt: warehouse}`")
    if "dbt" not in values:
        return None
    own = {key.name: values.pop(key.name) for key in _TASK_KEYS if key.name in values}
    return ParsedImport(**values, node=node, fields=with_defaults(own, defaults))
