"""Budgets in simulated worlds: who has one, what attempts cost, and the invariant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from random import Random

from ork.compile.content import make_version
from ork.core.cost import estimate
from ork.model.ids import AttemptKey, RunId
from ork.model.prices import AttemptPrice, BilledTime, OperationCounts, OperationPrice
from ork.model.record import replaced
from ork.model.workflow import Budget, OnExceed, SubWorkflow, TaskSpec, Version
from ork.state.records import RunChanges
from ork.testing.language import Features
from ork.testing.ledger import RunRecord

ROUNDING = 1e-6
BUDGETED_WORLDS = 0.3


class SimulatedPrices:
    """A dollar for each second, ten seconds at least. The first tasks of a workflow have no known price."""

    def of(self, spec: TaskSpec | None, _executor: str) -> AttemptPrice:
        if spec is None or isinstance(spec.action, SubWorkflow):
            return AttemptPrice("workflow", 0.0, 0.0, 0.0)
        if spec.name == "t0":
            return AttemptPrice("sim", why_unknown="it is the first")
        return AttemptPrice("sim", 1.0, 1.0, 1.0, BilledTime(10.0, 0.5), _OPERATIONS)

    def per_run(self) -> tuple[OperationPrice, ...]:
        return _OPERATIONS


_OPERATIONS = (OperationPrice("sim.write", OperationCounts(1, 1, 0.5, 6), 0.1),)
PRICES = SimulatedPrices()


def with_budgets(versions: tuple[Version, ...], seed: int, features: Features) -> tuple[Version, ...]:
    """In some worlds each workflow has a budget that a part of its runs exceeds."""
    random = Random(f"budgets {seed}")
    if features.is_plain or random.random() >= BUDGETED_WORLDS:
        return versions
    return tuple(
        make_version(replaced(version.workflow, budget=_draw(random)), version.root, version.source)
        for version in versions
    )


def _draw(random: Random) -> Budget:
    usd = random.choice((0.05, 5.0, 25.0, 60.0, 200.0))
    return Budget(usd, random.choice((OnExceed.CANCEL, OnExceed.CANCEL, OnExceed.ALERT)))


class BudgetChecks:
    def __init__(self, violate: Callable[[str, str], None]) -> None:
        self.exceeded: dict[RunId, list[tuple[int, datetime]]] = {}  # round and time of each alert
        self._violate = violate

    def check(
        self, before: RunRecord, record: RunRecord, change: RunChanges, launched: Sequence[AttemptKey], now: datetime
    ) -> None:
        """Called with the run before and after a commit at `now`, by the clock of its owner."""
        budget, run = record.workflow.budget, record.run
        if budget is None:
            return
        alerts = self.exceeded.setdefault(run.id, [])
        since = max((at for _, at in alerts), default=None)
        if launched and budget.on_exceed is OnExceed.CANCEL:
            counted = [
                attempt
                for key, attempt in record.attempts.items()
                if key not in launched and (since is None or attempt.dispatched_at > since)
            ]
            usd = estimate(record.workflow, counted, PRICES, now).usd
            if usd >= budget.usd * (1 + ROUNDING):
                self._violate("budget", f"{run.id} costs ${usd:.2f} of ${budget.usd:.2f}; {launched[0]} was started")
        # Of a run that is retried twice before anybody claims it, one commit has both rounds.
        count = sum(alert.is_over_budget for alert in change.alerts)
        for round in range(run.round + 1 - count, run.round + 1):
            last = alerts[-1][0] if alerts else before.run.round - 1
            if (alerts and budget.on_exceed is OnExceed.ALERT) or round <= last:
                self._violate("budget", f"{run.id}: a second alert about its budget in round {round}")
            is_retried_since = run.round - before.run.round > 1  # which makes the run forget that it was cancelled
            if budget.on_exceed is OnExceed.CANCEL and run.cancel_requested_at is None and not is_retried_since:
                self._violate("budget", f"{run.id} exceeded its budget and was not cancelled")
            if before.run.status.is_final and before.run.round == run.round:
                self._violate("budget", f"{run.id} had ended when it exceeded its budget")
            alerts.append((round, now))
