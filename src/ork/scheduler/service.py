"""The scheduler as a service: runs a step when something is due or has happened, and otherwise sleeps.

It does not poll. It waits for the time that the last step returned, for a status of an attempt, for a change in the
store, or for the death of another scheduler on this machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import math
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Protocol

from ork.alerts.outbox import Outbox
from ork.errors import OrkError, StoreError, StoreUnavailableError
from ork.model.ids import SchedulerId
from ork.model.record import Record
from ork.scheduler.step import Scheduler, first_of
from ork.scheduler.waiting import DeferredExecutor
from ork.state.records import LookAhead
from ork.state.scheduling import SchedulerStore
from ork.telemetry import NOTIFICATIONS, TelemetryEvent

WatchDeath = Callable[[str], int | None]
"""Returns a file descriptor that becomes readable when the process of that identity ends, or None."""

ERROR_PAUSE_SECONDS = 1.0
# Longest sleep while a schedule is planned: the clock may be set, or the machine suspended, in the meantime.
CLOCK_LOOK_SECONDS = 60.0
LAST_ALERTS_SECONDS = 15.0
COLLECT_AFTER = 10_000
NOTE_AGAIN_SECONDS = 60.0
# For a tick that stays: how often it reads commands, and how soon a retry must be due to be waited for.
STAY_LOOK_SECONDS = 10.0
STAY_FOR = timedelta(seconds=60)
# For a tick with a time limit: runs that a step claims at most. The limit takes effect between steps.
TIMED_CLAIM_RUNS = 10
# For a tick that finds runs owned by another tick: how soon the next one looks for them.
PEER_LOOK_SECONDS, PEER_LOOK_MAX_SECONDS = 2.0, 15.0


def utc_now() -> datetime:
    return datetime.now(UTC)


class TickReport(Record):
    steps: int
    launched: int
    finished: int
    next_wake: datetime | None


class Refreshing(Protocol):
    """Refreshes code locations concurrently with the scheduler loop."""

    async def run(self) -> None: ...

    async def refresh_due(self) -> datetime | None: ...

    def wake(self) -> None: ...


class SchedulerService:
    def __init__(
        self,
        scheduler: Scheduler,
        store: SchedulerStore,
        *,
        watch_death: WatchDeath = lambda _identity: None,
        waiting: DeferredExecutor | None = None,
        outbox: Outbox | None = None,
        refresher: Refreshing | None = None,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self.scheduler = scheduler
        self.telemetry = scheduler.telemetry
        self._store = store
        self._watch_death = watch_death
        self._waiting = waiting
        self._outbox = outbox
        self._refresher = refresher
        self._now = now
        self._wake = asyncio.Event()
        self._alarm: asyncio.TimerHandle | None = None
        self._stopping = False
        self._noted: tuple[str, ...] = ()
        self._noted_at = 0.0
        self._local_peers: dict[SchedulerId, int] = {}
        scheduler.set_wake_callback(self._wake.set)

    def request_stop(self) -> None:
        """Finish the current step, release everything and return from `run`."""
        self._stopping = True
        self._wake.set()

    def request_drain(self) -> None:
        """Start nothing new. `run` returns when all active attempts have ended."""
        self.scheduler.drain()
        self._wake.set()

    async def is_busy(self) -> bool:
        """True if an attempt is active or will be retried soon, or if an external job has just ended."""
        if self._waiting is not None and await self._waiting.settle():
            return True
        return self.scheduler.is_busy(self._now() + STAY_FOR)

    def wake(self) -> None:
        """This process changed the store itself. The store notifies only other processes."""
        self._on_change()

    async def run(self) -> None:
        """Run until `request_stop`. Active attempts continue, and the next scheduler adopts them.

        StoreError if the store is permanently broken.
        """
        background = [asyncio.create_task(self._listen())]
        if self._refresher is not None:
            background.append(asyncio.create_task(self._refresher.run()))
        sender = None if self._outbox is None else asyncio.create_task(self._outbox.run())
        try:
            with _rare_garbage_collection():
                await self._step_when_due()
            if self.scheduler.has_pending_stop:
                # Request the stop of cancelled attempts now, not when the next scheduler starts. Their workers do the rest.
                await self._step(self._now())
        finally:
            if sender is not None and self._outbox is not None:
                self._wake_outbox()
                await self._outbox.finish(sender, LAST_ALERTS_SECONDS)
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)
            self._unwatch_local_peers()
            self._cancel_alarm()
            with contextlib.suppress(StoreError):  # then the lease has to expire
                await self.scheduler.stop()
            self.telemetry.emit(TelemetryEvent.STOPPED)

    async def tick(
        self, *, stays: bool = False, seconds: float | None = None, ahead: LookAhead | None = None
    ) -> TickReport:
        """Run steps until nothing is due soon, then release everything. Active attempts continue, unless the tick `stays`
        until none is left. After `seconds` it ends with the current step, and the next tick is due at once. `ahead` is what
        the store has just returned, so that it is not read again.

        Soon, not now: an attempt that is being ended is checked every second. A tick that exited in between would start
        over at the next one and never finish. The next time of a schedule is left to the next tick, however soon it is:
        a schedule that fires every second would keep this one running for ever.
        """
        counts, loop = self.telemetry.counts, asyncio.get_running_loop()
        ends_at = math.inf if seconds is None else loop.time() + seconds
        if ahead is not None:
            self.scheduler.look_ahead(ahead, self._now())
        if seconds is not None:
            self.scheduler.claim_in_batches(TIMED_CLAIM_RUNS)
        refreshing = None if self._refresher is None else asyncio.create_task(self._refresher.refresh_due())
        try:
            steps, is_cut = await self._step_until_quiet(ends_at, stays=stays)
            refresh_due = None
            if refreshing is not None:
                done, _ = await asyncio.wait([refreshing], timeout=None if seconds is None else ends_at - loop.time())
                is_cut |= not done
                refresh_due = refreshing.result() if done else None
                await self.scheduler.step(self._now())  # a new workflow may have a schedule
            due = self._now() if is_cut else first_of(self.scheduler.next_tick(self._now()), self._peers_due())
        except BaseException:
            with contextlib.suppress(StoreError):
                await self.scheduler.stop()
            raise
        finally:
            if refreshing is not None:
                refreshing.cancel()
        await self.scheduler.stop()
        # After the release: alerts can be slow, and the next tick may have come for these runs.
        alerts_due = await self._deliver_alerts(ahead)
        next_wake = min((time for time in (due, alerts_due, refresh_due) if time is not None), default=None)
        return TickReport(
            steps, counts[TelemetryEvent.ATTEMPT_LAUNCHED], counts[TelemetryEvent.RUN_FINISHED], next_wake
        )

    async def _deliver_alerts(self, ahead: LookAhead | None) -> datetime | None:
        """Sends the alerts that are due. Returns when the next one is. Reads nothing if none was due when the tick began,
        and this tick made none."""
        if self._outbox is None:
            return None
        is_due = ahead is None or (ahead.next_alert is not None and ahead.next_alert <= self._now())
        if ahead is not None and not is_due and not self.scheduler.has_new_notices:
            return ahead.next_alert
        return await self._outbox.deliver()

    async def _step_until_quiet(self, ends_at: float, *, stays: bool) -> tuple[int, bool]:
        """Returns the number of steps, and whether the time ended before the work."""
        loop, steps = asyncio.get_running_loop(), 0
        while True:
            due = await self._stepped(self._now())
            steps += 1
            work = self.scheduler.next_work(self._now())
            seconds = None if work is None else (work - self._now()).total_seconds()
            is_soon = seconds is not None and seconds <= self.scheduler.soon_seconds
            if is_soon and loop.time() >= ends_at:
                return steps, True
            if seconds is not None and is_soon:
                await asyncio.sleep(max(0.0, min(seconds, ends_at - loop.time())))
            elif self._waiting and await self._waiting.settle():
                continue
            elif stays and self.scheduler.is_busy(self._now() + STAY_FOR):
                await self._stay(due)
            else:
                return steps, False

    def _peers_due(self) -> datetime | None:
        """When to look again for runs that another tick owns. That tick may have looked at a task before the call for its
        end, which was for us, and so leave it to a check much later. The longer it has been at work, the longer we wait."""
        now = self._now()
        ages = [
            (now - peer.started_at).total_seconds()
            for peer in self.scheduler.lease.peers
            if peer.kind == "tick" and peer.active_runs
        ]
        if not ages:
            return None
        return now + timedelta(seconds=min(max(min(ages), PEER_LOOK_SECONDS), PEER_LOOK_MAX_SECONDS))

    async def _stay(self, due: datetime | None) -> None:
        """Wait until something happens or is due. A tick gets no notifications from the store, so it also reads it
        regularly."""
        seconds = STAY_LOOK_SECONDS if due is None else max(0.0, (due - self._now()).total_seconds())
        self._wake.clear()
        await self._sleep_until(asyncio.get_running_loop().time() + min(seconds, STAY_LOOK_SECONDS))
        self.scheduler.wake()

    async def _step_when_due(self) -> None:
        is_ready = False
        while not self._stopping:
            self._wake.clear()  # before the step, so that events during the step are not missed
            started = asyncio.get_running_loop().time()
            now = self._now()
            due = await self._step(now)
            if not is_ready:
                is_ready = True
                self.telemetry.emit(TelemetryEvent.READY)
            if self.scheduler.is_drained:
                return
            self._watch_local_peers()
            self._wake_outbox()
            await self._note_fallbacks()
            if due is None:
                await self._wake.wait()
            elif (seconds := (due - now).total_seconds()) > 0:
                by_clock = self.scheduler.next_fire is not None
                await self._sleep_until(started + (min(seconds, CLOCK_LOOK_SECONDS) if by_clock else seconds))
            else:
                await asyncio.sleep(0)

    async def _step(self, now: datetime) -> datetime | None:
        """Run one step. Only a broken store ends the loop; after any other error the state is dropped and read again."""
        started = asyncio.get_running_loop().time()
        try:
            due = await self._stepped(now)
            self.telemetry.took("step", asyncio.get_running_loop().time() - started)
            return due
        except StoreError:
            raise
        except Exception as problem:
            self.scheduler.reset_after_store_error(OrkError(repr(problem)), TelemetryEvent.STEP_FAILED)
            await asyncio.sleep(ERROR_PAUSE_SECONDS)
            return now

    async def _stepped(self, now: datetime) -> datetime | None:
        """Run one step. At debug level, emit an event with what it did and how long it took."""
        if not self.telemetry.has_listener(TelemetryEvent.STEP):
            return await self.scheduler.step(now)
        before, started = self.telemetry.counts.copy(), asyncio.get_running_loop().time()
        due = await self.scheduler.step(now)
        did = self.telemetry.counts - before
        if did:
            seconds = asyncio.get_running_loop().time() - started
            self.telemetry.emit(
                TelemetryEvent.STEP,
                took=f"{1000 * seconds:.1f} ms",
                did={str(each): number for each, number in did.items()},
                owned=len(self.scheduler.owned_runs),
            )
        return due

    def _wake_outbox(self) -> None:
        if self._outbox is not None and self.scheduler.has_new_notices:
            self.scheduler.has_new_notices = False
            self._outbox.wake()

    async def _note_fallbacks(self) -> None:
        """Write active fallbacks to our row of the store for other processes. Repeated, since the row may be recreated."""
        now, notes = asyncio.get_running_loop().time(), self.telemetry.fallbacks.notes
        if notes == self._noted and not (notes and now >= self._noted_at + NOTE_AGAIN_SECONDS):
            return
        with contextlib.suppress(StoreError):
            await self._store.note_fallbacks(self.scheduler.lease.id, notes)
            self._noted, self._noted_at = notes, now

    async def _sleep_until(self, deadline: float) -> None:
        """Sleep until the deadline, a wake-up, or an earlier alarm. Keeping an earlier alarm avoids resetting it in every
        step of a busy scheduler, at the cost of an extra step now and then."""
        if self._alarm is None or self._alarm.when() > deadline:
            self._cancel_alarm()
            self._alarm = asyncio.get_running_loop().call_at(deadline, self._on_alarm)
        await self._wake.wait()

    def _on_alarm(self) -> None:
        self._alarm = None
        self._wake.set()

    def _cancel_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    async def _listen(self) -> None:
        while True:
            try:
                # After a failure do not wait: success means that notifications work again.
                seconds = 0.0 if NOTIFICATIONS in self.telemetry.fallbacks.reasons else None
                if await self._store.wait_for_change(seconds):
                    self._on_change()
                self.telemetry.fallbacks.clear(NOTIFICATIONS)
            except StoreUnavailableError as problem:
                self.telemetry.fallbacks.note(
                    NOTIFICATIONS, f"no notifications, so changes are polled: {problem.message}"
                )
                await asyncio.sleep(ERROR_PAUSE_SECONDS)
            except StoreError:
                self._on_change()  # the next step gets the same error, which ends the service
                return

    def _on_change(self) -> None:
        self.scheduler.wake()
        if self._waiting is not None:
            self._waiting.runs_changed()
        if self._outbox is not None:
            self._outbox.others_changed()
        if self._refresher is not None:
            self._refresher.wake()
        self._wake.set()

    # ── schedulers on the same machine ───────────────────────────────────────────────────────────

    def _watch_local_peers(self) -> None:
        """Detect the death of schedulers on this machine at once, not when their leases expire."""
        if not (self.scheduler.lease.peers or self._local_peers):
            return
        peers = {peer.id: peer.identity for peer in self.scheduler.lease.peers}
        for gone in [id for id in self._local_peers if id not in peers]:
            self._stop_watching(gone)
        for id, identity in peers.items():
            if id not in self._local_peers:
                fd = self._watch_death(identity)
                if fd is not None:
                    self._local_peers[id] = fd
                    asyncio.get_running_loop().add_reader(fd, self._on_peer_death, id)

    def _on_peer_death(self, id: SchedulerId) -> None:
        self._stop_watching(id)
        self._on_change()

    def _stop_watching(self, id: SchedulerId) -> None:
        fd = self._local_peers.pop(id)
        asyncio.get_running_loop().remove_reader(fd)
        os.close(fd)

    def _unwatch_local_peers(self) -> None:
        for id in list(self._local_peers):
            self._stop_watching(id)


@contextlib.contextmanager
def _rare_garbage_collection() -> Iterator[None]:
    """Run the cyclic garbage collector less often. Rows are created by the thousand and never form cycles; with the
    default threshold the collector takes a tenth of a busy scheduler's time."""
    before = gc.get_threshold()
    gc.set_threshold(COLLECT_AFTER, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
