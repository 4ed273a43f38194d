"""Guards of the hot paths. They count work instead of measuring time, so that they hold on any machine.

A limit that is broken says that a path became dearer. If that is meant, raise it in the same commit and say why; where a
path became cheaper, lower it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from tests.unit.bench.counting import per_task, work_of, workflow
from tests.unit.bench.counting_documents import calls_for_documents
from tests.unit.bench.counting_pages import pages_of_bare_forks, pages_of_plain_tasks
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


CALLS = """
import sys
from ork.worker import rehearsal
from ork.worker.invoke import use_streams

class Unmarked:
    memory, room = None, 64
    def write(self, attempt): pass
    def padded(self, attempt): return attempt.ljust(self.room, bytes(1))

seen = []
def count(frame, event, argument):
    seen.append(event)

way = sys.argv[1]
rehearse_once = getattr(rehearsal, way)
def counted(*arguments):
    seen.clear()
    sys.setprofile(count)
    rehearse_once(*arguments)
    sys.setprofile(None)

use_streams()
setattr(rehearsal, way, counted)
rehearsal.rehearse(Unmarked())
print(seen.count("call"), seen.count("c_call"))
"""


@pytest.mark.parametrize(
    ("way", "own", "of_the_interpreter"),
    [
        pytest.param("_call_plainly", 19, 36, id="the usual one"),
        pytest.param("_go_on", 65, 77, id="one of a function that takes something"),
        pytest.param("_call", 67, 83, id="any other"),
    ],
)
def test_a_function_s_process_makes_so_many_calls_between_its_order_and_its_answer(
    way: str, own: int, of_the_interpreter: int
) -> None:
    """Each looks at memory that has to be copied for it."""
    done = subprocess.run([sys.executable, "-c", CALLS, way], capture_output=True, text=True, check=True)
    counted = [int(word) for word in done.stdout.split()]
    assert counted[0] <= own * MARGIN
    assert counted[1] <= of_the_interpreter * MARGIN


def test_a_function_s_process_and_its_forker_take_so_many_pages(tmp_path: Path) -> None:
    """More than the barest fork of this interpreter, which takes what the system makes it take."""
    bare_forking, bare_forked = pages_of_bare_forks()
    if os.sysconf("SC_PAGE_SIZE") != 4096 or not 30 <= bare_forked <= 100 or not 5 <= bare_forking <= 40:
        pytest.skip(f"pages are counted otherwise here: a bare fork takes {bare_forking:.0f} and {bare_forked:.0f}")
    forking, forked = pages_of_plain_tasks(tmp_path)
    assert forked - bare_forked <= 120 * MARGIN
    assert forking - bare_forking <= 12 * MARGIN


def test_a_worker_makes_so_many_calls_for_a_function_in_a_process_of_its_own(tmp_path: Path) -> None:
    """And is woken once for each, by its end: every other time it would look around once more."""
    few, many = (calls_for_functions(count, tmp_path / str(count)) for count in (10, 40))
    own, of_the_interpreter = ((after - before) / 30 for before, after in zip(few, many, strict=True))
    assert own <= 99 * MARGIN
    assert of_the_interpreter <= 152 * MARGIN


def test_a_worker_makes_so_many_calls_for_a_command(tmp_path: Path) -> None:
    few, many = (calls_for_commands(count, tmp_path / str(count)) for count in (10, 40))
    own, of_the_interpreter = ((after - before) / 30 for before, after in zip(few, many, strict=True))
    assert own <= 102 * MARGIN
    assert of_the_interpreter <= 135 * MARGIN


def test_a_shared_process_makes_so_many_calls_for_each_call(tmp_path: Path) -> None:
    few, many = (calls_for_shared_calls(count, tmp_path / str(count)) for count in (10, 40))
    own, of_the_interpreter = ((after - before) / 30 for before, after in zip(few, many, strict=True))
    assert own <= 69 * MARGIN
    assert of_the_interpreter <= 115 * MARGIN
