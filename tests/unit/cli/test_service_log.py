"""What a service writes while it works."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from ork.cli.service_log import ServiceLog
from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.telemetry import TelemetryEvent

KEY = AttemptKey(RunId("r1"), TaskKey("load", 3), 2)


def test_json_names_an_attempt_by_run_task_index_and_number(capsys: pytest.CaptureFixture[str]) -> None:
    at = datetime(2026, 3, 1, 12, tzinfo=UTC)
    ServiceLog("json")(TelemetryEvent.ATTEMPT_ENDED, {"attempt": KEY, "status": "lost", "finished_at": at})
    line = json.loads(capsys.readouterr().err)
    assert {name: line[name] for name in ("run", "task", "index", "attempt")} == {
        "run": "r1",
        "task": "load",
        "index": 3,
        "attempt": 2,
    }
    assert (line["level"], line["finished_at"]) == ("info", "2026-03-01T12:00:00.000000Z")


@pytest.mark.parametrize(
    "event", [TelemetryEvent.ALERT_FAILED, TelemetryEvent.SCHEDULE_MISSED, TelemetryEvent.TRACES_FAILED]
)
def test_what_somebody_should_look_at_is_a_warning(event: TelemetryEvent, capsys: pytest.CaptureFixture[str]) -> None:
    ServiceLog("json")(event, {"why": "x"})
    assert json.loads(capsys.readouterr().err)["level"] == "warning"


def test_a_line_for_people_says_what_happened_to_what_and_no_more(capsys: pytest.CaptureFixture[str]) -> None:
    fields = {"run": "r1", "workflow": "w", "status": "failed", "error": "x\x1b", "round": 1, "created_at": "…"}
    ServiceLog("text")(TelemetryEvent.RUN_FINISHED, fields)
    line = capsys.readouterr().err.partition("Z  ")[2]
    assert line == "run ended  run=r1  workflow=w  status=failed  error=x␛\n"


def test_every_happening_that_an_operator_wants_to_know_has_words(capsys: pytest.CaptureFixture[str]) -> None:
    only_counted = {TelemetryEvent.ATTEMPT_LAUNCHED, TelemetryEvent.ATTEMPT_ENDED, TelemetryEvent.RUN_FENCED}
    for event in TelemetryEvent:
        ServiceLog("text")(event, {})
        said = "".join(capsys.readouterr())
        assert bool(said) is (event not in only_counted), event
