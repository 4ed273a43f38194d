"""What is copied from a project's store."""

from __future__ import annotations

import pytest

from ork.compile.content import make_version
from ork.errors import NotFoundError, UsageError
from ork.model.installation import ALL_SCHEDULERS, Control, Mode
from ork.objects.memory import MemoryObjects
from ork.scheduler.options import SchedulerOptions
from ork.state.memory import MemoryStore
from ork.time_machine.plan import SimulationPlan
from ork.time_machine.play import play
from ork.time_machine.project import ProjectCopy, Rules, copy_project
from tests.unit.time_machine.projects import START, at, workflow

pytestmark = pytest.mark.anyio
RULES = Rules(SchedulerOptions(), {"*": 4}, {})
PARENT = """
    name: parent
    schedule: {cron: "0 * * * *"}
    tasks:
      child: {workflow: child}
      slow: {command: x, cache: 7d}
"""
CHILD = "name: child\nschedule: {cron: '30 * * * *'}\ntasks:\n  a: {command: x}\n"
PLAIN = "name: plain\ntasks:\n  a: {command: x}\n"


async def store_with(*texts: str) -> MemoryStore:
    store = MemoryStore()
    for text in texts:
        await store.save_version(make_version(workflow(text), "/project"), origin=None, now=START)
    return store


async def copied(store: MemoryStore, **options: object) -> ProjectCopy:
    return await copy_project(store, MemoryObjects(), RULES, SimulationPlan(START, at(3), **options))  # type: ignore[arg-type]


async def test_a_schedule_is_copied_with_its_sub_workflows_and_without_caches() -> None:
    store = await store_with(PARENT, CHILD, PLAIN)
    project = await copied(store, workflows=["parent"])
    assert [entry.workflow for entry in project.schedules] == ["parent"]
    assert set(project.versions) == {"parent", "child"}
    assert project.tasks["parent", "slow"].cache is None
    recorder = play(project, SimulationPlan(START, at(3))).recorder
    assert sorted(recorder.workflow_of.values()) == ["child"] * 3 + ["parent"] * 3, (
        "the schedule of the child is not played"
    )
    assert not recorder.problems
    assert [entry.workflow for entry in (await copied(store)).schedules] == ["child", "parent"]


async def test_a_pause_is_told_of_and_ignored() -> None:
    store = await store_with(CHILD)
    await store.set_control(Control(ALL_SCHEDULERS, Mode.PAUSED, "ann", START, "maintenance"))
    (note,) = (await copied(store)).notes
    assert "paused now" in note


async def test_what_cannot_be_played_is_refused() -> None:
    with pytest.raises(NotFoundError, match="no schedules"):
        await copied(await store_with(PLAIN))
    store = await store_with(PARENT, CHILD, PLAIN)
    with pytest.raises(NotFoundError, match="no workflow `other`"):
        await copied(store, workflows=["other"])
    with pytest.raises(UsageError, match="has no schedule"):
        await copied(store, workflows=["plain"])
    with pytest.raises(UsageError, match="no such task"):
        await copied(store, durations={"parent.gone": 1.0})
    await store.set_enabled("child", False)
    with pytest.raises(UsageError, match="no schedule is enabled"):
        await copied(store, workflows=["child"])
