"""What every state store promises about runs that are set aside. Damaged rows: tests/integration/test_damaged_rows.py."""

from __future__ import annotations

from ork.core.limits import EVERYTHING
from ork.model.quarantine import ItemKind
from ork.model.run import CommandKind, RunStatus
from ork.model.task import AttemptStatus, TaskStatus
from ork.state.records import Accepted, ClaimedRun
from ork.state.store import StateStore
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
    owned_run,
    register,
    start_runs,
    task,
)


async def set_aside(store: StateStore, claimed: ClaimedRun) -> None:
    assert await store.set_aside(ANN, claimed.run.id, claimed.epoch, "it is odd", NOW) is not None


async def running(store: StateStore) -> ClaimedRun:
    claimed = await owned_run(store)
    rows = (task("extract", executor="command"), task("load", executor="command"))
    await store.commit(ANN, [changes(claimed, tasks=rows, launches=(launch_request(claimed.run.id, "extract"),))], NOW)
    return claimed


async def test_a_run_that_is_set_aside_is_paused_listed_and_not_claimed(store: StateStore) -> None:
    claimed = await running(store)
    answer = await store.set_aside(ANN, claimed.run.id, claimed.epoch, "it is odd", NOW)
    assert answer is not None
    assert (answer.run, answer.workflow, answer.is_cancelled) == (claimed.run.id, claimed.run.workflow, False)
    assert [each.key for each in answer.attempts] == [attempt(claimed.run.id, "extract").key]
    run = await store.get_run(claimed.run.id)
    assert run is not None
    assert run.status is RunStatus.PAUSED
    assert run.note is not None
    assert run.note.startswith("set aside: it is odd; ")
    assert await store.get_owner(run.id) is None
    assert await claim(store) == []
    (item,) = await store.list_quarantined()
    assert (item.kind, item.id, item.reason, item.since) == (ItemKind.RUN, run.id, "it is odd", NOW)


async def test_a_stale_epoch_sets_nothing_aside(store: StateStore) -> None:
    claimed = await running(store)
    await register(store, BEN)
    assert await store.set_aside(BEN, claimed.run.id, claimed.epoch, "no", NOW) is None
    assert await store.set_aside(ANN, claimed.run.id, claimed.epoch - 1, "no", NOW) is None
    assert await store.list_quarantined() == ()


async def test_a_command_makes_it_claimable_and_takes_it_off_the_list(store: StateStore) -> None:
    claimed = await running(store)
    await set_aside(store, claimed)
    assert isinstance(await store.submit_command(command(claimed.run.id, CommandKind.RESUME), later(1)), Accepted)
    assert await store.list_quarantined() == ()
    (again,) = await claim(store)
    assert again.epoch == claimed.epoch + 1
    assert [each.status for each in again.attempts] == [AttemptStatus.DISPATCHED]


async def test_a_pending_cancel_ends_it_with_its_tasks_and_attempts(store: StateStore) -> None:
    claimed = await running(store)
    await store.submit_command(command(claimed.run.id), later(1))
    answer = await store.set_aside(ANN, claimed.run.id, claimed.epoch, "it is odd", later(2))
    assert answer is not None
    assert answer.is_cancelled
    update = await store.run_updates(claimed.run.id)
    assert update is not None
    assert (update.run.status, update.run.finished_at) == (RunStatus.CANCELLED, later(2))
    assert {each.status for each in update.tasks} == {TaskStatus.CANCELLED}
    assert [each.status for each in await store.list_attempts(claimed.run.id)] == [AttemptStatus.CANCELLED]
    assert await store.list_quarantined() == ()
    assert await store.pending_commands(claimed.run.id) == ()


async def test_a_run_that_has_ended_keeps_its_status(store: StateStore) -> None:
    claimed = await owned_run(store)
    await store.commit(ANN, [ended(claimed, RunStatus.FAILED, release_ownership=True)], NOW)
    await store.submit_command(command(claimed.run.id, CommandKind.RETRY), later(1))
    (again,) = await claim(store)
    await set_aside(store, again)
    run = await store.get_run(claimed.run.id)
    assert run is not None
    assert run.status is RunStatus.FAILED
    assert await store.pending_commands(run.id) == ()
    assert await claim(store) == []


async def test_it_takes_no_slot_and_nobodys_place(store: StateStore) -> None:
    await store.set_limits({EVERYTHING: 1})
    flow = await deploy(store, max_active_runs=1)
    await register(store, ANN)
    await start_runs(store, 2, of=flow)
    (first,) = await claim(store)
    rows = (task("extract", executor="command"), task("load", executor="command"))
    await store.commit(ANN, [changes(first, tasks=rows, launches=(launch_request(first.run.id, "extract"),))], NOW)
    assert await claim(store) == []
    await set_aside(store, first)
    (second,) = await claim(store)
    asked = changes(second, tasks=rows, launches=(launch_request(second.run.id, "extract"),))
    assert len((await store.commit(ANN, [asked], NOW)).admitted) == 1


async def test_pruning_takes_it_off_the_list(store: StateStore) -> None:
    claimed = await owned_run(store)
    await store.commit(ANN, [ended(claimed, RunStatus.FAILED, release_ownership=True)], NOW)
    await store.submit_command(command(claimed.run.id, CommandKind.RETRY), later(1))
    (again,) = await claim(store)
    await set_aside(store, again)
    assert await store.prune(later(100), 10) == (claimed.run.id,)
    assert await store.list_quarantined() == ()
