"""Whole installations from seeds: nothing is lost, nothing runs twice, everything ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from ork.testing.simulate import explain, simulate
from ork.testing.world import World

CHUNK = 25
CHUNKS = 24
KNOWN = [line.split() for line in Path(__file__).with_name("seeds.txt").read_text().splitlines() if line[:1].isdigit()]


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(number * CHUNK, marks=pytest.mark.slow) for number in range(1, CHUNKS))]
)
def test_no_promise_is_broken_whatever_goes_wrong(first: int) -> None:
    report = simulate(range(first, first + CHUNK))
    assert report.seeds == CHUNK
    assert [f"ork sim --seed {seed}: {explain(found)}" for seed, found in report.violations] == []


@pytest.mark.parametrize(("seed", "kind"), [words[:2] for words in KNOWN], ids=lambda word: word)
def test_a_seed_that_once_failed_stays_sound(seed: str, kind: str) -> None:
    assert kind in ("plain", "whole")
    assert [explain(found) for found in World(int(seed), plain=kind == "plain").run().violations] == []


def test_the_normal_run_covers_at_least_five_hundred_seeds() -> None:
    assert CHUNK * CHUNKS >= 500
