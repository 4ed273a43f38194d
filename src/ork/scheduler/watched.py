"""The attempts a scheduler is responsible for, as it remembers them between two looks."""

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

NONE_NOTED = -1  # no number of a heartbeat, and no fingerprint: those are less


class Watched(Record, frozen=False):
    """One attempt we are responsible for. All times are of our monotonic clock."""

    attempt: Attempt
    task: TaskSpec
    watched_since: float
    last_seen: float
    running_since: float | None = None
    look_at: float = 0.0
    in_heap_at: float | None = None  # its place among those to be looked at; not later than `look_at`
    launches: int = 0
    launch_again_at: float = 0.0  # not before: until then the gate of the last worker may not be visible
    closing: bool = False
    stop_asked_at: float | None = None
    gone_since: float | None = None
    close_looks: int = 0
    reported: ReportedStatus | None = None  # came with the last news, for the next look
    noted_seq: int = NONE_NOTED  # the newest heartbeat that the store knows of, with the time it was first seen
    is_adopted: bool = False

    @property
    def has_unsaved_heartbeat(self) -> bool:
        """The store does not know of its newest heartbeat."""
        is_newer = self.noted_seq >= NONE_NOTED and self.attempt.seq > max(self.noted_seq, 0)
        return is_newer and self.attempt.waits_for is None

    def heartbeat(self, mono: float) -> Heartbeat:
        return Heartbeat(self.attempt.key, self.attempt.seq, mono - self.last_seen)


class Seen(Record):
    """The outcome of one look: what to tell the machines, and which attempts to start (again)."""

    events: list[tuple[RunId, ev.AttemptEvent]]
    launch: list[Attempt]
    handed_over: list[Attempt] = made(default_factory=list)  # they wait for jobs from now on, without a worker
    heartbeats: list[Heartbeat] = made(default_factory=list)  # to be noted in the store


def taken_over(attempt: Attempt, task: TaskSpec, heard: Heartbeat | None, mono: float, now: datetime) -> Watched:
    """One that somebody else started. `heard` is what the store knows of its heartbeats."""
    running = None if attempt.started_at is None else mono - max(0.0, (now - attempt.started_at).total_seconds())
    waited = max(0.0, (now - attempt.dispatched_at).total_seconds())
    watched = Watched(attempt, task, mono - waited, mono, running, closing=attempt.closing is not None)
    watched.is_adopted = True
    if heard is not None and attempt.waits_for is None and not 0 <= heard.seq < attempt.seq:
        # The time of an older heartbeat would make the silence too long. A fingerprint is compared with what is there now.
        watched.noted_seq, watched.last_seen = heard.seq, mono - heard.age
    return watched


def note_gate(watched: Watched, mono: float, seen: Seen) -> None:
    """Its worker has won the gate, at the latest now, and has written nothing: its silence counts from here."""
    if watched.attempt.seq == 0 and watched.noted_seq == NONE_NOTED:
        watched.last_seen, watched.noted_seq = mono, 0
        seen.heartbeats.append(watched.heartbeat(mono))


async def find(executor: Executor | None, attempts: list[Attempt]) -> Sequence[Presence]:
    """Of an executor that this scheduler does not have, it cannot tell."""
    return [Presence.UNKNOWN] * len(attempts) if executor is None else await executor.find(attempts)


def note_heartbeat(watched: Watched, seq: int, mono: float) -> None:
    """Count silence from now if the heartbeat is new. The store learns of it when silence begins to show."""
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
    """So that every owner of the run judges silence alike, the store keeps since when a heartbeat is the last one. It is
    noted after a take-over, and when silence begins to show; not with every heartbeat."""
    if watched.has_unsaved_heartbeat and (watched.is_adopted or mono - watched.last_seen >= shows_after):
        watched.is_adopted, watched.noted_seq = False, watched.attempt.seq
        seen.heartbeats.append(watched.heartbeat(mono))


def by_executor(attempts: list[Attempt]) -> list[tuple[str, list[Attempt]]]:
    groups: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        groups.setdefault(executor_of(attempt), []).append(attempt)
    return list(groups.items())


def has_just_handed_over(status: Status | None, watched: Watched) -> bool:
    """Its worker is gone because it left its work to jobs, and said so after our first look."""
    return status is not None and status.jobs is not None and watched.attempt.waits_for is None


def presence_is_enough(attempt: Attempt, executors: Mapping[str, Executor]) -> bool:
    """Its executor's word that it lives is enough: it has no worker that could fall silent."""
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
    """Only the scheduler ends an attempt that has no worker when its time is over: no margin then."""
    return usual if watched.attempt.waits_for is None else replaced(usual, timeout_margin_seconds=0.0)


def executor_of(attempt: Attempt) -> str:
    return attempt.executor if attempt.waits_for is None else DEFERRED


def look_by_next_tick(watched: Watched, options: SchedulerOptions, mono: float) -> float:
    """When the tick after this one must look at it. A worker that calls when it ends is looked at rarely: after as long as
    it has been running, within the bounds that are set, and when its timeout has passed."""
    has_worker = watched.running_since is not None and watched.attempt.waits_for is None
    if options.wake_url is None or watched.closing or not has_worker:
        return watched.look_at
    since = watched.running_since or mono
    look_at = mono + min(max(options.wake_look_seconds, mono - since), options.wake_look_max_seconds)
    if watched.task.timeout is None:
        return look_at
    over_at = since + watched.task.timeout + options.liveness.timeout_margin_seconds
    return min(look_at, max(over_at, mono))
