"""The judge sees every way in which a promise can be broken, and excuses nothing but what a kill explains."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ork.chaos.ledger import LedgerEntry
from ork.chaos.verdict import ChaosHistory, Harm, Kill, breaches
from ork.model.ids import AttemptKey, RunId, TaskKey, VersionId
from ork.model.run import Run, RunStatus
from ork.model.task import Attempt, AttemptStatus
from ork.model.workflow import Trigger

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ONE, TWO = "r1/load/0/1", "r1/load/0/2"


def run(id: str = "r1", status: RunStatus = RunStatus.SUCCESS, **fields: Any) -> Run:
    return Run(RunId(id), "etl", VersionId("v"), status, Trigger.MANUAL, {}, NOW, **fields)


def attempt(number: int, status: AttemptStatus, executor: str = "python") -> Attempt:
    key = AttemptKey(RunId("r1"), TaskKey("load"), number)
    end = NOW + timedelta(seconds=10)
    return Attempt(key, status, executor, f"name{number}", "hash", NOW, finished_at=end)


def entries(*lines: str) -> list[LedgerEntry]:
    return [LedgerEntry(*line.split(), pid=1, at=0.0) for line in lines]  # type: ignore[misc]


def kill(*attempts: str, several: bool = False, after: float = 1) -> Kill:
    return Kill("worker", "process 7", NOW + timedelta(seconds=after), frozenset(attempts), several)


SCHEDULER = Kill("scheduler", "scheduler 7", NOW + timedelta(seconds=1), of_scheduler=True)
SUCCESS, LOST, FAILED = AttemptStatus.SUCCESS, AttemptStatus.LOST, AttemptStatus.FAILED
WORKED = entries(f"start {ONE}", f"end {ONE}")


def history(**changes: Any) -> ChaosHistory:
    """One run with one task that succeeded, as it should be."""
    whole: dict[str, Any] = {
        "acknowledged": {"chaos-0": "r1"}, "runs": [run()], "attempts": [attempt(1, SUCCESS)], "entries": WORKED, "kills": [],
    }  # fmt: skip
    return ChaosHistory(**(whole | changes))


HELD = {
    "nothing happened": {},
    "a killed attempt is lost, and the next one succeeds": {
        "attempts": [attempt(1, LOST), attempt(2, SUCCESS)],
        "entries": entries(f"start {ONE}", f"start {TWO}", f"end {TWO}"),
        "kills": [kill(ONE)],
    },
    "it was killed between its end and its report": {
        "attempts": [attempt(1, LOST), attempt(2, SUCCESS)],
        "entries": [*WORKED, *entries(f"start {TWO}", f"end {TWO}")],
        "kills": [kill(ONE)],
    },
    "a worker with several attempts was killed": {
        "runs": [run(status=RunStatus.FAILED)],
        "attempts": [attempt(1, LOST)],
        "entries": entries(f"start {ONE}"),
        "kills": [kill(several=True)],
    },
    "its scheduler was killed between the gate and the start of its container": {
        "attempts": [attempt(1, LOST, "container"), attempt(2, SUCCESS, "container")],
        "entries": entries(f"start {TWO}", f"end {TWO}"),
        "kills": [SCHEDULER],
    },
    "it failed by itself": {
        "runs": [run(status=RunStatus.FAILED)],
        "attempts": [attempt(1, FAILED)],
        "entries": entries(f"start {ONE}", f"failed {ONE}"),
    },
    "a sub-workflow's run has no key": {"runs": [run(), run("r2", parent="r1/call/0/1")]},
    "a task that writes no ledger": {"entries": [], "unrecorded": {("etl", "load")}},
    "a real task ran into its timeout": {
        "attempts": [attempt(1, AttemptStatus.TIMED_OUT)], "entries": entries(f"start {ONE}"), "is_real": True,
    },
}  # fmt: skip

BROKEN = {
    "an acknowledged run is gone": (Harm.LOST, {"runs": [], "attempts": [], "entries": []}),
    "a key has two runs": (Harm.DOUBLED, {"runs": [run(), run("r2")]}),
    "a run never ends": (Harm.STUCK, {"runs": [run(status=RunStatus.RUNNING)]}),
    "an attempt starts twice": (Harm.DOUBLED, {"entries": [*WORKED, *entries(f"start {ONE}")]}),
    "an unknown attempt starts": (Harm.DOUBLED, {"entries": [*WORKED, *entries(f"start {TWO}")]}),
    "two attempts succeed": (
        Harm.DOUBLED,
        {
            "attempts": [attempt(1, SUCCESS), attempt(2, SUCCESS)],
            "entries": [*WORKED, *entries(f"start {TWO}", f"end {TWO}")],
        },
    ),
    "two attempts overlap": (Harm.OVERLAPPING, {"entries": [*WORKED, *entries(f"overlap {ONE}")]}),
    "success without work": (Harm.LOST, {"entries": entries(f"start {ONE}")}),
    "lost without a kill": (Harm.LOST, {"attempts": [attempt(1, LOST)], "entries": entries(f"start {ONE}")}),
    "lost, and another one was killed": (
        Harm.LOST,
        {"attempts": [attempt(1, LOST)], "entries": entries(f"start {ONE}"), "kills": [kill(TWO)]},
    ),
    "lost long before the kill": (
        Harm.LOST,
        {"attempts": [attempt(1, LOST)], "entries": entries(f"start {ONE}"), "kills": [kill(several=True, after=11)]},
    ),
    "a container at work is lost with a scheduler": (
        Harm.LOST,
        {"attempts": [attempt(1, LOST, "container")], "entries": entries(f"start {ONE}"), "kills": [SCHEDULER]},
    ),
    "a process is lost with a scheduler": (
        Harm.LOST, {"attempts": [attempt(1, LOST)], "entries": [], "kills": [SCHEDULER]},
    ),
    "a result is thrown away": (Harm.LOST, {"attempts": [attempt(1, FAILED)]}),
    "a stand-in timed out": (
        Harm.LOST, {"attempts": [attempt(1, AttemptStatus.TIMED_OUT)], "entries": entries(f"start {ONE}")},
    ),
    "a process is left": (Harm.ORPHANED, {"alive": {7: ONE}}),
}  # fmt: skip


@pytest.mark.parametrize("changes", HELD.values(), ids=HELD)
def test_a_kill_explains_a_loss_and_a_failure_explains_itself(changes: dict[str, Any]) -> None:
    assert breaches(history(**changes)) == []


@pytest.mark.parametrize(("harm", "changes"), BROKEN.values(), ids=BROKEN)
def test_a_broken_promise_is_named_once(harm: Harm, changes: dict[str, Any]) -> None:
    assert [breach.harm for breach in breaches(history(**changes))] == [harm]
