"""What every state store promises to those who look, and to those who wait."""

from __future__ import annotations

import asyncio

import pytest

from ork.errors import UsageError
from ork.model.access import AuditEntry
from ork.model.ids import RunId, TaskKey
from ork.model.record import replaced
from ork.model.run import CommandKind, RunStatus
from ork.model.task import TaskStatus
from ork.state.records import Accepted, RunFilter
from ork.state.store import StateStore
from tests.conformance.state_samples import (
    ANN,
    BEN,
    NOW,
    attempt,
    changes,
    command,
    deploy,
    ended,
    later,
    launch_request,
    new_run,
    owned_run,
    register,
    start_runs,
    task,
)


async def test_an_unknown_run_is_none_and_has_nothing(store: StateStore) -> None:
    nothing = RunId("nothing")
    assert await store.get_run(nothing) is None
    assert await store.run_updates(nothing) is None
    assert await store.get_owner(nothing) is None
    assert await store.list_attempts(nothing) == ()
    assert await store.list_attempts(nothing, TaskKey("extract")) == ()
    assert await store.pending_commands(nothing) == ()
    assert await store.list_alerts(nothing) == ()


async def test_runs_are_found_by_prefix_in_order(store: StateStore) -> None:
    flow = await deploy(store)
    await store.create_runs([new_run(flow, id) for id in ("abd", "abc", "b", "ab", "aa")], NOW)
    assert await store.find_runs("ab") == ("ab", "abc", "abd")
    assert await store.find_runs("ab", limit=2) == ("ab", "abc")
    assert await store.find_runs("abc") == ("abc",)
    assert await store.find_runs("c") == ()
    assert await store.find_runs("%") == ()
    assert len(await store.find_runs("")) == 5


async def pages(store: StateStore, query: RunFilter) -> list[list[str]]:
    found = []
    while True:
        page = await store.list_runs(query)
        found.append([run.id for run in page.runs])
        if page.cursor is None:
            return found
        query = replaced(query, cursor=page.cursor)


async def test_runs_are_listed_newest_first_in_pages(store: StateStore) -> None:
    flow = await deploy(store)
    for second, id in enumerate("abcde"):
        await store.create_runs([new_run(flow, id)], later(second))
    await store.create_runs([new_run(flow, "f")], later(4))
    assert await pages(store, RunFilter(limit=2)) == [["f", "e"], ["d", "c"], ["b", "a"]]
    assert await pages(store, RunFilter(limit=6)) == [["f", "e", "d", "c", "b", "a"]]


async def test_a_run_created_between_two_pages_is_never_seen_twice(store: StateStore) -> None:
    flow = await deploy(store)
    for second, id in enumerate("abcd"):
        await store.create_runs([new_run(flow, id)], later(second))
    first = await store.list_runs(RunFilter(limit=2))
    await store.create_runs([new_run(flow, "new")], later(9))
    await store.create_runs([new_run(flow, "odd")], later(2))
    second = await store.list_runs(RunFilter(limit=9, cursor=first.cursor))
    assert [run.id for run in first.runs] == ["d", "c"]
    assert [run.id for run in second.runs] == ["b", "a"]


async def test_runs_are_filtered_by_workflow_and_status(store: StateStore) -> None:
    a, b = await deploy(store, "a"), await deploy(store, "b")
    for second, (flow, id) in enumerate([(a, "a1"), (b, "b1"), (a, "a2"), (b, "b2")]):
        await store.create_runs([new_run(flow, id)], later(second))
    await register(store, ANN)
    claimed = {c.run.id: c for c in (await store.claim_runs(ANN, 9, NOW)).runs}
    await store.commit(ANN, [ended(claimed["a1"]), ended(claimed["b1"], RunStatus.FAILED)], NOW)
    final = frozenset({RunStatus.SUCCESS, RunStatus.FAILED})
    assert await pages(store, RunFilter(workflow="a")) == [["a2", "a1"]]
    assert await pages(store, RunFilter(statuses=final)) == [["b1", "a1"]]
    assert await pages(store, RunFilter(statuses=final, limit=1)) == [["b1"], ["a1"]]
    assert await pages(store, RunFilter(workflow="b", statuses=frozenset({RunStatus.PENDING}))) == [["b2"]]
    assert await pages(store, RunFilter(workflow="nobody")) == [[]]


async def test_a_cursor_of_somebody_else_is_refused(store: StateStore) -> None:
    with pytest.raises(UsageError):
        await store.list_runs(RunFilter(cursor="nonsense"))


async def test_run_updates_show_what_changed_after_the_mark(store: StateStore) -> None:
    claimed = await owned_run(store, of=await deploy(store, tasks=("b", "a", "c")))
    run = claimed.run.id
    first = await store.run_updates(run)
    assert [t.key.name for t in first.tasks] == ["b", "a", "c"]
    assert (await store.run_updates(run, first.mark)).tasks == ()
    await store.commit(ANN, [changes(claimed, tasks=(task("c", TaskStatus.SUCCESS),))], NOW)
    await store.commit(ANN, [changes(claimed, tasks=(task("b", TaskStatus.SUCCESS),))], NOW)
    second = await store.run_updates(run, first.mark)
    assert [(t.key.name, t.status) for t in second.tasks] == [("b", TaskStatus.SUCCESS), ("c", TaskStatus.SUCCESS)]
    assert (await store.run_updates(run, second.mark)).tasks == ()
    assert second.mark > first.mark


async def test_run_updates_have_a_new_mark_after_every_change_of_the_run(store: StateStore) -> None:
    claimed = await owned_run(store)
    marks = [(await store.run_updates(claimed.run.id)).mark]
    await store.submit_command(command(claimed.run.id), NOW)
    marks.append((await store.run_updates(claimed.run.id)).mark)
    paused = replaced(claimed.run, status=RunStatus.PAUSED)
    await store.commit(ANN, [changes(claimed, run=paused)], NOW)
    marks.append((await store.run_updates(claimed.run.id)).mark)
    assert marks == sorted(set(marks))


async def test_a_run_without_tasks_has_none_to_show(store: StateStore) -> None:
    (run,) = await start_runs(store)
    update = await store.run_updates(run.id)
    assert (update.run, update.tasks) == (run, ())


async def test_attempts_are_listed_by_task_in_the_workflows_order_then_by_number(store: StateStore) -> None:
    claimed = await owned_run(store, of=await deploy(store, tasks=("b", "a")))
    run = claimed.run.id
    made = [attempt(run, "a", 2), attempt(run, "a", 1), attempt(run, "b", 10), attempt(run, "b", 9)]
    made += [attempt(run, "a", 1, index=11), attempt(run, "a", 1, index=2)]
    await store.commit(ANN, [changes(claimed, attempts=tuple(made))], NOW)
    listed = [(a.key.task, a.key.number) for a in await store.list_attempts(run)]
    plain = [(TaskKey("b"), 9), (TaskKey("b"), 10), (TaskKey("a"), 1), (TaskKey("a"), 2)]
    assert listed == [*plain, (TaskKey("a", 2), 1), (TaskKey("a", 11), 1)]
    assert [a.key.number for a in await store.list_attempts(run, TaskKey("a"))] == [1, 2]
    assert [a.key.task.index for a in await store.list_attempts(run, TaskKey("a", 11))] == [11]
    assert await store.list_attempts(run, TaskKey("nobody")) == ()


async def test_schedulers_are_listed_with_their_lease_and_runs(stores) -> None:
    store = stores.open()
    await owned_run(store)
    stores.clock.advance(70)
    await store.register(BEN, "host 2", "run", later(70))
    ann, ben = await store.list_schedulers()
    assert (ann.id, ann.identity, ann.kind, ann.started_at) == (ANN, "identity of ann", "scheduler", NOW)
    assert (ann.lease_seconds_left, ann.active_runs) == (-10, 1)
    assert (ben.id, ben.kind, ben.lease_seconds_left, ben.active_runs) == (BEN, "run", 60, 0)


async def test_the_signing_key_is_32_bytes_and_the_same_for_every_handle(stores) -> None:
    here, there = stores.open(), stores.open()
    key = await here.signing_key()
    assert len(key) == 32
    assert await there.signing_key() == key


async def test_statements_are_counted(store: StateStore) -> None:
    before = store.statements
    await deploy(store)
    assert store.statements > before


async def test_closing_twice_is_no_mistake(store: StateStore) -> None:
    await store.close()
    await store.close()


# ── waiting ──────────────────────────────────────────────────────────────────────────────────────


async def every_change(store: StateStore):
    """Does one after another all that others may care about."""
    flow = await deploy(store)
    yield "save_version"
    await store.set_limits({"*": 5})
    yield "set_limits"
    (run,) = await start_runs(store, of=flow)
    yield "create_runs"
    await store.submit_command(command(run.id), NOW)
    yield "submit_command"
    await register(store, BEN)
    (claimed,) = (await store.claim_runs(BEN, 1, NOW)).runs
    await store.commit(BEN, [changes(claimed, tasks=(task("extract"),))], NOW)
    yield "commit"
    await store.release(BEN)
    yield "release"
    await store.expire([ANN])
    yield "expire"


async def test_a_change_by_another_handle_between_two_calls_is_not_missed(stores) -> None:
    here, there = stores.open(), stores.open()
    async for change in every_change(there):
        assert await here.wait_for_change(0), change
        assert not await here.wait_for_change(0), change


async def test_ones_own_changes_wake_nobody_but_the_others(stores) -> None:
    here, there = stores.open(), stores.open()
    async for change in every_change(here):
        assert not await here.wait_for_change(0), change
        assert await there.wait_for_change(0), change


async def test_ones_own_change_does_not_hide_anothers(stores) -> None:
    here, there = stores.open(), stores.open()
    flow = await deploy(there)
    await here.create_runs([new_run(flow)], NOW)
    assert await here.wait_for_change(0)
    await here.create_runs([new_run(flow)], NOW)
    assert not await here.wait_for_change(0)


async def test_a_commit_that_came_to_nothing_wakes_nobody(stores) -> None:
    here, there = stores.open(), stores.open()
    claimed = await owned_run(there)
    await there.set_limits({"*": 0})
    await here.wait_for_change(0)
    refused = await there.commit(ANN, [changes(claimed, launches=(launch_request(claimed.run.id, "extract"),))], NOW)
    assert refused.full == {"*"}
    assert not await here.wait_for_change(0)


async def test_renewing_a_lease_wakes_nobody(stores) -> None:
    here, there = stores.open(), stores.open()
    await register(there, ANN)
    await here.wait_for_change(0)
    assert await there.renew(ANN)
    assert not await here.wait_for_change(0)


async def test_who_waits_is_woken_by_a_change(waiting_stores) -> None:
    here, there = waiting_stores.open(), waiting_stores.open()
    assert not await here.wait_for_change(0)
    waiting = asyncio.ensure_future(here.wait_for_change(None))
    await asyncio.sleep(0)
    assert not waiting.done()
    await deploy(there)
    assert await asyncio.wait_for(waiting, 60)


async def test_waiting_ends_without_a_change_when_the_time_has_passed(stores) -> None:
    assert not await stores.open().wait_for_change(0.01)


async def test_who_asked_for_a_run_is_known(store: StateStore) -> None:
    flow = await deploy(store)
    known, unknown = await store.create_runs([new_run(flow, started_by="ann"), new_run(flow)], NOW)
    await store.create_runs([new_run(flow, known.id, started_by="ben"), new_run(flow, started_by="eve\ud800")], NOW)
    assert await store.get_starter(known.id) == "ann"
    assert await store.get_starter(unknown.id) is None
    assert await store.get_starter(RunId("none")) is None


async def test_the_idempotency_key_of_a_run_is_known(store: StateStore) -> None:
    flow = await deploy(store)
    known, unknown = await store.create_runs([new_run(flow, key="once"), new_run(flow)], NOW)
    assert await store.get_key(known.id) == "once"
    assert await store.get_key(unknown.id) is None
    assert await store.get_key(RunId("none")) is None


# ── marks and ids are text that sorts as it was given ────────────────────────────────────────────


async def test_marks_and_ids_sort_in_the_order_they_were_given(store: StateStore) -> None:
    (run,) = await start_runs(store)
    marks, ids = [(await store.changes_since(None)).mark], []
    for _ in range(12):  # more than nine: "10" is behind "9"
        answer = await store.submit_command(command(run.id, CommandKind.CANCEL), NOW)
        assert isinstance(answer, Accepted)
        ids.append(answer.command_id)
        marks.append((await store.changes_since(None)).mark)
        await store.record(AuditEntry(NOW, "ann", "run.cancel", run.id))
    assert marks == sorted(marks)
    assert ids == sorted(ids)
    assert [waiting.id for waiting in await store.pending_commands(run.id)] == ids
    entries = [entry.id for entry in await store.list_audit(20)]
    assert entries == sorted(entries, reverse=True)
    assert len({*marks}) == len(marks)
    assert len({*ids}) == len({*entries}) == 12


async def test_a_mark_of_another_kind_of_store_is_refused(store: StateStore) -> None:
    (run,) = await start_runs(store)
    for call in (store.changes_since("?"), store.run_updates(run.id, "?"), store.list_audit(1, "?")):
        with pytest.raises(UsageError):
            await call


# ── short ids ────────────────────────────────────────────────────────────────────────────────────


async def test_an_id_is_shortened_to_what_no_other_run_begins_with(store: StateStore) -> None:
    flow = await deploy(store)
    ids = [RunId(id) for id in ("abcdefgh", "abcdxxxx", "abcdxxyy", "abzzzzzz", "q", "qrst")]
    await store.create_runs([new_run(flow, id) for id in ids], NOW)
    assert await store.shorten_ids(ids, 4) == {
        "abcdefgh": "abcde",
        "abcdxxxx": "abcdxxx",
        "abcdxxyy": "abcdxxy",
        "abzzzzzz": "abzz",
        "q": "q",
        "qrst": "qrst",
    }
    assert await store.shorten_ids([ids[3], RunId("unknown")], 1) == {"abzzzzzz": "abz", "unknown": "u"}
    assert await store.shorten_ids([], 4) == {}
