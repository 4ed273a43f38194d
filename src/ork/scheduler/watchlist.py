"""The attempts that a scheduler watches, what it knows of each, and when it looks at each of them next. No I/O.

The start limit of an attempt in a launch group counts from when the platform starts it. Until then it waits as long as its group
makes progress: as long as an attempt of the group is heard of, starts or ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from heapq import heapify, heappop, heappush
from weakref import WeakValueDictionary

from ork.core import events as ev
from ork.core.liveness import LivenessTimeouts
from ork.executors.executor import DEFERRED, Executor, Presence, ReportedStatus
from ork.model.ids import AttemptKey, RunId
from ork.model.record import Record, made, replaced
from ork.model.task import Attempt, AttemptStatus, Heartbeat, Status, Task
from ork.model.workflow import TaskSpec
from ork.scheduler.options import SchedulerOptions

PLATFORM_STARTED = (
    -1
)  # noted as a heartbeat: the platform has started the attempt, and its worker has not won the gate yet


class GroupProgress:
    """When something of a group was last heard, by the monotonic clock. Its watched attempts share one."""

    __slots__ = ("__weakref__", "at")

    def __init__(self, at: float) -> None:
        self.at = at


class WatchedGroups:
    """The groups of watched attempts. One is dropped with the last of its attempts."""

    def __init__(self) -> None:
        self._groups: WeakValueDictionary[str, GroupProgress] = WeakValueDictionary()

    def of(self, attempt: Attempt, mono: float) -> GroupProgress | None:
        """The group of an attempt, which is new or heard of at `mono`."""
        if attempt.group is None:
            return None
        group = self._groups.get(attempt.group.id)
        if group is None:
            group = self._groups[attempt.group.id] = GroupProgress(mono)
        group.at = max(group.at, mono)
        return group


def heard(watched: Watched, mono: float) -> None:
    """Note that something of the attempt was heard."""
    if watched.group is not None:
        watched.group.at = mono


def last_signs(tasks: Sequence[Task]) -> dict[str, datetime]:
    """When an instance of each fanned-out task last started or ended."""
    signs: dict[str, datetime] = {}
    for task in tasks:
        at = task.finished_at or task.started_at
        if task.key.index is not None and at is not None:
            signs[task.key.name] = max(at, signs.get(task.key.name, at))
    return signs


def seconds_without_sign(attempt: Attempt, signs: Mapping[str, datetime], now: datetime) -> float:
    """Of an attempt that another scheduler started: for how long nothing of its group has been heard. A running attempt is
    a sign: if it is dead, that is found out by its own silence."""
    if attempt.status is AttemptStatus.RUNNING and attempt.closing is None:
        return 0.0
    last = max(attempt.dispatched_at, signs.get(attempt.key.task.name, attempt.dispatched_at))
    return max(0.0, (now - last).total_seconds())


def note_waiting(watched: Watched, presence: Presence, mono: float, seen: Seen) -> None:
    """Move the begin of the start limit of an attempt that has not won its gate: to when the platform was first seen to
    have started it, and before that to the last progress of its group."""
    if watched.group is None or watched.is_started_by_platform:
        return
    if presence is Presence.RUNNING:
        watched.is_started_by_platform = True
        watched.watched_since = watched.group.at = mono
        seen.heartbeats.append(Heartbeat(watched.attempt.key, PLATFORM_STARTED, 0.0))
    else:
        watched.watched_since = max(watched.watched_since, watched.group.at)


NONE_NOTED = -1  # neither a heartbeat number (0 or more) nor a fingerprint (less than -1)


class Watched(Record, frozen=False):
    """One watched attempt. All times are of the monotonic clock."""

    attempt: Attempt
    task: TaskSpec
    watched_since: float
    last_seen: float
    running_since: float | None = None
    look_at: float = 0.0
    in_heap_at: float | None = None  # its key in the heap of looks; not later than `look_at`
    launches: int = 0
    launch_again_at: float = 0.0  # not earlier: the gate of the last worker may not be visible yet
    closing: bool = False
    stop_asked_at: float | None = None
    gone_since: float | None = None
    close_looks: int = 0
    reported: ReportedStatus | None = None  # the last reported status, for the next look
    noted_seq: int = NONE_NOTED  # the newest heartbeat in the store, with the time it was first seen
    is_adopted: bool = False
    group: GroupProgress | None = None  # shared by the attempts of a launch group
    is_started_by_platform: bool = False  # of an attempt of a group: it no longer waits inside it
    is_preparing: bool = False  # its environment is being built, and so its timeout has not started
    was_called: bool = False  # an executor called without a status: there may be one that no listing shows yet

    @property
    def has_unsaved_heartbeat(self) -> bool:
        """True if the store does not have its newest heartbeat."""
        is_newer = self.noted_seq >= NONE_NOTED and self.attempt.seq > max(self.noted_seq, 0)
        return is_newer and self.attempt.waits_for is None

    def heartbeat(self, mono: float) -> Heartbeat:
        return Heartbeat(self.attempt.key, self.attempt.seq, mono - self.last_seen)


class Seen(Record):
    """The result of one look: events for the machines, and attempts to launch again."""

    events: list[tuple[RunId, ev.AttemptEvent]]
    launch: list[Attempt]
    handed_over: list[Attempt] = made(default_factory=list)  # they now wait for jobs without a worker
    heartbeats: list[Heartbeat] = made(default_factory=list)  # to be written to the store


def taken_over(attempt: Attempt, task: TaskSpec, stored: Heartbeat | None, mono: float, now: datetime) -> Watched:
    """An attempt that another scheduler started. `stored` is its heartbeat in the store."""
    running = None if attempt.started_at is None else mono - max(0.0, (now - attempt.started_at).total_seconds())
    waited = max(0.0, (now - attempt.dispatched_at).total_seconds())
    watched = Watched(attempt, task, mono - waited, mono, running, closing=attempt.closing is not None)
    watched.is_adopted = True
    if stored is not None and attempt.waits_for is None and not 0 <= stored.seq < attempt.seq:
        # The time of an older heartbeat would make the silence too long. A fingerprint is compared with the current status.
        watched.noted_seq, watched.last_seen = stored.seq, mono - stored.age
        if stored.seq == PLATFORM_STARTED and running is None:
            watched.is_started_by_platform, watched.watched_since = True, watched.last_seen
    return watched


def note_gate(watched: Watched, mono: float, seen: Seen) -> None:
    """The worker has won the gate but written no status: count its silence from now."""
    if watched.attempt.seq == 0 and watched.noted_seq == NONE_NOTED:
        watched.last_seen, watched.noted_seq = mono, 0
        seen.heartbeats.append(watched.heartbeat(mono))


async def find(executor: Executor | None, attempts: list[Attempt]) -> Sequence[Presence]:
    """The presence of each attempt; UNKNOWN if this scheduler does not have the executor."""
    return [Presence.UNKNOWN] * len(attempts) if executor is None else await executor.find(attempts)


def note_heartbeat(watched: Watched, seq: int, mono: float) -> None:
    """Count silence from now if the heartbeat is new. It is written to the store only when no newer one follows soon."""
    if seq > watched.noted_seq:
        watched.last_seen, watched.noted_seq = mono, max(watched.noted_seq, NONE_NOTED)


def note_status(watched: Watched, fingerprint: int | None, mono: float, seen: Seen) -> None:
    """Note a status that cannot be decoded, or that such a status was replaced by one that can be."""
    noted = watched.noted_seq
    if (fingerprint is None and noted >= NONE_NOTED) or fingerprint == noted:
        return
    watched.last_seen, watched.noted_seq = mono, watched.attempt.seq if fingerprint is None else fingerprint
    key = watched.attempt.key
    earlier = [each for each in seen.heartbeats if each.attempt != key]  # a note names each attempt once
    seen.heartbeats[:] = [*earlier, Heartbeat(key, watched.noted_seq, 0.0)]


def note_silence(watched: Watched, mono: float, shows_after: float, seen: Seen) -> None:
    """Write the last heartbeat and its time to the store, so that every owner of the run measures the same silence. Done
    after a takeover and after some silence, not with every heartbeat."""
    if watched.has_unsaved_heartbeat and (watched.is_adopted or mono - watched.last_seen >= shows_after):
        watched.is_adopted, watched.noted_seq = False, watched.attempt.seq
        seen.heartbeats.append(watched.heartbeat(mono))


def by_executor(attempts: list[Attempt]) -> list[tuple[str, list[Attempt]]]:
    groups: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        groups.setdefault(executor_of(attempt), []).append(attempt)
    return list(groups.items())


def has_just_handed_over(status: Status | None, watched: Watched) -> bool:
    """True if the worker ended because it handed over to jobs after our first look."""
    return status is not None and status.jobs is not None and watched.attempt.waits_for is None


def presence_is_enough(attempt: Attempt, executors: Mapping[str, Executor]) -> bool:
    """True if RUNNING counts as a heartbeat, because the attempt has no worker that writes heartbeats."""
    executor = executors.get(attempt.executor)
    return attempt.waits_for is not None or (executor is not None and executor.traits.presence_is_heartbeat)


def release(executors: Mapping[str, Executor], attempts: list[Attempt]) -> None:
    for executor, group in by_executor(attempts):
        if (found := executors.get(executor)) is not None:
            found.release(group)


def forget_in_executors(executors: Mapping[str, Executor], run: RunId) -> None:
    """This scheduler no longer owns the run: executors drop what they hold in memory for its attempts."""
    for executor in executors.values():
        executor.forget_run(run)


def timeouts_for(watched: Watched, usual: LivenessTimeouts) -> LivenessTimeouts:
    """The timeouts for the attempt. Without a worker only the scheduler enforces the task timeout, so there is no margin."""
    return usual if watched.attempt.waits_for is None else replaced(usual, timeout_margin_seconds=0.0)


def executor_of(attempt: Attempt) -> str:
    return attempt.executor if attempt.waits_for is None else DEFERRED


def look_by_next_tick(watched: Watched, options: SchedulerOptions, mono: float) -> float:
    """When the next tick must look at the attempt. A worker that calls a wake URL at its end is checked rarely: after as
    long as it has been running, within the configured bounds, and when its timeout has passed."""
    has_worker = watched.running_since is not None and watched.attempt.waits_for is None
    if options.wake_url is None or watched.closing or not has_worker:
        return watched.look_at
    since = watched.running_since or mono
    look_at = mono + min(max(options.wake_look_seconds, mono - since), options.wake_look_max_seconds)
    if watched.task.timeout is None:
        return look_at
    over_at = since + watched.task.timeout + options.liveness.timeout_margin_seconds
    return min(look_at, max(over_at, mono))


FEW = 1000


class Watchlist:
    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._watched: dict[AttemptKey, Watched] = {}
        self._of_run: dict[RunId, set[AttemptKey]] = {}
        self._waiting: dict[
            RunId, set[AttemptKey]
        ] = {}  # attempts without a worker that wait for an external job or run
        self._changed: dict[AttemptKey, None] = {}
        self._looks: list[tuple[float, AttemptKey]] = []

    def __contains__(self, key: AttemptKey) -> bool:
        return key in self._watched

    def __iter__(self) -> Iterator[Watched]:
        return iter(self._watched.values())

    def get(self, key: AttemptKey) -> Watched | None:
        return self._watched.get(key)

    # ── adding and removing ────────────────────────────────────────────────────────────────────────

    def add(self, watched: Watched, look_at: float) -> None:
        key = watched.attempt.key
        self._watched[key] = watched
        of_run = self._of_run.get(key.run)
        if of_run is None:
            of_run = self._of_run[key.run] = set()
        of_run.add(key)
        if watched.attempt.waits_for is not None:
            self.wait(key)
        self._set_look(watched, look_at)

    def forget(self, key: AttemptKey) -> None:
        self._watched.pop(key, None)
        self._changed.pop(key, None)
        _drop(self._of_run, key)
        if self._waiting:
            _drop(self._waiting, key)

    def forget_run(self, run: RunId) -> None:
        for key in tuple(self._of_run.get(run, ())):
            self.forget(key)

    # ── waiting without a worker ─────────────────────────────────────────────────────────────────

    def wait(self, key: AttemptKey) -> None:
        self._waiting.setdefault(key.run, set()).add(key)

    @property
    def waiting_runs(self) -> int:
        return len(self._waiting)

    # ── when to look ─────────────────────────────────────────────────────────────────────────────

    def look_now(self, key: AttemptKey, reported: ReportedStatus | None = None) -> None:
        """Look at the attempt in the next step. A call without a status discards an earlier reported one: there may be a
        newer one to read."""
        watched = self._watched.get(key)
        if watched is not None:
            watched.reported = reported
            watched.was_called = True
            self._changed[key] = None

    def look_again(self, watched: Watched, seconds: float) -> None:
        self._set_look(watched, self._monotonic() + seconds)

    @property
    def next_look(self) -> float | None:
        if self._changed:
            return self._monotonic()
        while self._looks:
            at, key = self._looks[0]
            watched = self._watched.get(key)
            if watched is not None and watched.look_at == at:
                return at
            heappop(self._looks)
            self._look_later(watched, at)
        return None

    def take_due(self) -> list[Watched]:
        """Attempts to look at now: something changed, or their time has come."""
        mono = self._monotonic()
        due, self._changed = self._changed, {}
        while self._looks and self._looks[0][0] <= mono:
            at, key = heappop(self._looks)
            watched = self._watched.get(key)
            if watched is not None and watched.look_at == at:
                due[key] = None
                watched.in_heap_at = None
            else:
                self._look_later(watched, at)
        return [self._watched[key] for key in due if key in self._watched]

    def _set_look(self, watched: Watched, at: float) -> None:
        """Set the time of the next look. An earlier heap entry is kept until it comes up, since most attempts have ended by
        then. Outdated entries are removed now and then."""
        watched.look_at = at
        if watched.in_heap_at is None or watched.in_heap_at > at:
            self._push(watched, at)

    def _look_later(self, watched: Watched | None, at: float) -> None:
        """Push a new heap entry if the look was postponed after this one was pushed."""
        if watched is not None and watched.in_heap_at == at:
            self._push(watched, watched.look_at)

    def _push(self, watched: Watched, at: float) -> None:
        watched.in_heap_at = at
        heappush(self._looks, (at, watched.attempt.key))
        if len(self._looks) > FEW + 4 * len(self._watched):
            self._looks = [(each.in_heap_at, each.attempt.key) for each in self if each.in_heap_at is not None]
            heapify(self._looks)


def _drop(keys_by_run: dict[RunId, set[AttemptKey]], key: AttemptKey) -> None:
    keys = keys_by_run.get(key.run)
    if keys is not None:
        keys.discard(key)
        if not keys:
            del keys_by_run[key.run]
