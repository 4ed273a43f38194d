"""The control plane is killed at every request that a pass makes: of Cloud Tasks, Firestore, the bucket and Cloud Run.

Of most requests the answer is lost with it. Each run succeeds, and user code of each attempt starts once.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

pytest.importorskip("google.cloud.firestore_v1", reason="the extra `gcp` is not installed")

from tests.cloud.box import CloudBox

pytestmark = pytest.mark.slow

PARTS = 8
FLOW = """
name: flow
tasks:
  a: {command: [sh, -c, 'echo $ORK_ATTEMPT_ID >> ledger']}
  b: {command: [sh, -c, 'echo $ORK_ATTEMPT_ID >> ledger'], depends_on: [a]}
"""


class Killer:
    """Notes the requests that instances make, and kills them at one of these, by its number; None: never."""

    def __init__(self, box: CloudBox) -> None:
        self._box = box
        self._lock = threading.Lock()
        self.seen: list[str] = []
        self.at: int | None = None
        self.kills = 0
        self.is_on = False
        box.queue.answer = self._wrapped(box.queue.answer, box.queue.calls)  # type: ignore[method-assign]
        box.cloud.answer = self._wrapped(box.cloud.answer, box.cloud.calls)  # type: ignore[method-assign]
        box.gcs.refuses = lambda kind, _key: self._note(f"bucket {kind}")
        box.firestore.fault = lambda method, _number: self._note(f"Firestore {method}")

    def _wrapped(self, answer: Callable[..., Any], calls: Counter[str]) -> Callable[..., Any]:
        def noted(*args: Any) -> Any:
            before = calls.copy()
            made = answer(*args)
            for verb in calls - before:
                self._note(verb)
            return made

        return noted

    def _note(self, what: str) -> None:
        with self._lock:
            if not self.is_on or not self._box.front.has_instances:
                return
            # At this request, or the next one at which an instance is alive: its last one may come when it is gone.
            if self.at is not None and len(self.seen) >= self.at and self._box.front.kill_instances():
                self.at = None
                self.kills += 1
            self.seen.append(what)

    def run(self, at: int | None) -> str:
        """Carries out one run, and returns its id."""
        self.seen, self.at, self.is_on = [], at, True
        run: str = self._box.ork("trigger", "flow")["id"]
        assert any("-wake-" in name for name in self._box.queue.names()), "the command set no wake"
        self._box.live_until(self._box.clock.now() + timedelta(minutes=15))
        self.is_on = False
        return run


@pytest.fixture
def killer(cloud_box: CloudBox) -> Killer:
    """Leases are short, because they take real time."""
    cloud_box.environment |= {"ORK_LEASE_SECONDS": "4", "ORK_RENEW_SECONDS": "1"}
    cloud_box.write("flow.yaml", FLOW)
    cloud_box.ork("deploy", "flow.yaml")
    cloud_box.live_until(cloud_box.clock.now() + timedelta(minutes=5))
    return Killer(cloud_box)


SOME = ("Firestore Commit", "bucket write", "jobs.run", "tasks.delete")


def test_a_kill_at_some_requests_of_a_pass_loses_nothing(cloud_box: CloudBox, killer: Killer) -> None:
    kill_at(cloud_box, killer, lambda names: [names.index(name) for name in SOME])


@pytest.mark.soak
@pytest.mark.parametrize("part", range(PARTS))
def test_a_kill_at_any_request_of_a_pass_loses_nothing(cloud_box: CloudBox, killer: Killer, part: int) -> None:
    """Each part has every eighth request, so that parts can be run one by one, or at the same time."""
    kill_at(cloud_box, killer, lambda names: [*range(part, len(names), PARTS)])


def kill_at(box: CloudBox, killer: Killer, choose: Callable[[list[str]], list[int]]) -> None:
    """One run for each of the chosen requests of a run, which are known from one without a kill."""
    runs = [killer.run(None), killer.run(None)]  # the first also makes the Job
    names = killer.seen
    numbers = choose(names)
    for number in numbers:
        kills = killer.kills
        runs.append(killer.run(number))
        print(f"killed at {number} of {len(names)}, {names[number]}: {len(killer.seen)} requests", flush=True)
        # How many requests there are depends on when tasks end, so that the last ones may not come.
        assert killer.kills == kills + 1 or 0 < len(killer.seen) <= number
    assert killer.kills >= len(numbers) / 2
    shown = {run["id"]: run["status"] for run in box.ork("runs", "--limit", "500")["runs"]}
    assert shown == dict.fromkeys(runs, "success")
    started = Counter((box.folder / "ledger").read_text().split())
    assert set(started.values()) == {1}
    assert len(started) == 2 * len(runs)
