"""What runs cost, by estimate: for `ork cost`, `ork show --cost`, reports and the API."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from ork.core.cost import OperationCost, TaskCost, estimate
from ork.errors import NotFoundError
from ork.model.ids import RunId
from ork.model.prices import dollars
from ork.model.record import Record
from ork.model.run import Run, RunStatus
from ork.model.task import Attempt
from ork.model.workflow import OnExceed, Version
from ork.state.reading import StateReader
from ork.status.formatting import count
from ork.status.run_view import version_of

if TYPE_CHECKING:
    from ork.compile.pricing import Pricing


class CostReport(Record):
    """The estimated cost of a run until now. `usd` is the part that is known: with `unknown_attempts`, or operations
    without a price, it is not all."""

    run: RunId
    workflow: str
    status: RunStatus
    created_at: datetime
    estimate: bool  # always: no bill has been read
    usd: float
    is_complete: bool
    machines_usd: float
    operations_usd: float
    unknown_attempts: int
    running_attempts: int
    budget_usd: float | None
    on_exceed: OnExceed | None
    over_budget_at: datetime | None  # when people were alerted
    prices_date: str
    prices_file: str | None  # None: as shipped with Ork
    tasks: tuple[TaskCost, ...]
    operations: tuple[OperationCost, ...]


class CostFacts(NamedTuple):
    """What the cost of a run follows from."""

    run: Run
    version: Version
    attempts: tuple[Attempt, ...]
    over_budget_at: datetime | None


async def read_facts(store: StateReader, run: RunId) -> CostFacts:
    """Reads the run and its attempts. NotFoundError if there is no such run."""
    row = await store.get_run(run)
    if row is None:
        raise NotFoundError(f"no run `{run}`", hint="`ork runs` lists them")
    version = await version_of(store, row)
    attempts = await store.list_attempts(run)
    over = await store.over_budget_at(run) if version.workflow.budget is not None else None
    return CostFacts(row, version, attempts, over)


def cost_report(facts: CostFacts, pricing: Pricing, now: datetime) -> CostReport:
    """Linear in the number of attempts."""
    run, version, attempts, over = facts
    cost, budget = estimate(version.workflow, attempts, pricing, now), version.workflow.budget
    return CostReport(
        run.id,
        run.workflow,
        run.status,
        run.created_at,
        True,
        cost.usd,
        cost.is_complete,
        cost.machines_usd,
        cost.operations_usd,
        cost.unknown,
        cost.running,
        None if budget is None else budget.usd,
        None if budget is None else budget.on_exceed,
        over,
        pricing.prices.date,
        pricing.prices.file,
        cost.tasks,
        cost.operations,
    )


def usd_text(usd: float, *, is_complete: bool) -> str:
    """`$1.20`, `$1.20 + unknown`, or `unknown`."""
    if is_complete:
        return dollars(usd)
    return f"{dollars(usd)} + unknown" if usd else "unknown"


def task_usd(task: TaskCost) -> str:
    return usd_text(task.usd, is_complete=not task.unknown)


def total_line(report: CostReport) -> str:
    """`$1.23 by estimate, $5.00 budget, 2 attempts running`."""
    parts = [f"{usd_text(report.usd, is_complete=report.is_complete)} by estimate"]
    if report.budget_usd is not None:
        parts.append(f"budget {dollars(report.budget_usd)} ({report.on_exceed} if exceeded)")
    if report.over_budget_at is not None:
        parts.append("exceeded")
    if report.running_attempts:
        parts.append(f"{count(report.running_attempts, 'attempt')} running")
    return ", ".join(parts)


def notes(reports: Sequence[CostReport]) -> list[str]:
    """What a reader must know about these figures."""
    if not reports:
        return []
    first = reports[0]
    origin = first.prices_file or "shipped with Ork; `ork cost --prices` shows their sources"
    lines = [f"an estimate from list prices of {first.prices_date} ({origin}), not a bill"]
    for report in reports:
        lines += [
            f"unknown: {count(task.unknown, 'attempt')} of {task.name}: {task.why_unknown}"
            for task in report.tasks
            if task.unknown
        ]
        unpriced = [each.name for each in report.operations if each.usd is None]
        if unpriced:
            lines.append(f"unknown: there is no price of {', '.join(unpriced)}")
    return list(dict.fromkeys(lines))
