"""What every state store promises about definitions, runs and what people ask of them.

Each test is a sentence of `ork.state.store.StateStore`.
"""

from __future__ import annotations

import pytest

from ork.errors import NotFoundError, RefusedError
from ork.model.code import Code
from ork.model.ids import RunId, VersionId
from ork.model.record import replaced
from ork.model.run import CommandKind, RunStatus
from ork.model.workflow import (
    Catchup,
    Command,
    CompiledWorkflow,
    Const,
    Param,
    ParamType,
    Ref,
    Schedule,
    TaskSpec,
    Trigger,
    Version,
)
from ork.state.records import Accepted, TooLate
from ork.state.store import StateStore
from tests.conformance.state_samples import (
    ANN,
    NOW,
    changes,
    claim,
    command,
    deploy,
    ended,
    later,
    new_run,
    owned_run,
    register,
    start_runs,
    version,
)

CODE = Code("0a" * 32, 2, "1b" * 20, True, {"tasks.py": "2c" * 6, "größe/ ü.sql": "3d" * 6})

# ── definitions ──────────────────────────────────────────────────────────────────────────────────


async def test_a_saved_version_comes_back_as_it_was(store: StateStore) -> None:
    argv = Command((Const("echo"), Ref(("tasks", "a", "output", "rows", 0))))
    tasks = (TaskSpec("a", "process", argv), TaskSpec("b", "process", argv, ("a",), retries=2, pool="api"))
    schedule = Schedule("0 2 * * *", "Europe/Prague", Catchup.LAST)
    workflow = CompiledWorkflow("flow", tasks, "words", (Param("day", ParamType.DATE),), schedule, 3, True, ("ops",))
    saved = Version(VersionId("v"), workflow, "/project", "flow.yaml", CODE)
    await store.save_version(saved, origin="cli", now=NOW)
    assert await store.get_version(saved.id) == saved
    entry = await store.get_workflow("flow")
    assert entry is not None
    assert (entry.version, entry.enabled, entry.origin, entry.deployed_at) == (saved.id, True, "cli", NOW)
    assert entry.schedule == schedule


async def test_saving_a_version_says_whether_it_was_new(store: StateStore) -> None:
    assert await store.save_version(version(), origin=None, now=NOW)
    assert not await store.save_version(version(), origin=None, now=NOW)


async def test_saving_an_identical_version_again_changes_nothing_but_which_is_current(store: StateStore) -> None:
    first, second = version(id="1"), version(id="2", tasks=("other",))
    await store.save_version(first, origin="here", now=NOW)
    await store.save_version(second, origin="there", now=later(1))
    assert not await store.save_version(first, origin="here", now=later(2))
    entry = await store.get_workflow("flow")
    assert entry is not None
    assert entry.version == first.id
    await store.save_version(first, origin="elsewhere", now=later(3))
    assert await store.get_workflow("flow") == entry


async def test_the_code_of_a_version_is_read_by_another_handle(stores) -> None:
    here, there = stores.open(), stores.open()
    with_code, without = replaced(version(id="1"), code=CODE), version(id="2")
    await here.save_version(with_code, origin=None, now=NOW)
    await here.save_version(without, origin=None, now=later(1))
    assert await there.get_version(with_code.id) == with_code
    assert await there.get_version(without.id) == without


async def test_an_added_version_can_be_run_and_is_not_current(stores) -> None:
    here, there = stores.open(), stores.open()
    current = version(id="1", schedule=Schedule("0 2 * * *"))
    await here.save_version(current, origin="cli", now=NOW, next_fire=later(60))
    before = (await here.list_workflows(), await here.list_schedules())
    added = replaced(version(id="2", tasks=("other",)), code=CODE)
    assert await here.add_version(added, later(1))
    assert not await here.add_version(added, later(2))
    assert (await here.list_workflows(), await here.list_schedules()) == before
    assert await there.get_version(added.id) == added
    assert [entry.id for entry in await there.list_versions("flow")] == [added.id, current.id]
    (run,) = await there.create_runs([new_run(added)], later(3))
    assert (await here.get_run(run.id)).version == added.id


async def test_an_added_version_may_be_of_a_workflow_that_was_deleted(store: StateStore) -> None:
    assert await store.add_version(version(), NOW)
    assert await store.get_workflow("flow") is None
    assert await store.get_version(version().id) == version()


async def test_saving_a_version_enables_its_workflow(store: StateStore) -> None:
    await deploy(store)
    assert await store.set_enabled("flow", False)
    assert not (await store.list_workflows())[0].enabled
    await deploy(store)
    assert (await store.list_workflows())[0].enabled


async def test_a_workflow_nobody_knows_cannot_be_disabled(store: StateStore) -> None:
    assert not await store.set_enabled("nobody", False)
    assert await store.get_workflow("nobody") is None
    assert await store.get_version(VersionId("nothing")) is None


async def test_workflows_are_listed_by_name(store: StateStore) -> None:
    for name in ("beta", "alpha", "Émile"):
        await deploy(store, name)
    assert [entry.name for entry in await store.list_workflows()] == ["alpha", "beta", "Émile"]


# ── runs ─────────────────────────────────────────────────────────────────────────────────────────


async def test_a_created_run_is_pending_and_seen_by_every_handle(stores) -> None:
    here, there = stores.open(), stores.open()
    flow = await deploy(here)
    (run,) = await here.create_runs([new_run(flow, "abc", params={"day": "1", "ö": [1.5, None]}, priority=3)], NOW)
    assert run.status is RunStatus.PENDING
    assert (run.created_at, run.params, run.priority, run.round) == (NOW, {"day": "1", "ö": [1.5, None]}, 3, 1)
    assert await there.get_run(RunId("abc")) == run


async def test_a_run_of_a_version_nobody_knows_is_refused(store: StateStore) -> None:
    with pytest.raises(NotFoundError):
        await store.create_runs([new_run(version())], NOW)


async def test_an_id_that_exists_gives_the_existing_run(store: StateStore) -> None:
    flow = await deploy(store)
    wanted = [new_run(flow, "one"), new_run(flow, "two", key="k")]
    created = await store.create_runs(wanted, NOW)
    assert await store.create_runs(wanted, later(1)) == created


async def test_a_key_that_exists_gives_the_existing_run_if_version_and_params_are_equal(store: StateStore) -> None:
    flow = await deploy(store)
    (first,) = await store.create_runs([new_run(flow, key="k", params={"a": 1, "b": 2})], NOW)
    (again,) = await store.create_runs([new_run(flow, key="k", params={"b": 2, "a": 1})], later(1))
    assert again == first


@pytest.mark.parametrize("params", [{"a": 2}, {}, {"a": True}, {"a": 1.0}])
async def test_a_key_that_exists_with_other_params_is_refused_and_nothing_is_created(store, params) -> None:
    flow = await deploy(store)
    await store.create_runs([new_run(flow, key="k", params={"a": 1})], NOW)
    with pytest.raises(RefusedError):
        await store.create_runs([new_run(flow, "before"), new_run(flow, key="k", params=params)], NOW)
    assert await store.get_run(RunId("before")) is None


async def test_a_key_that_exists_with_another_version_is_refused(store: StateStore) -> None:
    await store.create_runs([new_run(await deploy(store, id="1"), key="k")], NOW)
    with pytest.raises(RefusedError):
        await store.create_runs([new_run(await deploy(store, id="2", tasks=("x",)), key="k")], NOW)


async def test_the_same_key_of_another_workflow_is_another_run(store: StateStore) -> None:
    (one,) = await store.create_runs([new_run(await deploy(store, "a"), key="k")], NOW)
    (two,) = await store.create_runs([new_run(await deploy(store, "b"), key="k")], NOW)
    assert one.id != two.id


@pytest.mark.parametrize("triggers", [("schedule", "schedule"), ("schedule", "backfill"), ("backfill", "backfill")])
async def test_a_scheduled_time_that_exists_gives_the_existing_run(store, triggers) -> None:
    flow = await deploy(store)
    first, second = (Trigger(name) for name in triggers)
    (run,) = await store.create_runs([new_run(flow, trigger=first, scheduled_for=later(60))], NOW)
    (same,) = await store.create_runs([new_run(flow, trigger=second, scheduled_for=later(60))], later(1))
    (other,) = await store.create_runs([new_run(flow, trigger=second, scheduled_for=later(61))], later(1))
    assert same == run
    assert other.id != run.id


async def test_a_manual_run_for_a_scheduled_time_is_a_run_of_its_own(store: StateStore) -> None:
    flow = await deploy(store)
    scheduled = new_run(flow, trigger=Trigger.SCHEDULE, scheduled_for=NOW)
    manual = [new_run(flow, scheduled_for=NOW), new_run(flow, scheduled_for=NOW)]
    created = await store.create_runs([scheduled, *manual], NOW)
    assert len({run.id for run in created}) == 3


async def test_a_run_repeated_within_one_call_is_created_once(store: StateStore) -> None:
    flow = await deploy(store)
    one, two = await store.create_runs([new_run(flow, key="k"), new_run(flow, key="k")], NOW)
    assert one == two


# ── commands ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_command_for_a_run_nobody_knows_is_answered_with_none(store: StateStore) -> None:
    assert await store.submit_command(command(RunId("nothing")), NOW) is None


async def test_an_accepted_cancel_stands_on_the_runs_row_at_once(store: StateStore) -> None:
    (run,) = await start_runs(store)
    answer = await store.submit_command(command(run.id), later(5))
    assert isinstance(answer, Accepted)
    assert answer.run == replaced(run, cancel_requested_at=later(5))
    assert await store.get_run(run.id) == answer.run
    assert [waiting.id for waiting in await store.pending_commands(run.id)] == [answer.command_id]


async def test_a_second_cancel_leaves_the_moment_of_the_first(store: StateStore) -> None:
    (run,) = await start_runs(store)
    await store.submit_command(command(run.id), later(5))
    answer = await store.submit_command(command(run.id), later(9))
    assert isinstance(answer, Accepted)
    assert answer.run.cancel_requested_at == later(5)


@pytest.mark.parametrize(
    ("status", "accepted"),
    [
        (RunStatus.PENDING, {"cancel", "pause"}),
        (RunStatus.RUNNING, {"cancel", "pause"}),
        (RunStatus.PAUSED, {"cancel", "resume"}),
        (RunStatus.SUCCESS, {"retry"}),
        (RunStatus.FAILED, {"retry"}),
        (RunStatus.CANCELLED, {"retry"}),
    ],
)
async def test_a_command_that_means_nothing_in_a_state_is_too_late(store, status, accepted) -> None:
    claimed = await owned_run(store)
    run = replaced(claimed.run, status=status)
    await store.commit(ANN, [changes(claimed, run=run)], NOW)
    answers = {}
    for kind in (CommandKind.RESUME, CommandKind.RETRY, CommandKind.PAUSE, CommandKind.CANCEL):
        answers[kind.value] = await store.submit_command(command(run.id, kind), NOW)
    assert {kind for kind, answer in answers.items() if isinstance(answer, Accepted)} == accepted
    assert {kind for kind, answer in answers.items() if answer == TooLate(run)} == set(answers) - accepted
    assert {waiting.kind.value for waiting in await store.pending_commands(run.id)} == accepted


async def test_commands_come_for_every_owned_run_in_order_until_a_commit_says_they_are_done(stores) -> None:
    store, people = stores.open(), stores.open()
    one = await owned_run(store)
    two = await owned_run(store)
    retry = {"task": "load", "everything": True}
    for run, kind in ((two, CommandKind.PAUSE), (one, CommandKind.PAUSE), (two, CommandKind.CANCEL)):
        await people.submit_command(command(run.run.id, kind, **retry), NOW)
    first = (await store.claim_runs(ANN, 10, NOW)).commands
    asked = [(two.run.id, CommandKind.PAUSE), (one.run.id, CommandKind.PAUSE), (two.run.id, CommandKind.CANCEL)]
    assert [(c.run, c.kind) for c in first] == asked
    assert [(c.by, c.task, c.everything) for c in first] == [("eve", "load", True)] * 3
    assert [c.id for c in first] == sorted(c.id for c in first)
    assert (await store.claim_runs(ANN, 0, NOW)).commands == first
    await store.commit(ANN, [changes(two, commands_done=(first[0].id,)), changes(one)], NOW)
    assert (await store.claim_runs(ANN, 10, NOW)).commands == first[1:]
    assert await people.pending_commands(two.run.id) == (first[2],)


async def test_a_commit_cannot_finish_another_runs_command(store: StateStore) -> None:
    one = await owned_run(store)
    two = await owned_run(store)
    asked = await store.submit_command(command(two.run.id, CommandKind.PAUSE), NOW)
    await store.commit(ANN, [changes(one, commands_done=(asked.command_id,))], NOW)
    assert len(await store.pending_commands(two.run.id)) == 1


async def test_a_command_for_a_finished_run_makes_it_claimable(store: StateStore) -> None:
    claimed = await owned_run(store)
    await store.commit(ANN, [ended(claimed, RunStatus.FAILED)], NOW)
    assert await claim(store) == []
    await store.submit_command(command(claimed.run.id, CommandKind.RETRY), NOW)
    answer = await store.claim_runs(ANN, 10, NOW)
    assert [(again.run.id, again.epoch) for again in answer.runs] == [(claimed.run.id, claimed.epoch + 1)]
    assert [c.kind for c in answer.commands] == [CommandKind.RETRY]
    assert answer.runs[0].tasks == claimed.tasks


async def test_commands_of_other_schedulers_runs_are_not_given(store: StateStore) -> None:
    claimed = await owned_run(store)
    await store.submit_command(command(claimed.run.id), NOW)
    await register(store, "ben")
    assert (await store.claim_runs("ben", 10, NOW)).commands == ()
