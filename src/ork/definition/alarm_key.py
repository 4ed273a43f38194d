"""`alarm` in ork.yaml: `none`, `systemd`, or `{cloud_tasks: {queue, url, service_account}}`."""

from __future__ import annotations

from ork.definition.keys import Key, KeyTable, Reader, Reading
from ork.definition.nodes import Kind, Node
from ork.definition.problems import quoted
from ork.definition.values import is_scalar, read_text
from ork.model.alarm import AlarmConfig, AlarmKind, alarm_mistake

_EXAMPLES = "write `none`, `systemd`, or `{cloud_tasks: {queue: …, url: …, service_account: …}}`"
_WORDS = {kind.value: AlarmConfig(kind) for kind in (AlarmKind.NONE, AlarmKind.SYSTEMD)}


def _checked(name: str) -> Reader:
    """Reads a setting of Cloud Tasks and checks its form."""

    def read(node: Node, reading: Reading) -> str | None:
        text = read_text(node, reading)
        mistake = None if text is None else alarm_mistake(name, text)
        if mistake is not None:
            reading.refuse("ORK851", mistake[0], node, hint=mistake[1])
            return None
        return text

    return read


CLOUD_TASKS_TABLE = KeyTable(
    "an alarm by Cloud Tasks",
    (
        Key(
            "queue",
            _checked("queue"),
            "The queue, as `projects/PROJECT/locations/REGION/queues/NAME`. Each installation needs its own.",
            {"type": "string"},
            required=True,
        ),
        Key(
            "url",
            _checked("url"),
            "The address of `ork serve --on-request`, without a path. It is also the audience of the tokens.",
            {"type": "string"},
            required=True,
        ),
        Key(
            "service_account",
            _checked("service_account"),
            "The service account whose identity token the calls carry. No other may call a tick.",
            {"type": "string"},
            required=True,
        ),
    ),
)

ALARM_TABLE = KeyTable(
    "an alarm",
    (
        Key(
            "cloud_tasks",
            CLOUD_TASKS_TABLE.read,
            "A queue of Google Cloud Tasks.",
            {"$ref": "#/$defs/cloud_tasks"},
            required=True,
        ),
    ),
)

ALARM_SCHEMA = {"anyOf": [{"enum": list(_WORDS)}, {"$ref": "#/$defs/alarm"}]}


def read_alarm(node: Node, reading: Reading) -> AlarmConfig | None:
    if is_scalar(node):
        found = _WORDS.get(str(node.value))
        if found is None:
            reading.refuse("ORK851", f"{quoted(node.value)} is not an alarm", node, hint=_EXAMPLES)
        return found
    values = ALARM_TABLE.read(node, reading)
    if values is None:
        return None
    if ALARM_TABLE.missing(node):
        reading.refuse("ORK851", "the alarm has no kind", node, hint=_EXAMPLES)
        return None
    body = node.get("cloud_tasks")
    if body is None:
        return None
    for name in CLOUD_TASKS_TABLE.missing(body) if body.kind == Kind.MAP else ():
        reading.refuse("ORK102", f"{CLOUD_TASKS_TABLE.what} needs `{name}`", body, hint=_EXAMPLES)
    given = values.get("cloud_tasks")
    return None if given is None or len(given) < 3 else AlarmConfig(AlarmKind.CLOUD_TASKS, **given)
