"""A machine, an executor and an attempt to start, without a scheduler."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from ork.executors.executor import GroupOrder, LaunchOrder
from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.task import Attempt, AttemptStatus, GroupPlace
from ork.objects import documents
from ork.testing.clock import EPOCH
from ork.testing.cluster import Cluster
from ork.testing.executor import ScriptedExecutor
from ork.testing.faults import FaultRates, Faults, SimulatedProcess
from ork.testing.kernel import Kernel
from ork.testing.objects import MemoryObjects
from ork.testing.platform import NO_GROUPS, Platform


class Witness:
    """Writes down what really happens."""

    def __init__(self) -> None:
        self.events: list[tuple[str, int]] = []
        self.started: list[AttemptKey] = []
        self.running: set[AttemptKey] = set()

    def launched(self, attempt: AttemptKey) -> None:
        self.events.append(("launched", attempt.number))

    def user_code_started(self, attempt: AttemptKey, rivals: tuple[AttemptKey, ...]) -> None:
        self.events.append(("started", attempt.number))
        self.started.append(attempt)
        self.running.add(attempt)

    def user_code_went_on(self, attempt: AttemptKey) -> None:
        return

    def user_code_ended(self, attempt: AttemptKey) -> None:
        self.events.append(("ended", attempt.number))
        self.running.discard(attempt)

    def will_report(self, attempt: AttemptKey, state: str, output: str | None) -> None:
        return

    def reported(self, attempt: AttemptKey, state: str, output: str | None) -> None:
        self.events.append((state, attempt.number))

    def report_lost(self, attempt: AttemptKey) -> None:
        return


class Stage:
    def __init__(
        self, *, seed: int = 0, timeout: float | None = None, platform: Platform = NO_GROUPS, **rates: float
    ) -> None:
        self.kernel = Kernel(seed)
        self.faults = Faults(seed, self.kernel, FaultRates(**rates))  # type: ignore[arg-type]
        self.objects = MemoryObjects(self.kernel.now)
        self.witness = Witness()
        self.cluster = Cluster(
            seed, self.kernel, self.faults, self.objects, self.witness, machines=1, platform=platform
        )
        process = SimulatedProcess("p", self.kernel, self.faults)
        self.executor = ScriptedExecutor("sim", self.cluster, self.cluster.machines[0], process)
        self.news: list[AttemptKey] = []
        self._timeout = timeout

    def order(self, number: int = 1) -> LaunchOrder:
        """An attempt whose signed spec is in the object store."""
        return self._order(AttemptKey(RunId("run"), TaskKey("task"), number), b"key")

    def group(self, size: int, parallelism: int) -> GroupOrder:
        """Attempts of one task, as a scheduler orders them to be started together."""
        keys = [AttemptKey(RunId("run"), TaskKey("task", index), 1) for index in range(size)]
        id = str(keys[0])
        secret = documents.group_key(b"key", id)
        places = [GroupPlace(id, index, parallelism) for index in range(size)]
        orders = [self._order(key, secret, place) for key, place in zip(keys, places, strict=True)]
        return GroupOrder(id, parallelism, secret.hex(), tuple(orders))

    def _order(self, key: AttemptKey, secret: bytes, place: GroupPlace | None = None) -> LaunchOrder:
        token = documents.derive_token(secret, str(key))
        signed_by = documents.token_hash(token)
        name = self.executor.name_for(key)
        attempt = Attempt(key, AttemptStatus.DISPATCHED, "sim", name, signed_by, dispatched_at=EPOCH, group=place)
        spec = {"attempt": str(key), "timeout": self._timeout, "heartbeat_seconds": 10, "fence_seconds": 45}
        self.objects.put_specs([(str(key), documents.sign(spec, signed_by))])
        return LaunchOrder(attempt, token, "/")

    def start(self, order: LaunchOrder) -> None:
        self.do(self.executor.start([order], lambda key, _told=None: self.news.append(key)))

    def find(self, order: LaunchOrder) -> str:
        return str(self.do(self.executor.find([order.attempt]))[0])

    def do(self, call: Coroutine[Any, Any, Any]) -> Any:
        answers: list[Any] = []

        async def ask() -> None:
            answers.append(await call)

        self.kernel.spawn("ask", ask())
        self.pass_time(0.009)
        return answers[0]

    def pass_time(self, seconds: float) -> None:
        self.kernel.run(self.kernel.time + seconds)

    def status(self, order: LaunchOrder) -> dict[str, Any]:
        (data,) = self.objects.read_statuses([str(order.attempt.key)])
        assert isinstance(data, bytes)
        return documents.open_signed(data, order.attempt.token_hash)
