"""The execution of a launch group, and what is known about each of its attempts."""

from __future__ import annotations

import asyncio
import time
from functools import lru_cache

from ork.executors.cloud_run.executions import Seen
from ork.executors.executor import NotStarted
from ork.model.ids import AttemptKey
from ork.model.task import Attempt
from ork.objects.group_members import members_of

FIRST_LOOK_SECONDS, LONGEST_LOOK_SECONDS = 2.0, 30.0
CLOSING_LOOK_SECONDS = 1.0
_GROWTH = 1.5


class Member:
    """One attempt of a group. `has_begun`: its worker won the gate; `is_asked`: it was asked to stop."""

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self.has_begun = False
        self.is_closed = False  # its gate
        self.is_over = False  # its last status is written
        self.is_asked = False


class Unit:
    def __init__(self, id: str) -> None:
        self.id = id
        self.members: dict[AttemptKey, Member] = {}
        self.execution: str | None = None
        self.seen: Seen | None = None
        self.begun_at = float("-inf")  # when the platform answered us that there is an execution
        self.problem: NotStarted | None = None
        self.is_settled = False  # the execution has ended, and whatever its end leaves to write is written
        self.work: asyncio.Task[None] | None = None  # its start
        self.follower: asyncio.Future[None] | None = None
        self.changed = asyncio.Event()
        self.looking = asyncio.Lock()
        self.looked_at = float("-inf")
        self.interval = FIRST_LOOK_SECONDS
        self.failures_seen = 0
        self._released: set[str] = set()

    @property
    def is_busy(self) -> bool:
        return self.work is not None and not self.work.done()

    def begin(self, execution: str) -> None:
        """Take over the execution that the platform has just begun for us."""
        self.execution, self.begun_at = execution, time.monotonic()

    def note(self, seen: Seen) -> Seen | None:
        """Take over what was seen. Returns what was seen before."""
        before, self.seen = self.seen, seen
        self.execution = seen.name
        return before

    def follow(self, execution: str) -> None:
        """Look at another execution of the group from now on."""
        self.execution, self.seen, self.failures_seen, self.looked_at = execution, None, 0, float("-inf")
        self.look_soon()

    def open_members(self) -> list[Member]:
        return [member for member in self.members.values() if not member.is_over]

    def startable(self) -> list[Member]:
        """Those that the platform can have started: it starts tasks in order, and its parallelism is all that may have started
        since it was asked."""
        if self.seen is None:
            return self.open_members()[: self._parallelism()]
        positions = _positions(self.seen.members)
        started = self.seen.running + self.seen.ended + self._parallelism()
        is_over = self.seen.state.is_over
        return [each for each in self.open_members() if is_over or positions.get(str(each.attempt.key), 0) < started]

    def _parallelism(self) -> int:
        places = [each.attempt.group for each in self.members.values()]
        return max((place.parallelism for place in places if place is not None), default=1)

    def position(self, member: Member) -> int | None:
        """Its index in the execution."""
        return None if self.seen is None else _positions(self.seen.members).get(str(member.attempt.key))

    def is_unwanted(self) -> bool:
        """True if every attempt of the execution has ended, was asked to stop, or will not begin."""
        if self.seen is None or not self.seen.members:
            return all(each.is_asked or each.is_over for each in self.members.values())
        unwanted = {str(key) for key, each in self.members.items() if each.is_asked or each.is_over or each.is_closed}
        return _positions(self.seen.members).keys() <= unwanted | self._released

    def release(self, key: AttemptKey) -> None:
        if self.members.pop(key, None) is not None:
            self._released.add(str(key))

    def max_age(self) -> float:
        """How old what was seen may be, for an answer."""
        is_closing = any(each.attempt.closing is not None or each.is_asked for each in self.open_members())
        return CLOSING_LOOK_SECONDS if is_closing else self.interval

    def look_soon(self) -> None:
        self.interval = CLOSING_LOOK_SECONDS
        self.changed.set()

    def stretch(self) -> None:
        self.interval = min(self.interval * _GROWTH, LONGEST_LOOK_SECONDS)

    def close(self) -> None:
        if self.follower is not None:
            self.follower.cancel()


@lru_cache(maxsize=64)
def _positions(members: str) -> dict[str, int]:
    if not members:
        return {}
    return {name: position for position, name in enumerate(members_of(members))}
