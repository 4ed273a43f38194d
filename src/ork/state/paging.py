"""Positions in sorted lists: the cursor of a page of runs (opaque to callers), the last key of a page of tasks or
attempts, and the shortest unique prefix of an id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ork.errors import UsageError
from ork.model.ids import AttemptKey, TaskKey
from ork.state.rows import index_number

_BEFORE_ALL = -1


def write_cursor(created_at: str, id: str) -> str:
    return f"{created_at} {id}".encode().hex()


def read_cursor(cursor: str) -> tuple[str, str]:
    try:
        created_at, id = bytes.fromhex(cursor).decode().split(" ")
    except ValueError as error:
        raise not_ours() from error
    return created_at, id


def task_place(order: Mapping[str, int], after: TaskKey | None) -> tuple[int, int]:
    """The position in the workflow's order after which the page starts."""
    if after is None:
        return _BEFORE_ALL, _BEFORE_ALL
    if after.name not in order:
        raise not_ours()
    return order[after.name], index_number(after.index)


def attempt_place(order: Mapping[str, int], after: AttemptKey | None) -> tuple[int, int, int]:
    return (*task_place(order, after.task if after else None), after.number if after else _BEFORE_ALL)


def shortest_prefix(id: str, neighbours: Iterable[str | None], least: int) -> str:
    """The shortest prefix of at least `least` characters that its neighbours in sort order do not share."""
    length = least
    for other in neighbours:
        while other is not None and length < len(id) and other.startswith(id[:length]):
            length += 1
    return id[:length]


def not_ours() -> UsageError:
    return UsageError("This is not a cursor of this store.", hint="Use the cursor of the previous page.")
