from __future__ import annotations

import pytest

from ork.model.ids import TaskKey
from ork.model.record import replaced
from ork.model.run import RunStatus
from ork.model.task import Failure, FailureKind, Task, TaskStatus
from ork.state.records import RunUpdate
from ork.status.jobs import job_names
from ork.status.run_view import RunView
from ork.status.shapes import full_run_json
from tests.unit.status.sample_runs import at, done, failed, running, spec, view_of, waiting

ERROR = Failure(FailureKind.EXIT, "exit code 1")


def instance(task: Task, index: int) -> Task:
    return replaced(task, key=TaskKey(task.key.name, index), item=str(index))


def fanned_out() -> RunView:
    specs = [spec("find"), spec("load", "find", foreach=None, parallel=6, concurrency=2), spec("report", "load")]
    rows = [done("find"), running("load", instances=6)]
    rows += [instance(done("load", output="1"), 0), instance(failed("load", ERROR), 1), instance(running("load"), 2)]
    rows += [instance(waiting("load", attempt=1, retry_at=at(60), failure=ERROR), 3)]
    rows += [instance(waiting("load"), 4), instance(waiting("load"), 5), waiting("report")]
    return view_of(specs, rows)


def test_instances_are_counted_and_the_row_of_the_whole_is_not() -> None:
    view = fanned_out()
    assert (view.total, view.done) == (8, 3)
    assert view.count(TaskStatus.RUNNING) == 1
    assert list(view.waiting) == [TaskKey("report")]
    assert list(view.retrying) == [TaskKey("load", 3)]
    load = view.instances["load"]
    assert (load.total, load.done, load.active, load.queued) == (6, 2, 1, 2)
    assert (list(load.failed), list(load.retrying)) == ([TaskKey("load", 1)], [TaskKey("load", 3)])


def test_a_change_of_one_instance_moves_only_its_own_counts() -> None:
    view = fanned_out()
    view.apply(RunUpdate(view.run, (instance(done("load"), 3), instance(running("load"), 4)), 2))
    load = view.instances["load"]
    assert (load.done, load.active, load.queued, len(load.retrying)) == (3, 2, 1, 0)
    view.apply(RunUpdate(view.run, (instance(waiting("load"), 1),), 3))
    assert (load.failed, load.queued) == ({}, 2)


def test_a_task_that_has_not_fanned_out_counts_as_one() -> None:
    view = view_of([spec("load", parallel=3)], [waiting("load")])
    assert view.total == 1
    rows = (running("load", instances=3), *(instance(waiting("load"), index) for index in range(3)))
    view.apply(RunUpdate(view.run, rows, 2))
    assert view.total == 3
    assert view.waiting == {}


def test_in_json_the_instances_stand_for_the_task() -> None:
    view = fanned_out()
    shape = full_run_json(view.run, view.version, view.tasks.values(), ())
    assert [(task["name"], task["index"]) for task in shape["tasks"]] == [
        ("find", None),
        *(("load", index) for index in range(6)),
        ("report", None),
    ]
    assert [task["item"] for task in shape["tasks"] if task["name"] == "load"] == list(range(6))
    assert shape["tasks"][0]["item"] is None


def test_in_json_a_task_without_instances_keeps_its_own_row() -> None:
    empty = replaced(done("load", output="[]"), instances=0)
    view = view_of([spec("load", parallel=3)], [empty], status=RunStatus.SUCCESS)
    (task,) = full_run_json(view.run, view.version, view.tasks.values(), ())["tasks"]
    assert (task["index"], task["output"]) == (None, [])


@pytest.mark.parametrize(
    ("jobs", "names"),
    [
        (None, []),
        ('[{"http": "https://me:secret@jobs.example/7?token=x", "headers": {"A": "b"}}]', ["jobs.example/7"]),
        (
            '[{"call": "polls:is_done"}, {"run": "abc", "workflow": "child"}]',
            ["polls:is_done", "run abc of workflow child"],
        ),
        ('[{"new": 1}]', ["an external job"]),
        ("not JSON", ["an external job"]),
    ],
)
def test_external_jobs_are_named_without_their_secrets(jobs: str | None, names: list[str]) -> None:
    assert job_names(jobs) == names
