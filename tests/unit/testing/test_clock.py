"""Clocks that move only when told to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ork.testing.clock import FakeClock


def test_it_stands_still_until_it_is_moved() -> None:
    clock = FakeClock(datetime(2026, 3, 1, tzinfo=UTC))
    assert clock.now() == clock.now() == datetime(2026, 3, 1, tzinfo=UTC)
    clock.advance(90)
    assert clock.now() == datetime(2026, 3, 1, 0, 1, 30, tzinfo=UTC)


def test_a_jump_moves_the_wall_clock_and_not_the_monotonic_one() -> None:
    clock = FakeClock()
    before = clock.now()
    clock.jump(-3600)
    assert clock.monotonic() == 0
    assert clock.now() == before - timedelta(hours=1)


def test_time_does_not_run_backwards() -> None:
    with pytest.raises(ValueError, match="backwards"):
        FakeClock().advance(-1)


def test_it_can_follow_another_time() -> None:
    elapsed = [0.0]
    clock = FakeClock(elapsed=lambda: elapsed[0])
    start = clock.now()
    elapsed[0] = 5.0
    assert clock.monotonic() == 5.0
    assert clock.now() == start + timedelta(seconds=5)
