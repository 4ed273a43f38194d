"""LaggingStore: the real store behind it, trouble in front of it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest

from ork.errors import StoreUnavailableError
from ork.model.ids import SchedulerId
from ork.state.sqlite.store import SqliteStore
from ork.testing.clock import EPOCH
from ork.testing.faults import FaultRates, Faults, SimulatedProcess
from ork.testing.kernel import Kernel
from ork.testing.store import LaggingStore

HERE = SchedulerId("s")


class Witness:
    def __init__(self) -> None:
        self.registered: list[SchedulerId] = []

    def register(self, _answer: None, scheduler: SchedulerId, *_: object) -> None:
        self.registered.append(scheduler)


class Bench:
    """A store in memory, seen by one process with these fault rates."""

    def __init__(self, **rates: float) -> None:
        self.kernel = Kernel(0)
        self.witness = Witness()
        self.real = SqliteStore(":memory:", inline=True, clock=lambda: ("boot", self.kernel.time))
        process = SimulatedProcess("p", self.kernel, Faults(0, self.kernel, FaultRates(**rates)))  # type: ignore[arg-type]
        self.store = LaggingStore(self.real, process, self.witness, self._woken)

    async def _woken(self, _process: SimulatedProcess) -> None:
        return

    def wait_for(self, call: Awaitable[Any]) -> Any:
        answers: list[Any] = []

        async def ask() -> None:
            try:
                answers.append(await call)
            except StoreUnavailableError as problem:
                answers.append(problem)

        self.kernel.spawn("ask", ask())
        self.kernel.run(self.kernel.time + 1000)
        return answers[0]

    def schedulers(self) -> list[str]:
        return [entry.id for entry in self.wait_for(self.real.list_schedulers())]


def test_without_faults_every_verb_goes_through() -> None:
    bench = Bench()
    assert bench.wait_for(bench.store.register(HERE, "here", "scheduler", EPOCH)) is None
    assert bench.schedulers() == [HERE]
    assert bench.witness.registered == [HERE]


def test_an_error_before_means_that_nothing_was_done() -> None:
    bench = Bench(error_before=1.0)
    answer = bench.wait_for(bench.store.register(HERE, "here", "scheduler", EPOCH))
    assert isinstance(answer, StoreUnavailableError)
    assert bench.schedulers() == []
    assert bench.witness.registered == []


def test_an_error_after_means_that_it_was_done_and_nobody_told() -> None:
    bench = Bench(error_after=1.0)
    answer = bench.wait_for(bench.store.register(HERE, "here", "scheduler", EPOCH))
    assert isinstance(answer, StoreUnavailableError)
    assert bench.schedulers() == [HERE]
    assert bench.witness.registered == [HERE]


def test_a_read_may_be_as_old_as_the_last_one() -> None:
    bench = Bench(lag=1.0)
    assert bench.wait_for(bench.store.list_schedulers()) == ()
    bench.wait_for(bench.store.register(HERE, "here", "scheduler", EPOCH))
    assert bench.wait_for(bench.store.list_schedulers()) == ()


def test_a_verb_the_contract_does_not_know_is_an_error() -> None:
    with pytest.raises(AttributeError):
        Bench().store.no_such_verb  # noqa: B018
