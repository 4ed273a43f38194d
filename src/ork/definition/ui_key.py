"""`ui` in ork.yaml: where the pages of the web UI are published after runs have ended."""

from __future__ import annotations

from typing import Any

from ork.definition.keys import Key, KeyTable, Reading
from ork.definition.nodes import Node
from ork.definition.problems import quoted
from ork.definition.values import duration, integer, is_scalar, read_boolean, read_text
from ork.model.publishing import LEAST_EVERY_SECONDS, MOST_RUNS, PublishConfig

_LOGS = ("all", "failed", "none")
_BUCKETS = ("gs://", "s3://", "az://")


def _read_target(node: Node, reading: Reading) -> str | None:
    text = read_text(node, reading)
    if text is None:
        return None
    if not text.strip() or "\n" in text or ("://" in text and not text.startswith(_BUCKETS)) or text.endswith(".html"):
        hint = "a folder, or a bucket: gs://, s3:// or az://"
        reading.refuse("ORK104", f"{quoted(text)} is not a place to publish to", node, hint=hint)
        return None
    return text


def _read_logs(node: Node, reading: Reading) -> str | None:
    text = read_text(node, reading)
    if text is not None and text not in _LOGS:
        reading.refuse("ORK104", f"{quoted(text)} is not one of {', '.join(_LOGS)}", node)
        return None
    return text


def _read_every(node: Node, reading: Reading) -> float | None:
    seconds: float | None = duration(zero_allowed=False)(node, reading)
    if seconds is not None and seconds < LEAST_EVERY_SECONDS:
        reading.refuse("ORK104", f"{quoted(str(node.value))} is less than {LEAST_EVERY_SECONDS:.0f} seconds", node)
        return None
    return seconds


PUBLISH_TABLE = KeyTable(
    "`publish`",
    (
        Key("to", _read_target, "A folder, or a bucket: gs://, s3:// or az://.", {"type": "string"}, required=True),
        Key("runs", integer(1, MOST_RUNS), "At most so many runs, the newest ones. Default: 200.", {"type": "integer"}),
        Key(
            "since",
            duration(zero_allowed=False),
            "Only runs that are not older than this, such as `7d`.",
            {"type": ["number", "string"]},
        ),
        Key("logs", _read_logs, "Ends of logs: all, failed or none. Default: failed.", {"enum": list(_LOGS)}),
        Key("every", _read_every, "Not more often than this. Default: 60s.", {"type": ["number", "string"]}),
        Key("public", read_boolean, "Allow a bucket that everybody can read.", {"type": "boolean"}),
    ),
)


def _read_publish(node: Node, reading: Reading) -> PublishConfig | None:
    """A place, or a map with `to` and more."""
    if is_scalar(node):
        target = _read_target(node, reading)
        return None if target is None else PublishConfig(target)
    values: dict[str, Any] | None = PUBLISH_TABLE.read(node, reading)
    if values is None:
        return None
    for name in PUBLISH_TABLE.missing(node):
        reading.refuse("ORK102", f"{PUBLISH_TABLE.what} needs `{name}`", node, hint="`ui: {publish: {to: s3://…}}`")
    return PublishConfig(**values) if "to" in values else None


UI_TABLE = KeyTable(
    "`ui`",
    (
        Key(
            "publish",
            _read_publish,
            "Where the pages of the web UI are written after runs have ended: a folder or a bucket.",
            {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/publish"}]},
        ),
    ),
)


def read_ui(node: Node, reading: Reading) -> PublishConfig | None:
    values = UI_TABLE.read(node, reading)
    found: PublishConfig | None = None if values is None else values.get("publish")
    return found
