"""Failures have the words of the platform that stopped a worker, or did not start it."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from ork.core.events import Failed
from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.task import Attempt, AttemptStatus, Failure, FailureKind, GiveUp, Status
from ork.scheduler.observe import Observer

NOW = datetime(2026, 11, 18, tzinfo=UTC)
KEY = AttemptKey(RunId("7f3k"), TaskKey("load"), 1)
ATTEMPT = Attempt(KEY, AttemptStatus.RUNNING, "platform", "platform:x", "00", NOW)
STOPPED = Status(2, "stopped", NOW, NOW, NOW, None, Failure(FailureKind.CANCELLED, "stopped"), None)


def observer(words: str | None) -> Any:
    made: Any = object.__new__(Observer)
    made._executors = {"platform": SimpleNamespace(why_waiting=lambda _key: words)}
    return made


@pytest.mark.parametrize(
    ("words", "closing", "message"),
    [
        ("its node evicted its pod", False, "its worker was told to stop: its node evicted its pod"),
        (None, False, "its worker was told to stop"),
        ("its pod was deleted", True, "its worker was told to stop"),
    ],
)
def test_a_worker_that_nobody_of_us_stopped_was_stopped_by_the_platform(
    words: str | None, closing: bool, message: str
) -> None:
    event = observer(words)._event_of(STOPPED, SimpleNamespace(attempt=ATTEMPT, closing=closing))
    assert isinstance(event, Failed)
    assert (event.failure.kind, event.failure.message) == (FailureKind.LOST, message)


def test_an_attempt_that_does_not_start_in_time_fails_with_the_reason() -> None:
    late = Failure(FailureKind.LOST, "not started within 300 s")
    watched = SimpleNamespace(attempt=ATTEMPT)
    found = observer("0/3 nodes are available")._with_words(watched, GiveUp.NOT_STARTED, late)
    assert found.message == "not started within 300 s: 0/3 nodes are available"
    assert observer("x")._with_words(watched, GiveUp.STALE, late) == late
