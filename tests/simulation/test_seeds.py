"""Whole installations from seeds: nothing is lost, nothing runs twice, everything ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from ork.testing.simulate import explain, replay, simulate
from ork.testing.world import PARTS, World

CHUNK = 25
CHUNKS = 60
KNOWN = [line.split() for line in Path(__file__).with_name("seeds.txt").read_text().splitlines() if line[:1].isdigit()]


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(number * CHUNK, marks=pytest.mark.slow) for number in range(1, CHUNKS))]
)
def test_no_promise_is_broken_whatever_goes_wrong(first: int) -> None:
    report = simulate(range(first, first + CHUNK))
    assert report.seeds == CHUNK
    assert [f"ork sim --seed {seed}: {explain(found)}" for seed, found in report.violations] == []


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "kind"), [words[:2] for words in KNOWN], ids=lambda word: word)
def test_a_seed_that_once_failed_stays_sound(seed: str, kind: str) -> None:
    assert kind in ("plain", "whole")
    assert [explain(found) for found in World(int(seed), plain=kind == "plain").run().violations] == []


def test_the_normal_run_covers_fifteen_hundred_seeds() -> None:
    assert CHUNK * CHUNKS >= 1500


@pytest.mark.slow
def test_one_range_of_seeds_plays_every_part() -> None:
    assert min(simulate(range(CHUNK)).played.values()) > 0


@pytest.mark.slow
def test_a_seed_is_replayed_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever its world is made of: a schedule, sub-workflows, plain tasks."""
    for part in PARTS:
        seed = next(seed for seed in range(200) if part in World(seed).run().played)
        told: list[str] = []
        assert replay(seed, told.append).trace_hash == simulate([seed]).trace_hash, part
        assert told
    assert capsys.readouterr().out == ""
