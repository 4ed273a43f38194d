from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from ork.errors import NotFoundError, UsageError
from ork.model.ids import RunId, TaskKey
from ork.model.run import NewRun
from ork.state.sqlite import SqliteStore
from ork.status.ids import RunTarget, parse_target, pick_tasks, resolve_run, short_id
from tests.unit.status.sample_runs import START, spec, view_of

T = TypeVar("T")


def await_(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(coroutine)


@pytest.fixture
def store() -> SqliteStore:
    return SqliteStore(":memory:", inline=True)


def create(store: SqliteStore, *ids: str) -> None:
    version = view_of([spec("a")], []).version
    await_(store.save_version(version, origin=None, now=START))
    for id in ids:
        await_(store.create_runs([NewRun(RunId(id), "hello", version.id)], START))


@pytest.mark.parametrize(
    ("words", "target"),
    [
        (("7f3k",), RunTarget("7f3k")),
        (("7f3k", "load"), RunTarget("7f3k", "load")),
        (("7f3k/load",), RunTarget("7f3k", "load")),
        (("7f3k/load[3]",), RunTarget("7f3k", "load", 3)),
        (("@last", "load[0]"), RunTarget("@last", "load", 0)),
    ],
)
def test_a_run_and_a_task_can_be_named_in_every_way(words: tuple[str, ...], target: RunTarget) -> None:
    assert parse_target(*words) == target


@pytest.mark.parametrize("words", [("7f3k/load", "load"), ("7f3k", "load[x]"), ("7f3k", "load[3")])
def test_a_task_that_makes_no_sense_is_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        parse_target(*words)


def test_any_unique_prefix_names_a_run(store: SqliteStore) -> None:
    create(store, "7f3kaaaaaaaa", "7f9zaaaaaaaa")
    assert await_(resolve_run(store, "7f3")) == "7f3kaaaaaaaa"
    assert await_(resolve_run(store, "7F3K")) == "7f3kaaaaaaaa"
    assert await_(resolve_run(store, "7f9zaaaaaaaa")) == "7f9zaaaaaaaa"


def test_an_ambiguous_prefix_is_refused_with_the_candidates(store: SqliteStore) -> None:
    create(store, "7f3kaaaaaaaa", "7f9zaaaaaaaa")
    with pytest.raises(UsageError, match="7f3kaaaaaaaa, 7f9zaaaaaaaa"):
        await_(resolve_run(store, "7f"))


@pytest.mark.parametrize("text", ["zzzz", "", "../x", "%", "7f3kaaaaaaaaa"])
def test_an_unknown_run_is_not_found(store: SqliteStore, text: str) -> None:
    create(store, "7f3kaaaaaaaa")
    with pytest.raises(NotFoundError):
        await_(resolve_run(store, text))


def test_the_last_run_has_a_name_of_its_own(store: SqliteStore) -> None:
    with pytest.raises(NotFoundError, match="no runs yet"):
        await_(resolve_run(store, "@last"))
    create(store, "7f3kaaaaaaaa")
    assert await_(resolve_run(store, "@last")) == "7f3kaaaaaaaa"


def test_printed_ids_are_as_short_as_they_can_be_and_at_least_four(store: SqliteStore) -> None:
    create(store, "7f3kaaaaaaaa", "7f3kabaaaaaa", "8888aaaaaaaa")
    assert await_(short_id(store, RunId("8888aaaaaaaa"))) == "8888"
    assert await_(short_id(store, RunId("7f3kabaaaaaa"))) == "7f3kab"


def test_tasks_are_picked_by_name_and_instance() -> None:
    keys = [TaskKey("a"), TaskKey("b", 0), TaskKey("b", 1)]
    assert pick_tasks(keys, RunTarget("r")) == keys
    assert pick_tasks(keys, RunTarget("r", "b")) == keys[1:]
    assert pick_tasks(keys, RunTarget("r", "b", 1)) == keys[2:]
    with pytest.raises(NotFoundError, match=r"b\[7\]"):
        pick_tasks(keys, RunTarget("r", "b", 7))


def test_a_mistyped_task_is_answered_with_a_suggestion() -> None:
    with pytest.raises(NotFoundError) as caught:
        pick_tasks([TaskKey("transform")], RunTarget("r", "transfrom"))
    assert caught.value.hint == "did you mean `transform`?"
