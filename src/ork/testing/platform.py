"""A platform that starts groups of attempts as one unit, and its faults: late starts, double starts, units that die."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from ork.executors.executor import GroupOrder, LaunchOrder
from ork.model.ids import AttemptKey
from ork.model.record import Record
from ork.testing.faults import STILL_SECONDS

if TYPE_CHECKING:
    from ork.testing.cluster import Cluster, Machine
    from ork.testing.worker import SimulatedWorker

LONGEST_START = 150.0  # seconds until a slow platform starts one more attempt of a group
LOOK_SECONDS = 1.0  # how often a unit looks whether it may start one more


class Platform(Record):
    """How the platform of a world behaves. Drawn apart from the rest, so that worlds without groups do not change."""

    size: int = 0  # of its largest group; 0: it starts every attempt alone
    is_slow: bool = False
    doubles: float = 0.0  # probability that an attempt is started twice
    deaths: float = 0.0  # probability that a unit dies with all its attempts


NO_GROUPS = Platform()


def draw_platform(random: Random) -> Platform:
    return Platform(
        size=random.choice((0, 0, 2, 3, 100, 100)),
        is_slow=random.random() < 0.4,
        doubles=random.choice((0.0, 0.1, 0.4)),
        deaths=random.choice((0.0, 0.0, 0.3)),
    )


class GroupUnit:
    """Starts the attempts of one group in order, at most `parallelism` at the same time."""

    def __init__(self, cluster: Cluster, machine: Machine, group: GroupOrder, platform: Platform, seed: str) -> None:
        self.group = group
        self.machine = machine
        self.is_alive = True
        self.last_end = float("-inf")  # when an attempt of it last reported its end
        self._cluster = cluster
        self._kernel = cluster.kernel
        self._platform = platform
        self._random = Random(seed)
        self._queue = list(group.orders)
        self._workers: list[SimulatedWorker] = []
        self._actor = cluster.kernel.spawn(f"group {group.id}", self._live(), self._delay())
        if self._happens(platform.deaths):
            cluster.kernel.later(self._random.uniform(0.0, 200.0), self._die)

    def waits_for(self, attempt: AttemptKey) -> bool:
        """True if the unit has yet to start the attempt."""
        return self.is_alive and any(order.attempt.key == attempt for order in self._queue)

    def kill(self) -> None:
        if self.is_alive:
            self.is_alive = False
            self._kernel.kill(self._actor)
            for worker in self._workers:
                worker.kill(with_orphans=True)

    def _die(self) -> None:
        if not self._cluster.faults.healed:
            self.kill()

    async def _live(self) -> None:
        while self._queue:
            while self._is_busy() or self._cluster.stands_still(self.machine):
                await self._kernel.pause(STILL_SECONDS if self._cluster.stands_still(self.machine) else LOOK_SECONDS)
            order = self._queue.pop(0)
            self._start(order)
            if self._happens(self._platform.doubles):
                self._start(order)
            await self._kernel.pause(self._delay())
        while any(worker.is_alive or worker.user_is_alive for worker in self._workers):
            await self._kernel.pause(LOOK_SECONDS)
        self.is_alive = False

    def _start(self, order: LaunchOrder) -> None:
        self._workers.append(self._cluster.spawn(order, self.machine))

    def _is_busy(self) -> bool:
        busy = {worker.attempt.key for worker in self._workers if worker.is_alive or worker.user_is_alive}
        return len(busy) >= self.group.parallelism

    def _delay(self) -> float:
        is_slow = self._platform.is_slow and self._random.random() < 0.8
        return self._random.uniform(30.0, LONGEST_START) if is_slow else self._random.uniform(0.0, 0.2)

    def _happens(self, rate: float) -> bool:
        return not self._cluster.faults.healed and self._random.random() < rate
