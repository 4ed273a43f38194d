"""What every state store promises about schedules: one run per time, whoever fires it."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

import pytest

from ork.errors import NotFoundError
from ork.model.ids import RunId, VersionId
from ork.model.notice import NoticeKind
from ork.model.run import NewRun
from ork.model.workflow import Catchup, Schedule, Trigger
from ork.state.records import LookAhead, RunFilter, ScheduleEntry
from ork.state.store import StateStore
from tests.conformance.conftest import Stores
from tests.conformance.state_samples import NOW, claim, later, new_run, register, version

HOURLY = Schedule("0 * * * *")
SOON = later(10)


async def planned(
    store: StateStore, name: str = "flow", next_fire: datetime | None = SOON, **options: Any
) -> VersionId:
    schedule = options.pop("schedule", HOURLY)
    saved = version(name, schedule=schedule, **options)
    await store.save_version(saved, origin=None, now=NOW, next_fire=next_fire)
    return saved.id


def slot(seconds: float, name: str = "flow") -> NewRun:
    return new_run(version(name), trigger=Trigger.SCHEDULE, scheduled_for=later(seconds))


async def next_fires(store: StateStore) -> dict[str, datetime | None]:
    return {entry.workflow: entry.next_fire for entry in await store.list_schedules()}


async def slots(store: StateStore) -> list[datetime | None]:
    return sorted(run.scheduled_for for run in (await store.list_runs(RunFilter(limit=100))).runs if run.scheduled_for)


async def test_a_deployed_schedule_is_listed_with_its_next_time(store: StateStore) -> None:
    exotic = Schedule("0 2 * * *", "Europe/Prague", Catchup.ALL, True, 30.5, 7)
    id = await planned(store, schedule=exotic)
    await store.save_version(version("other"), origin=None, now=NOW)
    assert await store.list_schedules() == (ScheduleEntry("flow", id, exotic, True, later(10)),)


async def test_a_schedule_that_is_as_it_was_keeps_its_time_when_deployed_again(store: StateStore) -> None:
    await planned(store)
    await planned(store, next_fire=later(99), id="another version", description="changed words")
    assert await next_fires(store) == {"flow": later(10)}


async def test_a_changed_schedule_takes_its_new_time(store: StateStore) -> None:
    await planned(store)
    await planned(store, next_fire=later(99), id="v2", schedule=Schedule("5 * * * *"))
    assert await next_fires(store) == {"flow": later(99)}


async def test_a_schedule_that_is_off_has_no_time_and_is_never_due(store: StateStore) -> None:
    await planned(store, schedule=Schedule("0 * * * *", enabled=False))
    (entry,) = await store.list_schedules()
    assert (entry.enabled, entry.next_fire) == (False, None)
    assert await store.due_schedules(later(99)) == ()
    assert await store.set_enabled("flow", True, next_fire=later(5))
    assert (await store.list_schedules())[0].next_fire is None


async def test_disabling_takes_the_time_away_and_enabling_gives_a_new_one(store: StateStore) -> None:
    await planned(store)
    await store.set_enabled("flow", False)
    assert await next_fires(store) == {"flow": None}
    assert await store.due_schedules(later(99)) == ()
    assert await store.next_fire_at(NOW) is None
    await store.set_enabled("flow", True, next_fire=later(50))
    assert await next_fires(store) == {"flow": later(50)}
    await store.set_enabled("flow", True, next_fire=later(70))
    assert await next_fires(store) == {"flow": later(50)}


async def test_a_schedule_taken_out_of_a_workflow_is_gone(store: StateStore) -> None:
    await planned(store)
    await store.save_version(version(id="v2"), origin=None, now=NOW)
    assert await store.list_schedules() == ()
    assert not await store.fire("flow", later(10), [], later(20), NOW)


async def test_due_are_those_whose_time_has_come_and_those_nobody_has_planned(store: StateStore) -> None:
    await planned(store, "late", later(-5))
    await planned(store, "now", NOW)
    await planned(store, "soon", later(1))
    await planned(store, "unplanned", None)
    assert [entry.workflow for entry in await store.due_schedules(NOW)] == ["late", "now", "unplanned"]
    assert await store.next_fire_at(NOW) == later(1)
    assert await store.next_fire_at(later(1)) is None


async def test_firing_creates_the_runs_and_moves_the_time_on(store: StateStore) -> None:
    await planned(store)
    assert await store.fire("flow", later(10), [slot(10), slot(11)], later(20), later(12))
    assert await slots(store) == [later(10), later(11)]
    assert await next_fires(store) == {"flow": later(20)}
    await register(store, "ann")  # type: ignore[arg-type]
    assert len(await claim(store)) == 2


async def test_only_one_of_many_fires_a_time(stores: Stores) -> None:
    handles = [stores.open() for _ in range(5)]
    await planned(handles[0])
    answers = await asyncio.gather(*(h.fire("flow", later(10), [slot(10)], later(20), later(10)) for h in handles))
    assert sorted(answers) == [False] * 4 + [True]
    assert await slots(handles[0]) == [later(10)]


async def test_a_slot_that_has_a_run_gets_no_second_one(store: StateStore) -> None:
    await planned(store)
    await store.create_runs([new_run(version(), trigger=Trigger.BACKFILL, scheduled_for=later(10))], NOW)
    assert await store.fire("flow", later(10), [slot(10), slot(20)], later(30), later(20))
    assert await slots(store) == [later(10), later(20)]


async def test_an_unplanned_schedule_is_planned_by_firing_nothing(store: StateStore) -> None:
    await planned(store, next_fire=None)
    assert await store.fire("flow", None, [], later(60), NOW)
    assert not await store.fire("flow", None, [], later(99), NOW)
    assert await next_fires(store) == {"flow": later(60)}
    assert await slots(store) == []


async def test_a_firing_that_cannot_create_its_run_moves_nothing(store: StateStore) -> None:
    await planned(store)
    unknown = NewRun(RunId("r"), "flow", VersionId("unknown"), trigger=Trigger.SCHEDULE, scheduled_for=later(10))
    with pytest.raises(NotFoundError):
        await store.fire("flow", later(10), [slot(10), unknown], later(20), NOW, missed="lost")
    assert await next_fires(store) == {"flow": later(10)}
    assert await slots(store) == []
    assert await store.take_alerts(10, later(99)) == ()


async def test_firing_wakes_the_others(waiting_stores: Stores) -> None:
    one, other = waiting_stores.open(), waiting_stores.open()
    await planned(one)
    await other.wait_for_change(0)
    assert await one.fire("flow", later(10), [slot(10)], later(20), NOW)
    assert await other.wait_for_change(5)


async def test_losing_a_race_wakes_nobody(waiting_stores: Stores) -> None:
    one, other = waiting_stores.open(), waiting_stores.open()
    await planned(one)
    await other.wait_for_change(0)
    assert not await one.fire("flow", later(11), [slot(10)], later(20), NOW)
    assert not await other.wait_for_change(0)


async def test_missed_times_are_told_of_with_the_firing(store: StateStore) -> None:
    await planned(store)
    assert await store.fire("flow", later(10), [], later(20), later(15), missed="3 times went by")
    (notice,) = await store.take_alerts(10, later(15))
    assert (notice.kind, notice.workflow, notice.run, notice.detail) == (
        NoticeKind.MISSED, "flow", None, "3 times went by",
    )  # fmt: skip


async def test_what_was_told_of_missed_times_is_forgotten_when_it_is_old_enough(store: StateStore) -> None:
    await planned(store)
    for at in (10, 20):
        assert await store.fire("flow", later(at), [], later(at + 10), later(at + 5), missed="one")
    old, new = await store.take_alerts(10, later(30))
    for notice in (old, new):
        await store.settle_alert(notice.id, [], None, "mail: no such host")
    await store.prune(later(20), 10)
    assert [unsent.notice.id for unsent in await store.unsent_alerts(10)] == [new.id]
    assert await store.fire("flow", later(30), [], later(40), later(35), missed="one")
    await store.prune(later(99), 10)
    assert [notice.detail for notice in await store.take_alerts(10, later(99))] == ["one"]  # not before it has been


# ── looking ahead ────────────────────────────────────────────────────────────────────────────────


async def test_looking_ahead_finds_nothing_in_an_empty_store(store: StateStore) -> None:
    assert await store.look_ahead(()) == LookAhead(False, (), None, None)
    assert await store.look_ahead(["etl"]) == LookAhead(False, (), None, None)


async def test_looking_ahead_says_what_the_single_questions_say(store: StateStore) -> None:
    for name in ("noon", "midnight", "off", "unplanned"):
        of = version(name, schedule=Schedule("0 12 * * *"))
        await store.save_version(of, origin=None, now=NOW, next_fire=None if name == "unplanned" else later(60))
    await store.save_version(version("without"), origin=None, now=NOW)
    await store.set_enabled("off", False)
    await store.set_locations({"etl": "/flows", "other": "/more"}, later(7))
    await store.fire("noon", later(60), (), later(120), later(30), missed="one")
    ahead = await store.look_ahead(["etl"])
    assert ahead.schedules == tuple(entry for entry in await store.list_schedules() if entry.enabled)
    assert [entry.workflow for entry in ahead.schedules] == ["midnight", "noon", "unplanned"]
    assert ahead.next_alert == await store.next_alert_at() == later(30)
    assert ahead.next_location == await store.next_location_at(["etl"]) == later(7)
    assert not ahead.runs_wait
    assert (await store.look_ahead(["unknown"])).next_location is None
    await store.create_runs([new_run(version("noon"))], NOW)
    assert (await store.look_ahead(())).runs_wait


async def test_runs_are_found_by_the_times_they_are_for(store: StateStore) -> None:
    await planned(store)
    await planned(store, "other")
    await store.create_runs([slot(10), slot(20), slot(30), slot(20, "other")], NOW)
    await store.create_runs(
        [new_run(version("flow"), trigger=Trigger.BACKFILL, scheduled_for=later(40), params={"n": 1})], NOW
    )
    await store.create_runs([new_run(version("flow"), trigger=Trigger.MANUAL, scheduled_for=later(50))], NOW)
    found = await store.find_scheduled("flow", [later(seconds) for seconds in (50, 40, 20, 15, 10)])
    assert sorted(found) == [later(10), later(20), later(40)]
    assert [found[later(20)].workflow, found[later(40)].trigger] == ["flow", Trigger.BACKFILL]
    assert found[later(40)].params == {}
    assert found[later(20)].scheduled_for == later(20)
    assert await store.find_scheduled("flow", []) == {}
    assert await store.find_scheduled("nothing", [later(10)]) == {}
