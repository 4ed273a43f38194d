"""What every state store promises about telling people, and about forgetting what is old."""

from __future__ import annotations

from ork.core.effects import Alert
from ork.model.ids import RunId, TaskKey
from ork.model.notice import NoticeKind
from ork.model.record import replaced
from ork.model.run import CommandKind, RunStatus
from ork.model.task import Failure, FailureKind
from ork.state.store import StateStore
from tests.conformance.conftest import Stores
from tests.conformance.state_samples import (
    ANN,
    NOW,
    changes,
    claim,
    command,
    ended,
    later,
    new_run,
    owned_run,
    register,
    start_runs,
    version,
)

BROKEN = Failure(FailureKind.EXIT, "exited with 1")
FAILED = Alert(None, BROKEN)


async def end(store: StateStore, status: RunStatus, at: float, workflow: str = "flow", **what: object) -> RunId:
    """A run of the workflow, created at that moment, has ended so."""
    flow = version(workflow)
    await store.save_version(flow, origin=None, now=NOW)
    (run,) = await store.create_runs([new_run(flow)], later(at))
    if not await store.list_schedulers():
        await register(store, ANN)
    claimed = next(each for each in await claim(store) if each.run.id == run.id)
    row = replaced(claimed.run, status=status, finished_at=later(at + 1))
    alerts = (FAILED,) if status is RunStatus.FAILED else ()
    await store.commit(ANN, [changes(claimed, run=row, alerts=alerts, release_ownership=True)], later(at + 1))
    return run.id


async def test_alerts_of_a_commit_become_notices_that_are_due_at_once(store: StateStore) -> None:
    claimed = await owned_run(store)
    told = (Alert(TaskKey("extract", 3), BROKEN), FAILED)
    await store.commit(ANN, [ended(claimed, RunStatus.FAILED, alerts=told)], later(5))
    assert await store.next_alert_at() == later(5)
    task, run = await store.take_alerts(10, later(5))
    assert (task.kind, task.workflow, task.run, task.task) == (
        NoticeKind.TASK, "flow", claimed.run.id, TaskKey("extract", 3),
    )  # fmt: skip
    assert (run.kind, run.task, run.failure, run.raised_at) == (NoticeKind.RUN, None, BROKEN, later(5))
    assert (run.tries, run.sent) == (1, ())
    assert await store.list_alerts(claimed.run.id) == told


async def test_a_run_over_its_budget_is_remembered_by_its_notice(store: StateStore) -> None:
    claimed, other = await owned_run(store), RunId("another")
    assert await store.over_budget_at(claimed.run.id) is None
    over = Alert(None, None, is_over_budget=True)
    await store.commit(ANN, [changes(claimed, alerts=(over,))], later(5))
    (notice,) = await store.take_alerts(10, later(5))
    assert (notice.kind, notice.run, notice.failure, notice.raised_at) == (
        NoticeKind.BUDGET, claimed.run.id, None, later(5),
    )  # fmt: skip
    await store.settle_alert(notice.id, ["ops"], None)
    assert await store.over_budget_at(claimed.run.id) == later(5)
    assert await store.over_budget_at(other) is None
    assert await store.list_alerts(claimed.run.id) == ()
    await store.commit(ANN, [changes(claimed, alerts=(over,))], later(60))
    assert await store.over_budget_at(claimed.run.id) == later(60)


async def test_a_fenced_commit_leaves_no_notice(store: StateStore) -> None:
    claimed = await owned_run(store)
    stale = replaced(claimed, epoch=claimed.epoch + 1)
    await store.commit(ANN, [ended(stale, RunStatus.FAILED, alerts=(FAILED,))], NOW)
    assert await store.next_alert_at() is None


async def test_a_taken_notice_is_nobody_elses_until_its_hold_ends(stores: Stores) -> None:
    one, other = stores.open(), stores.open()
    await end(one, RunStatus.FAILED, 0)
    (first,) = await one.take_alerts(10, later(10), hold_seconds=30)
    assert await other.take_alerts(10, later(39)) == ()
    assert await other.next_alert_at() == later(40)
    (second,) = await other.take_alerts(10, later(40))
    assert (second.id, second.tries) == (first.id, 2)


async def test_a_settled_notice_is_never_due_again(store: StateStore) -> None:
    await end(store, RunStatus.FAILED, 0)
    (notice,) = await store.take_alerts(10, later(10))
    await store.settle_alert(notice.id, ["ops"], None)
    assert await store.next_alert_at() is None
    assert await store.take_alerts(10, later(9999)) == ()


async def test_a_notice_that_reached_only_some_is_tried_again_and_says_whom_it_reached(store: StateStore) -> None:
    await end(store, RunStatus.FAILED, 0)
    (notice,) = await store.take_alerts(10, later(10))
    await store.settle_alert(notice.id, ["ops"], later(100), "mail: no answer")
    assert await store.take_alerts(10, later(99)) == ()
    (again,) = await store.take_alerts(10, later(100))
    assert again.sent == ("ops",)
    await store.settle_alert(notice.id, ["ops", "mail"], later(200))
    assert (await store.take_alerts(10, later(200)))[0].sent == ("mail", "ops")


async def test_what_could_not_be_sent_is_told_with_the_reason_until_it_has_been(store: StateStore) -> None:
    first, last = [await end(store, RunStatus.FAILED, number) for number in range(2)]
    assert await store.unsent_alerts(10) == ()
    one, two = await store.take_alerts(10, later(10))
    await store.settle_alert(one.id, ["ops"], later(100), "mail: no answer")
    await store.settle_alert(two.id, [], None, "mail: no such host")
    given_up, waits = await store.unsent_alerts(10)
    assert (given_up.notice.run, given_up.error, given_up.retry_at) == (last, "mail: no such host", None)
    assert (waits.notice.run, waits.notice.sent, waits.notice.tries) == (first, ("ops",), 1)
    assert (waits.error, waits.retry_at) == ("mail: no answer", later(100))
    assert await store.unsent_alerts(1) == (given_up,)
    await store.settle_alert(one.id, ["mail"], None)
    assert await store.unsent_alerts(10) == (given_up,)


async def test_notices_are_taken_oldest_first_and_no_more_than_asked_for(store: StateStore) -> None:
    for number in range(3):
        await end(store, RunStatus.FAILED, number)
    first, second = await store.take_alerts(2, later(60))
    (third,) = await store.take_alerts(2, later(60))
    assert first.id < second.id < third.id


async def test_a_success_after_a_failure_is_a_recovery_and_the_next_success_is_not(store: StateStore) -> None:
    await end(store, RunStatus.FAILED, 0)
    await end(store, RunStatus.FAILED, 0, "other")
    await end(store, RunStatus.CANCELLED, 10)
    recovered = await end(store, RunStatus.SUCCESS, 20)
    await end(store, RunStatus.SUCCESS, 30)
    kinds = [(notice.kind, notice.run) for notice in await store.take_alerts(10, later(99))]
    assert kinds[2:] == [(NoticeKind.RECOVERY, recovered)]
    assert await store.list_alerts(recovered) == ()


async def test_a_first_success_is_no_recovery(store: StateStore) -> None:
    await end(store, RunStatus.SUCCESS, 0)
    await end(store, RunStatus.SUCCESS, 5)
    assert await store.take_alerts(10, later(99)) == ()


async def test_an_older_run_that_succeeds_late_is_no_recovery_of_a_newer_failure(store: StateStore) -> None:
    flow = version()
    await store.save_version(flow, origin=None, now=NOW)
    await store.create_runs([new_run(flow, "old")], NOW)
    await register(store, ANN)
    (old,) = await claim(store)
    await end(store, RunStatus.FAILED, 10)
    await store.commit(ANN, [ended(old)], later(20))
    assert [notice.kind for notice in await store.take_alerts(10, later(99))] == [NoticeKind.RUN]


async def test_a_run_that_failed_and_succeeds_when_retried_has_recovered(store: StateStore) -> None:
    run = await end(store, RunStatus.FAILED, 0)
    await store.submit_command(command(run, CommandKind.RETRY), later(10))
    (claimed,) = await claim(store)
    done = tuple(waiting.id for waiting in await store.pending_commands(run))
    await store.commit(ANN, [ended(claimed, commands_done=done)], later(20))
    assert [notice.kind for notice in await store.take_alerts(10, later(99))] == [NoticeKind.RUN, NoticeKind.RECOVERY]


# ── forgetting ───────────────────────────────────────────────────────────────────────────────────


async def test_runs_that_ended_long_ago_are_forgotten_with_everything_about_them(store: StateStore) -> None:
    old = await end(store, RunStatus.FAILED, 0)
    new = await end(store, RunStatus.SUCCESS, 100)
    assert await store.prunable_runs(later(50), 10) == (old,)
    assert await store.prune(later(50), 10) == (old,)
    assert await store.get_run(old) is None
    assert await store.list_attempts(old) == ()
    assert await store.list_alerts(old) == ()
    assert [notice.run for notice in await store.take_alerts(10, later(200))] == [new]
    assert await store.get_run(new) is not None
    assert await store.prune(later(50), 10) == ()


async def test_forgetting_goes_oldest_first_in_small_parts(store: StateStore) -> None:
    runs = [await end(store, status, number) for number, status in enumerate(
        (RunStatus.SUCCESS, RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.SUCCESS)
    )]  # fmt: skip
    assert await store.prune(later(99), 3) == tuple(runs[:3])
    assert await store.prune(later(99), 3) == (runs[3],)


async def test_what_has_not_ended_or_ended_later_is_kept(store: StateStore) -> None:
    await start_runs(store, 1)
    await end(store, RunStatus.SUCCESS, 50)
    assert await store.prune(later(50), 10) == ()


async def test_a_run_that_somebody_asked_something_of_is_kept(store: StateStore) -> None:
    run = await end(store, RunStatus.FAILED, 0)
    await store.submit_command(command(run, CommandKind.RETRY), later(10))
    assert await store.prunable_runs(later(50), 10) == ()
    assert await store.prune(later(50), 10) == ()
    assert await store.get_run(run) is not None


async def test_the_newest_runs_of_each_workflow_are_kept_when_asked_for(store: StateStore) -> None:
    mine = [await end(store, RunStatus.SUCCESS, number) for number in range(4)]
    other = [await end(store, RunStatus.FAILED, number, "other") for number in range(2)]
    assert await store.prune(later(99), 10, keep_last=2) == (mine[0], mine[1])
    assert await store.prune(later(99), 10, keep_last=1) == (other[0], mine[2])


async def test_forgotten_runs_are_leftovers_until_somebody_has_swept_them(stores: Stores) -> None:
    one, other = stores.open(), stores.open()
    runs = sorted([await end(one, RunStatus.SUCCESS, number) for number in range(3)])
    assert await one.leftovers(10) == ()
    await one.prune(later(99), 10)
    assert await other.leftovers(2) == tuple(runs[:2])
    await other.swept(runs[:2])
    assert await one.leftovers(10) == (runs[2],)
    await one.swept(runs)
    assert await one.leftovers(10) == ()
