"""Notes about parts that work more slowly than they should."""

from __future__ import annotations

from ork.telemetry import FALLBACK_LOG_SECONDS, MAX_FALLBACK_REASON, Fallbacks, Telemetry, TelemetryEvent
from ork.testing.clock import FakeClock


def test_each_is_counted_and_logged_only_when_it_is_new_or_has_lasted() -> None:
    clock, told = FakeClock(), []
    fallbacks = Fallbacks(lambda component, reason: told.append((component, reason)), clock.monotonic)
    for _ in range(3):
        fallbacks.note("journal", "why")
    assert told == [("journal", "why")]
    clock.advance(FALLBACK_LOG_SECONDS)
    fallbacks.note("journal", "why")
    fallbacks.note("journal", "another reason")
    assert told == [("journal", "why"), ("journal", "why"), ("journal", "another reason")]
    assert fallbacks.counts == {"journal": 5}


def test_what_is_over_is_no_longer_noted_but_stays_counted() -> None:
    fallbacks = Fallbacks(lambda _component, _reason: None)
    fallbacks.note("fork server", "crashed\n  at start")
    assert fallbacks.notes == ("fork server: crashed at start",)
    fallbacks.clear("fork server")
    fallbacks.clear("fork server")
    assert (fallbacks.notes, fallbacks.counts["fork server"]) == ((), 1)


def test_a_reason_is_bounded() -> None:
    fallbacks = Fallbacks(lambda _component, _reason: None)
    fallbacks.note("journal", "x" * 10_000)
    assert len(fallbacks.reasons["journal"]) == MAX_FALLBACK_REASON


def test_telemetry_reports_them_as_events() -> None:
    heard = []
    telemetry = Telemetry()
    telemetry.listen(lambda _happening, fields: heard.append(fields), TelemetryEvent.FALLBACK)
    telemetry.fallbacks.note("journal", "why")
    assert heard == [{"component": "journal", "why": "why"}]
