"""What the played runs would cost, by estimate: the attempts of each schedule, with those of its sub-workflows."""

from __future__ import annotations

from datetime import datetime

from ork.core.cost import AttemptPrices, PriceList, attempt_usd, ran_seconds, run_usd
from ork.model.record import Record
from ork.time_machine.project import ProjectCopy
from ork.time_machine.recorder import Recorder


class ScheduleCost(Record, frozen=False):
    """`usd` is the part that is known; `unknown` counts the attempts that are not in it."""

    usd: float = 0.0
    unknown: int = 0

    @property
    def is_complete(self) -> bool:
        return not self.unknown


def schedule_costs(
    project: ProjectCopy, recorder: Recorder, prices: PriceList, now: datetime
) -> dict[str, ScheduleCost]:
    """By the workflow of the schedule. Linear in the number of attempts."""
    costs = {entry.workflow: ScheduleCost() for entry in project.schedules}
    of_workflow = {name: AttemptPrices(workflow, prices) for name, workflow in project.workflows.items()}
    per_run = run_usd(prices)
    for run in recorder.runs:
        costs[recorder.schedule_of[run]].usd += per_run
    for attempt in recorder.attempts:
        cost = costs[recorder.schedule_of[attempt.run]]
        price = of_workflow[recorder.workflow_of[attempt.run]].of(attempt)
        cost.usd += attempt_usd(attempt, price, now)
        cost.unknown += price.usd_per_second is None and ran_seconds(attempt, now) is not None
    return costs
