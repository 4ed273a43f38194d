"""The attempts a scheduler is responsible for, as it remembers them between two looks."""

from __future__ import annotations

from collections.abc import Mapping

from ork.core import events as ev
from ork.executors.executor import DEFERRED, Executor, Told
from ork.model.ids import RunId
from ork.model.record import Record, made
from ork.model.status import Status
from ork.model.task import Attempt


class Watched(Record, frozen=False):
    """One attempt we are responsible for. All times are of our monotonic clock."""

    attempt: Attempt
    timeout: float | None
    watched_since: float
    last_seen: float
    running_since: float | None = None
    look_at: float = 0.0
    in_heap_at: float | None = None  # its place among those to be looked at; not later than `look_at`
    launches: int = 0
    closing: bool = False
    stop_asked_at: float | None = None
    gone_since: float | None = None
    close_looks: int = 0
    told: Told | None = None  # came with the last news, for the next look


class Seen(Record):
    """The outcome of one look: what to tell the machines, and which attempts to start (again)."""

    events: list[tuple[RunId, ev.AttemptEvent]]
    launch: list[Attempt]
    handed_over: list[Attempt] = made(default_factory=list)  # they wait for jobs from now on, without a worker


def by_executor(attempts: list[Attempt]) -> list[tuple[str, list[Attempt]]]:
    groups: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        groups.setdefault(executor_of(attempt), []).append(attempt)
    return list(groups.items())


def has_just_handed_over(status: Status | None, watched: Watched) -> bool:
    """Its worker is gone because it left its work to jobs, and said so after our first look."""
    return status is not None and status.jobs is not None and watched.attempt.waits_for is None


def is_vouched_for(attempt: Attempt, executors: Mapping[str, Executor]) -> bool:
    """Its executor's word that it lives is enough: it has no worker that could fall silent."""
    return attempt.waits_for is not None or getattr(executors.get(attempt.executor), "vouches", False)


def executor_of(attempt: Attempt) -> str:
    return attempt.executor if attempt.waits_for is None else DEFERRED
