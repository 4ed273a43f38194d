"""Guards of the hot paths. They count work instead of measuring time, so that they hold on any machine.

A limit that is broken says that a path became dearer. If that is meant, raise it in the same commit and say why; where a
path became cheaper, lower it.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from tests.unit.bench.counting import per_task, work_of, workflow
from tests.unit.bench.counting_documents import calls_for_documents
from tests.unit.bench.counting_workers import calls_for_commands, calls_for_functions, calls_for_shared_calls

from ork.bench.drive.memory import machine_bytes

MARGIN = 1.1  # other versions of Python count a little differently


@pytest.mark.parametrize(
    ("shape", "steps", "statements", "calls"),
    [
        pytest.param("free", 0.01, 7.0, 202, id="independent tasks share steps and statements"),
        pytest.param("wide", 0.01, 7.0, 214, id="instances of one task and their fan-in cost no more than tasks"),
        pytest.param("deep", 2.0, 18.0, 890, id="a task of a chain takes two steps"),
    ],
)
def test_a_task_costs_the_scheduler_so_much(
    shape: str, steps: float, statements: float, calls: float, tmp_path: Path
) -> None:
    # More than the first steps of a run launch, which begin with a few and take more each time.
    work = per_task(lambda count: work_of(shape, count, tmp_path), 100, 180)
    assert work[0] <= steps * MARGIN
    assert work[1] <= statements * MARGIN
    assert work[2] <= calls * MARGIN


def test_what_is_said_to_a_worker_and_heard_from_it_costs_the_scheduler_so_much() -> None:
    told, heard = calls_for_documents()
    assert told <= 45 * MARGIN
    assert heard <= 31 * MARGIN


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["free", "wide", "deep"])
def test_a_task_of_a_large_run_costs_what_one_of_a_small_run_does(shape: str, tmp_path: Path) -> None:
    work = partial(work_of, shape, folder=tmp_path)
    work(10)  # what is compiled when it is first used is no part of what a task costs
    small, large = per_task(work, 50, 100), per_task(work, 400, 800)
    assert large[1] <= small[1] * 1.05
    assert large[2] <= small[2] * 1.05


def test_a_machine_holds_less_than_a_kilobyte_for_each_task() -> None:
    few, many = (machine_bytes(workflow("wide", count).workflow) for count in (1_000, 5_000))
    assert (many - few) / 4_000 <= 900


def test_a_worker_makes_so_many_calls_for_a_function_in_a_process_of_its_own(tmp_path: Path) -> None:
    """And is woken once for each, by its end: every other time it would look around once more."""
    few, many = (calls_for_functions(count, tmp_path / str(count)) for count in (10, 40))
    own, of_the_interpreter = ((after - before) / 30 for before, after in zip(few, many, strict=True))
    assert own <= 121 * MARGIN
    assert of_the_interpreter <= 153 * MARGIN


def test_a_worker_makes_so_many_calls_for_a_command(tmp_path: Path) -> None:
    few, many = (calls_for_commands(count, tmp_path / str(count)) for count in (10, 40))
    own, of_the_interpreter = ((after - before) / 30 for before, after in zip(few, many, strict=True))
    assert own <= 116 * MARGIN
    assert of_the_interpreter <= 152 * MARGIN


def test_a_shared_process_makes_so_many_calls_for_each_call(tmp_path: Path) -> None:
    few, many = (calls_for_shared_calls(count, tmp_path / str(count)) for count in (10, 40))
    own, of_the_interpreter = ((after - before) / 30 for before, after in zip(few, many, strict=True))
    assert own <= 69 * MARGIN
    assert of_the_interpreter <= 115 * MARGIN
