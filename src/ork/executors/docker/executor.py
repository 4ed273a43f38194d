"""Attempts as containers: each has a keeper in this process, and outlives it if it must.

Nothing here waits for an engine on the scheduler's time: keepers do, each on its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

from ork.errors import DocumentError, EngineError, ObjectsError, StoreError, UsageError
from ork.executors.docker.address import engine_address
from ork.executors.docker.engine import Engine
from ork.executors.docker.images import Images
from ork.executors.docker.keeper import Keeper
from ork.executors.docker.launching import Launch
from ork.executors.docker.making import LABEL, STORE_LABEL, container_name
from ork.executors.docker.papers import FindMask, Papers, PapersOf
from ork.executors.docker.whereabouts import is_here, was_started
from ork.executors.executor import CONTAINER_TRAITS, Executor, LaunchOrder, NotStarted, Presence, StatusCallback
from ork.model.ids import AttemptKey
from ork.model.masking import Mask, values_to_mask
from ork.model.task import Attempt

_BREATH_SECONDS = 1.0
_SILENT_SECONDS = 45.0  # without any answer of an engine whose containers are asked about more often
_TEND_SECONDS = 30.0
_MISSED_BEATS = 3
_LAST_START_SECONDS = 60.0  # for a tick, which is over as soon as it has given its orders


AttemptOf: TypeAlias = Callable[[str], Awaitable[Attempt | None]]


async def nobody_knows(_attempt: str) -> Attempt | None:
    return None


class DockerExecutor(Executor):
    """`store` marks containers as this installation's; `host` and `certificates` hold where a worker config has none;
    `logins` is the folder that `docker login` writes to. `is_left_over` tells of an attempt, by its id, whether nobody
    needs its container any more; `attempt_of` gives its row. `on_engines` is told of the engines that are in use."""

    traits = CONTAINER_TRAITS

    def __init__(
        self,
        name: str,
        papers: PapersOf,
        store: str,
        *,
        is_left_over: Callable[[str], bool] = lambda _attempt: False,
        host: str | None = None,
        certificates: str | None = None,
        logins: str = "",
        find_mask: FindMask = lambda _spec: None,
        attempt_of: AttemptOf = nobody_knows,
        on_engines: Callable[[list[tuple[str | None, str | None]]], None] = lambda _engines: None,
    ) -> None:
        self.name = name
        self._papers = papers
        self._store = store
        self._is_left_over = is_left_over
        self._host = host
        self._certificates = certificates
        self._logins = logins
        self._find_mask = find_mask
        self._attempt_of = attempt_of
        self._on_engines = on_engines
        self._tending: list[asyncio.Task[None]] = []
        self._engines: dict[tuple[str | None, str | None], tuple[Engine, Images]] = {}
        self._keepers: dict[AttemptKey, tuple[Keeper, asyncio.Task[None]]] = {}
        self._news: StatusCallback | None = None
        self._errands: set[asyncio.Task[None]] = set()

    def name_for(self, attempt: AttemptKey) -> str:
        return f"docker:{container_name(str(attempt))}"

    async def start(self, orders: Sequence[LaunchOrder], on_status: StatusCallback) -> Sequence[NotStarted]:
        self._news = on_status
        problems = await asyncio.gather(*(self._start_one(order) for order in orders))
        return [problem for problem in problems if problem is not None]

    async def _start_one(self, order: LaunchOrder) -> NotStarted | None:
        try:
            await self._keep(order.attempt, order)
        except (DocumentError, UsageError) as error:
            return NotStarted(order.attempt.key, error.message, final=True)
        except ObjectsError as error:
            return NotStarted(order.attempt.key, error.message, final=False)
        return None

    async def find(self, attempts: Sequence[Attempt]) -> Sequence[Presence]:
        return await asyncio.gather(*(self._find_one(attempt) for attempt in attempts))

    async def watch(self, attempts: Sequence[Attempt], on_status: StatusCallback) -> None:
        self._news = on_status
        for attempt in attempts:
            with contextlib.suppress(ObjectsError, UsageError):
                await self._keep(attempt)

    async def stop(self, attempts: Sequence[Attempt], *, at_once: bool) -> None:
        for attempt in attempts:
            papers = self._papers(attempt)
            gate = await papers.calls.call(papers.gate)
            keeper, task = self._keepers.get(attempt.key, (None, None))
            if (gate or {}).get("state") == "closed":
                if task is not None:
                    task.cancel()
                self._run_errand(self._remove(attempt, papers))
            elif keeper is not None:
                keeper.stop(at_once=at_once)

    def release(self, attempts: Sequence[Attempt]) -> None:
        """Their ends are facts in the store: nothing needs their containers any more."""
        for attempt in attempts:
            self._run_errand(self._remove(attempt, self._papers(attempt)))

    async def close(self) -> None:
        """What was to be started is, for a while, and what ended is removed; what runs goes on without us."""
        self._news = None
        for tending in self._tending:
            tending.cancel()
        begun = [asyncio.ensure_future(keeper.has_begun.wait()) for keeper, _ in self._keepers.values()]
        if begun:
            await asyncio.wait(begun, timeout=_LAST_START_SECONDS)
        tasks = [*begun, *self._tending, *(task for _, task in self._keepers.values())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._errands:
            _, late = await asyncio.wait(self._errands, timeout=_BREATH_SECONDS * 5)
            for errand in late:
                errand.cancel()

    # ── keepers ──────────────────────────────────────────────────────────────────────────────────

    async def _keep(self, attempt: Attempt, order: LaunchOrder | None = None) -> None:
        """Someone sees to it from now on, unless someone does already."""
        if attempt.key in self._keepers:
            return
        papers = self._papers(attempt)
        spec = await papers.calls.call(papers.spec)
        if spec is None or await papers.calls.call(papers.is_over) or attempt.key in self._keepers:
            return
        token, secrets = (order.token, dict(order.secrets)) if order is not None else (None, {})
        engine, images = self._engine(spec)
        launch = Launch(engine, images, papers, spec, self._store, token, secrets)
        if secrets:
            papers.mask = Mask(values_to_mask(secrets)) or None
        keeper = Keeper(engine, papers, spec, launch, self._find_mask if order is None else lambda _spec: None)
        task = asyncio.ensure_future(self._kept(attempt.key, keeper))
        self._keepers[attempt.key] = keeper, task
        # Not in the task itself: one that is told to go before its first step would never get there.
        task.add_done_callback(lambda _: self._let_go(attempt.key))

    async def _kept(self, key: AttemptKey, keeper: Keeper) -> None:
        try:
            await keeper.keep(lambda: self._tell(key))
        except (EngineError, ObjectsError):
            await asyncio.sleep(_BREATH_SECONDS)  # whoever looks next begins again

    def _let_go(self, key: AttemptKey) -> None:
        self._keepers.pop(key, None)
        self._tell(key)

    def _tell(self, key: AttemptKey) -> None:
        if self._news is not None:
            self._news(key)

    async def _find_one(self, attempt: Attempt) -> Presence:
        try:
            papers = self._papers(attempt)
            spec = await papers.calls.call(papers.spec)
            if spec is None:
                return Presence.GONE  # nobody has begun with it
            engine = self._engine(spec)[0]
            if attempt.key in self._keepers:
                answers = time.monotonic() - engine.answered_at < _SILENT_SECONDS
                return Presence.RUNNING if answers else Presence.UNKNOWN
            gate = await papers.calls.call(papers.gate)
            if gate is None or await papers.calls.call(papers.is_over):
                return Presence.GONE
            found = await engine.inspect(container_name(str(attempt.key)))
            is_known = found is not None and found["Id"] == gate.get("container")
            if was_started(gate) and not is_known and not await is_here(engine, gate):
                return Presence.UNKNOWN
            if found is None:
                return Presence.GONE
        except (EngineError, ObjectsError, UsageError):
            return Presence.UNKNOWN
        await self._keep(attempt)
        return Presence.RUNNING

    async def _remove(self, attempt: Attempt, papers: Papers) -> None:
        keeper = self._keepers.get(attempt.key)
        if keeper is not None:
            await asyncio.wait([keeper[1]])
        with contextlib.suppress(EngineError, ObjectsError, UsageError):
            spec = await papers.calls.call(papers.spec)
            if spec is not None:
                await self._engine(spec)[0].remove(container_name(str(attempt.key)), force=True)

    def attend(self, engines: Sequence[tuple[str | None, str | None]]) -> None:
        """Looks after containers on these engines, given by address and certificates. Only with a running event loop."""
        for host, certificates in engines:
            with contextlib.suppress(UsageError):
                self._engine_at(host, certificates)

    async def _tend(self, engine: Engine) -> None:
        """No container is nobody's: whoever uses an engine looks after all of the installation's containers there."""
        while True:
            await asyncio.sleep(_TEND_SECONDS)
            await self._sweep(engine)

    async def _sweep(self, engine: Engine) -> None:
        with contextlib.suppress(EngineError, ObjectsError, UsageError, StoreError):
            for found in await engine.containers([f"{STORE_LABEL}={self._store}"]):
                await self._look_after(engine, found)

    async def _look_after(self, engine: Engine, found: dict[str, Any]) -> None:
        """Removes what nobody needs any more, ends what was given up, and keeps what nobody keeps."""
        name = found["Labels"].get(LABEL, "")
        if found["State"] != "running" and await asyncio.to_thread(self._is_left_over, name):
            await engine.remove(found["Id"])
            return
        attempt = await self._attempt_of(name)
        if attempt is None:
            return  # another installation's, for all we know
        if attempt.status.is_final:
            await engine.remove(found["Id"], force=True)
            return
        papers = self._papers(attempt)
        gate = await papers.calls.call(papers.gate) or {}
        is_its_container = gate.get("container") == found["Id"]
        if attempt.key not in self._keepers and is_its_container and not await papers.calls.call(_is_kept, papers):
            await self._keep(attempt)
        if attempt.closing is not None and attempt.key in self._keepers:
            self._keepers[attempt.key][0].stop(at_once=False)

    def _run_errand(self, errand: Any) -> None:
        task = asyncio.ensure_future(errand)
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)

    def _engine(self, spec: dict[str, Any]) -> tuple[Engine, Images]:
        """UsageError if what the worker config calls its address is none."""
        wanted = spec["container"]
        return self._engine_at(wanted["host"] or self._host, wanted["certificates"] or self._certificates)

    def _engine_at(self, host: str | None, certificates: str | None) -> tuple[Engine, Images]:
        key = host, certificates
        if key not in self._engines:
            engine = Engine(engine_address(host, certificates))
            self._engines[key] = engine, Images(engine, self._logins)
            self._run_errand(self._sweep(engine))
            self._tending.append(asyncio.ensure_future(self._tend(engine)))
            self._on_engines(list(self._engines))
        return self._engines[key]


def _is_kept(papers: Papers) -> bool:
    """Whether somebody writes its heartbeats, or has begun with it just now."""
    spec, said = papers.spec(), papers.status() or papers.gate()
    if spec is None or said is None:
        return False
    age = (datetime.now(UTC) - datetime.fromisoformat(said["at"])).total_seconds()
    return bool(age < _MISSED_BEATS * spec["heartbeat_seconds"])
