"""The web pages say durations and counts as the command line does: both are checked against ui/test/words.json."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

from ork.status import formatting

CASES = json.loads((Path(__file__).resolve().parents[2] / "ui" / "test" / "words.json").read_text())


def test_durations_and_estimates() -> None:
    assert [formatting.duration(seconds) for seconds, _ in CASES["duration"]] == [text for _, text in CASES["duration"]]
    assert [formatting.rough(seconds) for seconds, _ in CASES["rough"]] == [text for _, text in CASES["rough"]]


def test_relative_times() -> None:
    for time, now, text in CASES["ago"]:
        assert formatting.ago(datetime.fromisoformat(time), datetime.fromisoformat(now)) == text


def test_counts() -> None:
    assert [formatting.count(number, noun) for number, noun, _ in CASES["count"]] == [
        text for *_, text in CASES["count"]
    ]
