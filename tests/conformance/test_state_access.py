"""Tokens, the audit trail, the history of versions, and what changed across runs."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from ork.errors import RefusedError
from ork.model.access import AuditEntry, Role, Token
from ork.model.ids import RunId
from ork.model.record import replaced
from ork.model.run import RunStatus
from ork.model.task import TaskStatus
from ork.state.records import RunFilter
from ork.state.store import StateStore
from tests.conformance.conftest import Stores
from tests.conformance.state_samples import (
    ANN,
    NOW,
    changes,
    command,
    deploy,
    ended,
    later,
    new_run,
    owned_run,
    start_runs,
    task,
    version,
)


def token(id: str = "t1", **options: object) -> Token:
    made = Token(id, f"name of {id}", Role.OPERATOR, f"digest of {id}", NOW)
    return replaced(made, **options)  # type: ignore[arg-type]


async def test_a_token_is_found_by_its_digest(store: StateStore) -> None:
    await store.add_token(token())
    assert await store.find_token("digest of t1") == token()
    assert await store.find_token("t1") is None


async def test_a_known_digest_or_id_is_refused(store: StateStore) -> None:
    await store.add_token(token())
    for same in (token("t2", digest="digest of t1"), token(digest="another")):
        with pytest.raises(RefusedError):
            await store.add_token(same)
    assert await store.list_tokens() == (token(),)


async def test_a_revoked_token_is_still_found_and_says_so(stores: Stores) -> None:
    store, other = stores.open(), stores.open()
    await store.add_token(token())
    assert await store.revoke_token("t1", later(5))
    assert not await store.revoke_token("t1", later(6))
    assert not await store.revoke_token("t2", later(6))
    assert await other.find_token("digest of t1") == token(revoked_at=later(5))


async def test_a_token_keeps_when_it_expires_and_when_it_was_last_used(stores: Stores) -> None:
    store, other = stores.open(), stores.open()
    made = token(expires_at=later(60), last_used_at=later(1))
    await store.add_token(made)
    assert await other.find_token("digest of t1") == made
    assert await other.list_tokens() == (made,)


async def test_the_last_use_of_a_token_only_gets_later(store: StateStore) -> None:
    await store.add_token(token())
    for moment in (later(5), later(3)):
        await store.mark_token_used("t1", moment)
        assert await store.find_token("digest of t1") == token(last_used_at=later(5))
    await store.mark_token_used("unknown", NOW)


async def test_tokens_of_one_name_are_forgotten_some_time_after_their_expiry(stores: Stores) -> None:
    store, other = stores.open(), stores.open()
    for id, name, expires_at in (
        ("1", "ada", later(5)),
        ("2", "ada", later(9)),
        ("3", "bob", later(5)),
        ("4", "ada", None),
    ):
        await store.add_token(token(id=id, name=name, digest=f"digest of {id}", expires_at=expires_at))
    assert await other.forget_tokens("ada", later(9)) == 1
    assert [each.id for each in await store.list_tokens()] == ["2", "3", "4"]
    assert await store.find_token("digest of 1") is None
    assert await store.forget_tokens("nobody", later(9)) == 0
    await store.add_token(token(id="1", digest="digest of 1"))  # nothing of the old one is left


async def test_of_all_who_replace_a_note_one_does(stores: Stores) -> None:
    store, other = stores.open(), stores.open()
    assert await store.read_note("n") is None
    assert not await store.swap_note("n", "something", "else")
    calls = [handle.swap_note("n", None, f"ü {number}") for handle in (store, other) for number in range(3)]
    assert sorted(await asyncio.gather(*calls)) == [False] * 5 + [True]
    first = await other.read_note("n")
    assert first is not None
    assert first.startswith("ü ")
    calls = [handle.swap_note("n", first, f"second {number}") for handle in (store, other) for number in range(3)]
    assert sorted(await asyncio.gather(*calls)) == [False] * 5 + [True]
    assert await store.read_note("other") is None


async def test_a_key_is_used_once_by_one_of_all_callers(stores: Stores) -> None:
    store, other = stores.open(), stores.open()
    assert await store.use_once("k1", later(60), NOW)
    for again in (store, other):
        assert not await again.use_once("k1", later(60), NOW)
        assert not await again.use_once("k1", later(90), later(59))
    assert await other.use_once("k2", later(60), NOW)
    calls = [handle.use_once("k3", later(60), NOW) for handle in (store, other) for _ in range(3)]
    assert sorted(await asyncio.gather(*calls)) == [False] * 5 + [True]


async def test_a_used_key_is_deleted_when_its_time_has_passed(stores: Stores) -> None:
    store, other = stores.open(), stores.open()
    assert await store.use_once("k1", later(60), NOW)
    assert await store.use_once("k2", later(90), NOW)
    assert await other.use_once("k3", later(200), later(60))
    assert await store.use_once("k1", later(200), later(60))
    assert not await store.use_once("k2", later(200), later(60))


async def test_live_tokens_are_those_neither_revoked_nor_expired(stores: Stores) -> None:
    store, other = stores.open(), stores.open()
    for id, expires_at in (("plain", None), ("later", later(10)), ("expired", later(5)), ("revoked", None)):
        await store.add_token(token(id, expires_at=expires_at))
    await store.revoke_token("revoked", later(1))
    every = frozenset(f"digest of {id}" for id in ("plain", "later", "expired", "revoked", "unknown"))
    assert await other.live_tokens(every, later(5)) == {"digest of plain", "digest of later"}
    assert await other.live_tokens(frozenset({"digest of later"}), later(5)) == {"digest of later"}
    assert await other.live_tokens(frozenset(), later(5)) == frozenset()


async def test_a_rotated_token_lives_on_until_the_overlap_ends(store: StateStore) -> None:
    await store.add_token(token())
    assert await store.rotate_token("t1", token("t2"), until=later(60), now=later(1))
    assert await store.list_tokens() == (token(expires_at=later(60)), token("t2"))
    assert await store.rotate_token("t1", token("t3"), until=later(90), now=later(2))
    assert await store.find_token("digest of t1") == token(expires_at=later(60))  # never later than it was to


async def test_what_cannot_be_rotated_leaves_everything_as_it_was(store: StateStore) -> None:
    for id, options in (("t1", {}), ("expired", {"expires_at": later(1)}), ("revoked", {"revoked_at": later(1)})):
        await store.add_token(token(id, **options))
    before = await store.list_tokens()
    for id in ("expired", "revoked", "unknown"):
        assert not await store.rotate_token(id, token("new"), until=later(60), now=later(2))
    with pytest.raises(RefusedError):
        await store.rotate_token("t1", token("new", digest="digest of expired"), until=later(60), now=later(2))
    assert await store.list_tokens() == before


async def test_tokens_are_listed_oldest_first(store: StateStore) -> None:
    await store.add_token(token("b", created_at=later(1)))
    await store.add_token(token("a", created_at=later(2)))
    assert [each.id for each in await store.list_tokens()] == ["b", "a"]


async def test_the_audit_trail_is_read_newest_first_and_page_by_page(store: StateStore) -> None:
    for number in range(5):
        await store.record(AuditEntry(NOW, "eve", "run.cancel", f"run{number}", '{"why": 1}' if number else None))
    first = await store.list_audit(2)
    assert [entry.subject for entry in first] == ["run4", "run3"]
    rest = await store.list_audit(10, before=first[-1].id)
    assert [entry.subject for entry in rest] == ["run2", "run1", "run0"]
    assert (first[0].by, first[0].at, first[0].detail, rest[-1].detail) == ("eve", NOW, '{"why": 1}', None)


async def test_an_audit_entry_names_the_token_and_the_address(store: StateStore) -> None:
    await store.record(AuditEntry(NOW, "eve", "run.cancel", "run1", token="t1", address="192.0.2.7"))
    await store.record(AuditEntry(NOW, "ann", "run.cancel", "run2"))
    entries = await store.list_audit()
    assert [(entry.token, entry.address) for entry in entries] == [(None, None), ("t1", "192.0.2.7")]


async def test_only_the_newest_entries_of_an_action_are_kept_where_that_is_asked_for(store: StateStore) -> None:
    await store.record(AuditEntry(NOW, "ann", "run.cancel", "run1"))
    for number in range(5):
        await store.record(AuditEntry(NOW, "-", "sign_in.failed", str(number)), keep=2)
    await store.record(AuditEntry(NOW, "ann", "run.cancel", "run2"))
    assert [entry.subject for entry in await store.list_audit()] == ["run2", "4", "3", "run1"]


async def test_tokens_and_audit_wake_nobody(waiting_stores: Stores) -> None:
    store, other = waiting_stores.open(), waiting_stores.open()
    await store.add_token(token())
    await store.record(AuditEntry(NOW, "eve", "token.create", "t1"))
    await store.mark_token_used("t1", NOW)
    await store.rotate_token("t1", token("t2"), until=later(1), now=NOW)
    await store.revoke_token("t1", NOW)
    assert not await other.wait_for_change(0.05)


async def test_versions_of_a_workflow_are_listed_newest_first(store: StateStore) -> None:
    for number in range(3):
        await store.save_version(version(id=f"v{number}"), origin=None, now=later(number))
    await store.save_version(version("other"), origin=None, now=NOW)
    listed = await store.list_versions("flow", 2)
    assert [(entry.id, entry.saved_at) for entry in listed] == [("v2", later(2)), ("v1", later(1))]
    assert await store.list_versions("nobody") == ()


async def test_saving_a_version_again_does_not_make_it_newer(store: StateStore) -> None:
    for id in ("v0", "v1", "v0"):
        await store.save_version(version(id=id), origin=None, now=NOW)
    assert [entry.id for entry in await store.list_versions("flow")] == ["v1", "v0"]


async def test_a_deleted_workflow_is_unknown_and_keeps_its_runs(store: StateStore) -> None:
    claimed = await owned_run(store)
    with pytest.raises(RefusedError):
        await store.delete_workflow("flow")
    await store.commit(ANN, [ended(claimed)], NOW)
    assert await store.delete_workflow("flow")
    assert not await store.delete_workflow("flow")
    assert await store.get_workflow("flow") is None
    assert await store.get_run(claimed.run.id) is not None
    assert await store.get_version(claimed.version.id) is not None


async def test_a_run_is_found_by_its_key(store: StateStore) -> None:
    of = await deploy(store)
    (run,) = await store.create_runs([new_run(of, key="k")], NOW)
    assert await store.find_by_key("flow", "k") == run
    assert await store.find_by_key("flow", "other") is None
    assert await store.find_by_key("other", "k") is None


async def test_unfinished_runs_are_counted_by_status(store: StateStore) -> None:
    claimed = await owned_run(store)
    await start_runs(store, 2, claimed.version)
    assert await store.count_unfinished() == {RunStatus.PENDING: 2, RunStatus.RUNNING: 1, RunStatus.PAUSED: 0}
    await store.commit(ANN, [ended(claimed)], NOW)
    assert (await store.count_unfinished())[RunStatus.RUNNING] == 0


async def test_the_last_run_of_each_workflow_is_its_newest_whatever_became_of_it(store: StateStore) -> None:
    claimed = await owned_run(store)
    other = await deploy(store, name="other")
    assert await store.last_runs(["flow", "other", "unknown"]) == {"flow": await store.get_run(claimed.run.id)}
    (newer,) = await store.create_runs([new_run(claimed.version)], NOW + timedelta(seconds=1))
    (newest,) = await store.create_runs([new_run(other)], NOW)
    await store.commit(ANN, [ended(claimed)], NOW)
    assert await store.last_runs(["other", "flow"]) == {"flow": newer, "other": newest}
    assert await store.last_runs([]) == {}


async def test_no_mark_gives_the_mark_of_now(store: StateStore) -> None:
    await start_runs(store)
    now = await store.changes_since(None)
    assert now.runs == ()
    assert (await store.changes_since(now.mark)).runs == ()
    (run,) = await start_runs(store)
    assert (await store.changes_since(now.mark)).runs == (run,)


async def test_changes_come_once_in_order_and_with_the_marks_of_their_tasks(store: StateStore) -> None:
    begin = (await store.changes_since(None)).mark
    claimed = await owned_run(store)
    (second,) = await start_runs(store, of=claimed.version)
    first_look = await store.changes_since(begin)
    assert [run.id for run in first_look.runs] == [claimed.run.id, second.id]
    await store.commit(ANN, [changes(claimed, tasks=(task("load", TaskStatus.SKIPPED),))], NOW)
    look = await store.changes_since(first_look.mark)
    assert [run.id for run in look.runs] == [claimed.run.id]
    update = await store.run_updates(claimed.run.id, since=first_look.mark)
    assert update is not None
    assert [row.key.name for row in update.tasks] == ["load"]
    await store.submit_command(command(second.id), NOW)
    assert [run.id for run in (await store.changes_since(look.mark)).runs] == [second.id]


async def test_pages_of_changes_pass_nothing_over(store: StateStore) -> None:
    begin = (await store.changes_since(None)).mark
    of = await deploy(store)
    created = [run.id for _ in range(4) for run in await start_runs(store, of=of)]
    together = await store.create_runs([new_run(of) for _ in range(3)], NOW)
    seen, mark = [], begin
    while (page := await store.changes_since(mark, 2)).runs:
        seen += [run.id for run in page.runs]
        mark = page.mark
    assert seen == [*created, *sorted(run.id for run in together)]


async def test_one_param_of_many_runs_is_read(store: StateStore) -> None:
    of = await deploy(store)
    values: list[Any] = ["mon", 5, 5.5, None, False, [1, {"a": "\u0000ü"}], {"day": "nested"}, "x" * 100_000]
    given = [{"day": value, 'wee"k': "day"} for value in values]
    runs = await store.create_runs([new_run(of, params=each) for each in [*given, {}, {"other": {"day": 1}}]], NOW)
    ids = [run.id for run in runs]
    found = await store.param_values([*ids, RunId("unknown")], "day")
    assert found == dict(zip(ids, values, strict=False))
    assert [found[id] is False for id in ids[:5]] == [False, False, False, False, True]
    assert await store.param_values(ids[1:3], "day") == {ids[1]: 5, ids[2]: 5.5}
    assert await store.param_values(ids[:1], 'wee"k') == {ids[0]: "day"}
    assert await store.param_values(ids, "da") == await store.param_values([], "day") == {}


async def test_runs_in_lists_come_without_their_params(store: StateStore) -> None:
    of, begin = await deploy(store), (await store.changes_since(None)).mark
    (run,) = await store.create_runs([new_run(of, params={"text": "x" * 1000})], NOW)
    listed = replaced(run, params={})
    assert run.params == {"text": "x" * 1000}
    assert (await store.list_runs(RunFilter())).runs == (listed,)
    assert (await store.list_runs(RunFilter(workflow="flow"))).runs == (listed,)
    assert await store.last_runs(["flow"]) == {"flow": listed}
    assert (await store.changes_since(begin)).runs == (listed,)
    assert await store.get_run(run.id) == run
    update = await store.run_updates(run.id)
    assert update is not None
    assert update.run == run
