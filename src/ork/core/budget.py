"""The budget of a run: what it has cost so far, and when it will have cost too much if nothing changes.

The cost is that of `ork.core.cost`, kept up to date: a change of an attempt costs the logarithm of the number of running
attempts, never the size of the run.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from heapq import heappop, heappush

from ork.core.cost import AttemptPrices, PriceList, attempt_usd, fixed_usd, ran_seconds, run_usd, running_usd
from ork.model.ids import TaskKey
from ork.model.record import Record
from ork.model.run import Run
from ork.model.task import Attempt
from ork.model.workflow import Budget, CompiledWorkflow, OnExceed

_TOLERANCE = 1e-9
_SHORTEST_PAUSE = timedelta(milliseconds=10)
_LONGEST_PAUSE = timedelta(days=3650)


class BudgetState(Record):
    """What the store knows of a run with a budget when a scheduler takes it over: its attempts, and when people were last
    alerted because it had exceeded its budget."""

    attempts: tuple[Attempt, ...] = ()
    alerted_at: datetime | None = None


class _Active(Record, frozen=False):
    """What an attempt costs that has not ended. Times are seconds after the run was created."""

    number: int
    fixed: float  # dollars that do not grow with time
    began: float | None = None  # None: it occupies no machine
    machine: float = 0.0  # dollars for a second of its machine
    minimum: float = 0.0  # seconds of its machine that are billed at least
    operations: float = 0.0  # dollars for the operations of a second
    is_in_minimum: bool = False


class BudgetMeter:
    """After an alert by a budget with `on_exceed: alert` nothing is checked any more. A run that was cancelled and is
    retried has its whole budget again: attempts from before are not counted."""

    def __init__(
        self, budget: Budget, workflow: CompiledWorkflow, run: Run, prices: PriceList, state: BudgetState
    ) -> None:
        self.budget = budget
        self.is_spent = budget.on_exceed is OnExceed.ALERT and state.alerted_at is not None
        self._prices = AttemptPrices(workflow, prices)
        self._created_at = run.created_at
        self._since = state.alerted_at
        self._ended = run_usd(prices)  # dollars for the run itself and for ended attempts
        self._latest = 0.0
        self._active: dict[TaskKey, _Active] = {}
        self._reset()
        self._planned: datetime | None = None
        for attempt in state.attempts:
            self.note(attempt)

    def _reset(self) -> None:
        """Sums over active attempts, which cost `_fixed + _slope * time - _offset`."""
        self._fixed, self._slope, self._offset = 0.0, 0.0, 0.0
        self._later_slope = 0.0  # of machines whose minimum time is not over
        self._minimums: list[tuple[float, TaskKey, int]] = []  # when it is over

    @property
    def next_at(self) -> datetime | None:
        """When to look again, at the latest; None if nothing costs anything now."""
        return None if self.is_spent else self._planned

    def note(self, attempt: Attempt) -> None:
        """The attempt was launched or has changed."""
        if self._since is not None and attempt.dispatched_at <= self._since:
            return
        key = attempt.key.task
        self._remove(key)
        price = self._prices.of(attempt)
        if attempt.status.is_final:
            self._ended += attempt_usd(attempt, price, attempt.finished_at or attempt.dispatched_at)
        elif attempt.waits_for is not None:  # it occupies no machine any more
            usd = attempt_usd(attempt, price, attempt.seen_at or attempt.dispatched_at)
            self._add(key, _Active(attempt.key.number, usd))
        elif ran_seconds(attempt, attempt.dispatched_at) is None:
            self._add(key, _Active(attempt.key.number, fixed_usd(attempt, price)))
        else:
            self._add(
                key,
                _Active(
                    attempt.key.number,
                    fixed_usd(attempt, price),
                    self._seconds(attempt.started_at or attempt.dispatched_at),
                    price.usd_per_second or 0.0,
                    price.billed.minimum_seconds,
                    running_usd(price),
                ),
            )

    def cost(self, now: datetime) -> float:
        """Known dollars until now. They never become fewer, also if the clock is set back."""
        time = self._latest = max(self._seconds(now), self._latest)
        while self._minimums and self._minimums[0][0] <= time:
            _, key, number = heappop(self._minimums)
            active = self._active.get(key)
            if active is not None and active.number == number and active.is_in_minimum:
                self._count(active, -1)
                active.is_in_minimum = False
                self._count(active, 1)
        return self._ended + self._fixed + max(0.0, self._slope * time - self._offset)

    def look(self, now: datetime) -> bool:
        """True if the run has cost its whole budget. Otherwise plans when to look again."""
        if self.is_spent:
            return False
        left = self.budget.usd - self.cost(now)
        if left <= self.budget.usd * _TOLERANCE:
            self._planned = now
            return True
        slope = self._slope + self._later_slope  # at most: for some machines their minimum time is counted already
        if slope <= 0:
            self._planned = None
            return False
        pause = timedelta(seconds=min(left / slope, _LONGEST_PAUSE.total_seconds()))
        soonest = now + max(pause, _SHORTEST_PAUSE)
        if self._planned is None or self._planned <= now or soonest < self._planned:
            self._planned = soonest  # a planned time that is too early by now does no harm
        return False

    def rest(self) -> None:
        """Plan nothing: the run has ended, or is being cancelled."""
        self._planned = None

    # ── sums ─────────────────────────────────────────────────────────────────────────────────────

    def _add(self, key: TaskKey, active: _Active) -> None:
        self._active[key] = active
        if active.began is not None and active.minimum > 0 and active.machine > 0:
            active.is_in_minimum = True
            heappush(self._minimums, (active.began + active.minimum, key, active.number))
        self._count(active, 1)

    def _remove(self, key: TaskKey) -> None:
        active = self._active.pop(key, None)
        if active is not None:
            self._count(active, -1)
        if not self._active:
            self._reset()  # so that rounding errors do not add up

    def _count(self, active: _Active, sign: int) -> None:
        self._fixed += sign * active.fixed
        if active.began is None:
            return
        slope = active.operations
        if active.is_in_minimum:
            self._fixed += sign * active.minimum * active.machine
            self._later_slope += sign * active.machine
        else:
            slope += active.machine
        self._slope += sign * slope
        self._offset += sign * slope * active.began

    def _seconds(self, time: datetime) -> float:
        return (time - self._created_at).total_seconds()
