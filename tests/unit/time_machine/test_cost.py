"""What the played runs cost, by the estimate of `ork.core.cost`."""

from __future__ import annotations

import pytest

from ork.model.prices import AttemptPrice, OperationCounts, OperationPrice
from ork.model.record import replaced
from ork.model.workflow import TaskSpec
from ork.time_machine.project import ProjectCopy
from tests.unit.time_machine.projects import at, played, project

PARENT = """
    name: parent
    schedule: {cron: "0 * * * *"}
    tasks:
      a: {command: x}
      child: {workflow: child}
"""
CHILD = "name: child\ntasks:\n  b: {command: x}\n"
OTHER = 'name: other\nschedule: {cron: "30 * * * *"}\ntasks:\n  c: {command: x}\n'
START = OperationPrice("store.write", OperationCounts(per_run=2), 0.5)


class Prices:
    """A dollar for a second of every task, and for each run; nobody knows what `c` costs."""

    def of(self, spec: TaskSpec | None, executor: str) -> AttemptPrice:
        if spec is not None and spec.name == "c":
            return AttemptPrice(executor, why_unknown="a secret")
        return AttemptPrice(executor, 1.0, 1.0, 0.0 if executor == "workflow" else 1.0)

    def per_run(self) -> tuple[OperationPrice, ...]:
        return (START,)


def priced(*texts: str) -> ProjectCopy:
    made = project(*texts)
    return replaced(made, rules=replaced(made.rules, options=replaced(made.rules.options, prices=Prices)))


def test_a_schedule_costs_its_attempts_and_runs_with_those_of_its_sub_workflows() -> None:
    report = played(priced(PARENT, CHILD, OTHER), at(3), durations={"a": 10.0, "b": 20.0, "c": 30.0})
    costs = {each.workflow: (each.usd, each.unknown_attempts) for each in report.schedules}
    assert costs == {"parent": (pytest.approx(3 * (10 + 20 + 1 + 1)), 0), "other": (pytest.approx(3.0), 3)}
    assert {each.usd for each in played(project(OTHER), at(3)).schedules} == {0.0}, "a scheduler without prices"


def test_a_budget_cancels_a_run_when_it_is_spent() -> None:
    budget = OTHER.replace("c:", "a:") + "budget: {usd: 5, on_exceed: cancel}\n"
    (schedule,) = played(priced(budget), at(3), durations={"a": 100.0}).schedules
    assert (schedule.cancelled, schedule.longest_seconds) == (3, pytest.approx(4, abs=0.5))
