"""The attempts that an executor on Cloud Run follows, and which executions belong to them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator
from typing import Any

from ork.executors.cloud_run.executions import Seen
from ork.executors.docker.container_documents import ContainerDocuments
from ork.executors.executor import NotStarted
from ork.model.ids import AttemptKey
from ork.model.task import Attempt

DOUBT_SECONDS = 20.0  # how long an execution may take to be found


def may_be_hidden(begun_at: float) -> bool:
    """True if the platform may not show an execution yet that it began at this time, of the monotonic clock."""
    return time.monotonic() - begun_at < DOUBT_SECONDS


class Tracked:
    """An attempt: `job` is the full name of its Job, `execution` that of its execution, once they are known."""

    def __init__(self, attempt: Attempt, documents: ContainerDocuments) -> None:
        self.attempt = attempt
        self.documents = documents
        self.spec: dict[str, Any] | None = None
        self.job: str | None = None
        self.execution: str | None = None
        self.seen: Seen | None = None
        self.work: asyncio.Task[None] | None = None  # its start, or writing down its end
        self.asked_at: float | None = None  # when we asked for an execution of it, and got no answer
        self.begun_at = float("-inf")  # when the platform answered us that there is an execution
        self.problem: NotStarted | None = None
        self.is_settled = False  # whatever its end leaves to write is written

    @property
    def is_busy(self) -> bool:
        return self.work is not None and not self.work.done()

    def begin(self, execution: str) -> None:
        """Take over the execution that the platform has just begun for us."""
        self.execution, self.begun_at = execution, time.monotonic()

    def note(self, seen: Seen) -> None:
        self.execution, self.seen = seen.name, seen


class TrackedAttempts:
    def __init__(self) -> None:
        self._by_key: dict[AttemptKey, Tracked] = {}

    def get(self, key: AttemptKey) -> Tracked | None:
        return self._by_key.get(key)

    def add(self, tracked: Tracked) -> None:
        self._by_key[tracked.attempt.key] = tracked

    def forget(self, key: AttemptKey) -> Tracked | None:
        return self._by_key.pop(key, None)

    def __iter__(self) -> Iterator[Tracked]:
        return iter(list(self._by_key.values()))

    def open_of(self, job: str) -> list[Tracked]:
        """Those of a Job whose end was not seen yet."""
        return [each for each in self if each.job == job and not each.is_settled and not each.is_busy]

    def open_jobs(self) -> set[str]:
        return {each.job for each in self if each.job and not each.is_settled and not each.is_busy}


def best_of(executions: Iterable[Seen], attempt: str, known: str | None = None) -> Seen | None:
    """The execution of an attempt: the one known by name, else one that is alive, else the newest.

    There may be several, where the answer to a start was lost: the gate lets only one of them run user code."""
    found = [each for each in executions if each.attempt == attempt]
    named = [each for each in found if each.name == known]
    alive = [each for each in found if not each.state.is_over]
    return next(iter(named or alive or found), None)
