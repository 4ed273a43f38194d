"""What a run costs, by estimate: a pure function of its attempts, the prices and the time.

Attempts cost the time from their start to their end (or until now), by the size of their machine. Operations are
multiplied from counted figures. An amount that is not known is None, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from math import ceil
from typing import Protocol

from ork.model.prices import AttemptPrice, OperationPrice
from ork.model.record import Record, made
from ork.model.task import Attempt
from ork.model.workflow import CompiledWorkflow, TaskSpec


class PriceList(Protocol):
    """Prices of attempts and runs (see `ork.compile.pricing.Pricing`)."""

    def of(self, spec: TaskSpec | None, executor: str) -> AttemptPrice: ...

    def per_run(self) -> tuple[OperationPrice, ...]: ...


class AttemptPrices:
    """The prices of a workflow's attempts, looked up once for each task and executor."""

    def __init__(self, workflow: CompiledWorkflow, prices: PriceList) -> None:
        self._specs = {spec.name: spec for spec in workflow.tasks}
        self._prices = prices
        self._known: dict[tuple[str, str], AttemptPrice] = {}

    def of(self, attempt: Attempt) -> AttemptPrice:
        key = attempt.key.task.name, attempt.executor
        price = self._known.get(key)
        if price is None:
            price = self._known[key] = self._prices.of(self._specs.get(key[0]), attempt.executor)
        return price


class TaskCost(Record, frozen=False):
    """The attempts of a task together. `usd` is the part that is known; `unknown` counts the attempts that are not in it."""

    name: str
    where: tuple[str, ...] = ()
    attempts: int = 0
    running: int = 0
    seconds: float = 0.0  # of attempts, as they ran
    billed_seconds: float = 0.0
    vcpu_seconds: float | None = 0.0  # None: the size of an attempt is not known
    gib_seconds: float | None = 0.0
    usd: float = 0.0
    unknown: int = 0
    why_unknown: str | None = None


class OperationCost(Record, frozen=False):
    """Operations of one kind. `usd` is None if they have no price."""

    name: str
    count: float = 0.0
    usd: float | None = 0.0


class RunCost(Record):
    """The cost of a run so far. `usd` is the part that is known."""

    usd: float
    machines_usd: float
    operations_usd: float
    unknown: int  # attempts without a known cost
    running: int
    tasks: tuple[TaskCost, ...] = ()
    operations: tuple[OperationCost, ...] = made(default_factory=tuple)

    @property
    def is_complete(self) -> bool:
        """False if a part of the cost is not known."""
        return not self.unknown and all(each.usd is not None for each in self.operations)


def ran_seconds(attempt: Attempt, now: datetime) -> float | None:
    """How long the attempt has occupied a machine; None if it never did.

    While its start is not known it counts from its launch, unless it waits for its turn in a launch group. An attempt
    that was deferred to external jobs has occupied a machine only until then.
    """
    began = attempt.started_at
    if began is None:
        if attempt.status.is_final or attempt.group is not None:
            return None
        began = attempt.dispatched_at
    ended = attempt.finished_at if attempt.finished_at is not None and attempt.status.is_final else now
    if attempt.waits_for is not None and attempt.seen_at is not None:
        ended = min(ended, attempt.seen_at)
    return max(0.0, (ended - began).total_seconds())


def billed_seconds(attempt: Attempt, price: AttemptPrice, ran: float) -> float:
    """What is billed for an attempt that ran for so long. Times are rounded up at the end of an attempt."""
    step = price.billed.step_seconds
    if step and attempt.status.is_final:
        ran = ceil(round(ran / step, 6)) * step
    return max(ran, price.billed.minimum_seconds)


def fixed_usd(attempt: Attempt, price: AttemptPrice) -> float:
    """Known dollars for the operations that every attempt makes."""
    return sum(each.usd * _of_each(attempt, each) for each in price.operations if each.usd is not None)


def running_usd(price: AttemptPrice) -> float:
    """Known dollars for the operations of a second of running."""
    return sum(each.usd * each.counts.per_minute / 60 for each in price.operations if each.usd is not None)


def attempt_usd(attempt: Attempt, price: AttemptPrice, now: datetime) -> float:
    """Known dollars for the attempt so far."""
    ran = ran_seconds(attempt, now)
    usd = fixed_usd(attempt, price)
    if ran is None:
        return usd
    return usd + running_usd(price) * ran + (price.usd_per_second or 0.0) * billed_seconds(attempt, price, ran)


def run_usd(prices: PriceList) -> float:
    """Known dollars for the operations that every run makes."""
    return sum(each.usd * each.counts.per_run for each in prices.per_run() if each.usd is not None)


def estimate(workflow: CompiledWorkflow, attempts: Iterable[Attempt], prices: PriceList, now: datetime) -> RunCost:
    """The cost of a run with these attempts. Linear in their number."""
    prices_of_attempts = AttemptPrices(workflow, prices)
    tasks: dict[str, TaskCost] = {}
    operations: dict[str, OperationCost] = {}
    for each in prices.per_run():
        _count(operations, each, each.counts.per_run)
    for attempt in attempts:
        name = attempt.key.task.name
        task = tasks.get(name)
        if task is None:
            task = tasks[name] = TaskCost(name)
        price = prices_of_attempts.of(attempt)
        ran = ran_seconds(attempt, now)
        _add(task, attempt, price, ran)
        for each in price.operations:
            _count(operations, each, _of_each(attempt, each) + each.counts.per_minute * (ran or 0.0) / 60)
    machines = sum(task.usd for task in tasks.values())
    known = sum(each.usd for each in operations.values() if each.usd is not None)
    return RunCost(
        machines + known,
        machines,
        known,
        sum(task.unknown for task in tasks.values()),
        sum(task.running for task in tasks.values()),
        tuple(tasks.values()),
        tuple(operations.values()),
    )


def _add(task: TaskCost, attempt: Attempt, price: AttemptPrice, ran: float | None) -> None:
    task.attempts += 1
    task.running += not attempt.status.is_final
    if price.where not in task.where:
        task.where += (price.where,)
    if ran is None:
        return
    billed = billed_seconds(attempt, price, ran)
    task.seconds += ran
    task.billed_seconds += billed
    task.vcpu_seconds = _sum(task.vcpu_seconds, price.vcpus, billed)
    task.gib_seconds = _sum(task.gib_seconds, price.gib, billed)
    if price.usd_per_second is None:
        task.unknown += 1
        task.why_unknown = price.why_unknown
    else:
        task.usd += price.usd_per_second * billed


def _sum(so_far: float | None, amount: float | None, seconds: float) -> float | None:
    return None if so_far is None or amount is None else so_far + amount * seconds


def _of_each(attempt: Attempt, each: OperationPrice) -> float:
    return each.counts.per_task if attempt.key.task.index is None else each.counts.per_instance


def _count(operations: dict[str, OperationCost], each: OperationPrice, count: float) -> None:
    if not count:
        return
    found = operations.get(each.name)
    if found is None:
        found = operations[each.name] = OperationCost(each.name)
    found.count += count
    found.usd = None if each.usd is None or found.usd is None else found.usd + each.usd * count
