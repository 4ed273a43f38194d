"""How soon the tick after this one must look at an attempt."""

from __future__ import annotations

import pytest

from ork.core.liveness import LivenessTimeouts
from ork.model.record import replaced
from ork.model.workflow import Command, Const, TaskSpec
from ork.scheduler.options import SchedulerOptions
from ork.scheduler.watchlist import Watched, look_by_next_tick
from tests.conformance.state_samples import attempt

NOW = 10_000.0
CALLED = SchedulerOptions(wake_url="https://ork.example.com/api/v1/wake")
SPEC = TaskSpec("t", "process", Command((Const("true"),)))


def watched(ran: float | None, timeout: float | None = None, **options: object) -> Watched:
    since = None if ran is None else NOW - ran
    task = replaced(SPEC, timeout=timeout)
    return Watched(attempt("run", "t"), task, NOW, NOW, since, look_at=NOW + 10, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("ran", "seconds"), [(0, 60), (59, 60), (200, 200), (599, 599), (20_000, 600)])
def test_looks_stretch_with_the_time_it_has_been_running(ran: float, seconds: float) -> None:
    assert look_by_next_tick(watched(ran), CALLED, NOW) == NOW + seconds


def test_looks_at_six_hours_are_few() -> None:
    ran, looks = 0.0, 0
    while ran < 6 * 3600:
        ran += look_by_next_tick(watched(ran), CALLED, NOW) - NOW
        looks += 1
    assert looks <= 42


def test_its_timeout_is_not_slept_through() -> None:
    margin = LivenessTimeouts().timeout_margin_seconds
    assert look_by_next_tick(watched(300, timeout=310), CALLED, NOW) == NOW + 10 + margin
    assert look_by_next_tick(watched(900, timeout=310), CALLED, NOW) == NOW


@pytest.mark.parametrize(
    ("options", "one"),
    [(SchedulerOptions(), watched(900)), (CALLED, watched(None)), (CALLED, watched(900, closing=True))],
    ids=["nobody calls", "not begun", "being ended"],
)
def test_what_nobody_calls_about_is_looked_at_as_before(options: SchedulerOptions, one: Watched) -> None:
    assert look_by_next_tick(one, options, NOW) == NOW + 10
