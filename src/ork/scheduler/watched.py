"""The state that a scheduler keeps for each watched attempt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from ork.core import events as ev
from ork.core.liveness import LivenessTimeouts
from ork.executors.executor import DEFERRED, Executor, Presence, ReportedStatus
from ork.model.ids import RunId
from ork.model.record import Record, made, replaced
from ork.model.status import Status
from ork.model.task import Attempt, Heartbeat
from ork.model.workflow import TaskSpec
from ork.scheduler.options import SchedulerOptions

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


def forget_waits(executors: Mapping[str, Executor], run: RunId) -> None:
    if (waiting := executors.get(DEFERRED)) is not None:
        waiting.forget_run(run)


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
