"""Worlds on the Firestore store: its real code on a model of Firestore, with lost, late and contended commits.

The usual number of seeds is small. ORK_FIRESTORE_SEEDS=5000 tries more.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

pytest.importorskip("google.cloud.firestore_v1", reason="google-cloud-firestore is not installed")

from ork.testing.firestore.backend import FirestoreBackend
from ork.testing.simulate import explain, replay, replay_command, simulate
from ork.testing.world import World

CHUNK = 20
SEEDS = int(os.environ.get("ORK_FIRESTORE_SEEDS", "200"))


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.slow) for first in range(CHUNK, SEEDS, CHUNK))]
)
def test_no_promise_is_broken_whatever_goes_wrong(first: int) -> None:
    report = simulate(range(first, first + CHUNK), on="firestore")
    assert [f"{replay_command(seed, 'firestore')}: {explain(found)}" for seed, found in report.violations] == []


def test_the_same_seed_gives_the_same_trace_and_is_replayed_as_it_was() -> None:
    first = simulate([7], on="firestore").trace_hash
    assert simulate([7], on="firestore").trace_hash == first
    assert replay(7, lambda _line: None, on="firestore").trace_hash == first


@pytest.mark.slow
def test_worlds_hold_the_trouble_they_claim_to_survive() -> None:
    seen: Counter[str] = Counter()
    for seed in range(25):
        world = World(seed, on="firestore", keep_trace=True)
        seen.update(line.split()[1] for line in world.run().trace)
        assert isinstance(world.backend, FirestoreBackend)
        seen.update(world.backend.errors)
    expected = {
        "crashed", "expired", "fired", "claimed", "Aborted", "DeadlineExceeded", "ServiceUnavailable", "FailedPrecondition",
        "NotFound", "TimeoutError",
    }  # fmt: skip
    assert expected <= seen.keys(), seen
