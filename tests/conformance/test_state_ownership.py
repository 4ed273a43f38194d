"""What every state store promises about who may act on a run."""

from __future__ import annotations

from typing import Any

import pytest

from ork.model.ids import AttemptKey, RunId
from ork.model.installation import Control, Mode
from ork.model.record import replaced
from ork.model.run import CommandKind, RunStatus
from ork.model.task import AttemptStatus, Heartbeat
from ork.state.records import Claim, ClaimedRun
from ork.state.sqlite import SqliteStore
from ork.state.store import StateStore
from tests.conformance.conftest import LeaseClock
from tests.conformance.state_samples import (
    ANN,
    BEN,
    NOW,
    attempt,
    changes,
    claim,
    command,
    deploy,
    ended,
    later,
    launch_request,
    new_run,
    owned_run,
    register,
    start_runs,
)

LEASE = 60

# ── claiming ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_pending_run_is_claimed_with_its_version_and_epoch_one(store: StateStore) -> None:
    flow = await deploy(store)
    (run,) = await start_runs(store, of=flow)
    await register(store, ANN)
    (claimed,) = await claim(store)
    assert (claimed.run, claimed.epoch, claimed.version) == (run, 1, flow)
    assert (claimed.tasks, claimed.attempts) == ((), ())
    assert await store.get_owner(run.id) == ANN


async def test_an_owned_run_is_not_claimed_again(stores) -> None:
    here, there = stores.open(), stores.open()
    await start_runs(here, 3)
    await register(here, ANN, BEN)
    first = await claim(here, ANN, room=2)
    second = await claim(there, BEN)
    assert len(first) == 2
    assert len(second) == 1
    assert not {c.run.id for c in first} & {c.run.id for c in second}
    assert await claim(here) == []


async def test_no_more_runs_are_claimed_than_there_is_room_for(store: StateStore) -> None:
    await start_runs(store, 5)
    await register(store, ANN)
    assert await claim(store, room=0) == []
    assert len(await claim(store, room=2)) == 2


async def test_higher_priority_is_claimed_first_then_older(store: StateStore) -> None:
    flow = await deploy(store)
    await store.create_runs([new_run(flow, "young")], later(9))
    await store.create_runs([new_run(flow, "old"), new_run(flow, "low", priority=-1)], NOW)
    await store.create_runs([new_run(flow, "high", priority=5)], later(20))
    await register(store, ANN)
    assert [c.run.id for c in await claim(store, room=3)] == ["high", "old", "young"]
    assert [c.run.id for c in await claim(store)] == ["low"]


async def test_a_new_owner_gets_tasks_in_the_workflows_order_and_the_attempts_that_are_active(store) -> None:
    names = ("zeta", "alpha", "mid")
    claimed = await owned_run(store, of=await deploy(store, tasks=names))
    run = claimed.run.id
    await store.commit(ANN, [changes(claimed, launches=(launch_request(run, "mid"), launch_request(run, "zeta")))], NOW)
    lost = attempt(run, "mid", status=AttemptStatus.LOST, finished_at=NOW)
    second = launch_request(run, "mid", number=2)
    await store.commit(ANN, [changes(claimed, attempts=(lost,), launches=(second,))], NOW)
    await store.release(ANN, [run])
    (again,) = await claim(store)
    assert [t.key.name for t in again.tasks] == [*names]
    assert again.attempts == (launch_request(run, "zeta").attempt, second.attempt)


async def test_an_unknown_scheduler_gets_nothing(store: StateStore) -> None:
    await start_runs(store)
    assert await store.claim_runs(ANN, 10, NOW) == Claim()


async def test_a_paused_run_with_something_active_needs_an_owner_and_one_without_does_not(store) -> None:
    busy = await owned_run(store)
    idle = await owned_run(store)
    await store.commit(
        ANN,
        [
            changes(
                busy,
                run=replaced(busy.run, status=RunStatus.PAUSED),
                launches=(launch_request(busy.run.id, "extract"),),
            ),
            changes(idle, run=replaced(idle.run, status=RunStatus.PAUSED)),
        ],
        NOW,
    )
    await store.release(ANN)
    await register(store, BEN)
    assert [c.run.id for c in await claim(store, BEN)] == [busy.run.id]
    await store.submit_command(command(idle.run.id, CommandKind.RESUME), NOW)
    assert [c.run.id for c in await claim(store, BEN)] == [idle.run.id]


async def test_a_final_run_needs_no_owner(store: StateStore) -> None:
    claimed = await owned_run(store)
    await store.commit(ANN, [ended(claimed, release_ownership=False)], NOW)
    await store.release(ANN)
    await register(store, BEN)
    assert await claim(store, BEN) == []


# ── max_active_runs ──────────────────────────────────────────────────────────────────────────────


async def test_a_pending_run_beyond_max_active_runs_stays_unclaimed_until_another_ends(store) -> None:
    flow = await deploy(store, max_active_runs=2)
    await store.create_runs([new_run(flow, id) for id in "abcd"], NOW)
    await register(store, ANN, BEN)
    a, b = await claim(store)
    assert await claim(store, BEN) == []
    await store.commit(ANN, [changes(a, run=replaced(a.run, status=RunStatus.RUNNING))], NOW)
    assert await claim(store) == []
    await store.commit(ANN, [ended(a)], NOW)
    assert [c.run.id for c in await claim(store, BEN)] == ["c"]
    await store.commit(ANN, [changes(b, run=replaced(b.run, status=RunStatus.PAUSED), release_ownership=True)], NOW)
    assert await claim(store) == []


async def test_max_active_runs_holds_back_no_other_workflow(store: StateStore) -> None:
    limited = await deploy(store, "limited", max_active_runs=1)
    await store.create_runs([new_run(limited, f"l{i}") for i in range(20)], NOW)
    await store.create_runs([new_run(await deploy(store, "free"), f"f{i}") for i in range(3)], later(1))
    await register(store, ANN)
    assert [c.run.id for c in await claim(store, room=4)] == ["l0", "f0", "f1", "f2"]


async def test_a_running_run_without_an_owner_is_claimed_whatever_max_active_runs_says(store) -> None:
    claimed = await owned_run(store, of=await deploy(store, max_active_runs=1))
    await start_runs(store, of=claimed.version)
    await store.release(ANN, [claimed.run.id])
    assert [c.run.id for c in await claim(store)] == [claimed.run.id]


async def test_a_queued_run_that_is_to_be_cancelled_is_claimed_beyond_max_active_runs(store) -> None:
    claimed = await owned_run(store, of=await deploy(store, max_active_runs=1))
    _, queued = await start_runs(store, 2, of=claimed.version)
    await store.submit_command(command(queued.id), NOW)
    assert [c.run.id for c in await claim(store)] == [queued.id]


# ── leases ───────────────────────────────────────────────────────────────────────────────────────


async def test_runs_of_an_owner_whose_lease_has_run_out_can_be_claimed_with_a_higher_epoch(stores) -> None:
    store = stores.open()
    claimed = await owned_run(store)
    stores.clock.advance(LEASE - 1)
    await register(store, BEN)
    assert await claim(store, BEN) == []
    stores.clock.advance(1)
    (taken,) = await claim(store, BEN)
    assert (taken.run.id, taken.epoch) == (claimed.run.id, claimed.epoch + 1)
    assert [entry.id for entry in await store.list_schedulers()] == [BEN]


async def test_a_renewed_lease_holds_lease_seconds_from_then(stores) -> None:
    store = stores.open()
    await owned_run(store)
    await register(store, BEN)
    for _ in range(4):
        stores.clock.advance(LEASE - 1)
        assert await store.renew(ANN)
        assert await store.renew(BEN)
        assert await claim(store, BEN) == []
    (ann, _) = await store.list_schedulers()
    assert (ann.id, ann.lease_seconds_left, ann.active_runs) == (ANN, LEASE, 1)


async def test_a_lease_that_ran_out_unnoticed_can_still_be_renewed(stores) -> None:
    store = stores.open()
    claimed = await owned_run(store)
    stores.clock.advance(LEASE * 3)
    assert await store.renew(ANN)
    assert (await store.commit(ANN, [changes(claimed)], NOW)).fenced == frozenset()


async def test_renewing_fails_once_somebody_took_a_run_over(stores) -> None:
    store = stores.open()
    await owned_run(store)
    stores.clock.advance(LEASE)
    await register(store, BEN)
    await claim(store, BEN)
    assert not await store.renew(ANN)


async def test_an_unknown_scheduler_cannot_renew(store: StateStore) -> None:
    assert not await store.renew(ANN)


async def test_a_scheduler_whose_own_lease_has_run_out_gets_nothing(stores) -> None:
    store = stores.open()
    await register(store, ANN)
    await start_runs(store)
    stores.clock.advance(LEASE)
    assert await store.claim_runs(ANN, 10, NOW) == Claim()
    assert await store.renew(ANN)
    assert len(await claim(store)) == 1


async def test_an_expired_schedulers_runs_can_be_claimed_at_once(stores) -> None:
    here, there = stores.open(), stores.open()
    claimed = await owned_run(here)
    await register(there, BEN)
    await there.expire([ANN, "nobody"])
    assert [(c.run.id, c.epoch) for c in await claim(there, BEN)] == [(claimed.run.id, claimed.epoch + 1)]
    assert (await here.commit(ANN, [changes(claimed)], NOW)).fenced == {claimed.run.id}


async def test_registering_again_begins_with_nothing(store: StateStore) -> None:
    claimed = await owned_run(store)
    await register(store, ANN)
    assert await store.get_owner(claimed.run.id) is None
    assert [c.epoch for c in await claim(store)] == [claimed.epoch + 1]


async def test_released_runs_have_no_owner_and_can_be_claimed_at_once(store: StateStore) -> None:
    one, two = await owned_run(store), await owned_run(store)
    await register(store, BEN)
    await store.release(BEN, [one.run.id])
    assert await store.get_owner(one.run.id) == ANN
    await store.release(ANN, [one.run.id])
    assert await store.get_owner(one.run.id) is None
    assert await store.get_owner(two.run.id) == ANN
    assert [c.run.id for c in await claim(store, BEN)] == [one.run.id]


async def test_releasing_all_forgets_the_scheduler(store: StateStore) -> None:
    one, two = await owned_run(store), await owned_run(store)
    await store.release(ANN)
    assert await store.list_schedulers() == ()
    assert not await store.renew(ANN)
    await register(store, BEN)
    assert {c.run.id for c in await claim(store, BEN)} == {one.run.id, two.run.id}


async def test_releasing_nothing_writes_nothing_and_wakes_nobody(stores) -> None:
    here, there = stores.open(), stores.open()
    claimed = await owned_run(here)
    await there.wait_for_change(0)
    mark = (await here.changes_since(None)).mark
    await here.release(ANN, [])
    await here.release(BEN, [claimed.run.id, RunId("unknown")])
    await here.release(BEN)
    assert not await there.wait_for_change(0)
    assert (await here.changes_since(None)).mark == mark
    assert await here.get_owner(claimed.run.id) == ANN


async def test_a_control_for_a_scheduler_goes_when_it_exits_and_not_when_it_starts_afresh(store: StateStore) -> None:
    everybody, ann = (Control(target, Mode.DRAINING, "me", NOW) for target in ("*", ANN))
    await register(store, ANN, BEN)
    await store.set_control(everybody)
    await store.set_control(ann)
    await store.release(BEN, exits=True)
    await store.release(ANN)
    assert await store.list_controls() == (everybody, ann)
    await register(store, ANN)
    await store.release(ANN, exits=True)
    assert await store.list_controls() == (everybody,)


# ── claiming some runs only ──────────────────────────────────────────────────────────────────────


async def only_ids(store: StateStore, *only: str, scheduler=ANN) -> set[str]:
    found = await store.claim_runs(scheduler, 100, NOW, only=[RunId(run) for run in only])
    return {claimed.run.id for claimed in found.runs}


async def test_with_only_other_runs_that_wait_to_be_started_are_left_alone(store: StateStore) -> None:
    runs = await start_runs(store, 3)
    await register(store, ANN, BEN)
    assert await only_ids(store, runs[1].id) == {runs[1].id}
    assert await only_ids(store) == set()
    assert [claimed.run.id for claimed in await claim(store, BEN)] == [runs[0].id, runs[2].id]


async def test_with_only_sub_workflows_are_claimed_as_well_but_not_reruns(store: StateStore) -> None:
    flow = await deploy(store)
    parent, other = await start_runs(store, 2, of=flow)
    new = [
        new_run(flow, "child", parent=f"{parent.id}/extract/1"),
        new_run(flow, "rerun", parent=parent.id),
        new_run(flow, "others-child", parent=f"{other.id}/extract/1"),
    ]
    await store.create_runs(new, NOW)
    await register(store, ANN)
    assert await only_ids(store, parent.id) == {parent.id, "child"}


async def test_with_only_what_a_dead_owner_left_is_claimed_as_well(stores) -> None:
    store = stores.open()
    (left, never) = await start_runs(store, 2)
    await register(store, ANN, BEN)
    assert len(await claim(store, BEN, room=1)) == 1
    assert await only_ids(store, "none") == set()
    await store.expire([BEN])
    assert await only_ids(store, "none") == {left.id}
    assert await store.get_owner(never.id) is None


async def test_with_only_a_run_with_an_active_attempt_that_nobody_looks_after_is_claimed(store: StateStore) -> None:
    idle = await owned_run(store)
    busy = await owned_run(store)
    first = launch_request(busy.run.id, "extract")
    await store.commit(ANN, [changes(busy, launches=(first,))], NOW)
    await store.release(ANN)
    await register(store, BEN)
    assert await only_ids(store, "none", scheduler=BEN) == {busy.run.id}
    assert await store.get_owner(idle.run.id) is None


# ── heartbeats ───────────────────────────────────────────────────────────────────────────────────


async def noted(store: StateStore, stores: Any, *heartbeats: Heartbeat) -> tuple[Heartbeat, ...]:
    """What the next owner of the run gets."""
    await store.note_heartbeats(heartbeats)
    stores.clock.advance(LEASE + 1)
    await register(store, BEN)
    (again,) = await claim(store, BEN)
    return again.heartbeats


async def launched(store: StateStore, name: str = "t") -> tuple[ClaimedRun, AttemptKey]:
    claimed = await owned_run(store, of=await deploy(store, tasks=(name,)))
    started = launch_request(claimed.run.id, name)
    await store.commit(ANN, [changes(claimed, launches=(started,))], NOW)
    return claimed, started.attempt.key


async def test_a_new_owner_knows_since_when_a_heartbeat_has_been_the_last(stores) -> None:
    store = stores.open()
    _, key = await launched(store)
    (heard,) = await noted(store, stores, Heartbeat(key, 7, 20.0))
    assert (heard.attempt, heard.seq) == (key, 7)
    assert heard.age == pytest.approx(20 + LEASE + 1, abs=0.01)


async def test_a_heartbeat_noted_again_keeps_the_moment_it_was_first_seen(stores) -> None:
    store = stores.open()
    _, key = await launched(store)
    await store.note_heartbeats([Heartbeat(key, 7, 0.0)])
    stores.clock.advance(10)
    await store.note_heartbeats([Heartbeat(key, 6, 0.0), Heartbeat(key, 7, 0.0)])
    (heard,) = await noted(store, stores)
    assert (heard.seq, heard.age) == (7, pytest.approx(10 + LEASE + 1, abs=0.01))


async def test_a_newer_heartbeat_begins_a_new_count(stores) -> None:
    store = stores.open()
    _, key = await launched(store)
    await store.note_heartbeats([Heartbeat(key, 0, 50.0)])
    (heard,) = await noted(store, stores, Heartbeat(key, 1, 0.0))
    assert (heard.seq, heard.age) == (1, pytest.approx(LEASE + 1, abs=0.01))


async def test_of_the_fingerprints_of_statuses_that_cannot_be_decoded_the_last_one_noted_is_kept(stores) -> None:
    store = stores.open()
    _, key = await launched(store)
    for fingerprint in (-700, -(2**63)):
        await store.note_heartbeats([Heartbeat(key, fingerprint, 0.0)])
    stores.clock.advance(10)
    await store.note_heartbeats([Heartbeat(key, -(2**63), 0.0)])
    (heard,) = await noted(store, stores)
    assert (heard.seq, heard.age) == (-(2**63), pytest.approx(10 + LEASE + 1, abs=0.01))


async def test_a_fingerprint_and_a_number_take_each_other_s_place(stores) -> None:
    store = stores.open()
    _, key = await launched(store)
    await store.note_heartbeats([Heartbeat(key, 7, 0.0)])
    await store.note_heartbeats([Heartbeat(key, -700, 0.0)])
    await store.note_heartbeats([Heartbeat(key, 7, 0.0)])
    stores.clock.advance(10)
    (heard,) = await noted(store, stores, Heartbeat(key, -700, 0.0))
    assert (heard.seq, heard.age) == (-700, pytest.approx(LEASE + 1, abs=0.01))


async def test_nothing_is_noted_of_attempts_that_have_ended_or_never_were(stores) -> None:
    store = stores.open()
    claimed, key = await launched(store)
    await store.note_heartbeats(
        [Heartbeat(key._replace(number=9), 1, 0.0), Heartbeat(key._replace(run="none"), 1, 0.0)]
    )
    lost = attempt(claimed.run.id, "t", status=AttemptStatus.LOST, finished_at=NOW)
    second = launch_request(claimed.run.id, "t", number=2)
    await store.commit(ANN, [changes(claimed, attempts=(lost,), launches=(second,))], NOW)
    assert await noted(store, stores, Heartbeat(key, 3, 0.0)) == ()


async def test_noting_a_heartbeat_wakes_nobody(waiting_stores) -> None:
    here, there = waiting_stores.open(), waiting_stores.open()
    _, key = await launched(here)
    await there.wait_for_change(0.0)
    await here.note_heartbeats([Heartbeat(key, 1, 0.0)])
    assert not await there.wait_for_change(0.05)


async def test_after_a_restart_of_the_machine_a_heartbeat_says_nothing(tmp_path) -> None:
    clock = LeaseClock()
    store = SqliteStore(":memory:", inline=True, clock=clock, lease_seconds=LEASE)
    _, key = await launched(store)
    await store.note_heartbeats([Heartbeat(key, 1, 0.0)])
    clock.boot, clock.seconds = 2, 5.0
    await register(store, BEN)
    (again,) = await claim(store, BEN)
    assert (again.attempts[0].key, again.heartbeats) == (key, ())


# ── whether anything needs an owner ──────────────────────────────────────────────────────────────


async def test_a_run_needs_an_owner_until_it_has_ended_and_again_when_something_is_asked_of_it(store) -> None:
    assert not (await store.look_ahead(())).runs_wait
    claimed = await owned_run(store)
    assert (await store.look_ahead(())).runs_wait
    await store.release(ANN)
    assert (await store.look_ahead(())).runs_wait
    await register(store, ANN)
    (claimed,) = await claim(store)
    await store.commit(ANN, [ended(claimed, RunStatus.FAILED)], NOW)
    assert not (await store.look_ahead(())).runs_wait
    await store.submit_command(command(claimed.run.id, CommandKind.RETRY), NOW)
    assert (await store.look_ahead(())).runs_wait


# ── notes ────────────────────────────────────────────────────────────────────────────────────────


async def test_a_scheduler_s_notes_are_read_by_others_until_it_takes_them_back(store: StateStore) -> None:
    await register(store, ANN, BEN)
    await store.note_fallbacks(ANN, ["fork server: crashed", "journal: „plain“ files"])
    notes = {entry.id: entry.notes for entry in await store.list_schedulers()}
    assert notes == {ANN: ("fork server: crashed", "journal: „plain“ files"), BEN: ()}
    await store.note_fallbacks(ANN, [])
    assert [entry.notes for entry in await store.list_schedulers()] == [(), ()]


async def test_an_unknown_scheduler_has_no_notes(store: StateStore) -> None:
    await store.note_fallbacks(ANN, ["fork server: crashed"])
    assert await store.list_schedulers() == ()


async def test_a_claim_that_left_a_run_does_not_say_that_nothing_waits(store: StateStore) -> None:
    """It may be left for want of room, or because of `max_active_runs`."""
    await register(store, ANN)
    await start_runs(store, 2, of=await deploy(store, max_active_runs=1))
    assert not (await store.claim_runs(ANN, 1, NOW)).nothing_waits
    assert not (await store.claim_runs(ANN, 5, NOW)).nothing_waits
    assert not (await store.claim_runs(ANN, 0, NOW)).nothing_waits
