"""Stores on a database have every verb of the contract, each with the contract's arguments."""

from __future__ import annotations

import inspect
from types import ModuleType

import pytest

from ork.state.sqlite import SqliteStore, schedules
from ork.state.sqlite import store as sqlite_store
from ork.state.store import StateStore
from ork.state.verbs import DatabaseStore, contract_verbs


def _modules(backend: str) -> tuple[ModuleType, ...]:
    if backend == "sqlite":
        return (*sqlite_store._MODULES, sqlite_store.commit)
    from ork.state.postgres import store as postgres_store

    return postgres_store._MODULES


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
@pytest.mark.parametrize("verb", sorted({*contract_verbs()} - {"close", "wait_for_change"}))
def test_a_verb_takes_what_the_contract_says(backend: str, verb: str) -> None:
    [function] = [
        found
        for module in _modules(backend)
        if (found := vars(module).get(verb)) and found.__module__ == module.__name__
    ]
    _, *has = inspect.signature(function).parameters.values()
    _, *wanted = inspect.signature(getattr(StateStore, verb)).parameters.values()
    assert has == wanted


def test_the_contract_names_what_all_parts_need() -> None:
    verbs = contract_verbs()
    assert {"commit", "list_runs", "fire", "add_token", "close"} <= {*verbs}
    assert len(verbs) == len({*verbs})
    assert all(inspect.iscoroutinefunction(getattr(SqliteStore, verb)) for verb in verbs)


def test_a_store_without_one_of_them_is_refused() -> None:
    with pytest.raises(TypeError, match="Partial lacks the verb"):

        class Partial(DatabaseStore, modules=(schedules,)):
            pass
