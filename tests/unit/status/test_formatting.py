from __future__ import annotations

import pytest

from ork.status.formatting import ago, between, count, duration, rough
from tests.unit.status.sample_runs import at


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0.0s"),
        (0.24, "0.2s"),
        (12.1, "12.1s"),
        (59.99, "1m"),
        (252, "4m 12s"),
        (7500, "2h 5m"),
        (273600, "3d 4h"),
        (-1, "0.0s"),
    ],
)
def test_durations_in_words(seconds: float, words: str) -> None:
    assert duration(seconds) == words


@pytest.mark.parametrize(("seconds", "words"), [(0.4, "0s"), (40, "40s"), (120, "2m"), (7300, "2h"), (500000, "6d")])
def test_estimates_have_one_unit(seconds: float, words: str) -> None:
    assert rough(seconds) == words


def test_moments_are_relative_to_now() -> None:
    assert ago(at(-300), at(0)) == "5m ago"
    assert ago(at(40), at(0)) == "in 40s"
    assert ago(at(0), at(0.5)) == "just now"
    assert ago(None, at(0)) == "–"
    assert between(at(0), None) == "–"


def test_nouns_agree_with_their_number() -> None:
    assert count(1, "task") == "1 task"
    assert count(1204, "task") == "1,204 tasks"
