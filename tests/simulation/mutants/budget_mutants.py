"""Mutants of what is promised for budgets."""

from __future__ import annotations

from typing import Any

from ork.core.budget import BudgetMeter, BudgetState
from ork.core.machine import RunMachine
from ork.model.record import replaced
from ork.model.workflow import OnExceed
from ork.scheduler.take_over import TakeOver
from tests.simulation.mutants.mutations import Mutant, always


def forget_what_was_spent(original: Any) -> Any:
    async def spent(self: Any, claimed: Any) -> Any:
        state: BudgetState | None = await original(self, claimed)
        return None if state is None else replaced(state, attempts=claimed.attempts)

    return spent


def forget_the_alert(original: Any) -> Any:
    async def spent(self: Any, claimed: Any) -> Any:
        state: BudgetState | None = await original(self, claimed)
        return None if state is None else replaced(state, alerted_at=None)

    return spent


def alert_and_go_on(original: Any) -> Any:
    def check(self: Any, meter: Any, now: Any) -> None:
        budget = meter.budget
        meter.budget = replaced(budget, on_exceed=OnExceed.ALERT)
        try:
            original(self, meter, now)
        finally:
            meter.budget = budget

    return check


BUDGET_MUTANTS = (
    Mutant(
        "budget-never-exceeded", "a budget is never compared with the cost", ((BudgetMeter, "look", always(False)),)
    ),
    Mutant(
        "budget-without-the-past",
        "who takes over a run counts only what is running",
        ((TakeOver, "_spent", forget_what_was_spent),),
    ),
    Mutant(
        "budget-alerts-again",
        "who takes over a run does not know that people were alerted",
        ((TakeOver, "_spent", forget_the_alert),),
    ),
    Mutant(
        "budget-alerts-only",
        "a run over its budget is not cancelled",
        ((RunMachine, "_check_budget", alert_and_go_on),),
    ),
)
