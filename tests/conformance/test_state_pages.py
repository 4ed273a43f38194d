"""What every state store promises about pages of a run's tasks and attempts."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from ork.errors import UsageError
from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.run import RunStatus
from ork.model.task import AttemptStatus, TaskStatus
from ork.state.records import NO_TIMES, RunFilter, TaskCount, TaskFilter, TaskTimes
from ork.state.store import StateStore
from tests.conformance.state_samples import ANN, NOW, attempt, changes, deploy, later, new_run, owned_run, task


async def test_tasks_come_in_pages_and_filtered_in_the_order_of_the_workflow(store: StateStore) -> None:
    claimed = await owned_run(store, of=await deploy(store, tasks=("b", "a", "c")))
    run = claimed.run.id
    before = await store.run_updates(run)
    fan = [task("a", TaskStatus.RUNNING, index=number) for number in range(5)]
    await store.commit(ANN, [changes(claimed, tasks=(*fan, task("c", TaskStatus.SUCCESS)))], NOW)
    whole = await store.run_updates(run)
    seen: list[TaskKey] = []
    while page := (await store.run_updates(run, None, TaskFilter(after=seen[-1] if seen else None, limit=3))).tasks:
        assert len(page) <= 3
        seen += [each.key for each in page]
    assert seen == [each.key for each in whole.tasks]
    assert len(seen) == 8
    running = await store.run_updates(run, None, TaskFilter(statuses=frozenset({TaskStatus.RUNNING}), limit=2))
    assert [each.key for each in running.tasks] == [TaskKey("a", 0), TaskKey("a", 1)]
    last = await store.run_updates(run, None, TaskFilter(name="a", after=TaskKey("a", 3)))
    assert [each.key for each in last.tasks] == [TaskKey("a", 4)]
    assert (await store.run_updates(run, None, TaskFilter(name="nobody"))).tasks == ()
    assert last.mark == whole.mark
    own = TaskFilter(with_instances=False)
    assert [each.key.name for each in (await store.run_updates(run, None, own)).tasks] == ["b", "a", "c"]
    assert [each.key.name for each in (await store.run_updates(run, before.mark, own)).tasks] == ["c"]


async def test_tasks_that_wait_for_a_retry_are_selected(store: StateStore) -> None:
    claimed = await owned_run(store, of=await deploy(store, tasks=("b", "a", "c")))
    before = await store.run_updates(claimed.run.id)
    waiting = (task("a", index=1, retry_at=later(60)), task("b", retry_at=later(30)))
    await store.commit(ANN, [changes(claimed, tasks=(*waiting, task("a", index=0), task("c")))], NOW)
    for since in (None, before.mark):
        found = await store.run_updates(claimed.run.id, since, TaskFilter(is_retrying=True))
        assert [each.key for each in found.tasks] == [TaskKey("b"), TaskKey("a", 1)]


async def test_pages_of_what_changed_hold_what_changed_behind_the_mark(store: StateStore) -> None:
    claimed = await owned_run(store, of=await deploy(store, tasks=("b", "a", "c")))
    first = await store.run_updates(claimed.run.id)
    await store.commit(ANN, [changes(claimed, tasks=(task("c", TaskStatus.SUCCESS), task("b")))], NOW)
    page = await store.run_updates(claimed.run.id, first.mark, TaskFilter(limit=1))
    assert [each.key.name for each in page.tasks] == ["b"]
    rest = await store.run_updates(claimed.run.id, first.mark, TaskFilter(after=page.tasks[-1].key, limit=9))
    assert [each.key.name for each in rest.tasks] == ["c"]
    assert (await store.run_updates(claimed.run.id, rest.mark, TaskFilter(limit=9))).tasks == ()


async def test_attempts_come_in_pages(store: StateStore) -> None:
    claimed = await owned_run(store, of=await deploy(store, tasks=("b", "a")))
    run = claimed.run.id
    tries = [attempt(run, name, number) for name in ("a", "b") for number in (2, 1)]
    await store.commit(ANN, [changes(claimed, attempts=tuple(tries))], NOW)
    first = await store.list_attempts(run, limit=3)
    assert [(each.key.task.name, each.key.number) for each in first] == [("b", 1), ("b", 2), ("a", 1)]
    assert [each.key.number for each in await store.list_attempts(run, after=first[-1].key, limit=3)] == [2]
    assert [each.key.number for each in await store.list_attempts(run, TaskKey("b"), after=first[0].key)] == [2]
    assert await store.list_attempts(RunId("nothing"), limit=3) == ()


async def test_a_page_behind_a_task_that_the_workflow_does_not_have_is_refused(store: StateStore) -> None:
    run = (await owned_run(store)).run.id
    stranger = TaskKey("stranger")
    with pytest.raises(UsageError):
        await store.run_updates(run, None, TaskFilter(after=stranger))
    with pytest.raises(UsageError):
        await store.list_attempts(run, after=AttemptKey(run, stranger, 1))


async def test_tasks_are_counted_by_status(store: StateStore) -> None:
    claimed = await owned_run(store, of=await deploy(store, tasks=("b", "a", "c")))
    fan = [task("a", TaskStatus.RUNNING if number % 2 else TaskStatus.SUCCESS, index=number) for number in range(5)]
    await store.commit(ANN, [changes(claimed, tasks=(*fan, task("a", TaskStatus.RUNNING, instances=5)))], NOW)
    assert await store.count_tasks(claimed.run.id) == (
        TaskCount("b", False, TaskStatus.PENDING, 1),
        TaskCount("a", False, TaskStatus.RUNNING, 1),
        TaskCount("a", True, TaskStatus.RUNNING, 2),
        TaskCount("a", True, TaskStatus.SUCCESS, 3),
        TaskCount("c", False, TaskStatus.PENDING, 1),
    )
    assert await store.count_tasks(RunId("nothing")) == ()


class AllTimes(NamedTuple):
    tasks: list[TaskTimes]
    earlier: list[TaskTimes]


async def all_times(store: StateStore, run: RunId, since: str | None = None, **options: Any) -> AllTimes:
    """All pages as one."""
    page = await store.task_times(run, since, **options)
    found = AllTimes([*page.tasks.rows], [*page.earlier.rows])
    while page.last is not None:
        page = await store.task_times(run, since, after=page.last, **options)
        found.tasks.extend(page.tasks.rows)
        found.earlier.extend(page.earlier.rows)
    return found


async def test_times_come_in_pages_with_the_attempts_before(store: StateStore) -> None:
    claimed = await owned_run(store, of=await deploy(store, tasks=("b", "a", "c")))
    run, start = claimed.run.id, round(NOW.timestamp() * 1000)
    done = {"dispatched_at": NOW, "started_at": later(1.5), "finished_at": later(2.0014)}
    tasks = (
        task("b", TaskStatus.SUCCESS, attempt=2, **done),
        *(task("a", TaskStatus.RUNNING, index=number, attempt=1, dispatched_at=NOW) for number in range(4)),
        task("c", attempt=1),  # waits for its retry
    )
    ended = {"status": AttemptStatus.LOST, "finished_at": later(1)}
    attempts = (attempt(run, "b", 1, **ended), attempt(run, "b", 2), attempt(run, "c", 1, **ended))
    await store.commit(ANN, [changes(claimed, tasks=tasks, attempts=attempts)], NOW)
    found = await all_times(store, run, limit=2)
    assert found.tasks[0] == TaskTimes("b", None, TaskStatus.SUCCESS, 2, start, start + 1500, start + 2001)
    assert [(each.name, each.instance) for each in found.tasks] == [
        ("b", None), ("a", None), ("a", 0), ("a", 1), ("a", 2), ("a", 3), ("c", None),
    ]  # fmt: skip
    assert found.tasks[2] == TaskTimes("a", 0, TaskStatus.RUNNING, 1, start, None, None)
    assert found.earlier == [
        TaskTimes("b", None, AttemptStatus.LOST, 1, start, None, start + 1000),
        TaskTimes("c", None, AttemptStatus.LOST, 1, start, None, start + 1000),
    ]
    assert await all_times(store, run) == await all_times(store, run, limit=6) == found
    own = await all_times(store, run, limit=2, with_instances=False)
    assert [(each.name, each.instance) for each in own.tasks] == [("b", None), ("a", None), ("c", None)]
    assert await store.task_times(RunId("nothing")) == NO_TIMES
    with pytest.raises(UsageError):
        await store.task_times(run, after=TaskKey("stranger"))


async def test_times_since_a_mark_are_those_of_tasks_that_changed(store: StateStore) -> None:
    claimed = await owned_run(store, of=await deploy(store, tasks=("b", "a", "c")))
    before = await store.run_updates(claimed.run.id)
    await store.commit(ANN, [changes(claimed, tasks=(task("c", TaskStatus.SUCCESS), task("b")))], NOW)
    found = await all_times(store, claimed.run.id, before.mark, limit=1)
    assert [(each.name, each.status) for each in found.tasks] == [("b", "pending"), ("c", "success")]


async def test_of_many_attempts_the_latest_are_shown(store: StateStore) -> None:
    claimed = await owned_run(store)
    run = claimed.run.id
    attempts = tuple(attempt(run, "load", number, status=AttemptStatus.FAILED) for number in range(1, 41))
    now = task("load", TaskStatus.RUNNING, attempt=40)
    await store.commit(ANN, [changes(claimed, tasks=(now,), attempts=attempts)], NOW)
    assert [each.attempt for each in (await store.task_times(run)).earlier.rows] == [*range(20, 40)]


async def test_runs_of_a_span_of_time_come_in_pages(store: StateStore) -> None:
    of = await deploy(store)
    for number in range(6):
        await store.create_runs([new_run(of, f"run{number}")], later(number))
    span = {"created_after": later(1), "created_before": later(4), "limit": 2}
    for workflow in (None, "flow"):
        first = await store.list_runs(RunFilter(workflow=workflow, **span))
        assert [run.id for run in first.runs] == ["run3", "run2"]
        rest = await store.list_runs(RunFilter(workflow=workflow, cursor=first.cursor, **span))
        assert [run.id for run in rest.runs] == ["run1"]
        assert rest.cursor is None
    failed = await store.list_runs(RunFilter(statuses=frozenset({RunStatus.FAILED}), created_after=later(1)))
    assert failed.runs == ()
