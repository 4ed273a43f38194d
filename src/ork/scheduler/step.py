"""One step of a scheduler: read, decide, commit, act.

`step` awaits only the store, the executors and the attempts' documents, so the simulation runs the same code without an
event loop. Decisions are acted on only after their commit. A step without work changes nothing and returns when the
next one is due.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from ork.core import events as ev
from ork.core.effects import Stop
from ork.errors import OrkError, StoreError, StoreUnavailableError
from ork.executors.executor import Executor, ReportedStatus
from ork.model.ids import AttemptKey, RunId, SchedulerId
from ork.model.run import RunStatus
from ork.model.task import Attempt
from ork.objects.attempt_documents import AttemptDocuments
from ork.scheduler.fire import Firing
from ork.scheduler.launch import Launcher
from ork.scheduler.lease import SchedulerLease, never_provably_dead
from ork.scheduler.observe import Observer
from ork.scheduler.options import SchedulerOptions
from ork.scheduler.question_resolver import QuestionResolver
from ork.scheduler.reporting import ErrorReporter, describe, emit_ends, emit_launches
from ork.scheduler.runs import Decided, OwnedRuns
from ork.scheduler.specs import LaunchJob
from ork.scheduler.take_over import TakeOver
from ork.scheduler.watchlist import look_by_next_tick
from ork.state.records import LookAhead
from ork.state.scheduling import SchedulerStore
from ork.telemetry import Telemetry, TelemetryEvent

STORE_RETRY_SECONDS = 1.0


class Scheduler:
    def __init__(
        self,
        *,
        id: SchedulerId,
        identity: str,
        kind: str,
        store: SchedulerStore,
        objects: AttemptDocuments,
        executors: Mapping[str, Executor],
        options: SchedulerOptions,
        monotonic: Callable[[], float],
        is_provably_dead: Callable[[str], bool] = never_provably_dead,
        on_commit: Callable[[Sequence[RunId]], None] | None = None,
        telemetry: Telemetry | None = None,
        terms: str | None = None,
        only: RunId | None = None,  # the only run to work on, with its sub-workflows; None: any
    ) -> None:
        self.telemetry = telemetry or Telemetry()
        self.lease = SchedulerLease(id, identity, kind, store, options, monotonic, is_provably_dead, terms, only)
        self._store = store
        self._options = options
        self._monotonic = monotonic
        self._on_commit = on_commit
        self._wake: Callable[[], None] | None = None
        self._launcher = Launcher(objects, executors, options, self.on_status)
        self._runs = OwnedRuns(
            self.telemetry, options.launch_batch, self._launcher.group_size, options.placed, options.prices
        )
        self._observer = Observer(objects, executors, options, monotonic, self.telemetry, self.on_status)
        self._taking = TakeOver(store, objects, executors, id, self._runs, self._observer, self.telemetry)
        self._resolver = QuestionResolver(store, objects, options, monotonic)
        self._errors = ErrorReporter(self.telemetry, monotonic)
        self._firing = Firing(store, options, monotonic, self.telemetry)
        self.has_new_notices = options.fires_schedules  # reset by the service when it wakes the outbox
        self._limits_again_at: float | None = None
        self._to_release: dict[RunId, None] = {}  # owned in the store, but dropped from memory
        self._claim_at: float | None = 0.0
        self._claim_batch = options.max_claimed_runs  # runs that one step claims at most
        self._may_claim_more = False  # the last claim may have left runs because of the limit
        self._nothing_waits = False  # the last claim left no run that waits for an owner
        self._claimed_starved = False  # tasks of ours waited for slots at the last claim
        self._is_draining = False
        self._woken_in_commit = False  # the store changed during a commit
        self._restart_at: float | None = 0.0  # when to drop all state and register again

    # ── callable at any time ────────────────────────────────────────────────────────────────────

    def on_status(self, key: AttemptKey, reported: ReportedStatus | None = None, /) -> None:
        """The attempt may have a new status; `reported` is the status if the executor already has it."""
        self._observer.on_status(key, reported)
        if self._wake is not None:
            self._wake()

    def set_wake_callback(self, callback: Callable[[], None]) -> None:
        self._wake = callback

    def wake(self) -> None:
        """The store changed: read claims and commands in the next step."""
        self._claim_at = 0.0
        self._firing.check_again()
        self._runs.ask_limits_again()
        self._woken_in_commit = True

    def look_ahead(self, ahead: LookAhead, now: datetime) -> None:
        """Use what the store has just returned: schedules are read again only if one of them is due, and notices only if
        this scheduler makes one."""
        self._firing.use(ahead.schedules, now)
        self.has_new_notices = False

    def claim_in_batches(self, size: int) -> None:
        """Claim at most so many runs in a step, so that a step is short even if the store is slow."""
        self._claim_batch = size

    def drain(self) -> None:
        """Claim and start nothing from now on. Active attempts are watched until they end."""
        self._is_draining = True
        self._apply_control()

    def _apply_control(self) -> None:
        """Start nothing while draining or paused by a user. Runs without active attempts are then released, so that other
        schedulers can continue them."""
        is_held = self._is_draining or self.lease.control is not None
        self._runs.hold_launches(is_held)
        self._firing.hold(self.lease.control is not None)
        if is_held:
            self._give_back(self._runs.idle)

    async def start(self, now: datetime) -> None:
        self._launcher.use_key(await self._store.signing_key())
        await self.lease.register(now)
        self._apply_control()
        self._restart_at = None
        self._claim_at = 0.0

    async def stop(self) -> None:
        """Release everything at once. Attempts continue, and the next scheduler adopts them."""
        if heartbeats := self._observer.heartbeats():
            await self._store.note_heartbeats(heartbeats)
        await self._store.release(self.lease.id, exits=self.lease.is_to_exit)
        for run in self.owned_runs:
            self._forget(run)
        self._restart_at = 0.0

    # ── the step ─────────────────────────────────────────────────────────────────────────────────

    async def step(self, now: datetime) -> datetime | None:
        """Run one step. Returns when the next one is due if nothing happens before, or None if only an event requires one.

        Temporary store errors are retried. A permanent one is raised as StoreError.
        """
        try:
            if self._is_due(self._restart_at):
                await self._restart(now)
            if self._restart_at is None:
                if self._is_due(self._limits_again_at):
                    self._limits_again_at = None
                    self._runs.ask_limits_again()
                await self._work(now)
                self._errors.clear()
        except StoreUnavailableError as problem:
            self.reset_after_store_error(problem)
        except StoreError:
            self._forget_everything()
            raise
        return self._next_wake(now)

    async def _work(self, now: datetime) -> None:
        done = self.telemetry.lap_timer(self._monotonic)
        if self._firing.is_due(now):
            await self._fire_schedules(now)
        done("fire")
        if self._must_keep_lease:
            await self._keep_lease(now)
        done("lease")
        if self._to_release or self._wants_more or self._is_due(self._claim_at):
            await self._read_store(now)
        done("read")
        restart = await self._observe(now) if self._is_due(self._observer.next_look) else []
        done("observe")
        self._feed([(run, ev.TimerDue()) for run in self._runs.due(now)], now)
        await self._resolver.resolve_all(self._runs, self._feed, now)
        done("answer")
        admitted = await self._commit(now)
        done("commit")
        await self._act(restart, admitted, now)
        done("act")
        if self._runs.is_starved and not self._claimed_starved:
            self._claim_at = self.lease.next_peer_check(self._claim_at)  # a run without an owner may hold the slots
        if self.lease.has_claimed or self._firing.must_check:
            await self._check_peers(now)
        done("look")

    @property
    def has_pending_stop(self) -> bool:
        """True if the end of an attempt is committed, but its stop has not been requested yet."""
        return self._observer.has_pending_stop

    def reset_after_store_error(self, problem: OrkError, event: TelemetryEvent = TelemetryEvent.STORE_FAILED) -> None:
        """Drop all in-memory state: after a store error it is unknown whether a claim or a commit took effect."""
        self._errors.report(problem, event)
        self._forget_everything()

    def _forget_everything(self) -> None:
        for run in self.owned_runs:
            self._forget(run)
        self._to_release.clear()
        self._resolver.forget()
        self._firing.check_again()
        self._runs.ask_limits_again()
        self._restart_at = self._monotonic() + STORE_RETRY_SECONDS

    async def _restart(self, now: datetime) -> None:
        await self.lease.release()
        await self.start(now)

    async def _fire_schedules(self, now: datetime) -> None:
        """Fire due schedules. This needs no lease: the store lets only one scheduler fire each time."""
        fired = await self._firing.fire(now)
        if fired.runs:
            self._claim_at = 0.0
        self.has_new_notices |= bool(fired.notices)

    @property
    def _must_keep_lease(self) -> bool:
        """True if the lease must be renewed. An idle scheduler without runs renews nothing."""
        return self.lease.is_due and bool(len(self._runs) or self._is_due(self._claim_at))

    async def _keep_lease(self, now: datetime) -> None:
        was_trusted = self.lease.is_trusted
        if not await self.lease.renew(now) or not was_trusted:
            # The lease expired while we were suspended: another scheduler may own our runs by now.
            self._give_back(self.owned_runs)

    async def _read_store(self, now: datetime) -> None:
        if self._to_release:
            await self._store.release(self.lease.id, tuple(self._to_release))
            self._to_release.clear()
        limit, self._claimed_starved = self._claim_limit, self._runs.is_starved
        self._claim_at = None  # before the claim, so that a wake-up during the claim causes another one
        claim, again_at = await self.lease.claim(0 if self._is_draining else limit, now)
        self._claim_at = self._claim_at if again_at is None else again_at
        if not self.lease.is_trusted or (claim.runs and self._runs.is_starved):
            self._claim_at = 0.0  # not trusted: the lease may have expired before the store answered
        for broken in claim.set_aside:
            await self._taking.note(broken, now)
            self._claim_at = 0.0  # it no longer counts against its workflow's max_active_runs
        for claimed in claim.runs:
            if not await self._taking.take_over(claimed, now):
                self._forget(claimed.run.id)
                self._to_release[claimed.run.id] = None
        self._may_claim_more = len(claim.runs) + len(claim.set_aside) >= limit
        self._nothing_waits = claim.nothing_waits
        for command in claim.commands:
            if not self._runs.apply(command, now):
                self._give_back([command.run])

    async def _check_peers(self, now: datetime) -> None:
        """Check peers and schedules. Done at the end of a step, so that it delays no other work."""
        found = await self.lease.check_peers()
        self._apply_control()
        self._claim_at = min((time for time in (self._claim_at, found) if time is not None), default=None)
        if self._firing.must_check:
            await self._fire_schedules(now)

    @property
    def _claim_limit(self) -> int:
        """How many runs to claim. At least one while tasks wait for slots: a run of a dead scheduler may hold them, and must
        be claimed to free them."""
        return max(int(self._runs.is_starved), self._claim_capacity)

    @property
    def _claim_capacity(self) -> int:
        return min(self._claim_batch, self._options.max_claimed_runs - len(self._runs) + self._observer.waiting_runs)

    @property
    def _wants_more(self) -> bool:
        return self._may_claim_more and self._claim_capacity > 0 and not self._is_draining

    async def _observe(self, now: datetime) -> list[Attempt]:
        """Pass observed events to the machines. Returns attempts that never started and must be launched again."""
        seen = await self._observer.look(now)
        if seen.heartbeats:
            await self._store.note_heartbeats(seen.heartbeats)
        if not self.lease.is_trusted:
            return []  # we were suspended, so the measured silence may be our own: everything is claimed and checked again
        self._feed(seen.events, now)
        for run in await self._taking.set_aside_broken(now) if self._observer.broken else ():
            self._forget(run)
        return seen.launch

    async def _commit(self, now: datetime) -> list[Attempt]:
        """Commit all decisions of this step in one transaction. Returns the attempts that the limits admitted."""
        was_starved = self._runs.is_starved
        decided = self._runs.collect(self._launcher.name, now)
        self._give_back(self._runs.take_raised())
        if not decided:
            return []
        self._woken_in_commit = False
        committed = await self._store.commit(self.lease.id, [each.changes for each in decided.values()], now)
        for run in sorted(committed.fenced):
            self.telemetry.emit(TelemetryEvent.RUN_FENCED, run=run)
            self._forget(run)
        self._give_back(sorted(committed.overruled))
        self._runs.note_limits(committed, decided.values())
        if self._woken_in_commit:
            self._runs.ask_limits_again()  # a slot may have been freed after the store reported the limit as full
        if committed.again_in is not None:
            again_at = self._monotonic() + committed.again_in
            self._limits_again_at = min(self._limits_again_at or again_at, again_at)
        launch: list[Attempt] = []
        for run, each in decided.items():
            if run not in committed.fenced and run not in committed.overruled:
                launch += self._act_on_commit(run, each, self._runs.settle(run, each, committed))
        self._give_back(self._runs.take_raised())
        if self._runs.is_starved and not was_starved:
            self._claim_at = self.lease.next_peer_check(self._claim_at)
        if self._on_commit is not None:
            self._on_commit(tuple(decided))
        return launch

    def _act_on_commit(self, run: RunId, decided: Decided, launched: Sequence[Attempt]) -> Sequence[Attempt]:
        """After the commit of a run's decisions: emit events and perform the effects."""
        owned, row = self._runs.get(run), decided.changes.run
        ended = [attempt for attempt in decided.decisions.attempts if attempt.status.is_final]
        if owned is not None:
            emit_ends(self.telemetry, ended, owned.machine.run)
            if row is not None and row.status.is_final:
                self.telemetry.emit(TelemetryEvent.RUN_FINISHED, **describe(row))
        has_recovered = row is not None and row.status is RunStatus.SUCCESS
        self.has_new_notices |= bool(decided.changes.alerts) or has_recovered
        for effect in decided.decisions.effects:
            if isinstance(effect, Stop):
                self._observer.close(effect.attempt)
        self._observer.release(ended)
        for attempt in launched:
            if owned is not None:
                self._observer.begin(attempt, owned.machine.spec(attempt.key.task))
        if decided.changes.release_ownership:
            self._forget(run)
            if not self._nothing_waits:
                self._claim_at = 0.0  # there is capacity for another run, here or in its workflow's max_active_runs
        return launched

    async def _act(self, restart: Sequence[Attempt], admitted: Sequence[Attempt], now: datetime) -> None:
        """Launch attempts: `restart` again, `admitted` for the first time."""
        jobs = [*self._jobs(restart, is_new=False), *self._jobs(admitted, is_new=True)]
        emit_launches(self.telemetry, [(job.attempt, job.machine.run) for job in jobs])
        for refused in await self._launcher.launch(jobs) if jobs else ():
            why, final = refused.failure.message, refused.final
            self.telemetry.emit(TelemetryEvent.START_FAILED, attempt=refused.attempt, why=why, final=final)
            self._feed(self._observer.not_started(refused.attempt, refused.failure, refused.final), now)

    def _jobs(self, attempts: Sequence[Attempt], *, is_new: bool) -> list[LaunchJob]:
        known = ((attempt, self._runs.get(attempt.key.run)) for attempt in attempts)
        return [
            LaunchJob(attempt, owned.machine, owned.version, is_new) for attempt, owned in known if owned is not None
        ]

    # ── bookkeeping ──────────────────────────────────────────────────────────────────────────────

    def _feed(self, events: Sequence[tuple[RunId, ev.Event]], now: datetime) -> None:
        if events:
            self._give_back(self._runs.feed(events, now))

    def _give_back(self, runs: Iterable[RunId]) -> None:
        """Drop these runs, whose state in memory is uncertain, and release them in the store to be claimed again."""
        for run in runs:
            if self._forget(run):
                self._to_release[run] = None

    def _forget(self, run: RunId) -> bool:
        self._observer.forget_run(run)
        return self._runs.forget(run)

    def _is_due(self, time: float | None) -> bool:
        return time is not None and self._monotonic() >= time

    def _next_wake(self, now: datetime) -> datetime | None:
        work = self.next_work(now)
        if self._restart_at is not None:
            return work  # schedules may be overdue by then, but nothing is done before the restart
        if len(self._runs) and self.lease.renew_at is not None:
            work = first_of(work, now + timedelta(seconds=max(0.0, self.lease.renew_at - self._monotonic())))
        return first_of(work, self.next_fire)

    def next_work(self, now: datetime) -> datetime | None:
        """When the next work is due, without lease renewals and schedules: a tick does not wait for those."""
        mono = self._monotonic()
        if self._restart_at is not None:
            return now + timedelta(seconds=max(0.0, self._restart_at - mono))
        if self._to_release or self._wants_more or self._runs.has_something_to_do:
            return now
        planned = (self._observer.next_look, self._claim_at, self._limits_again_at, self._resolver.next_try)
        times = [time for time in planned if time is not None]
        soonest = now + timedelta(seconds=max(0.0, min(times) - mono)) if times else None
        return first_of(soonest, self._runs.next_timer)

    # ── read by the service between two steps ───────────────────────────────────────────────────

    @property
    def is_drained(self) -> bool:
        """True if the scheduler drains and has no active attempt left."""
        is_to_exit = self._is_draining or self.lease.is_to_exit
        return is_to_exit and not self._observer.has_active

    def is_busy(self, until: datetime) -> bool:
        """True if an attempt is active, or a timer fires by then."""
        timer = self._runs.next_timer
        return self._observer.has_active or (timer is not None and timer <= until)

    @property
    def soon_seconds(self) -> float:
        """Longer than any pause between two checks of an attempt that is being ended."""
        return self._options.close_grace_seconds + 1.0

    @property
    def next_fire(self) -> datetime | None:
        """When the next schedule is due."""
        return self._firing.next_at

    @property
    def owned_runs(self) -> tuple[RunId, ...]:
        return tuple(self._runs)

    def next_tick(self, now: datetime) -> datetime | None:
        """When the next tick is due after this one has released its runs. There is no lease to renew then."""
        mono = self._monotonic()
        looks = [look_by_next_tick(watched, self._options, mono) for watched in self._observer.watchlist]
        planned = (self._restart_at, self._claim_at, self._limits_again_at, self._resolver.next_try)
        soonest = min([*looks, *(time for time in planned if time is not None)], default=None)
        work = None if soonest is None else now + timedelta(seconds=max(0.0, soonest - mono))
        return first_of(first_of(work, self._runs.next_timer), self.next_fire)


def first_of(one: datetime | None, other: datetime | None) -> datetime | None:
    return min(one, other) if one is not None and other is not None else one or other
