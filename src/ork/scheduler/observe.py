"""Observes attempts: reads their documents, asks executors about silent ones, and ends those that were given up.

Nothing here waits. Each look takes one more step for each attempt that is due and sets the time of its next look. A
worker that does not end, an unreachable executor or a slow disk delays only its own attempts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime

from ork.core import events as ev
from ork.core.liveness import check_liveness, overdue_at
from ork.errors import ExecutorError, ObjectsError, RunDocumentsError
from ork.executors.executor import Executor, Presence, ReportedStatus, StatusCallback
from ork.model.ids import AttemptKey, RunId
from ork.model.record import replaced
from ork.model.task import Attempt, Failure, FailureKind, GiveUp, Heartbeat, Status
from ork.model.workflow import TaskSpec
from ork.objects.attempt_documents import AttemptDocuments
from ork.objects.calls import DocumentCalls
from ork.scheduler.options import SchedulerOptions
from ork.scheduler.statuses import Statuses, as_event, ask_to_stop, close_gate, gate_state, if_new
from ork.scheduler.unreachable import look_again_in, over_after, silence, why_over
from ork.scheduler.watchlist import (
    Observations,
    Watched,
    WatchedGroups,
    Watchlist,
    by_executor,
    executor_of,
    has_just_handed_over,
    note_gate,
    note_group_progress,
    note_heartbeat,
    note_silence,
    note_waiting,
    seconds_without_sign,
    taken_over,
    timeouts_for,
)
from ork.telemetry import Telemetry, TelemetryEvent

RELAUNCHES = 3
RETRY_SECONDS = 1.0
FIRST_CLOSE_LOOK_SECONDS = 0.02  # most attempts end at once, and the next attempt waits for that


class Observer:
    def __init__(
        self,
        objects: AttemptDocuments,
        executors: Mapping[str, Executor],
        options: SchedulerOptions,
        monotonic: Callable[[], float],
        telemetry: Telemetry,
        on_status: StatusCallback,
    ) -> None:
        self._objects = objects
        self._calls = DocumentCalls(objects)
        self._statuses = Statuses(objects, telemetry)
        self._executors = executors
        self._options = options
        self._monotonic = monotonic
        self._telemetry = telemetry
        self._on_status = on_status
        self.watchlist = self._watched = Watchlist(monotonic)
        self._groups = WatchedGroups()
        self.broken: dict[RunId, str] = {}  # runs with permanently damaged documents, until the caller takes them

    # ── watched attempts ──────────────────────────────────────────────────────────────────────────

    def begin(self, attempt: Attempt, task: TaskSpec) -> None:
        """Watch a new attempt that was just admitted. Its launch follows."""
        now = self._monotonic()
        group = None if attempt.group is None else self._groups.of(attempt, now)
        watched = Watched(attempt, task, now, now, launches=1, group=group)
        self._watched.add(watched, now + self._aligned(self._options.monitor_seconds, now))

    async def adopt(
        self,
        attempts: Sequence[tuple[Attempt, TaskSpec]],
        heartbeats: Sequence[Heartbeat],
        signs: Mapping[str, datetime],
        now: datetime,
    ) -> None:
        """Watch attempts that another scheduler started: look at them at once, and let their executors report their ends.
        `signs` are the last signs of life of launch groups, by task."""
        mono = self._monotonic()
        noted = {each.attempt: each for each in heartbeats}
        for attempt, task in attempts:
            watched = taken_over(attempt, task, noted.get(attempt.key), mono, now)
            if attempt.group is not None:
                watched.group = self._groups.of(attempt, mono - seconds_without_sign(attempt, signs, now))
            self._watched.add(watched, mono)
            self._watched.look_now(attempt.key)
        await self._watch_all([attempt for attempt, _ in attempts])

    async def _watch_all(self, attempts: list[Attempt]) -> None:
        for executor, group in by_executor(attempts):
            with suppress(ExecutorError, KeyError):  # the scheduled looks detect the end
                await self._executors[executor].watch(group, self._on_status)

    def close(self, attempt: Attempt) -> None:
        """The machine gave the attempt up: end it, and report Closed, or its final status if it wrote one."""
        watched = self._watched.get(attempt.key)
        if watched is not None:
            watched.attempt, watched.closing = attempt, True
            self._watched.look_now(attempt.key)

    def release(self, attempts: list[Attempt]) -> None:
        """Their ends are committed: executors may free what they kept until then."""
        for name, group in by_executor(attempts):
            if (executor := self._executors.get(name)) is not None:
                executor.release(group)

    def on_status(self, key: AttemptKey, reported: ReportedStatus | None = None) -> None:
        self._watched.look_now(key, reported)

    @property
    def has_active(self) -> bool:
        """True if a worker may be running. Attempts that wait for external jobs have none."""
        return any(watched.attempt.waits_for is None for watched in self._watched)

    @property
    def waiting_runs(self) -> int:
        """Number of runs with attempts that wait for jobs. They do not count against the claim limit: the job may itself
        be a run that must be claimed."""
        return self._watched.waiting_runs

    def forget_run(self, run: RunId) -> None:
        self._watched.forget_run(run)
        for executor in self._executors.values():  # they drop what they hold in memory for its attempts
            executor.forget_run(run)

    @property
    def has_pending_stop(self) -> bool:
        return any(watched.closing and watched.stop_asked_at is None for watched in self._watched)

    @property
    def next_look(self) -> float | None:
        return self._watched.next_look

    # ── looking ──────────────────────────────────────────────────────────────────────────────────

    async def look(self, now: datetime) -> Observations:
        seen = Observations([], [])
        unsure: list[Watched] = []
        for watched, status, was_reported in await self._statuses.of_all(self._watched.take_due(), self._needs_reading):
            watched.was_called = False
            if isinstance(status, ObjectsError):
                self._on_objects_error(watched, status)
            elif status == "beating":
                watched.last_seen = self._monotonic()
                note_group_progress(watched, watched.last_seen)
                unsure.append(watched)
            elif not self._look_at_status(watched, status, was_reported, seen):
                unsure.append(watched)
        if seen.handed_over:
            await self._watch_all(seen.handed_over)
        if unsure:
            await self._ask_executors(unsure, seen, now)
        return seen

    def _needs_reading(self, watched: Watched) -> bool:
        """False if the attempt's status may be looked at in a listing. Where something is decided from it, it is read."""
        if self._objects.answers_at_once or watched.was_called or watched.closing or watched.is_preparing:
            return True
        silent = self._monotonic() - watched.last_seen
        return watched.running_since is not None and silent >= self._options.liveness.stale_seconds / 2

    def _look_at_status(self, watched: Watched, status: Status | None, was_reported: bool, seen: Observations) -> bool:
        """True if the attempt's status is sufficient for now; otherwise its executor must be asked."""
        status = None if status is None else if_new(status, watched.attempt)
        mono = self._monotonic()
        if status is None or status.seq == watched.attempt.seq:
            note_silence(watched, mono, self._options.liveness.stale_seconds / 2, seen)
            return False
        note_heartbeat(watched, status.seq, mono)
        if watched.group is not None:
            watched.group.at = mono
        event = self._event_of(status, watched)
        if status.is_final:
            if status.metrics is not None:
                self._telemetry.note_metrics(watched.attempt.key, status.metrics)
            self._report(watched, event, seen)
            return True
        is_first = watched.attempt.seq == 0  # it may already count as running because of its gate
        if watched.running_since is None or status.is_preparing:  # the timeout starts after the preparation
            watched.running_since = mono
        watched.is_preparing = status.is_preparing
        watched.attempt = Attempt.replaced(watched.attempt, seq=status.seq)
        if watched.is_adopted:  # otherwise a current heartbeat need not be stored
            note_silence(watched, mono, self._options.liveness.stale_seconds / 2, seen)
        if isinstance(event, ev.AttemptDeferred):
            self._hand_over(watched, event.jobs, seen)
        elif not is_first:
            event = ev.HeartbeatReceived(event.key, event.attempt, status.seq, status.is_preparing)
        seen.events.append((watched.attempt.key.run, event))
        # A call without a status may mean that the worker died, which a stored heartbeat does not show. A call that
        # carries the heartbeat means that the worker lives.
        if watched.closing or not (was_reported or watched.attempt.waits_for is not None):
            return False
        self._schedule_next(watched)
        return True

    def heartbeats(self) -> list[Heartbeat]:
        """Unsaved heartbeats of all watched attempts, for the next owner of their runs."""
        return [each.heartbeat(self._monotonic()) for each in self._watched if each.has_unsaved_heartbeat]

    def _hand_over(self, watched: Watched, jobs: str, seen: Observations) -> None:
        watched.attempt = replaced(watched.attempt, waits_for=jobs)
        self._watched.wait(watched.attempt.key)
        watched.stop_asked_at = None  # only the worker was asked to stop; the jobs were not
        seen.handed_over.append(watched.attempt)

    async def _ask_executors(self, unsure: list[Watched], seen: Observations, now: datetime) -> None:
        by_key = {watched.attempt.key: watched for watched in unsure}
        for name, group in by_executor([watched.attempt for watched in unsure]):
            executor = self._executors.get(name)
            try:
                answers = [Presence.UNKNOWN] * len(group) if executor is None else await executor.find(group)
            except ExecutorError:
                for attempt in group:
                    self._watched.look_again(by_key[attempt.key], self._options.monitor_seconds)
                continue
            found = [(by_key[attempt.key], presence) for attempt, presence in zip(group, answers, strict=True)]
            await self._calls.for_each(lambda each: self._judge_one(*each, seen, now), found)

    async def _judge_one(self, watched: Watched, presence: Presence, seen: Observations, now: datetime) -> None:
        try:
            await self._judge(watched, presence, seen, now)
        except ObjectsError as problem:
            self._on_objects_error(watched, problem)
        except ExecutorError:
            self._watched.look_again(watched, RETRY_SECONDS)

    async def _judge(self, watched: Watched, presence: Presence, seen: Observations, now: datetime) -> None:
        if watched.closing:
            await self._close_on(watched, presence, seen, now)
        elif presence is Presence.GONE and await self._waits_unwatched(watched):
            if await self._statuses.newest(watched.attempt) is not None:
                await self._watch_all([watched.attempt])
            await self._judge_silence(watched, presence, seen)
            self._watched.look_again(watched, RETRY_SECONDS)
        elif presence in (Presence.GONE, Presence.ORPHANED):
            await self._judge_gone(watched, seen)
        elif presence is Presence.LOST:
            self._give_up(watched, seen, GiveUp.VANISHED, Failure(FailureKind.LOST, "its machine was restarted"))
        else:
            if presence is Presence.RUNNING and self._presence_is_heartbeat(watched.attempt):
                watched.last_seen = self._monotonic()
                note_group_progress(watched, watched.last_seen)
            await self._judge_silence(watched, presence, seen)

    def _presence_is_heartbeat(self, attempt: Attempt) -> bool:
        """True if the attempt has no worker that writes heartbeats."""
        executor = self._executors.get(attempt.executor)
        return attempt.waits_for is not None or (executor is not None and executor.traits.presence_is_heartbeat)

    async def _waits_unwatched(self, watched: Watched) -> bool:
        """True if the attempt waits for a job that nobody polls, because the poller could not read its documents. Polling
        is retried until the attempt counts as silent. The handover is committed, but its status may become visible late."""
        if watched.attempt.waits_for is None:
            return False
        status = await self._statuses.newest(watched.attempt)
        return status is None or status.jobs is not None

    async def _judge_gone(self, watched: Watched, seen: Observations) -> None:
        # The process may have written its final status between our first look and the executor's answer.
        status = await self._statuses.newest(watched.attempt)
        if status is not None and status.is_final:
            self._report(watched, self._event_of(status, watched), seen)
        elif has_just_handed_over(status, watched):
            self._watched.look_again(watched, 0.0)
        elif watched.attempt.waits_for is not None or (gate := await self._gate_state(watched.attempt)) is not None:
            if watched.attempt.waits_for is None and gate == "started" and self._is_news(watched, seen):
                return
            gone = Failure(FailureKind.LOST, "its worker ended without leaving a result")
            self._give_up(watched, seen, GiveUp.VANISHED, gone)
        elif (wait := watched.launch_again_at - self._monotonic()) > 0:
            self._watched.look_again(watched, wait)
        elif watched.launches > RELAUNCHES:
            never = Failure(FailureKind.START, f"its worker ended before it began, {watched.launches} times")
            self._give_up(watched, seen, GiveUp.NOT_STARTED, never)
        else:
            watched.launches += 1
            watched.launch_again_at = self._monotonic() + self._options.close_grace_seconds
            seen.launch.append(watched.attempt)
            self._watched.look_again(watched, RETRY_SECONDS * 2**watched.launches)

    def _is_news(self, watched: Watched, seen: Observations) -> bool:
        """True if the gate was not known to be won. The worker may have won it after the executor answered that nothing of the attempt is
        alive, so the executor is asked again."""
        if watched.running_since is not None:
            return False
        watched.running_since = self._monotonic()
        note_gate(watched, watched.running_since, seen)
        self._watched.look_again(watched, 0.0)
        return True

    async def _judge_silence(self, watched: Watched, presence: Presence, seen: Observations) -> None:
        if watched.running_since is None and await self._gate_state(watched.attempt) == "started":
            # Its worker won the gate but wrote no status yet: from here on it counts as running.
            watched.running_since = self._monotonic()
            note_gate(watched, watched.running_since, seen)
            note_group_progress(watched, watched.running_since)
        elif watched.running_since is None:
            note_waiting(watched, presence, self._monotonic(), seen)
        given_up = check_liveness(
            timeouts_for(watched, self._options.liveness),
            self._monotonic(),
            running_since=watched.running_since,
            watched_since=watched.watched_since,
            last_seen=watched.last_seen,
            timeout=watched.task.timeout,
        )
        if given_up is None:
            self._schedule_next(watched)
        else:
            self._give_up(watched, seen, given_up[0], self._with_words(watched, *given_up))

    def _event_of(self, status: Status, watched: Watched) -> ev.AttemptEvent:
        """The event for a status. If a platform stopped the worker, and no scheduler asked for it, it says why."""
        event = as_event(status, watched.attempt)
        if status.state != "stopped" or watched.closing or not isinstance(event, ev.Failed):
            return event
        executor = self._executors.get(watched.attempt.executor)
        words = None if executor is None else executor.why_waiting(watched.attempt.key)
        if words is None:
            return event
        return event._replace(failure=replaced(event.failure, message=f"{event.failure.message}: {words}"))

    def _with_words(self, watched: Watched, reason: GiveUp, failure: Failure) -> Failure:
        """The failure of an attempt that did not start in time, with the platform's words if it has any."""
        executor = self._executors.get(watched.attempt.executor) if reason is GiveUp.NOT_STARTED else None
        words = None if executor is None else executor.why_waiting(watched.attempt.key)
        return failure if words is None else Failure(failure.kind, f"{failure.message}: {words}", failure.detail)

    def not_started(self, key: AttemptKey, failure: Failure, final: bool) -> list[tuple[RunId, ev.AttemptEvent]]:
        """The executor could not start the attempt: retry until the start limit, unless the failure is final."""
        watched = self._watched.get(key)
        if watched is None:
            return []
        waited = self._monotonic() - watched.watched_since
        if not final and waited < timeouts_for(watched, self._options.liveness).start_limit_seconds:
            watched.launches = 0  # no worker was created, so this does not count as one that ended before it began
            self._watched.look_again(watched, RETRY_SECONDS)
            return []
        seen = Observations([], [])
        self._give_up(watched, seen, GiveUp.NOT_STARTED, failure)
        return seen.events

    # ── ending ───────────────────────────────────────────────────────────────────────────────────

    async def _close_on(self, watched: Watched, presence: Presence, seen: Observations, now: datetime) -> None:
        """Take one more step towards a confirmed end of the attempt."""
        attempt, mono = watched.attempt, self._monotonic()
        executor = self._executors.get(executor_of(attempt))
        if watched.stop_asked_at is None:
            never_started = await self._calls.call(close_gate, self._objects, attempt, now)
            if not never_started:
                await self._calls.call(ask_to_stop, self._objects, attempt, str(attempt.closing or "stop"))
            if presence not in (Presence.GONE, Presence.LOST) and executor is not None:
                with suppress(*(ExecutorError,) if presence is Presence.UNKNOWN else ()):
                    await executor.stop([attempt], at_once=never_started or presence is Presence.ORPHANED)
            if never_started:
                self._report(watched, ev.Closed(attempt.key.task, attempt.key.number, ever_started=False), seen)
                return
            watched.stop_asked_at = mono
            note_gate(watched, mono, seen)
            if presence is Presence.GONE and self._is_news(watched, seen):
                return
        if presence in (Presence.GONE, Presence.LOST):
            await self._close_gone(watched, seen, mono)
        elif presence is Presence.UNKNOWN or executor is None:
            await self._close_unreachable(watched, seen, mono)
        else:
            watched.gone_since = None
            is_overdue = mono - watched.stop_asked_at >= self._options.stop_grace_seconds + 2
            if is_overdue or presence is Presence.ORPHANED:  # no worker is left that could end it gracefully
                await executor.stop([attempt], at_once=True)
            watched.close_looks += 1
            self._watched.look_again(
                watched, min(RETRY_SECONDS, FIRST_CLOSE_LOOK_SECONDS * 2 ** min(watched.close_looks, 16))
            )

    async def _close_unreachable(self, watched: Watched, seen: Observations, mono: float) -> None:
        """Close an attempt whose executor cannot be reached. The stop request is written before the status is read for the
        last time. A worker that resumes later writes its heartbeat first and then reads the stop request, so either the
        scheduler sees the heartbeat or the worker sees the request."""
        attempt, executor = watched.attempt, self._executors.get(watched.attempt.executor)
        silent = await self._calls.call(silence, watched, self._objects, mono, seen)
        limit = await self._calls.call(over_after, watched.task, attempt, executor, self._objects, self._options)
        if attempt.closing is not GiveUp.DECLARED_DEAD and (limit is None or silent < limit):
            watched.gone_since = None
            self._watched.look_again(watched, look_again_in(limit, silent, self._options))
            return
        await self._close_gone(watched, seen, mono, unconfirmed=why_over(attempt, silent))

    async def _close_gone(
        self, watched: Watched, seen: Observations, mono: float, unconfirmed: str | None = None
    ) -> None:
        if watched.gone_since is None:
            watched.gone_since = mono
        wait = watched.gone_since + self._options.close_grace_seconds - mono
        if wait > 0:
            self._watched.look_again(watched, wait)
            return
        status = await self._statuses.newest(watched.attempt)
        if status is not None and status.is_final:
            self._report(watched, as_event(status, watched.attempt), seen)
        elif has_just_handed_over(status, watched):
            self._watched.look_again(watched, 0.0)
        elif unconfirmed is not None and status is not None and status.seq > watched.attempt.seq:
            watched.gone_since = None
            self._watched.look_again(watched, 0.0)  # it is alive
        else:
            key = watched.attempt.key
            self._report(watched, ev.Closed(key.task, key.number, ever_started=True, unconfirmed=unconfirmed), seen)

    # ── bookkeeping ──────────────────────────────────────────────────────────────────────────────

    async def _gate_state(self, attempt: Attempt) -> str | None:
        return await self._calls.call(gate_state, self._objects, attempt)

    def _on_objects_error(self, watched: Watched, problem: ObjectsError) -> None:
        """Its documents cannot be read now (a full disk, for example): decide nothing and retry soon."""
        if isinstance(problem, RunDocumentsError):
            self.broken[watched.attempt.run] = problem.message
        self._telemetry.emit(TelemetryEvent.OBJECTS_FAILED, attempt=watched.attempt.key, why=problem.message)
        self._watched.look_again(watched, RETRY_SECONDS)

    def _report(self, watched: Watched, event: ev.AttemptEvent, seen: Observations) -> None:
        """Report the final event of an attempt and stop watching it."""
        if watched.group is not None:
            watched.group.at = self._monotonic()
        seen.events.append((watched.attempt.key.run, event))
        self._watched.forget(watched.attempt.key)

    def _give_up(self, watched: Watched, seen: Observations, reason: GiveUp, failure: Failure) -> None:
        """Report that the attempt is given up. The machine answers with a Stop, which leads to `close`."""
        key = watched.attempt.key
        seen.events.append((watched.attempt.run, ev.GivenUp(key.task, key.number, reason, failure)))
        self._watched.look_again(watched, self._options.monitor_seconds)

    def _schedule_next(self, watched: Watched) -> None:
        mono = self._monotonic()
        overdue = overdue_at(
            timeouts_for(watched, self._options.liveness),
            running_since=watched.running_since,
            watched_since=watched.watched_since,
            last_seen=watched.last_seen,
            timeout=watched.task.timeout,
        )
        # The poller reports the end of jobs. Looking rarely is enough to keep the attempt from counting as silent.
        is_waiting = watched.attempt.waits_for is not None
        often = self._options.liveness.stale_seconds / 2 if is_waiting else self._options.monitor_seconds
        self._watched.look_again(watched, max(0.001, min(self._aligned(often, mono), overdue - mono)))

    def _aligned(self, seconds: float, mono: float) -> float:
        """Up to that many seconds. Of a slow store all looks come at the same times, so that one listing of a run serves all
        of its attempts."""
        return seconds if self._objects.answers_at_once else seconds - mono % seconds
