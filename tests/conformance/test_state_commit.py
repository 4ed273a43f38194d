"""What every state store promises about a commit: fences, cancels, rest, and rows that come back as written."""

from __future__ import annotations

import pytest

from ork.core.effects import Alert, LaunchRequest
from ork.model.ids import RunId, TaskKey
from ork.model.record import replaced
from ork.model.run import CommandKind, RunStatus
from ork.model.task import (
    Attempt,
    AttemptStatus,
    Failure,
    FailureKind,
    GiveUp,
    InlineOutput,
    StoredOutput,
    Task,
    TaskStatus,
)
from ork.state.records import Committed
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
    group_requests,
    later,
    launch_request,
    owned_run,
    register,
    task,
)

LEASE = 60

# ── fencing ──────────────────────────────────────────────────────────────────────────────────────


async def test_a_run_whose_epoch_differs_is_fenced_and_its_neighbours_are_written(store) -> None:
    stale, neighbour = await owned_run(store), await owned_run(store)
    await store.release(ANN, [stale.run.id])
    await claim(store)
    done = Failure(FailureKind.EXIT, "1")
    answer = await store.commit(
        ANN,
        [
            changes(
                stale,
                run=replaced(stale.run, status=RunStatus.FAILED),
                tasks=(task("extract", TaskStatus.FAILED),),
                attempts=(attempt(stale.run.id, "extract"),),
                launches=(launch_request(stale.run.id, "load"),),
                alerts=(Alert(None, done),),
                release_ownership=True,
            ),
            changes(
                neighbour,
                tasks=(task("extract", TaskStatus.FAILED),),
                launches=(launch_request(neighbour.run.id, "load"),),
            ),
        ],
        NOW,
    )
    assert answer == Committed(
        frozenset({stale.run.id}), admitted={launch_request(neighbour.run.id, "load").attempt.key}
    )
    update = await store.run_updates(stale.run.id)
    assert (update.run, update.tasks) == (stale.run, stale.tasks)
    assert await store.list_attempts(stale.run.id) == ()
    assert await store.list_alerts(stale.run.id) == ()
    assert await store.get_owner(stale.run.id) == ANN
    written = await store.run_updates(neighbour.run.id)
    assert [t.status for t in written.tasks] == [TaskStatus.FAILED, TaskStatus.DISPATCHED]


async def test_a_run_owned_by_another_is_fenced_even_at_the_same_epoch(store: StateStore) -> None:
    claimed = await owned_run(store)
    await register(store, BEN)
    assert (await store.commit(BEN, [changes(claimed)], NOW)).fenced == {claimed.run.id}
    await store.release(ANN, [claimed.run.id])
    assert (await store.commit(ANN, [changes(claimed)], NOW)).fenced == {claimed.run.id}


# ── cancel against completion ────────────────────────────────────────────────────────────────────


async def test_a_cancel_of_an_earlier_round_does_not_overrule_a_run_that_ends_in_the_commit_that_revives_it(
    store,
) -> None:
    """Cancelled twice, of which its owner had read one; then retried, and nothing is left to do."""
    claimed = await owned_run(store)
    await store.submit_command(command(claimed.run.id), later(5))
    (first,) = await store.pending_commands(claimed.run.id)
    await store.submit_command(command(claimed.run.id), later(6))
    await store.commit(
        ANN, [ended(claimed, RunStatus.CANCELLED, commands_done=(first.id,), release_ownership=False)], NOW
    )
    await store.submit_command(command(claimed.run.id, CommandKind.RETRY), later(7))
    done = tuple(each.id for each in await store.pending_commands(claimed.run.id))
    assert await store.commit(ANN, [ended(claimed, commands_done=done)], NOW) == Committed()
    assert (await store.get_run(claimed.run.id)).status is RunStatus.SUCCESS


@pytest.mark.parametrize("status", [RunStatus.SUCCESS, RunStatus.FAILED])
async def test_a_run_that_would_finish_over_an_unseen_cancel_is_overruled_and_nothing_is_written(store, status) -> None:
    claimed, neighbour = await owned_run(store), await owned_run(store)
    await store.submit_command(command(claimed.run.id), later(5))
    answer = await store.commit(
        ANN, [ended(claimed, status, tasks=(task("load", TaskStatus.SUCCESS),)), ended(neighbour)], NOW
    )
    assert answer == Committed(overruled=frozenset({claimed.run.id}))
    update = await store.run_updates(claimed.run.id)
    assert update.run == replaced(claimed.run, cancel_requested_at=later(5))
    assert update.tasks == claimed.tasks
    assert await store.get_owner(claimed.run.id) == ANN
    assert (await store.get_run(neighbour.run.id)).status is RunStatus.SUCCESS


async def test_a_run_whose_owner_has_seen_the_cancel_may_end_in_any_state(store: StateStore) -> None:
    for status in (RunStatus.CANCELLED, RunStatus.SUCCESS):
        claimed = await owned_run(store)
        asked = await store.submit_command(command(claimed.run.id), NOW)
        aware = replaced(claimed, run=asked.run)
        answer = await store.commit(ANN, [ended(aware, status, commands_done=(asked.command_id,))], NOW)
        assert answer == Committed()
        assert (await store.get_run(claimed.run.id)).status is status


async def test_a_row_written_without_knowing_of_a_cancel_does_not_wipe_it_out(store: StateStore) -> None:
    claimed = await owned_run(store)
    await store.submit_command(command(claimed.run.id), later(5))
    paused = replaced(claimed.run, status=RunStatus.PAUSED)
    assert await store.commit(ANN, [changes(claimed, run=paused)], NOW) == Committed()
    assert await store.get_run(claimed.run.id) == replaced(paused, cancel_requested_at=later(5))


async def test_a_retried_run_that_was_cancelled_once_can_succeed(store: StateStore) -> None:
    claimed = await owned_run(store)
    asked = await store.submit_command(command(claimed.run.id), NOW)
    cancelled = ended(replaced(claimed, run=asked.run), RunStatus.CANCELLED, commands_done=(asked.command_id,))
    await store.commit(ANN, [cancelled], NOW)
    retry = await store.submit_command(command(claimed.run.id, CommandKind.RETRY), NOW)
    (again,) = await claim(store)
    fresh = replaced(again, run=replaced(again.run, cancel_requested_at=None, round=2))
    assert await store.commit(ANN, [ended(fresh, commands_done=(retry.command_id,))], NOW) == Committed()
    run = await store.get_run(claimed.run.id)
    assert (run.status, run.cancel_requested_at, run.round) == (RunStatus.SUCCESS, None, 2)


# ── rest ─────────────────────────────────────────────────────────────────────────────────────────


async def test_a_run_at_rest_has_no_owner_and_is_not_claimed(store: StateStore) -> None:
    done, paused = await owned_run(store), await owned_run(store)
    await store.commit(
        ANN,
        [ended(done), changes(paused, run=replaced(paused.run, status=RunStatus.PAUSED), release_ownership=True)],
        NOW,
    )
    assert await store.get_owner(done.run.id) is None
    assert await store.get_owner(paused.run.id) is None
    assert await claim(store) == []
    assert (await store.commit(ANN, [changes(done)], NOW)).fenced == {done.run.id}


async def test_a_run_put_to_rest_while_a_command_waits_is_claimable(store: StateStore) -> None:
    claimed = await owned_run(store)
    await store.submit_command(command(claimed.run.id, CommandKind.PAUSE), NOW)
    await store.commit(ANN, [ended(claimed)], NOW)
    assert [c.run.id for c in await claim(store)] == [claimed.run.id]


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────


async def test_everything_about_runs_tasks_attempts_and_alerts_comes_back_as_written(store: StateStore) -> None:
    claimed = await owned_run(store, of=await deploy(store, tasks=("extract", "clean", "load")))
    id = claimed.run.id
    detail = {"type": "E", "message": "ü \ud800", "frames": [{"line": 8, "caret": [1, 2]}], "inputs": {"a": None}}
    failure = Failure(FailureKind.EXCEPTION, "E: it broke \ud800", detail)
    run = replaced(
        claimed.run, status=RunStatus.PAUSED, started_at=later(1), error="“no”", round=2, priority=7, note="by eve",
        cancel_requested_at=later(2),
    )  # fmt: skip
    tasks = (
        task("extract", TaskStatus.SUCCESS, attempt=1, exit_code=0, started_at=later(1), finished_at=later(2),
             dispatched_at=NOW, output=InlineOutput('{"rows":12}')),
        task("clean", TaskStatus.FAILED, index=0, attempt=3, earlier_attempts=2, failure=failure, exit_code=-9),
        task("clean", TaskStatus.PENDING, index=1, retry_at=later(9), output=StoredOutput("some/key", 70_000)),
        task("load", TaskStatus.SKIPPED, reason="clean failed", cause=TaskKey("clean", 0), executor="python"),
    )  # fmt: skip
    attempts = (
        attempt(id, "extract", status=AttemptStatus.SUCCESS, pool="api", exit_code=0, started_at=later(1)),
        attempt(id, "clean", 3, index=0, status=AttemptStatus.FAILED, failure=failure, finished_at=later(3)),
        attempt(id, "clean", 1, index=1, status=AttemptStatus.RUNNING, closing=GiveUp.STALE, closing_since=later(4),
                seq=17, seen_at=later(5)),
    )  # fmt: skip
    alerts = (Alert(TaskKey("clean", 0), failure), Alert(TaskKey("load"), None), Alert(None, None))
    await store.commit(ANN, [changes(claimed, run=run, tasks=tasks[::-1], attempts=attempts, alerts=alerts)], NOW)
    update = await store.run_updates(id)
    assert update.run == run
    assert update.tasks[0] == tasks[0]
    assert [t for t in update.tasks if t.key in {t.key for t in tasks}] == [*tasks]
    assert await store.list_attempts(id) == attempts
    assert await store.list_alerts(id) == alerts


async def test_a_task_on_its_way_comes_back_in_each_state_with_all_that_did_not_change(store: StateStore) -> None:
    claimed = await owned_run(store)
    id = claimed.run.id
    noted = replaced(task("load", cache_key="like before", reason="later"), item='"x"')
    await store.commit(ANN, [changes(claimed, tasks=(noted,))], NOW)
    launched = replaced(noted, status=TaskStatus.DISPATCHED, attempt=1, dispatched_at=NOW)
    row = attempt(id, "load", pool="api")
    await store.commit(ANN, [changes(claimed, launches=(LaunchRequest(launched, row),))], NOW)
    assert await rows_of(store, id) == (launched, row)
    began = later(0.999_999)
    running = replaced(launched, status=TaskStatus.RUNNING, started_at=began, reason=None)
    row = replaced(row, status=AttemptStatus.RUNNING, started_at=began, seq=1, seen_at=later(1.000_001))
    await store.commit(ANN, [changes(claimed, tasks=(running,), attempts=(row,))], NOW)
    assert await rows_of(store, id) == (running, row)
    over = {"finished_at": later(3), "exit_code": 0}
    success = replaced(running, status=TaskStatus.SUCCESS, output=InlineOutput("1"), **over)
    row = replaced(row, status=AttemptStatus.SUCCESS, seq=2, **over)
    await store.commit(ANN, [changes(claimed, tasks=(success,), attempts=(row,))], NOW)
    assert await rows_of(store, id) == (success, row)


async def rows_of(store: StateStore, run: RunId) -> tuple[Task, Attempt]:
    (found,) = await store.list_attempts(run)
    update = await store.run_updates(run)
    return update.tasks[1], found


async def test_rows_that_come_from_nowhere_are_written_as_they_are(store: StateStore) -> None:
    claimed = await owned_run(store, of=await deploy(store, tasks=("extract", "clean", "load", "tell")))
    id, began = claimed.run.id, {"started_at": later(1)}
    again = task("extract", reason="once more")  # it is there already
    running = task("clean", TaskStatus.RUNNING, attempt=4, dispatched_at=NOW, **began)  # never dispatched
    rows = (
        attempt(id, "clean", 4, status=AttemptStatus.RUNNING, **began),
        attempt(id, "load", 2, status=AttemptStatus.SUCCESS, **began),  # of a task that says nothing
    )
    odd = replaced(launch_request(id, "tell", number=7), task=task("tell", TaskStatus.DISPATCHED, attempt=7, item="[]"))
    changed = changes(claimed, tasks=(again, running), attempts=rows, launches=(odd,))
    assert (await store.commit(ANN, [changed], NOW)).admitted == {odd.attempt.key}
    update = await store.run_updates(id)
    assert update.tasks[:2] == (again, running)
    assert update.tasks[3].attempt == 7
    assert await store.list_attempts(id) == (*rows, odd.attempt)


async def test_words_that_are_not_valid_text_harm_nobody(store: StateStore) -> None:
    bad, good = await owned_run(store), await owned_run(store)
    odd = "a\ud800b\x00c"
    await store.commit(
        ANN,
        [
            changes(bad, run=replaced(bad.run, error=odd, note=odd), tasks=(task("load", reason=odd),)),
            changes(good, tasks=(task("load", reason="fine"),)),
        ],
        NOW,
    )
    assert (await store.run_updates(bad.run.id)).run.error.startswith("a")
    assert (await store.run_updates(good.run.id)).tasks[1].reason == "fine"


async def test_a_group_comes_with_the_claim_and_stays_as_it_was_written(store: StateStore) -> None:
    claimed = await owned_run(store)
    instances = tuple(task("extract", index=index) for index in range(3))
    requests = group_requests(claimed.run.id, 3, parallelism=2)
    await store.commit(ANN, [changes(claimed, tasks=instances, launches=requests)], NOW)
    started, failed = (
        replaced(requests[0].attempt, status=AttemptStatus.RUNNING, started_at=NOW, seq=1, seen_at=NOW),
        replaced(requests[1].attempt, closing=GiveUp.CANCEL, closing_since=NOW),
    )
    await store.commit(ANN, [changes(claimed, attempts=(started, failed))], NOW)
    await store.release(ANN)
    await register(store, BEN)
    (again,) = await claim(store, BEN)
    written = {row.key.task.index: row.group for row in again.attempts}
    assert written == {index: request.attempt.group for index, request in enumerate(requests)}
    assert {row.key for row in again.attempts} == {request.attempt.key for request in requests}
