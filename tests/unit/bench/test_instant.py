from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from ork.bench.instant import InstantExecutor, MemoryObjects
from ork.executors.executor import LaunchOrder
from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.task import Attempt, AttemptStatus
from ork.objects import documents, layout

KEY = AttemptKey(RunId("r1"), TaskKey("t"), 1)
HASH = documents.token_hash("secret")
FOLDER = layout.attempt_folder(KEY)


def test_an_attempt_is_seen_running_before_it_is_seen_over() -> None:
    async def seen() -> tuple[list[object], list[AttemptKey]]:
        objects, news = MemoryObjects(), list[AttemptKey]()
        attempt = Attempt(KEY, AttemptStatus.DISPATCHED, "process", "instant", HASH, datetime.now(UTC))
        order = LaunchOrder(attempt, layout.spec_key(FOLDER), "secret", "/")
        await InstantExecutor(objects).start([order], news.append)
        states = []
        for _ in range(3):
            data = objects.get(layout.status_key(FOLDER))
            assert data is not None
            states.append(documents.open_signed(data, HASH)["state"])
            await asyncio.sleep(0)
        return states, news

    states, news = asyncio.run(seen())
    assert states == ["running", "success", "success"]
    assert news == [KEY, KEY]
