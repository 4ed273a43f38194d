"""Runs attempts as containers. Each has a monitor in this process, and can outlive the process.

The monitors wait for the engine concurrently, so that it does not delay the scheduler.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from ork.errors import DocumentError, EngineError, ObjectsError, StoreError, UsageError
from ork.executors.attempt_rows import AttemptOf, unknown_attempt
from ork.executors.docker.address import engine_address
from ork.executors.docker.container_documents import ContainerDocuments, DocumentsOf, FindMask
from ork.executors.docker.container_monitor import ContainerMonitor
from ork.executors.docker.engine import Engine
from ork.executors.docker.gate_engine import is_engine_of, was_started
from ork.executors.docker.images import Images
from ork.executors.docker.launching import ContainerLaunch
from ork.executors.docker.making import LABEL, STORE_LABEL, container_name
from ork.executors.executor import CONTAINER_TRAITS, Executor, LaunchOrder, NotStarted, Presence, StatusCallback
from ork.model.ids import AttemptKey
from ork.model.masking import Mask, values_to_mask
from ork.model.task import Attempt

_PAUSE_SECONDS = 1.0
_SILENT_SECONDS = 45.0  # without a response from an engine that is called more often than that
_SWEEP_SECONDS = 30.0
_MISSED_BEATS = 3
_LAST_START_SECONDS = 60.0  # for a tick, which closes right after `start`


class DockerExecutor(Executor):
    """`store` is the label of this installation's containers. `host` and `certificates` are the defaults for worker configs
    without them; `logins` is the folder that `docker login` writes to. `is_left_over` returns, by attempt id, whether its
    container is no longer needed; `attempt_of` returns its row. `on_engines` is called with the engines in use."""

    traits = CONTAINER_TRAITS

    def __init__(
        self,
        name: str,
        documents: DocumentsOf,
        store: str,
        *,
        is_left_over: Callable[[str], bool] = lambda _attempt: False,
        host: str | None = None,
        certificates: str | None = None,
        logins: str = "",
        find_mask: FindMask = lambda _spec: None,
        attempt_of: AttemptOf = unknown_attempt,
        on_engines: Callable[[list[tuple[str | None, str | None]]], None] = lambda _engines: None,
    ) -> None:
        self.name = name
        self._documents = documents
        self._store = store
        self._is_left_over = is_left_over
        self._host = host
        self._certificates = certificates
        self._logins = logins
        self._find_mask = find_mask
        self._attempt_of = attempt_of
        self._on_engines = on_engines
        self._sweeps: list[asyncio.Task[None]] = []
        self._engines: dict[tuple[str | None, str | None], tuple[Engine, Images]] = {}
        self._monitors: dict[AttemptKey, tuple[ContainerMonitor, asyncio.Task[None]]] = {}
        self._on_status: StatusCallback | None = None
        self._background: set[asyncio.Task[None]] = set()

    def name_for(self, attempt: AttemptKey) -> str:
        return f"docker:{container_name(str(attempt))}"

    async def start(self, orders: Sequence[LaunchOrder], on_status: StatusCallback) -> Sequence[NotStarted]:
        self._on_status = on_status
        problems = await asyncio.gather(*(self._start_one(order) for order in orders))
        return [problem for problem in problems if problem is not None]

    async def _start_one(self, order: LaunchOrder) -> NotStarted | None:
        try:
            await self._monitor(order.attempt, order)
        except (DocumentError, UsageError) as error:
            return NotStarted(order.attempt.key, error.message, final=True)
        except ObjectsError as error:
            return NotStarted(order.attempt.key, error.message, final=False)
        return None

    async def find(self, attempts: Sequence[Attempt]) -> Sequence[Presence]:
        return await asyncio.gather(*(self._find_one(attempt) for attempt in attempts))

    async def watch(self, attempts: Sequence[Attempt], on_status: StatusCallback) -> None:
        self._on_status = on_status
        for attempt in attempts:
            with contextlib.suppress(ObjectsError, UsageError):
                await self._monitor(attempt)

    async def stop(self, attempts: Sequence[Attempt], *, at_once: bool) -> None:
        for attempt in attempts:
            documents = self._documents(attempt)
            gate = await documents.calls.call(documents.gate)
            monitor, task = self._monitors.get(attempt.key, (None, None))
            if (gate or {}).get("state") == "closed":
                if task is not None:
                    task.cancel()
                self._run_in_background(self._remove(attempt, documents))
            elif monitor is not None:
                monitor.stop(at_once=at_once)

    def release(self, attempts: Sequence[Attempt]) -> None:
        """Remove the containers of attempts whose ends are committed."""
        for attempt in attempts:
            self._run_in_background(self._remove(attempt, self._documents(attempt)))

    async def close(self) -> None:
        """Wait a limited time for pending starts and removals. Running containers continue."""
        self._on_status = None
        for sweep in self._sweeps:
            sweep.cancel()
        begun = [asyncio.ensure_future(monitor.has_begun.wait()) for monitor, _ in self._monitors.values()]
        if begun:
            await asyncio.wait(begun, timeout=_LAST_START_SECONDS)
        tasks = [*begun, *self._sweeps, *(task for _, task in self._monitors.values())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._background:
            _, late = await asyncio.wait(self._background, timeout=_PAUSE_SECONDS * 5)
            for work in late:
                work.cancel()

    # ── monitors ─────────────────────────────────────────────────────────────────────────────────

    async def _monitor(self, attempt: Attempt, order: LaunchOrder | None = None) -> None:
        """Start a monitor for the attempt, unless it has one."""
        if attempt.key in self._monitors:
            return
        documents = self._documents(attempt)
        spec = await documents.calls.call(documents.spec)
        if spec is None or await documents.calls.call(documents.is_over) or attempt.key in self._monitors:
            return
        token, secrets = (order.token, dict(order.secrets)) if order is not None else (None, {})
        engine, images = self._engine(spec)
        launch = ContainerLaunch(engine, images, documents, spec, self._store, token, secrets)
        if secrets:
            documents.mask = Mask(values_to_mask(secrets)) or None
        monitor = ContainerMonitor(
            engine, documents, spec, launch, self._find_mask if order is None else lambda _spec: None
        )
        task = asyncio.ensure_future(self._run_monitor(attempt.key, monitor))
        self._monitors[attempt.key] = monitor, task
        # Not in the task itself: a task that is cancelled before its first step would never run it.
        task.add_done_callback(lambda _: self._on_monitor_end(attempt.key))

    async def _run_monitor(self, key: AttemptKey, monitor: ContainerMonitor) -> None:
        try:
            await monitor.run(lambda: self._notify(key))
        except (EngineError, ObjectsError):
            await asyncio.sleep(_PAUSE_SECONDS)  # the next look starts a new monitor

    def _on_monitor_end(self, key: AttemptKey) -> None:
        self._monitors.pop(key, None)
        self._notify(key)

    def _notify(self, key: AttemptKey) -> None:
        if self._on_status is not None:
            self._on_status(key)

    async def _find_one(self, attempt: Attempt) -> Presence:
        try:
            documents = self._documents(attempt)
            spec = await documents.calls.call(documents.spec)
            if spec is None:
                return Presence.GONE  # it was never started
            engine = self._engine(spec)[0]
            if attempt.key in self._monitors:
                answers = time.monotonic() - engine.answered_at < _SILENT_SECONDS
                return Presence.RUNNING if answers else Presence.UNKNOWN
            gate = await documents.calls.call(documents.gate)
            if gate is None or await documents.calls.call(documents.is_over):
                return Presence.GONE
            found = await engine.inspect(container_name(str(attempt.key)))
            is_known = found is not None and found["Id"] == gate.get("container")
            if was_started(gate) and not is_known and not await is_engine_of(engine, gate):
                return Presence.UNKNOWN
            if found is None:
                return Presence.GONE
        except (EngineError, ObjectsError, UsageError):
            return Presence.UNKNOWN
        await self._monitor(attempt)
        return Presence.RUNNING

    async def _remove(self, attempt: Attempt, documents: ContainerDocuments) -> None:
        monitor = self._monitors.get(attempt.key)
        if monitor is not None:
            await asyncio.wait([monitor[1]])
        with contextlib.suppress(EngineError, ObjectsError, UsageError):
            spec = await documents.calls.call(documents.spec)
            if spec is not None:
                await self._engine(spec)[0].remove(container_name(str(attempt.key)), force=True)

    def sweep_engines(self, engines: Sequence[tuple[str | None, str | None]]) -> None:
        """Sweep the containers on these engines, given by address and certificates. Requires a running event loop."""
        for host, certificates in engines:
            with contextlib.suppress(UsageError):
                self._engine_at(host, certificates)

    async def _sweep_regularly(self, engine: Engine) -> None:
        """Check all of the installation's containers on the engine regularly, so that none is forgotten."""
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            await self._sweep(engine)

    async def _sweep(self, engine: Engine) -> None:
        with contextlib.suppress(EngineError, ObjectsError, UsageError, StoreError):
            for found in await engine.containers([f"{STORE_LABEL}={self._store}"]):
                await self._check_container(engine, found)

    async def _check_container(self, engine: Engine, found: dict[str, Any]) -> None:
        """Remove the container if it is no longer needed, stop it if its attempt was given up, and monitor it if no
        scheduler does."""
        name = found["Labels"].get(LABEL, "")
        if found["State"] != "running" and await asyncio.to_thread(self._is_left_over, name):
            await engine.remove(found["Id"])
            return
        attempt = await self._attempt_of(name)
        if attempt is None:
            return  # it may belong to another installation
        if attempt.status.is_final:
            await engine.remove(found["Id"], force=True)
            return
        documents = self._documents(attempt)
        gate = await documents.calls.call(documents.gate) or {}
        is_its_container = gate.get("container") == found["Id"]
        if (
            attempt.key not in self._monitors
            and is_its_container
            and not await documents.calls.call(_is_monitored, documents)
        ):
            await self._monitor(attempt)
        if attempt.closing is not None and attempt.key in self._monitors:
            self._monitors[attempt.key][0].stop(at_once=False)

    def _run_in_background(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _engine(self, spec: dict[str, Any]) -> tuple[Engine, Images]:
        """The engine of the spec's worker config. UsageError if its address is invalid."""
        wanted = spec["container"]
        return self._engine_at(wanted["host"] or self._host, wanted["certificates"] or self._certificates)

    def _engine_at(self, host: str | None, certificates: str | None) -> tuple[Engine, Images]:
        key = host, certificates
        if key not in self._engines:
            engine = Engine(engine_address(host, certificates))
            self._engines[key] = engine, Images(engine, self._logins)
            self._run_in_background(self._sweep(engine))
            self._sweeps.append(asyncio.ensure_future(self._sweep_regularly(engine)))
            self._on_engines(list(self._engines))
        return self._engines[key]


def _is_monitored(documents: ContainerDocuments) -> bool:
    """True if another scheduler writes its heartbeats, or has just started it."""
    spec, last = documents.spec(), documents.status() or documents.gate()
    if spec is None or last is None:
        return False
    age = (datetime.now(UTC) - datetime.fromisoformat(last["at"])).total_seconds()
    return bool(age < _MISSED_BEATS * spec["heartbeat_seconds"])
