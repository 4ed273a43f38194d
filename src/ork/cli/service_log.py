"""The log of a service: text lines for the events that matter to operators, or JSON lines for all events."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from ork.cli.session import now
from ork.model.ids import AttemptKey

if TYPE_CHECKING:
    from ork.telemetry import Telemetry, TelemetryEvent

LOG_FORMAT = click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    envvar="ORK_LOG_FORMAT",
    show_default=True,
    help="Text lines, or JSON lines with run, task and attempt for every event.",
)
LOG_LEVEL = click.option(
    "--log-level",
    type=click.Choice(["info", "debug"]),
    default="info",
    envvar="ORK_LOG_LEVEL",
    show_default=True,
    help="debug adds a line for each scheduler step that did something.",
)
LOG_FORMAT_OR_NONE = click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    envvar="ORK_LOG_FORMAT",
    help="Also log events on stderr, as text or JSON lines.",
)

_TEXTS = {
    "ready": "ready",
    "stopped": "stopped",
    "run_started": "run started",
    "run_adopted": "run adopted",
    "run_finished": "run ended",
    "run_quarantined": "run quarantined",
    "step": "step",
    "step_failed": "step failed",
    "store_failed": "store failed",
    "store_recovered": "store works again",
    "document_refused": "document refused",
    "start_failed": "start failed",
    "objects_failed": "objects failed",
    "api_failed": "api failed",
    "alarm_failed": "alarm failed",
    "traces_failed": "traces failed",
    "fallback": "slower than it should be",
    "schedule_fired": "schedule fired",
    "schedule_missed": "schedule missed",
    "schedule_failed": "schedule failed",
    "location_refreshed": "location refreshed",
    "location_failed": "location failed",
    "alert_sent": "alert sent",
    "alert_failed": "alert failed",
}
_WARNINGS = frozenset(
    {
        "run_quarantined",
        "step_failed",
        "store_failed",
        "start_failed",
        "objects_failed",
        "api_failed",
        "alarm_failed",
        "traces_failed",
        "fallback",
        "document_refused",
        "schedule_missed",
        "schedule_failed",
        "alert_failed",
        "location_failed",
    }
)
# The fields shown in text lines; JSON lines have all fields.
_TEXT_FIELDS = (
    "run",
    "workflow",
    "attempt",
    "status",
    "error",
    "component",
    "why",
    "scheduled_for",
    "location",
    "digest",
    "alert",
    "to",
    "final",
    "url",
    "ui",
    "token",
    "took",
    "did",
    "owned",
)


class ServiceLog:
    """Writes `ready` to stdout and all other events to stderr."""

    def __init__(self, log_format: str, level: str = "info") -> None:
        self._is_json = log_format == "json"
        self._has_steps = level == "debug"

    def listen_to(self, telemetry: Telemetry, *, except_ready: bool = False) -> None:
        """`except_ready` is for parts of a service: the service is ready when all its parts are."""
        from ork.telemetry import TelemetryEvent

        unwanted = {TelemetryEvent.READY} if except_ready else set()
        if not self._has_steps:
            unwanted.add(TelemetryEvent.STEP)
        telemetry.listen(self, *(event for event in TelemetryEvent if event not in unwanted))

    def __call__(self, event: TelemetryEvent, fields: dict[str, Any]) -> None:
        self.write_event(str(event), fields)

    def write_event(self, event: str, fields: dict[str, Any]) -> None:
        line = self._json_line(event, fields) if self._is_json else self._text_line(event, fields)
        if line is not None:
            print(line, file=sys.stdout if event == "ready" else sys.stderr, flush=True)

    def _text_line(self, event: str, fields: dict[str, Any]) -> str | None:
        text = _TEXTS.get(event)
        if text is None:
            return None  # only counted
        from ork.cli.paint import visible

        wanted = {name: fields[name] for name in _TEXT_FIELDS if fields.get(name) is not None}
        shown = "  ".join(f"{name}={visible(_value_text(value))}" for name, value in wanted.items())
        return f"{now():%Y-%m-%dT%H:%M:%SZ}  {text}  {shown}".rstrip()

    def _json_line(self, event: str, fields: dict[str, Any]) -> str:
        level = "warning" if event in _WARNINGS else "debug" if event == "step" else "info"
        shown = {name: _plain(value) for name, value in _named(fields).items()}
        return json.dumps({"at": _plain(now()), "level": level, "event": event, **shown}, default=str)


def _value_text(value: Any) -> str:
    return (
        ", ".join(f"{name} {number}" for name, number in value.items())
        if isinstance(value, dict)
        else str(_plain(value))
    )


def _named(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields, with an attempt key replaced by its run, task, index and number."""
    key = fields.get("attempt")
    if not isinstance(key, AttemptKey):
        return fields
    return {**fields, "run": key.run, "task": key.task.name, "index": key.task.index, "attempt": key.number}


def _plain(value: Any) -> Any:
    if not isinstance(value, datetime):
        return value
    from ork.status.shapes import time_json

    return time_json(value)
