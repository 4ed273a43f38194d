"""A seed is a whole history: the same one every time, in every process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ork.testing.simulate import simulate

SEEDS = "range(40, 55)"
PROGRAM = f"from ork.testing.simulate import simulate; print(simulate({SEEDS}).trace_hash)"


def hash_under(hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.slow
def test_the_same_seeds_give_the_same_trace_under_any_hash_seed() -> None:
    hashes = [hash_under(hash_seed) for hash_seed in ("0", "1", "4242")]
    assert len(set(hashes)) == 1
    assert hashes[0] == simulate(range(40, 55)).trace_hash


def test_the_same_seed_twice_in_one_process_gives_the_same_trace() -> None:
    assert simulate(range(5)).trace_hash == simulate(range(5)).trace_hash


@pytest.mark.slow
def test_different_seeds_give_different_traces() -> None:
    assert simulate(range(5)).trace_hash != simulate(range(1, 6)).trace_hash
