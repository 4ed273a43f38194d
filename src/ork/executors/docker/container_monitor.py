"""Monitors one attempt in a container, from its creation to its final status. Another scheduler can take over at any point.

The engine keeps the result of a container until it is removed, and the attempt's documents record its progress, so a
monitor has no state of its own that must survive.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from ork.errors import EngineError, ObjectsError, SecretError
from ork.executors.docker import endings
from ork.executors.docker.container_documents import ContainerDocuments, FindMask
from ork.executors.docker.engine import Engine
from ork.executors.docker.launching import ContainerLaunch
from ork.executors.docker.log import copy_log
from ork.executors.docker.making import container_name, is_plain
from ork.executors.docker.outcome import finish, finish_with
from ork.executors.docker.retrying import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, retrying, retrying_call

# Limits one wait: the machine of an engine may disappear without closing the connection.
WAIT_SECONDS = 60.0
_LAST_LINES_SECONDS = 5.0


class ContainerMonitor:
    """`has_begun` is set when the start is complete or given up."""

    def __init__(
        self,
        engine: Engine,
        documents: ContainerDocuments,
        spec: dict[str, Any],
        launch: ContainerLaunch,
        find_mask: FindMask,
    ) -> None:
        self._engine = engine
        self._documents = documents
        self._spec = spec
        self._launch = launch
        self._find_mask = find_mask
        self._name = container_name(spec["attempt"])
        self._ending: dict[str, Any] | None = None  # decided here: stopped or timed out
        self._stopping: asyncio.Task[None] | None = None
        self._container: str | None = None
        self.has_begun = asyncio.Event()

    async def run(self, on_status: Callable[[], None]) -> None:
        """Run until the attempt's final status is written, or it is certain that there will be none."""
        try:
            container = await self._launch.begun()
            if container is not None:
                self._container = container["Id"]
                await retrying_call(self._documents, lambda: self._documents.beat(endings.started_at(container)))
                self.has_begun.set()
                on_status()
                await self._follow(container)
        except (EngineError, ObjectsError):
            raise
        except Exception as error:
            await self._on_internal_error(error)
        finally:
            self.has_begun.set()
            if self._stopping is not None:
                self._stopping.cancel()

    def stop(self, *, at_once: bool) -> None:
        """Ask the container to stop, and kill it after its grace period. A final status that it writes still counts."""
        if self._ending is None:
            self._ending = endings.stopped("asked by the scheduler")
        self._end(at_once=at_once)

    async def _on_internal_error(self, error: Exception) -> None:
        """After an internal error, kill the container and report the failure, so that the scheduler does not wait."""
        await retrying(lambda: self._engine.signal(self._name, "KILL"))
        await finish(
            self._documents, endings.failed("internal", f"its monitor failed: {type(error).__name__}: {error}")
        )

    async def _follow(self, container: dict[str, Any]) -> None:
        if self._ending is not None:
            self._end(at_once=False)  # requested before the container was started
        started_at = endings.started_at(container)
        beats = asyncio.ensure_future(self._beat(started_at))
        log = asyncio.ensure_future(self._copy_log(container["Id"]))
        timer = self._timer(started_at)
        try:
            ended = await retrying(lambda: self._ended(container["Id"]))
            beats.cancel()
            if ended is not None:
                await self._complete_log(log, container["Id"])
                await finish_with(self._engine, self._documents, self._spec, ended, self._ending)
        finally:
            for task in (beats, log, timer):
                if task is not None:
                    task.cancel()

    async def _ended(self, container: str) -> dict[str, Any] | None:
        """Wait for the end of the container and return its details; None if it was removed."""
        while True:
            found = await self._engine.inspect(container)
            if found is None or not endings.is_running(found):
                return found
            try:
                async with asyncio.timeout(WAIT_SECONDS):
                    await self._engine.wait(container)
            except TimeoutError:
                continue
            except EngineError:
                await asyncio.sleep(FIRST_PAUSE_SECONDS)

    async def _copy_log(self, container: str, *, follow: bool = True) -> None:
        if self._documents.mask is None:
            try:
                self._documents.mask = await asyncio.to_thread(self._find_mask, self._spec)
            except SecretError as problem:
                why = f"the log is withheld, for its secrets cannot be masked: {problem.message}"
                with contextlib.suppress(ObjectsError):
                    await self._documents.calls.call(self._documents.note, why)
                return

        async def copy() -> None:
            logs = self._engine.logs(container, follow=follow)
            await copy_log(logs, self._documents, self._documents.mask, is_whole=not follow)

        with contextlib.suppress(EngineError):  # gone, with its log
            await retrying(copy)

    async def _complete_log(self, following: asyncio.Future[None], container: str) -> None:
        """Copy the whole log once more: a followed log may break off early, or never end."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(following, _LAST_LINES_SECONDS)
        await self._copy_log(container, follow=False)

    async def _beat(self, started_at: str) -> None:
        """Write heartbeats while the engine responds."""
        while True:
            await asyncio.sleep(self._spec["heartbeat_seconds"])
            with contextlib.suppress(EngineError, ObjectsError):
                await self._engine.inspect(self._name)
                await self._documents.calls.call(self._beat_unless_over, started_at)

    def _beat_unless_over(self, started_at: str) -> None:
        if not self._documents.is_over():
            self._documents.beat(started_at)

    def _timer(self, started_at: str) -> asyncio.TimerHandle | None:
        """A timer for the timeout of a plain container; a worker in the container enforces its own."""
        seconds = self._spec["timeout"]
        if seconds is None or not is_plain(self._spec):
            return None
        age = (datetime.now(UTC) - datetime.fromisoformat(started_at)).total_seconds()
        return asyncio.get_running_loop().call_later(max(0.0, seconds - age), self._on_timeout, seconds)

    def _on_timeout(self, seconds: float) -> None:
        self._ending = self._ending or endings.timed_out(seconds)
        self._end(at_once=False)

    def _end(self, *, at_once: bool) -> None:
        if self._container is None:
            return
        if self._stopping is not None:
            if not at_once:
                return
            self._stopping.cancel()
        self._stopping = asyncio.ensure_future(self._stop_container(self._container, at_once))

    async def _stop_container(self, container: str, at_once: bool) -> None:
        if not at_once:
            await retrying(lambda: self._engine.signal(container, "TERM"))
            await asyncio.sleep(self._spec["stop_grace_seconds"])
        while True:
            await retrying(lambda: self._engine.signal(container, "KILL"))
            await asyncio.sleep(LONGEST_PAUSE_SECONDS)
