"""What a task costs the scheduler in steps and SQL statements, and in memory. Counts hold on any machine; times do not.

A limit that is broken says that a task became dearer. If that is meant, raise it in the same commit and say why.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from tests.unit.bench.counting import per_task, work_of, workflow

from ork.bench.drive.memory import machine_bytes

MARGIN = 1.1


@pytest.mark.parametrize(
    ("shape", "steps", "statements"),
    [
        pytest.param("free", 0.01, 7.0, id="independent tasks share steps and statements"),
        pytest.param("wide", 0.01, 7.0, id="instances of one task and their fan-in cost no more than tasks"),
        pytest.param("deep", 2.0, 18.0, id="a task of a chain takes two steps"),
    ],
)
def test_a_task_costs_so_many_steps_and_statements(shape: str, steps: float, statements: float, tmp_path: Path) -> None:
    # More than the first steps of a run launch, which begin with a few and take more each time.
    work = per_task(lambda count: work_of(shape, count, tmp_path), 100, 180)
    assert work[0] <= steps * MARGIN
    assert work[1] <= statements * MARGIN


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["free", "wide", "deep"])
def test_a_task_of_a_large_run_costs_as_many_statements_as_one_of_a_small_run(shape: str, tmp_path: Path) -> None:
    work = partial(work_of, shape, folder=tmp_path)
    small, large = per_task(work, 50, 100), per_task(work, 400, 800)
    assert large[1] <= small[1] * 1.05


def test_a_machine_holds_less_than_a_kilobyte_for_each_task() -> None:
    few, many = (machine_bytes(workflow("wide", count).workflow) for count in (1_000, 5_000))
    assert (many - few) / 4_000 <= 900
