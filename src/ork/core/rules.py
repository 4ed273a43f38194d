"""When a task may start, given how its upstream tasks ended."""

from __future__ import annotations

from enum import StrEnum

from ork.model.ids import TaskKey
from ork.model.record import Record
from ork.model.workflow import RunIf


class StartVerdict(StrEnum):
    WAIT = "wait"
    START = "start"
    SKIP = "skip"


class Upstream(Record, frozen=False):
    """How the upstream tasks of one task have ended so far. `failed` includes those skipped because of a failure."""

    waiting: int
    succeeded: int = 0
    failed: int = 0
    other: int = 0  # skipped by a condition or rule, or cancelled
    cause: TaskKey | None = None  # root of the first failure
    culprit: str | None = None  # the direct upstream task without success, shown to people


def judge(rule: RunIf, upstream: Upstream) -> StartVerdict:
    """ALL_SUCCESS is decided by the first upstream task without success; the other rules wait for all."""
    if rule is RunIf.ALL_SUCCESS and (upstream.failed or upstream.other):
        return StartVerdict.SKIP
    if upstream.waiting:
        return StartVerdict.WAIT
    if rule is RunIf.ANY_FAILED:
        return StartVerdict.START if upstream.failed else StartVerdict.SKIP
    if rule is RunIf.ANY_SUCCESS:
        return StartVerdict.START if upstream.succeeded else StartVerdict.SKIP
    return StartVerdict.START
