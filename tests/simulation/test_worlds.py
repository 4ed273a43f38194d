"""What the worlds are made of: they must contain the trouble they claim to survive."""

from __future__ import annotations

from collections import Counter

import pytest

from ork.model.task import AttemptStatus, FailureKind, GiveUp, StoredOutput, Task, TaskStatus
from ork.model.workflow import Approval, TaskSpec
from ork.testing.faults import FaultRates
from ork.testing.world import World

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def histories() -> Counter[str]:
    """How often each kind of thing happened in so many worlds that the rarest is among it."""
    seen: Counter[str] = Counter()
    for seed in range(130):
        world = World(seed, keep_trace=True)
        seen.update(line.split()[1] for line in world.run().trace)
        for record in world.judge.ledger.runs.values():
            seen.update(f"attempt {attempt.status}" for attempt in record.attempts.values())
            seen.update(f"closing {attempt.closing}" for attempt in record.attempts.values() if attempt.closing)
            seen.update([f"run {record.run.status}"])
            seen.update(word for task in record.tasks.values() for word in words_of(task, record.spec(task.key)))
            seen.update("waited for a job" for attempt in record.attempts.values() if attempt.waits_for)
    return seen


def words_of(task: Task, spec: TaskSpec) -> list[str]:
    """What of the language this row has to do with."""
    failure = None if task.failure is None else task.failure.kind
    found = {
        "instance": task.key.index is not None,
        "large fan-out source": isinstance(task.output, StoredOutput),
        f"fan-out {task.status}": task.instances is not None,
        "two ways": task.key.index is None and task.instances is not None and task.item is not None,
        "concurrency": task.instances is not None and spec.concurrency is not None,
        "condition": (task.reason or "").startswith("when "),
        "cached": (task.reason or "").startswith("cached:"),
        "rate": spec.rate is not None and task.attempt > 0,
        "approved": isinstance(spec.action, Approval) and task.status is TaskStatus.SUCCESS,
        "rejected": failure is FailureKind.REJECTED,
        "approval timed out": isinstance(spec.action, Approval) and failure is FailureKind.TIMEOUT,
        "nothing to fan out over": failure is FailureKind.INPUT,
    }
    return [word for word, is_so in found.items() if is_so]


@pytest.mark.parametrize("status", [status for status in AttemptStatus if status.is_final])
def test_attempts_end_in_every_way(histories: Counter[str], status: AttemptStatus) -> None:
    assert histories[f"attempt {status}"] > 0


@pytest.mark.parametrize("reason", list(GiveUp))
def test_attempts_are_given_up_for_every_reason(histories: Counter[str], reason: GiveUp) -> None:
    assert histories[f"closing {reason}"] > 0


@pytest.mark.parametrize("what", ["crashed", "expired", "fenced", "claimed", "released", "launched"])
def test_schedulers_die_and_take_over(histories: Counter[str], what: str) -> None:
    assert histories[what] > 0


@pytest.mark.parametrize("status", ["success", "failed", "cancelled"])
def test_runs_end_in_every_way(histories: Counter[str], status: str) -> None:
    assert histories[f"run {status}"] > 0


@pytest.mark.parametrize(
    "word",
    [
        "instance", "large fan-out source", "fan-out success", "fan-out failed", "fan-out cancelled", "two ways",
        "concurrency", "condition", "cached", "rate", "approved", "rejected", "approval timed out",
        "nothing to fan out over", "waited for a job",
    ],
)  # fmt: skip
def test_the_whole_language_is_spoken(histories: Counter[str], word: str) -> None:
    assert histories[word] > 0


def test_a_plain_world_has_nothing_but_single_tasks() -> None:
    specs = [
        spec for seed in range(10) for version in World(seed, plain=True).versions for spec in version.workflow.tasks
    ]
    assert not any(spec.fans_out or spec.when or spec.cache or spec.rate for spec in specs)


@pytest.mark.parametrize("seed", range(5))
def test_without_faults_nothing_is_lost_and_nobody_crashes(seed: int) -> None:
    world = World(seed, rates=FaultRates(), keep_trace=True)
    outcome = world.run()
    statuses = {attempt.status for record in world.judge.ledger.runs.values() for attempt in record.attempts.values()}
    assert outcome.violations == ()
    assert AttemptStatus.LOST not in statuses
    assert not any("crashed" in line for line in outcome.trace)
