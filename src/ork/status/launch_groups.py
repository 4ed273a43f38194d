"""Launch groups whose attempts have not all started: how many have, in words for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ork.model.ids import AttemptKey, TaskKey
from ork.model.task import Attempt, AttemptStatus, TaskStatus
from ork.state.reading import StateReader
from ork.status.formatting import count
from ork.status.run_view import RunView

PAGE = 5000


class GroupStarts(NamedTuple):
    """How many attempts of a launch group have started, of how many."""

    task: str
    id: str
    started: int
    total: int

    @property
    def place(self) -> str:
        return f"waiting in group `{self.id}` ({self.started:,} of {self.total:,} started)"

    def __str__(self) -> str:
        return f"{count(self.total - self.started, 'instance')} {self.place}"


async def waiting_groups(store: StateReader, view: RunView, task: str | None = None) -> tuple[GroupStarts, ...]:
    """The groups of a run, or of one task, with attempts that have not started."""
    found: list[GroupStarts] = []
    names = dict.fromkeys(key.name for key in view.by_status[TaskStatus.DISPATCHED] if key.index is not None)
    for name in names if task is None else names.keys() & {task}:
        first = next(key for key in view.by_status[TaskStatus.DISPATCHED] if key.name == name and key.index is not None)
        attempts = await store.list_attempts(view.run.id, first)
        if attempts and attempts[-1].group is not None:
            found += _counted(await _attempts_of(store, view, name))
    return tuple(found)


async def _attempts_of(store: StateReader, view: RunView, name: str) -> list[Attempt]:
    found: list[Attempt] = []
    after: AttemptKey | None = AttemptKey(view.run.id, TaskKey(name), 0)
    while after is not None:
        page = await store.list_attempts(view.run.id, after=after, limit=PAGE)
        found += (attempt for attempt in page if attempt.key.task.name == name)
        is_last = len(page) < PAGE or page[-1].key.task.name != name
        after = None if is_last else page[-1].key
    return found


def _counted(attempts: Iterable[Attempt]) -> list[GroupStarts]:
    groups: dict[str, GroupStarts] = {}
    for attempt in attempts:
        if attempt.group is not None:
            id, waits = attempt.group.id, attempt.status is AttemptStatus.DISPATCHED
            known = groups.get(id, GroupStarts(attempt.key.task.name, id, 0, 0))
            groups[id] = known._replace(started=known.started + (not waits), total=known.total + 1)
    return [group for group in groups.values() if group.started < group.total]
