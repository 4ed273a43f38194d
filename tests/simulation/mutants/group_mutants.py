"""Mutants of what is promised for launch groups: their slots, their rows, and how long their attempts wait."""

from __future__ import annotations

from typing import Any

from ork.core import machine
from ork.core.launch_groups import LaunchGroups
from ork.model.record import replaced
from ork.scheduler import launch, observe
from ork.state import admission
from ork.state.sqlite import connection
from tests.simulation.mutants.mutations import Mutant, always

_SLOTS = "coalesce(min(parallelism, count(*)), count(*))"


def hold_one_slot(original: Any) -> Any:
    def sql(name: str) -> str:
        text = original(name)
        if name != "count_active":
            return str(text)
        assert _SLOTS in text
        return str(text).replace(_SLOTS, "iif(group_id IS NULL, count(*), 1)")

    return sql


def get_what_it_wants(original: Any) -> Any:
    def init(self: Any, wanted: int, free: int) -> None:
        original(self, wanted, wanted if free > 0 else free)

    return init


def take_any_parallelism(_original: Any) -> Any:
    return lambda attempt, _parallelism: attempt


def run_all_at_once(original: Any) -> Any:
    def group_orders(*args: Any) -> Any:
        return [replaced(group, parallelism=len(group.orders)) for group in original(*args)]

    return group_orders


GROUP_MUTANTS = (
    Mutant("group-holds-one-slot", "a launch group counts as one slot", ((connection, "sql", hold_one_slot),)),
    Mutant(
        "group-gets-what-it-wants",
        "a launch group gets the slots it asks for, free or not",
        ((admission._GroupSlots, "__init__", get_what_it_wants),),
    ),
    Mutant(
        "group-forgets-its-grant",
        "a launch group starts with the slots it asked for, not with those it got",
        ((machine, "granted", take_any_parallelism),),
    ),
    Mutant(
        "group-all-at-once",
        "the platform is told to run all attempts of a group at the same time",
        ((launch, "group_orders", run_all_at_once),),
    ),
    Mutant(
        "group-ignores-concurrency",
        "the slots of a task's other groups do not count against its concurrency",
        ((LaunchGroups, "slots_of", always(0)),),
    ),
    Mutant(
        "index-judged-by-launch",
        "an attempt that waits inside its group is given up when its group was launched long ago",
        ((observe, "note_waiting", always(None)),),
    ),
)
