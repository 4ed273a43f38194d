"""The `schedule` of a workflow: cron expression, time zone, and handling of missed times."""

from __future__ import annotations

import re

from ork.definition.keys import Key, KeyTable, Reading
from ork.definition.nodes import Node
from ork.definition.problems import quoted
from ork.definition.report import Suggester
from ork.definition.values import choice, duration, integer, is_scalar, read_boolean, read_text
from ork.model.workflow import Catchup, Schedule

_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MAX_CRON_LENGTH = 200
MAX_CATCHUP = 1000
_ZONE = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*")


def read_schedule(node: Node, reading: Reading) -> Schedule | None:
    if is_scalar(node):
        cron = read_cron(node, reading)
        return None if cron is None else Schedule(cron)
    values = SCHEDULE_TABLE.read(node, reading)
    if values is None:
        return None
    if SCHEDULE_TABLE.missing(node):
        reading.refuse("ORK102", "the schedule has no `cron`", node, hint='add `cron: "0 2 * * *"`')
    return Schedule(**values) if "cron" in values else None


def read_cron(node: Node, reading: Reading) -> str | None:
    """The expression normalized to five or six fields; `@daily` and similar are expanded."""
    text = read_text(node, reading)
    if text is None:
        return None
    if text.startswith("@"):
        return _macro(text, node, reading)
    cron = " ".join(text.split())
    if len(cron) > _MAX_CRON_LENGTH:
        reading.refuse("ORK301", "the cron expression is too long", node)
        return None
    problem = _cron_problem(cron)
    if problem is not None:
        code, message, hint = problem
        reading.refuse(code, f"{quoted(text)} {message}", node, hint=hint)
        return None
    return cron


def _macro(text: str, node: Node, reading: Reading) -> str | None:
    cron = _MACROS.get(text.lower())
    if cron is None:
        hint = Suggester(_MACROS).hint(text) or f"one of: {', '.join(_MACROS)}"
        reading.refuse("ORK301", f"{quoted(text)} is not a known schedule", node, hint=hint)
    return cron


def _cron_problem(cron: str) -> tuple[str, str, str | None] | None:
    """Code, end of a sentence, and hint; None if the expression fires at some time."""
    fields = cron.split(" ")
    if len(fields) not in (5, 6):
        hint = "minute hour day month weekday, optionally with seconds in front"
        return "ORK301", f"is not a cron expression: it has {len(fields)} fields, not 5 or 6", hint
    wrong = _wrong_field(fields)
    if wrong is None:
        return None
    any_month, any_day = [*fields[:-2], "*", fields[-1]], [*fields[:-3], "*", *fields[-2:]]
    if wrong == "" or (_wrong_field(any_month) is None and _wrong_field(any_day) is None):
        return "ORK302", "never fires: none of its months has such a day", None
    return "ORK301", f"is not a cron expression: the {wrong} is wrong", "minute hour day month weekday"


def _wrong_field(fields: list[str]) -> str | None:
    """The name of the invalid field; empty if all are valid but no time ever matches; None if one does."""
    from datetime import UTC, datetime

    from cronsim import CronSim, CronSimError

    try:
        next(CronSim(" ".join(fields), datetime(2024, 1, 1, tzinfo=UTC)))
    except StopIteration:
        return ""
    except CronSimError as error:
        return str(error).removeprefix("Bad ")
    return None


def _read_zone(node: Node, reading: Reading) -> str | None:
    from zoneinfo import ZoneInfo

    text = read_text(node, reading)
    if text is None:
        return None
    try:
        if not _ZONE.fullmatch(text) or len(text) > 64:
            raise ValueError(text)
        ZoneInfo(text)
    except (ValueError, OSError, LookupError):  # folders of the zone database raise OSError
        reading.refuse("ORK303", f"{quoted(text)} is not a time zone", node, hint=_zone_hint(text))
        return None
    return text


def _zone_hint(text: str) -> str:
    from zoneinfo import available_timezones

    return Suggester(sorted(available_timezones())).hint(text) or "use a name such as `Europe/Prague` or `UTC`"


SCHEDULE_TABLE = KeyTable(
    "a schedule",
    (
        Key(
            "cron",
            read_cron,
            "A cron expression: five fields, six with seconds first, or a form such as @daily.",
            {"type": "string"},
            required=True,
        ),
        Key("timezone", _read_zone, "The time zone. Default: UTC.", {"type": "string"}),
        Key(
            "catchup",
            choice(Catchup),
            "Which missed times get a run: none, the last one, or all.",
            {"enum": [option.value for option in Catchup]},
        ),
        Key("enabled", read_boolean, "Whether the schedule is enabled.", {"type": "boolean"}),
        Key(
            "jitter",
            duration(zero_allowed=True),
            "Maximum delay of each time, constant for this workflow: `30s`, `5m`.",
            {"type": ["string", "number"]},
        ),
        Key(
            "catchup_limit",
            integer(1, MAX_CATCHUP),
            "Maximum number of missed times that get a run at once. Default: 100.",
            {"type": "integer", "minimum": 1, "maximum": MAX_CATCHUP},
        ),
    ),
)
