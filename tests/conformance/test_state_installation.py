"""What every state store promises about the installation as a whole."""

from __future__ import annotations

import asyncio

import pytest

from ork.errors import RefusedError, SettingsDifferError
from ork.model.installation import Control, Mode, SharedSettings
from ork.model.record import replaced
from ork.model.run import RunStatus
from ork.model.task import AttemptStatus
from ork.state.store import StateStore
from tests.conformance.state_samples import (
    ANN,
    BEN,
    NOW,
    attempt,
    changes,
    claim,
    command,
    ended,
    launch_request,
    owned_run,
    register,
    start_runs,
)

OURS = SharedSettings("id of the store", 10.0, 60.0, "file:/srv/objects", "host-a", NOW)
OTHERS = replaced(OURS, objects="id of another", objects_url="file:/home/objects", host="host-b")

# ── what all schedulers share ────────────────────────────────────────────────────────────────────


async def test_nothing_is_recorded_in_a_new_store(store: StateStore) -> None:
    assert await store.read_shared_settings() is None


async def test_the_first_to_record_decides(stores) -> None:
    here, there = stores.open(), stores.open()
    assert await here.record_shared_settings(OURS) == OURS
    assert await there.record_shared_settings(OTHERS) == OURS
    assert await there.read_shared_settings() == OURS


async def test_of_many_at_the_same_moment_one_decides(stores) -> None:
    handles = [stores.open() for _ in range(4)]
    offers = [replaced(OURS, objects=f"id {number}") for number in range(len(handles))]
    pairs = zip(handles, offers, strict=True)
    answers = await asyncio.gather(*(store.record_shared_settings(offer) for store, offer in pairs))
    assert len(set(answers)) == 1


async def test_a_scheduler_with_other_terms_is_refused_and_not_known(store: StateStore) -> None:
    await store.record_shared_settings(OURS)
    with pytest.raises(SettingsDifferError):
        await store.register(BEN, "identity", "scheduler", NOW, terms=OTHERS.terms)
    assert await store.list_schedulers() == ()
    await store.register(ANN, "identity", "scheduler", NOW, terms=OURS.terms)
    assert [entry.id for entry in await store.list_schedulers()] == [ANN]


@pytest.mark.parametrize("change", [{"heartbeat_seconds": 11.0}, {"stale_seconds": 61.0}, {"objects": "x"}])
async def test_each_setting_is_a_part_of_the_terms(store: StateStore, change: dict[str, object]) -> None:
    await store.record_shared_settings(OURS)
    with pytest.raises(SettingsDifferError):
        await store.register(ANN, "identity", "scheduler", NOW, terms=replaced(OURS, **change).terms)


async def test_where_the_objects_are_seen_is_not_a_part_of_the_terms(store: StateStore) -> None:
    await store.record_shared_settings(OURS)
    elsewhere = replaced(OURS, objects_url="file:/mnt/objects", host="host-c")
    await store.register(ANN, "identity", "scheduler", NOW, terms=elsewhere.terms)


async def test_terms_are_compared_only_where_some_are_recorded(store: StateStore) -> None:
    await store.register(ANN, "identity", "scheduler", NOW, terms=OURS.terms)
    assert len(await store.list_schedulers()) == 1


async def test_settings_are_not_replaced_while_an_attempt_is_active(store: StateStore) -> None:
    await store.record_shared_settings(OURS)
    claimed = await owned_run(store)
    run = claimed.run.id
    await store.commit(ANN, [changes(claimed, launches=(launch_request(run, "extract"),))], NOW)
    with pytest.raises(RefusedError, match="1 attempt is active"):
        await store.replace_shared_settings(OTHERS)
    assert await store.read_shared_settings() == OURS
    assert await store.get_owner(run) == ANN
    done = attempt(run, "extract", status=AttemptStatus.SUCCESS, finished_at=NOW)
    await store.commit(ANN, [changes(claimed, attempts=(done,))], NOW)
    await store.replace_shared_settings(OTHERS)
    assert await store.read_shared_settings() == OTHERS


async def test_an_attempt_that_waits_for_a_job_is_active_too(store: StateStore) -> None:
    claimed = await owned_run(store)
    waiting = launch_request(claimed.run.id, "extract", waits_for="[]")
    await store.commit(ANN, [changes(claimed, launches=(waiting,))], NOW)
    with pytest.raises(RefusedError):
        await store.replace_shared_settings(OTHERS)


async def test_settings_are_replaced_by_force(store: StateStore) -> None:
    claimed = await owned_run(store)
    await store.commit(ANN, [changes(claimed, launches=(launch_request(claimed.run.id, "extract"),))], NOW)
    await store.replace_shared_settings(OTHERS, force=True)
    assert await store.read_shared_settings() == OTHERS


async def test_whoever_worked_under_the_settings_before_can_do_nothing_more(store: StateStore) -> None:
    await store.record_shared_settings(OURS)
    claimed = await owned_run(store)
    await store.replace_shared_settings(OTHERS)
    committed = await store.commit(ANN, [changes(claimed, launches=(launch_request(claimed.run.id, "extract"),))], NOW)
    assert committed.fenced == {claimed.run.id}
    assert not await store.renew(ANN)
    assert await claim(store, ANN) == []
    with pytest.raises(SettingsDifferError):
        await store.register(ANN, "identity", "scheduler", NOW, terms=OURS.terms)
    await register(store, BEN)
    assert [each.run.id for each in await claim(store, BEN)] == [claimed.run.id]


async def test_settings_can_be_replaced_where_none_are_recorded(store: StateStore) -> None:
    await start_runs(store)
    await store.replace_shared_settings(OURS)
    assert await store.read_shared_settings() == OURS


async def test_an_introduction_and_a_replacement_at_the_same_moment_leave_no_scheduler_with_old_terms(stores) -> None:
    here, there = stores.open(), stores.open()
    for number in range(10):
        old = replaced(OURS, objects=f"old {number}")
        new = replaced(OURS, objects=f"new {number}")
        await here.replace_shared_settings(old)
        work = here.register(ANN, "identity", "scheduler", NOW, terms=old.terms), there.replace_shared_settings(new)
        await asyncio.gather(*work, return_exceptions=True)
        assert await there.read_shared_settings() == new
        assert await here.list_schedulers() == ()


# ── pausing and draining schedulers ──────────────────────────────────────────────────────────────

PAUSE = Control("*", Mode.PAUSED, "ann", NOW, "the disk is replaced")


async def test_a_control_stands_until_it_is_cleared(stores) -> None:
    here, there = stores.open(), stores.open()
    assert await here.list_controls() == ()
    await here.set_control(PAUSE)
    await here.set_control(Control("host-b", Mode.DRAINING, "ben", NOW))
    assert await there.list_controls() == (PAUSE, Control("host-b", Mode.DRAINING, "ben", NOW))
    assert await there.clear_control("*")
    assert not await there.clear_control("*")
    assert [control.target for control in await here.list_controls()] == ["host-b"]


async def test_a_second_control_for_a_target_takes_the_place_of_the_first(store: StateStore) -> None:
    await store.set_control(PAUSE)
    drain = replaced(PAUSE, mode=Mode.DRAINING, by="ben", reason=None)
    await store.set_control(drain)
    assert await store.list_controls() == (drain,)


async def test_a_control_and_its_end_wake_schedulers(waiting_stores) -> None:
    here, there = waiting_stores.open(), waiting_stores.open()
    await there.wait_for_change(0.0)
    await here.set_control(PAUSE)
    assert await there.wait_for_change(30)
    await here.clear_control("*")
    assert await there.wait_for_change(30)


async def test_runs_with_commands_are_those_of_which_something_is_asked(store: StateStore) -> None:
    one, two, _ = await start_runs(store, 3)
    for run in (two, one, two):
        await store.submit_command(command(run.id), NOW)
    assert await store.runs_with_commands() == tuple(sorted((one.id, two.id)))
    await register(store, ANN)
    for claimed in await claim(store):
        done = tuple(each.id for each in await store.pending_commands(claimed.run.id))
        await store.commit(ANN, [ended(claimed, RunStatus.CANCELLED, commands_done=done)], NOW)
    assert await store.runs_with_commands() == ()
