from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from ork.bench.instant import RUNNING, SUCCESS, InstantExecutor
from ork.executors.executor import LaunchOrder, ReportedStatus
from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.task import Attempt, AttemptStatus

KEY = AttemptKey(RunId("r1"), TaskKey("t"), 1)


def test_an_attempt_is_seen_running_before_it_is_seen_over() -> None:
    told: list[tuple[AttemptKey, ReportedStatus | None]] = []
    attempt = Attempt(KEY, AttemptStatus.DISPATCHED, "process", "instant", "", datetime.now(UTC))
    order = LaunchOrder(attempt, "secret", "/")
    executor = InstantExecutor()
    asyncio.run(executor.start([order], lambda key, word=None: told.append((key, word))))
    assert told == [(KEY, RUNNING)]
    executor.committed([KEY.run])
    executor.committed([KEY.run])
    assert told == [(KEY, RUNNING), (KEY, SUCCESS)]
