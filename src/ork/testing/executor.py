"""An executor of simulated machines. It makes every allowed fault, drawn from a seed."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ork.errors import ExecutorError
from ork.executors.executor import (
    Executor,
    ExecutorTraits,
    GroupOrder,
    LaunchOrder,
    NotStarted,
    Presence,
    StatusCallback,
)
from ork.model.ids import AttemptKey
from ork.model.task import Attempt, AttemptStatus
from ork.testing.cluster import Cluster, Machine
from ork.testing.faults import SimulatedProcess


class ScriptedExecutor(Executor):
    """One scheduler's access to the cluster. It starts attempts on its own machine and can find them on any."""

    def __init__(self, name: str, cluster: Cluster, machine: Machine, process: SimulatedProcess) -> None:
        self.name = name
        self.traits = ExecutorTraits(fences_itself=True, starts_groups=cluster.platform.size)
        self._cluster = cluster
        self._machine = machine
        self._process = process

    def name_for(self, attempt: AttemptKey) -> str:
        return f"sim:{self._machine.name}:{self._machine.boot}:{attempt}"

    async def start(self, orders: Sequence[LaunchOrder], on_status: StatusCallback) -> Sequence[NotStarted]:
        refused = []
        await self._process.stumble_in_executor()
        if self._process.faults.machines_are_cut_off():
            raise ExecutorError("the machine cannot be reached")
        for order in orders:
            machine, _ = self._place_of(order.attempt)
            if (why := self._why_not(order.attempt)) is not None:
                refused.append(NotStarted(order.attempt.key, why, final=False))
                continue
            self._cluster.subscribe(order.attempt.key, self._process, on_status)
            if not any(worker.is_alive for worker in self._cluster.workers_of(order.attempt) if worker.at_gate):
                self._cluster.spawn(order, machine)
        await self._process.stumble_in_executor()
        if self._fails():
            raise ExecutorError("the answer to a start was lost")
        return refused

    async def start_groups(self, groups: Sequence[GroupOrder], on_status: StatusCallback) -> Sequence[NotStarted]:
        refused = []
        await self._process.stumble_in_executor()
        if self._process.faults.machines_are_cut_off():
            raise ExecutorError("the platform cannot be reached")
        for group in groups:
            machine, _ = self._place_of(group.orders[0].attempt)
            if (why := self._why_not(group.orders[0].attempt)) is not None:
                refused += [NotStarted(order.attempt.key, why, final=False) for order in group.orders]
                continue
            for order in group.orders:
                self._cluster.subscribe(order.attempt.key, self._process, on_status)
            self._cluster.spawn_group(group, machine)
        await self._process.stumble_in_executor()
        if self._fails():
            raise ExecutorError("the answer to a start was lost")
        return refused

    def _why_not(self, attempt: Attempt) -> str | None:
        """Why the attempt cannot be started; None if it can."""
        machine, boot = self._place_of(attempt)
        if not self._reaches(machine):
            return f"{machine.name} does not answer"
        return f"{machine.name} has been restarted" if machine.boot != boot else None

    async def find(self, attempts: Sequence[Attempt]) -> Sequence[Presence]:
        await self._process.stumble_in_executor()
        answers = [self._presence_of(attempt) for attempt in attempts]
        await self._process.stumble_in_executor()
        return answers

    async def watch(self, attempts: Sequence[Attempt], on_status: StatusCallback) -> None:
        await self._process.stumble_in_executor()
        for attempt in attempts:
            self._cluster.subscribe(attempt.key, self._process, on_status)

    async def stop(self, attempts: Sequence[Attempt], *, at_once: bool) -> None:
        await self._process.stumble_in_executor()
        if self._fails() or not all(self._reaches(self._place_of(attempt)[0]) for attempt in attempts):
            raise ExecutorError("the machine cannot be reached")
        for attempt in attempts:
            request = {"v": 1, "attempt": str(attempt.key), "why": "stop", "at_once": at_once}
            self._cluster.objects.request_stop(str(attempt.key), json.dumps(request).encode())
            for worker in self._cluster.workers_of(attempt):
                if not worker.at_gate and self._forgets():
                    continue
                if at_once:
                    worker.kill(with_orphans=True)
                else:
                    worker.terminate()

    async def close(self) -> None:
        return

    def _presence_of(self, attempt: Attempt) -> Presence:
        faults = self._process.faults
        machine, boot = self._place_of(attempt)
        if not self._reaches(machine) or faults.machines_are_cut_off() or faults.happens(faults.rates.unreachable):
            return Presence.UNKNOWN
        if machine.boot != boot:
            return Presence.LOST
        workers = self._cluster.workers_of(attempt)
        if any(worker.user_is_alive or (worker.is_alive and worker.at_gate) for worker in workers):
            return Presence.RUNNING
        if any(worker.is_alive for worker in workers) and not self._forgets():
            return Presence.RUNNING
        return Presence.QUEUED if self._may_yet_start(attempt) else Presence.GONE

    def _may_yet_start(self, attempt: Attempt) -> bool:
        """True if a living unit of its group has it in its queue, or had it and it never began."""
        has_begun = attempt.status is AttemptStatus.RUNNING or attempt.closing is not None
        if attempt.group is None or self._cluster.unit_of(attempt.group.id) is None:
            return False
        return not has_begun and not any(worker.at_gate for worker in self._cluster.workers_of(attempt))

    def _reaches(self, machine: Machine) -> bool:
        if machine is not self._machine and not self._cluster.sees_all:
            return False
        return not machine.is_gone and not self._cluster.stands_still(machine)

    def _place_of(self, attempt: Attempt) -> tuple[Machine, int]:
        _, machine, boot, _ = attempt.external_name.split(":", 3)
        return self._cluster.machine_named(machine), int(boot)

    def _forgets(self) -> bool:
        """True if a worker that is still starting is not found yet."""
        faults = self._process.faults
        return faults.happens(faults.rates.forgotten)

    def _fails(self) -> bool:
        faults = self._process.faults
        return faults.machines_are_cut_off() or faults.happens(faults.rates.start_error)
