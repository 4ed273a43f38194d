"""A whole installation from one seed: schedulers, store, machines, users and faults."""

from __future__ import annotations

from functools import partial
from random import Random

from ork.errors import UsageError
from ork.model.ids import RunId, SchedulerId, TaskKey
from ork.model.installation import Mode
from ork.model.record import Record, replaced
from ork.model.task import Attempt, TaskStatus
from ork.model.workflow import Approval, CompiledWorkflow, OnUnreachable, SubWorkflow, TaskSpec
from ork.objects import documents
from ork.testing.backend import Backend, SqliteBackend
from ork.testing.budgets import with_budgets
from ork.testing.clock import EPOCH
from ork.testing.cluster import Cluster
from ork.testing.controls import Operators
from ork.testing.damage import Damage
from ork.testing.ending import check_end
from ork.testing.faults import FaultRates, Faults, SimulatedProcess, draw_rates
from ork.testing.host import OPTIONS, SHARED, SchedulerHost
from ork.testing.invariants import Judge
from ork.testing.kernel import Kernel
from ork.testing.language import PLAIN, draw_children, draw_features, draw_pool_rates
from ork.testing.objects import MemoryObjects
from ork.testing.platform import LONGEST_START, NO_GROUPS, draw_platform
from ork.testing.timetable import NAME as TIMETABLE
from ork.testing.timetable import Timetable
from ork.testing.violations import Violation
from ork.testing.workload import POOL, People, SimulatedClient, draw_limits, draw_versions

LONGEST_ATTEMPT = 150.0 + 75.0 + 100.0  # its work, the wait before it and its external job
MAX_INSTANCES = 10
SCHEDULED_WORLDS = 0.25
STORES = ("sqlite", "firestore")
PARTS = (
    "fan-out",
    "launch groups",
    "sub-workflows",
    "schedules",
    "lost machines",
    "paused schedulers",
    "unreadable rows",
    "exceeded budgets",
)
MOST_WORK = 15_000.0
SLOW_LOOK_SECONDS = 5.0  # how soon a scheduler notices a change without a notification
CALM_SECONDS = (
    150.0 + 100.0 + 60.0 + 60.0 + 45.0 + 300.0 + 130.0
)  # pause, restart, lease, stale, fence, start limit, graces


class Outcome(Record):
    seed: int
    violations: tuple[Violation, ...]
    trace_hash: str
    trace: tuple[str, ...]
    steps: int
    played: tuple[str, ...]  # which of PARTS occurred


class World:
    """`plain`: only single tasks and their rules, with everything else unchanged. `scheduled`: whether there is a workflow
    with a schedule; None leaves that to the seed. `on`: the store, one of `STORES`."""

    def __init__(
        self,
        seed: int,
        *,
        rates: FaultRates | None = None,
        keep_trace: bool = False,
        plain: bool = False,
        scheduled: bool | None = None,
        on: str = "sqlite",
    ) -> None:
        self.seed = seed
        self._more = Random(f"language {seed}")
        kin = Random(f"kin {seed}")
        self.features = PLAIN if plain else replaced(draw_features(self._more), children=draw_children(kin))
        self.random = Random(f"world {seed}")
        self.kernel = Kernel(seed)
        orders = Random(f"controls {seed}")
        drawn = draw_rates(
            self.random, None if plain else orders
        )  # drawn also if rates are given, so that the rest stays the same
        fate = Random(f"machines {seed}")
        self.faults = Faults(seed, self.kernel, rates or drawn)
        self.length = self.random.uniform(60, 400)
        self.faults.plan_windows(self.length)
        self.objects = MemoryObjects(self.kernel.now)
        self.judge = Judge(self.kernel.now, OPTIONS.lease_seconds, self.objects)
        if keep_trace:
            self.judge.trace_lines = []
        self.cluster = Cluster(
            seed,
            self.kernel,
            self.faults,
            self.objects,
            self.judge.attempts,
            machines=self.random.choice((1, 1, 2)),
            features=self.features,
            platform=NO_GROUPS if plain else draw_platform(Random(f"groups {seed}")),
        )
        self.backend = self._open(on)
        self.store = self.backend.store
        self.versions = with_budgets(draw_versions(self.random, self._more, kin, self.features), seed, self.features)
        self.limits = draw_limits(self.random)
        self.pool_rates = draw_pool_rates(self._more, self.features, POOL)
        clock = Random(f"timetable {seed}")
        has_schedule = clock.random() < SCHEDULED_WORLDS
        self.timetable = Timetable(clock) if (has_schedule if scheduled is None else scheduled) else None
        self.ends_at_violation = True
        self.has_lost_a_machine = False
        hosts = self.random.choice((1, 2, 2, 3)) + (on == "firestore")  # contention is what is simulated there
        self.hosts = [self._make_host(number) for number in range(hosts)]
        client = SimulatedClient("people", self.kernel, self.faults)
        more = None if plain else self._more
        triggered = tuple(version for version in self.versions if not version.workflow.params)
        self.people = People(self.random, client, self.backend.view(client), triggered, more, self._waiting_approvals)
        self.operators = Operators(orders, self.people, self.judge.controls, self._control_targets)
        self.damage, self.damages = self._make_damage()
        self.cluster.on_report = self._meddle
        self.cluster.sees_all = fate.random() < 0.5
        self._inform_judge()

    def _inform_judge(self) -> None:
        """Give the judge access to the state of the world."""
        self.judge.leases.is_trusted = lambda id: any(host.trusts_its_lease(id) for host in self.hosts)
        self.judge.controls.mode_of = self._mode_of
        self.judge.controls.all_hold = self._all_hold
        self.judge.attempts.waits_in_progress = self.cluster.waits_in_progress
        self.judge.attempts.is_frozen = self.cluster.is_frozen
        self.judge.attempts.was_overwritten = self.cluster.was_overwritten
        self.judge.attempts.silent_for = lambda key: self.kernel.time - self.cluster.last_write_at(key)
        self.cluster.abandoned = self.judge.attempts.abandoned

    def run(self) -> Outcome:
        """Run with faults for a while, then without until everything has ended, checking all invariants."""
        try:
            with self.backend.at_work():
                self._live()
        finally:
            self.kernel.close()
        steps = sum(host.steps for host in self.hosts)
        lines = tuple(self.judge.trace_lines or ())
        violations, trace_hash = tuple(self.judge.violations), self.judge.trace_hash
        return Outcome(self.seed, violations, trace_hash, lines, steps, self._played())

    def _played(self) -> tuple[str, ...]:
        records = self.judge.ledger.runs.values()
        played = {
            "fan-out": any(key.index is not None for record in records for key in record.tasks),
            "launch groups": any(each.group is not None for record in records for each in record.attempts.values()),
            "sub-workflows": any(record.run.parent is not None for record in records),
            "schedules": any(record.run.workflow == TIMETABLE for record in records),
            "lost machines": self.has_lost_a_machine,
            "paused schedulers": self.judge.controls.has_stood,
            "unreadable rows": bool(self.judge.ledger.were_set_aside),
            "exceeded budgets": any(self.judge.budgets.exceeded.values()),
        }
        return tuple(part for part in PARTS if played[part])

    def _live(self) -> None:
        self.kernel.spawn("prepare", self._prepare())
        for host in self.hosts:
            self.kernel.spawn("host", host.live(), self.random.uniform(0.1, 1.0))
        self.kernel.spawn("people", self.people.act(self.length), 0.2)
        if not self.features.is_plain:
            self.kernel.spawn("second thoughts", self.people.think_again(self._more, self.length, self._ended_runs))
        if self.features.approvals:
            self.kernel.spawn("approver", self.people.decide(self._more))
        if self.faults.rates.controls:
            self.kernel.spawn("operators", self.operators.act(self.faults.rates.controls, self.length))
        self._plan_disasters()
        self.kernel.run(self.length, self._is_lost)
        self.faults.heal()
        self.damage.repair()
        self.kernel.spawn("resume", self.people.resume_all(every=30.0))
        if self.faults.rates.controls:
            self.kernel.spawn("resume schedulers", self.operators.resume_all(every=30.0))
        self.kernel.spawn("give up", self.people.cancel_all(30.0, lambda: sorted(self.judge.ledger.set_aside)))
        self.kernel.spawn("declare", self.people.declare_dead(30.0, self._unanswered))
        self.kernel.run(self.kernel.time + self._time_limit(), lambda: self._is_lost() or self._is_over())
        if not self.judge.violations:
            self.kernel.run(self.kernel.time + 1.0, self._is_lost)
            self.kernel.spawn("check", check_end(self.store, self.judge, self.cluster, self.objects, self.random))
            if self.timetable is not None:
                self.kernel.spawn("slots", self.timetable.check(self.store, self.judge))
            self.kernel.run(self.kernel.time)

    async def _prepare(self) -> None:
        now = EPOCH
        for version in self.versions:
            self.judge.workflows[version.workflow.name] = version.workflow
            await self.store.save_version(version, origin=None, now=now)
        await self.store.record_shared_settings(SHARED)
        await self.store.set_limits(self.limits, self.pool_rates)
        self.judge.set_limits(None, self.limits, self.pool_rates)
        if self.timetable is not None:
            await self.timetable.prepare(self.store, self.judge)
            self.kernel.spawn("closing", self._close_timetable(self.timetable))
        self.backend.begin_faults()

    async def _close_timetable(self, timetable: Timetable) -> None:
        await self.kernel.pause(max(0.0, self.length - self.kernel.time))
        await timetable.close(self.store)

    def _plan_disasters(self) -> None:
        rates, random = self.faults.rates, self.random
        for _ in range(rates.reboots):
            machine = random.choice(self.cluster.machines)
            self.kernel.later(random.uniform(0, self.length), partial(self.cluster.reboot, machine))
        for _ in range(rates.vanishings):
            self.kernel.later(random.uniform(0, self.length), self._lose_machine)
        for _ in range(rates.freezes):
            self.kernel.later(random.uniform(0, self.length), self._freeze_machine)
        for _ in range(rates.clean_stops):
            host = random.choice(self.hosts)
            self.kernel.later(random.uniform(0, self.length), host.request_stop)
        for _ in range(rates.forgeries):
            self.kernel.later(random.uniform(0, self.length), self._forge)
        for _ in range(self.damages):
            self.kernel.later(self.damage.random.uniform(0, self.length), self.damage.strike)

    def _unfinished(self) -> list[RunId]:
        """Unfinished runs that users started."""
        known = self.judge.ledger.runs
        return [run for run in self.people.runs if run in known and not known[run].run.status.is_final]

    def _lose_machine(self) -> None:
        lost = self.random.choice(self.cluster.machines)
        self.judge.trace("vanished", lost.name)
        self.has_lost_a_machine = True
        new = self.cluster.vanish(lost)
        for host in self.hosts:
            if host.machine is lost:
                host.move_to(new)

    def _freeze_machine(self) -> None:
        frozen = self.random.choice(self.cluster.machines)
        self.judge.trace("frozen", frozen.name)
        self.cluster.freeze(frozen, self.random.choice((20.0, 80.0, 150.0, 300.0)))

    def _control_targets(self) -> list[str]:
        living = [str(host.id) for host in self.hosts if host.process is not None]
        return [*living, *(machine.name for machine in self.cluster.machines)]

    def _mode_of(self, scheduler: SchedulerId) -> Mode | None:
        """The mode that schedulers must obey. None also while a late write is pending, since it may have been sent
        before schedulers read the control."""
        if self.faults.late_writes:
            return None
        return next((host.must_obey() for host in self.hosts if host.id == scheduler), None)

    def _all_hold(self) -> bool:
        living = [host.id for host in self.hosts if host.process is not None]
        return bool(living) and all(self._mode_of(id) is not None for id in living)

    def _forge(self) -> None:
        """Write a successful status without the attempt's token."""
        working = self.cluster.silent_so_far()
        if working:
            attempt = self.random.choice(working)
            words = {
                "v": 1, "attempt": str(attempt), "seq": 10**6, "state": "success", "at": "2026-01-01T00:00:00Z",
                "started_at": "2026-01-01T00:00:00Z", "finished_at": "2026-01-01T00:00:00Z", "exit_code": 0,
                "failure": None, "output": None, "metrics": None,
            }  # fmt: skip
            forged = documents.sign(words, documents.token_hash("another's token"))
            self.objects.put_status(str(attempt), forged)
            self.cluster.notify_watchers(attempt)

    def _meddle(self, run: RunId) -> None:
        """Let a user send a command when the last task of a run has ended but its end is not committed yet."""
        tasks = self.judge.ledger.runs[run].tasks.values()
        is_last = sum(not task.status.is_final for task in tasks) <= 1
        rate = self.faults.rates.meddling
        if self.faults.happens(min(1.0, rate * 5) if is_last else rate):
            self.people.meddle(run)

    def _make_host(self, number: int) -> SchedulerHost:
        machine = self.cluster.machines[number % len(self.cluster.machines)]
        room, batch = self.random.choice((4, 100)), self.random.choice((1, 3, 200))
        if room == 4 and not self.features.is_plain:
            room = self._more.choice((1, 2))
        tick = self.random.choice((None, None, None, 30.0))
        options = replaced(OPTIONS, max_claimed_runs=room, launch_batch=batch)
        shared = (self.kernel, self.faults, self.cluster, machine, self.backend.view, self.judge)
        return SchedulerHost(number, *shared, options, tick)

    def _open(self, on: str) -> Backend:
        shared = (self.kernel, self.faults, self.judge, self._wake_others, OPTIONS.lease_seconds)
        if on == "sqlite":
            return SqliteBackend(*shared)
        try:
            from ork.testing.firestore.backend import FirestoreBackend
        except ModuleNotFoundError as error:
            hint = "pip install 'ork-orchestrator[gcp]'"
            raise UsageError("worlds on Firestore need the package google-cloud-firestore", hint=hint) from error
        return FirestoreBackend(self.seed, *shared)

    def _make_damage(self) -> tuple[Damage, int]:
        """Also returns how many rows become unreadable: none where rows cannot be damaged."""
        rows = self.backend.sqlite._db.connection if isinstance(self.backend, SqliteBackend) else None
        return Damage(self.seed, rows, self._unfinished), 0 if rows is None else self.faults.rates.damages

    def _wake_others(self, writer: SimulatedProcess | None) -> None:
        """Wake the schedulers that the store notifies; the notification may be late."""
        for host in self.hosts:
            if host.process is not None and host.process is not writer:
                is_lost = self.faults.happens(self.faults.rates.lost_news)
                delay = self.faults.random.choice((0.0, 0.01, self.faults.random.uniform(0.0, 1.0)))
                self.kernel.later(SLOW_LOOK_SECONDS if is_lost else delay, host.wake)

    def _ended_runs(self) -> list[RunId]:
        return [run for run, record in self.judge.ledger.runs.items() if record.run.status.is_final]

    def _unanswered(self) -> list[tuple[RunId, TaskKey]]:
        """Tasks on machines that are gone, or unreachable for the owner of the run, and that do nothing any more. All others
        must end without a user's help."""
        active = self.judge.ledger.active_attempts()
        closing = [attempt for attempt in active if attempt.closing is not None and attempt.waits_for is None]
        return [
            (attempt.key.run, attempt.key.task)
            for attempt in closing
            if (self.cluster.is_out_of_reach(attempt) or self._does_nothing_unseen(attempt))
            and self.judge.ledger.runs[attempt.key.run].spec(attempt.key.task).on_unreachable is OnUnreachable.WAIT
        ]

    def _does_nothing_unseen(self, attempt: Attempt) -> bool:
        """True if the attempt is not alive, as a user could see on its machine."""
        return not self.cluster.sees_all and self.cluster.is_frozen(attempt.key)

    def _waiting_approvals(self) -> list[tuple[RunId, TaskSpec]]:
        return [
            (run, record.spec(task.key))
            for run, record in self.judge.ledger.runs.items()
            for task in record.tasks.values()
            if task.status is TaskStatus.RUNNING and isinstance(record.spec(task.key).action, Approval)
        ]

    def _is_lost(self) -> bool:
        return self.ends_at_violation and bool(self.judge.violations)

    def _is_over(self) -> bool:
        records = self.judge.ledger.runs.values()
        ended = all(record.run.status.is_final and not record.commands for record in records)
        is_quiet = self.people.are_done and not self.faults.late_writes
        return ended and is_quiet and not self.cluster.living_workers()

    def _time_limit(self) -> float:
        """An upper bound for the remaining time: unfinished work may have to run sequentially."""
        work = sum(self._work_of(record.workflow) for record in self.judge.ledger.runs.values())
        return CALM_SECONDS + min(work, MOST_WORK)

    def _work_of(self, workflow: CompiledWorkflow) -> float:
        work = 0.0
        for spec in workflow.tasks:
            once = LONGEST_ATTEMPT + (0.0 if spec.rate is None else spec.rate.seconds)
            once += LONGEST_START if spec.fans_out and self.cluster.platform.size else 0.0
            if isinstance(spec.action, SubWorkflow):
                once += self._work_of(self.judge.workflows[spec.action.name])
            work += once * (1 + spec.retries) * (MAX_INSTANCES if spec.fans_out else 1)
        return work
