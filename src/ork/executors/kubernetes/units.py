"""A Job, its pods, and the attempts that it starts: one, or those of a launch group."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from ork.executors.executor import NotStarted
from ork.executors.kubernetes.api import JobSeen
from ork.executors.kubernetes.pods import PodSeen, PodState
from ork.model.ids import AttemptKey
from ork.model.task import Attempt, AttemptStatus
from ork.objects.group_members import members_of

LOOK_SECONDS, CLOSING_LOOK_SECONDS = 10.0, 1.0  # between looks at a Job without pods
# How long a pod may exist after the time at which it was to be gone. Then its node does not answer.
OVERDUE_SECONDS = 30.0


class Member:
    """One attempt of a Job."""

    def __init__(self, attempt: Attempt, position: int) -> None:
        self.attempt = attempt
        self.position = position
        self.is_asked = False  # to stop
        self.is_settled = False  # whatever its end leaves to write is written
        self.settling: asyncio.Task[None] | None = None
        self.copying: asyncio.Task[None] | None = None  # its log
        self.is_copying = False  # it has its turn
        self.said: set[str] = set()
        self.waits_for: str | None = None

    @property
    def is_stopping(self) -> bool:
        return self.is_asked or self.attempt.closing is not None

    @property
    def is_settling(self) -> bool:
        return self.settling is not None and not self.settling.done()


class Unit:
    """`key` is the name of the attempt, or the id of the launch group. `job` is the name of the Job, once it is known."""

    def __init__(self, key: str, job: str | None, *, is_group: bool) -> None:
        self.key = key
        self.job = job
        self.is_group = is_group
        self.members: dict[AttemptKey, Member] = {}
        self.positions: dict[str, int] = {} if is_group else {key: 0}
        self.spec: dict[str, Any] | None = None  # of its first attempt
        self.pods: dict[int, dict[str, PodSeen]] = {}
        self.seen: JobSeen | None = None
        self.is_missing = False  # the API server has no such Job
        self.looked_at = float("-inf")
        self.looking = asyncio.Lock()
        self.work: asyncio.Task[None] | None = None  # its start
        self.problem: NotStarted | None = None
        self.warning: str | None = None  # why the platform makes no pods
        self._by_position: dict[int, Member] = {}
        self._released: set[str] = set()

    @property
    def is_busy(self) -> bool:
        return self.work is not None and not self.work.done()

    @property
    def is_over(self) -> bool:
        """True if the Job can start no further pod."""
        return self.is_missing or (self.seen is not None and (self.seen.is_over or self.seen.is_deleting))

    def begin(self, job: str, attempts: str, seen: JobSeen | None = None) -> None:
        """Take over a Job that starts these attempts, as its annotation names them."""
        self.job, self.seen, self.is_missing, self.looked_at = job, seen, False, time.monotonic()
        if self.is_group and attempts:
            self.positions = {name: position for position, name in enumerate(members_of(attempts))}
            for member in self.members.values():
                self._place(member)

    def join(self, attempt: Attempt) -> Member:
        """The attempt's member, with its newest row."""
        member = self.members.get(attempt.key)
        if member is None:
            member = self.members[attempt.key] = Member(attempt, -1)
            self._place(member)
        member.attempt = attempt
        return member

    def _place(self, member: Member) -> None:
        member.position = self.positions.get(str(member.attempt.key), -1)
        self._by_position[member.position] = member

    def member_at(self, position: int) -> Member | None:
        return self._by_position.get(position)

    def note(self, pod: PodSeen) -> None:
        self.pods.setdefault(pod.position, {})[pod.name] = pod

    def pods_of(self, member: Member) -> list[PodSeen]:
        return [*self.pods.get(member.position, {}).values()]

    def has_alive_pods(self) -> bool:
        return any(not pod.is_over for pods in self.pods.values() for pod in pods.values())

    def is_unwanted(self) -> bool:
        """True if no attempt of the Job is to run, or to go on."""
        wanted = {str(key) for key, each in self.members.items() if not each.is_stopping and not each.is_settled}
        known = {str(key) for key in self.members}
        return not wanted and (not self.is_group or self.positions.keys() <= known | self._released)

    def release(self, key: AttemptKey) -> None:
        member = self.members.pop(key, None)
        self._released.add(str(key))
        if member is not None:
            self._by_position.pop(member.position, None)
            self.pods.pop(member.position, None)

    @property
    def is_released(self) -> bool:
        """True if the ends of all attempts of the Job are committed, as far as this scheduler saw them."""
        return not self.members and self.positions.keys() <= self._released

    def max_age(self) -> float:
        """How old what was seen of the Job may be, for an answer."""
        return CLOSING_LOOK_SECONDS if any(each.is_stopping for each in self.members.values()) else LOOK_SECONDS


def has_begun(pods: list[PodSeen]) -> bool:
    return any(pod.state is PodState.RUNNING and not pod.is_over for pod in pods)


def is_overdue(pod: PodSeen) -> bool:
    """True if the pod should be gone for a while: its node does not confirm it."""
    return pod.deleted_at is not None and time.time() > pod.deleted_at + OVERDUE_SECONDS


def may_wait(member: Member) -> bool:
    """True for an attempt that may be QUEUED."""
    return member.attempt.closing is None and member.attempt.status is not AttemptStatus.RUNNING
