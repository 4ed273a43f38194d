"""How many workers share tasks that share a process."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ork.executors import worker_pool
from ork.executors.fork_servers import ForkServers
from ork.executors.worker_pool import WorkerPool

KIND = "python", "shared"
QUICK, SLOW = worker_pool.QUICK_SECONDS / 2, worker_pool.QUICK_SECONDS * 2


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> WorkerPool:
    monkeypatch.setattr(worker_pool, "_PROCESSORS", 4)
    listener: Any = SimpleNamespace(on_end=None)
    return WorkerPool(listener, ForkServers())


def tell(workers: WorkerPool, word: bytes, pace: float = SLOW, times: int = 5) -> None:
    worker: Any = SimpleNamespace(kind=KIND, pace=pace)
    for _ in range(times):
        workers._note_seconds(worker, word)


def test_one_is_enough_until_something_is_known(workers: WorkerPool) -> None:
    assert workers._useful_workers(KIND) == 1
    tell(workers, b"swift", times=4)
    assert workers._useful_workers(KIND) == 1


@pytest.mark.parametrize(
    ("word", "pace", "enough"),
    [
        pytest.param(b"light", SLOW, 1, id="light: one keeps up"),
        pytest.param(b"swift", SLOW, 4, id="never waiting: more than there are processors would not help"),
        pytest.param(b"over", QUICK, 4, id="over in a moment"),
        pytest.param(b"over", SLOW, None, id="waiting: nobody waits for another"),
    ],
)
def test_what_is_known_says_how_many(workers: WorkerPool, word: bytes, pace: float, enough: int | None) -> None:
    tell(workers, word, pace)
    assert workers._useful_workers(KIND) == enough


def test_the_last_ones_count(workers: WorkerPool) -> None:
    tell(workers, b"light", times=20)
    tell(workers, b"swift", times=1)
    assert workers._useful_workers(KIND) == 4
    tell(workers, b"light", times=1)
    assert workers._useful_workers(KIND) == 1
