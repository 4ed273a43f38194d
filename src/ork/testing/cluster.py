"""The simulated machines on which attempts run, and what is really alive there."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Protocol

from ork.executors.executor import GroupOrder, LaunchOrder, StatusCallback
from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.record import Record
from ork.model.task import Attempt
from ork.testing.faults import Faults, SimulatedProcess
from ork.testing.kernel import Kernel
from ork.testing.language import PLAIN, Features
from ork.testing.objects import MemoryObjects
from ork.testing.platform import NO_GROUPS, GroupUnit, Platform
from ork.testing.script import ExternalJob, Script, draw_luck, write_script
from ork.testing.worker import SimulatedWorker

# A worker that cannot write continues for the fence time (45 s) before it ends its task. If it is suspended from then
# on, it has been so for the stale limit when it counts as over (stale limit + fence time after its last write).
FROZEN_SECONDS = 60.0


class Machine(Record, frozen=False):
    name: str
    boot: int = 1
    is_gone: bool = False
    frozen_until: float = 0.0  # it is suspended with everything on it, and does not answer


class Witness(Protocol):
    """Is called with what really happens, to compare it with the store."""

    def launched(self, attempt: AttemptKey) -> None: ...
    def user_code_started(self, attempt: AttemptKey, rivals: tuple[AttemptKey, ...]) -> None: ...
    def user_code_went_on(self, attempt: AttemptKey) -> None: ...
    def user_code_ended(self, attempt: AttemptKey) -> None: ...
    def reported(self, attempt: AttemptKey, state: str, output: str | None) -> None: ...
    def will_report(self, attempt: AttemptKey, state: str, output: str | None) -> None: ...
    def report_lost(self, attempt: AttemptKey) -> None: ...


class Cluster:
    def __init__(
        self,
        seed: int,
        kernel: Kernel,
        faults: Faults,
        objects: MemoryObjects,
        witness: Witness,
        machines: int,
        features: Features = PLAIN,
        platform: Platform = NO_GROUPS,
    ) -> None:
        self.platform = platform
        self.kernel = kernel
        self.faults = faults
        self.objects = objects
        self.on_report: Callable[[RunId], None] = lambda _run: None
        self.machines = [Machine(f"m{number}") for number in range(machines)]
        self.sees_all = True  # otherwise an executor reaches only its own machine
        self._names = [machine.name for machine in self.machines]
        self._gone: list[Machine] = []
        self.abandoned: Set[AttemptKey] = frozenset()  # attempts that count as over
        self.jobs: dict[AttemptKey, ExternalJob] = {}
        self._features = features
        self._seed = seed
        self._witness = witness
        self._workers: dict[AttemptKey, list[SimulatedWorker]] = {}
        self._watchers: dict[AttemptKey, list[tuple[SimulatedProcess, StatusCallback]]] = {}
        self._units: list[GroupUnit] = []

    # ── for executors ────────────────────────────────────────────────────────────────────────────

    def spawn(self, order: LaunchOrder, machine: Machine) -> SimulatedWorker:
        self._witness.launched(order.attempt.key)
        workers = self._workers.setdefault(order.attempt.key, [])
        workers.append(SimulatedWorker(self, machine, order, draw_luck(self.faults), len(workers)))
        return workers[-1]

    def spawn_group(self, group: GroupOrder, machine: Machine) -> None:
        """Start the group as one unit, unless one of its units is alive."""
        if self.unit_of(group.id) is None:
            seed = f"unit {self._seed} {group.id} {len(self._units)}"
            self._units.append(GroupUnit(self, machine, group, self.platform, seed))

    def unit_of(self, group: str) -> GroupUnit | None:
        """The living unit of a group."""
        return next((unit for unit in self._units if unit.group.id == group and unit.is_alive), None)

    def waits_in_progress(self, attempt: AttemptKey, seconds: float) -> bool:
        """True if the attempt waits inside its group, and another one of the group has ended within `seconds`."""
        units = [unit for unit in self._units if unit.waits_for(attempt)]
        return any(self.kernel.time - unit.last_end < seconds for unit in units)

    def workers_of(self, attempt: Attempt) -> list[SimulatedWorker]:
        return self._workers.get(attempt.key, [])

    def machine_named(self, name: str) -> Machine:
        return next(machine for machine in (*self.machines, *self._gone) if machine.name == name)

    def is_out_of_reach(self, attempt: Attempt) -> bool:
        """True if its machine is gone for ever."""
        return any(attempt.external_name.startswith(f"sim:{machine.name}:") for machine in self._gone)

    def subscribe(self, attempt: AttemptKey, process: SimulatedProcess, on_status: StatusCallback) -> None:
        self._watchers.setdefault(attempt, []).append((process, on_status))

    # ── for workers ──────────────────────────────────────────────────────────────────────────────

    def script_of(self, attempt: AttemptKey, has_timeout: bool) -> Script:
        return write_script(self._seed, attempt, has_timeout, self._features)

    def begin_job(self, attempt: AttemptKey, script: Script) -> None:
        """The worker hands over to an external job, which continues on its own."""
        done_at = self.kernel.time + (script.job_seconds or 0.0)
        self.jobs.setdefault(attempt, ExternalJob(done_at, script.job_fails, script.output, script.output_is_large))

    def user_code_started(self, worker: SimulatedWorker) -> None:
        task = _task_of(worker.attempt.key)
        others = [other for other in self._all() if other is not worker and other.user_is_alive]
        rivals = tuple(other.attempt.key for other in others if _task_of(other.attempt.key) == task)
        self._witness.user_code_started(worker.attempt.key, rivals)

    def user_code_went_on(self, worker: SimulatedWorker) -> None:
        """The user code continues after a suspension."""
        self._witness.user_code_went_on(worker.attempt.key)

    def user_code_ended(self, worker: SimulatedWorker) -> None:
        self._witness.user_code_ended(worker.attempt.key)

    def will_report(self, attempt: AttemptKey, state: str, output: str | None) -> None:
        self._witness.will_report(attempt, state, output)

    def reported(self, attempt: AttemptKey, state: str, output: str | None) -> None:
        self._witness.reported(attempt, state, output)
        for unit in self._units:
            if any(order.attempt.key == attempt for order in unit.group.orders):
                unit.last_end = self.kernel.time
        self.notify_watchers(attempt)
        self.on_report(attempt.run)

    def notify_watchers(self, attempt: AttemptKey) -> None:
        """Notify all watchers soon: once, twice, or not at all. Some calls carry the status of the time of sending."""
        faults = self.faults
        (status,) = self.objects.read_statuses([str(attempt)])
        for process, on_status in self._watchers.get(attempt, ()):
            if faults.happens(faults.rates.lost_news):
                continue
            for _ in range(2 if faults.happens(faults.rates.doubled_news) else 1):
                delay = faults.random.choice((0.0, 0.001, faults.random.uniform(0.0, 3.0)))
                reported = status if faults.random.random() < 0.5 and isinstance(status, bytes) else None
                self.kernel.later(delay, _Delivery(process, on_status, attempt, reported))

    # ── for the world ────────────────────────────────────────────────────────────────────────────

    def living_user_code(self) -> list[AttemptKey]:
        return [worker.attempt.key for worker in self._all() if worker.user_is_alive]

    def silent_so_far(self) -> list[AttemptKey]:
        """Running attempts that will report again."""
        return [worker.attempt.key for worker in self._all() if worker.user_is_alive and worker.is_alive]

    def living_workers(self) -> list[AttemptKey]:
        living = [worker.attempt.key for worker in self._all() if worker.is_alive or worker.user_is_alive]
        return [attempt for attempt in living if attempt not in self.abandoned]

    def is_frozen(self, attempt: AttemptKey) -> bool:
        """True if its worker has been suspended for so long that it counts as over."""
        since = [worker.frozen_since for worker in self._workers.get(attempt, []) if worker.user_is_alive]
        return all(moment is not None and self.kernel.time - moment >= FROZEN_SECONDS for moment in since)

    def vanish(self, machine: Machine) -> Machine:
        """Remove the machine and everything on it for ever, unnoticed. Returns its replacement."""
        machine.is_gone = True
        self._kill_units(machine)
        for worker in self._all():
            if worker.machine is machine:
                worker.kill(with_orphans=True)
        self.machines.remove(machine)
        self._gone.append(machine)
        return self.add_machine()

    def add_machine(self) -> Machine:
        new = Machine(f"m{len(self._names)}")
        self._names.append(new.name)
        self.machines.append(new)
        return new

    def freeze(self, machine: Machine, seconds: float) -> None:
        machine.frozen_until = max(machine.frozen_until, self.kernel.time + seconds)

    def stands_still(self, machine: Machine) -> bool:
        return machine.frozen_until > self.kernel.time and not self.faults.healed

    def was_overwritten(self, attempt: AttemptKey) -> bool:
        """True if its status was overwritten, so that some heartbeats could not be seen."""
        return self.objects.last_written_at(str(attempt), lambda writer: writer == "") is not None

    def last_write_at(self, attempt: AttemptKey) -> float:
        """Time of the last write of its worker."""
        return self.objects.last_written_at(str(attempt), lambda by: by.startswith(f"worker {attempt}")) or 0.0

    def reboot(self, machine: Machine) -> None:
        """Kill everything on the machine. Writes of the last seconds may be lost."""
        machine.boot += 1
        self._kill_units(machine)
        for worker in self._all():
            if worker.machine is machine and (worker.is_alive or worker.user_is_alive):
                worker.kill(with_orphans=True)
                if self.faults.random.random() < 0.5:
                    self._lose_writes(worker.attempt.key)

    def _kill_units(self, machine: Machine) -> None:
        for unit in self._units:
            if unit.machine is machine:
                unit.kill()

    def _lose_writes(self, attempt: AttemptKey) -> None:
        since = self.kernel.time - self.faults.random.uniform(0, 30)
        self.objects.lose_since(str(attempt), since)
        self._witness.report_lost(attempt)

    def _all(self) -> list[SimulatedWorker]:
        return [worker for workers in self._workers.values() for worker in workers]


class _Delivery:
    """A delayed status callback to a process that may have died in the meantime."""

    def __init__(
        self, process: SimulatedProcess, on_status: StatusCallback, attempt: AttemptKey, status: bytes | None
    ) -> None:
        self._process, self._on_status, self._attempt, self._status = process, on_status, attempt, status

    def __call__(self) -> None:
        if not self._process.is_dead:
            self._on_status(self._attempt, self._status)
            self._process.wakeup.set()


def _task_of(attempt: AttemptKey) -> tuple[str, TaskKey]:
    return attempt.run, attempt.task
