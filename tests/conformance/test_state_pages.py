"""What every state store promises about pages of a run's tasks and attempts."""

from __future__ import annotations

import pytest

from ork.errors import UsageError
from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.task import TaskStatus
from ork.state.records import TaskFilter
from ork.state.store import StateStore
from tests.conformance.state_samples import ANN, NOW, attempt, changes, deploy, owned_run, task


async def test_tasks_come_in_pages_and_filtered_in_the_order_of_the_workflow(store: StateStore) -> None:
    claimed = await owned_run(store, of=await deploy(store, tasks=("b", "a", "c")))
    run = claimed.run.id
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
