"""An executor of simulated machines. It makes every allowed fault, drawn from a seed."""

from __future__ import annotations

import json
from collections.abc import Sequence

from ork.errors import ExecutorError
from ork.executors.executor import Executor, ExecutorTraits, LaunchOrder, NotStarted, Presence, StatusCallback
from ork.model.ids import AttemptKey
from ork.model.task import Attempt
from ork.testing.cluster import Cluster, Machine
from ork.testing.faults import Process


class ScriptedExecutor(Executor):
    """One scheduler's access to the cluster. It starts attempts on its own machine and can find them on any."""

    traits = ExecutorTraits(fences_itself=True)

    def __init__(self, name: str, cluster: Cluster, machine: Machine, process: Process) -> None:
        self.name = name
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
            machine, boot = self._place_of(order.attempt)
            if not self._reaches(machine):
                refused.append(NotStarted(order.attempt.key, f"{machine.name} does not answer", final=False))
                continue
            if machine.boot != boot:
                refused.append(NotStarted(order.attempt.key, f"{machine.name} has been restarted", final=False))
                continue
            self._cluster.subscribe(order.attempt.key, self._process, on_status)
            if not any(worker.is_alive for worker in self._cluster.workers_of(order.attempt) if worker.at_gate):
                self._cluster.spawn(order, machine)
        await self._process.stumble_in_executor()
        if self._fails():
            raise ExecutorError("the answer to a start was lost")
        return refused

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
        return Presence.GONE

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
