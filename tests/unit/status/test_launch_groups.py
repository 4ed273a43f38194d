"""What people see of instances that wait inside a launch group."""

from __future__ import annotations

import asyncio

from ork.cli.commands.runs import show_lines
from ork.model.ids import RunId
from ork.model.record import replaced
from ork.model.task import AttemptStatus, TaskStatus
from ork.objects.memory import MemoryObjects
from ork.state.memory.store import MemoryStore
from ork.status.gather import gather
from ork.status.ids import RunTarget
from ork.status.launch_groups import waiting_groups
from ork.status.reasons import sentences
from ork.status.run_view import open_view
from ork.status.why import why_instances, why_task
from tests.conformance.state_samples import ANN, NOW, changes, group_requests, later, owned_run, task


async def group_of_four(store: MemoryStore) -> tuple[RunId, str]:
    """A run with a fan-out of four as one group: one has ended, one runs, two wait. Returns the group's id, too."""
    claimed = await owned_run(store)
    requests = group_requests(claimed.run.id, 4, parallelism=1)
    whole = task("extract", TaskStatus.RUNNING, instances=4, started_at=NOW)
    instances = tuple(task("extract", index=index) for index in range(4))
    await store.commit(ANN, [changes(claimed, tasks=(whole, *instances), launches=requests)], NOW)
    ended = replaced(requests[0].attempt, status=AttemptStatus.SUCCESS, started_at=NOW, finished_at=NOW)
    running = replaced(requests[1].attempt, status=AttemptStatus.RUNNING, started_at=NOW)
    rows = (
        replaced(requests[0].task, status=TaskStatus.SUCCESS, started_at=NOW, finished_at=NOW),
        replaced(requests[1].task, status=TaskStatus.RUNNING, started_at=NOW),
    )
    await store.commit(ANN, [changes(claimed, tasks=rows, attempts=(ended, running))], NOW)
    assert requests[0].attempt.group is not None
    return claimed.run.id, requests[0].attempt.group.id


def test_why_says_which_group_an_instance_waits_in_and_how_many_have_started() -> None:
    async def story() -> None:
        store = MemoryStore()
        run, group = await group_of_four(store)
        snap = await gather(store, MemoryObjects(), RunTarget(run, "extract", 3), run, later(20))
        waiting = next(row for key, row in snap.view.tasks.items() if key.index == 3)
        assert why_task(snap, waiting)[0].text == f"waiting in group `{group}` (2 of 4 started), for 20.0s"

    asyncio.run(story())


def test_why_of_a_fan_out_and_show_name_the_group_once() -> None:
    async def story() -> None:
        store = MemoryStore()
        run, group = await group_of_four(store)
        line = f"2 instances waiting in group `{group}` (2 of 4 started)"
        snap = await gather(store, MemoryObjects(), RunTarget(run, "extract", None), run, later(20))
        assert [text.strip() for text in sentences(why_instances(snap, "extract")) if "group" in text] == [line]
        view, _ = await open_view(store, run)
        shown = show_lines(view, later(20), groups=await waiting_groups(store, view))
        assert sum(line in "".join(span.text for span in spans) for spans in shown) == 1

    asyncio.run(story())


def test_a_group_of_which_all_have_started_is_not_named() -> None:
    async def story() -> None:
        store = MemoryStore()
        claimed = await owned_run(store)
        view, _ = await open_view(store, claimed.run.id)
        assert await waiting_groups(store, view) == ()

    asyncio.run(story())
