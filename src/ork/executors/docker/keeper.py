"""One attempt in a container, from its making to its last word. Whoever comes next can take over at any point.

The engine remembers what became of a container until it is removed, and the attempt's documents say how far it got; so a
keeper holds nothing that matters.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from ork.errors import EngineError, ObjectsError, SecretError
from ork.executors.docker import endings
from ork.executors.docker.engine import Engine
from ork.executors.docker.launching import Launch
from ork.executors.docker.log import copy_log
from ork.executors.docker.making import container_name, is_plain
from ork.executors.docker.outcome import finish, finish_with
from ork.executors.docker.papers import FindMask, Papers
from ork.executors.docker.patience import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, patiently, said

# An engine's machine that is gone without a word would be waited for without end.
WAIT_SECONDS = 60.0
_LAST_LINES_SECONDS = 5.0


class Keeper:
    """`has_begun` is set once there is nothing left to be done for its start."""

    def __init__(
        self, engine: Engine, papers: Papers, spec: dict[str, Any], launch: Launch, find_mask: FindMask
    ) -> None:
        self._engine = engine
        self._papers = papers
        self._spec = spec
        self._launch = launch
        self._find_mask = find_mask
        self._name = container_name(spec["attempt"])
        self._ending: dict[str, Any] | None = None  # decided by us: stopped or timed out
        self._stopping: asyncio.Task[None] | None = None
        self._container: str | None = None
        self.has_begun = asyncio.Event()

    async def keep(self, news: Callable[[], None]) -> None:
        """Until the attempt's last word is written, or it is clear that there will be none."""
        try:
            container = await self._launch.begun()
            if container is not None:
                self._container = container["Id"]
                await said(self._papers, lambda: self._papers.beat(endings.started_at(container)))
                self.has_begun.set()
                news()
                await self._see_to_its_end(container)
        except (EngineError, ObjectsError):
            raise
        except Exception as error:
            await self._own_fault(error)
        finally:
            self.has_begun.set()
            if self._stopping is not None:
                self._stopping.cancel()

    def stop(self, *, at_once: bool) -> None:
        """It is asked to end, and after its grace killed; what it says of its end still counts."""
        if self._ending is None:
            self._ending = endings.stopped("asked by the scheduler")
        self._end(at_once=at_once)

    async def _own_fault(self, error: Exception) -> None:
        """A mistake of ours must not leave the container running, nor the scheduler waiting."""
        await patiently(lambda: self._engine.signal(self._name, "KILL"))
        await finish(self._papers, endings.failed("internal", f"its keeper failed: {type(error).__name__}: {error}"))

    async def _see_to_its_end(self, container: dict[str, Any]) -> None:
        if self._ending is not None:
            self._end(at_once=False)  # asked for before there was anything to stop
        started_at = endings.started_at(container)
        beats = asyncio.ensure_future(self._beat(started_at))
        log = asyncio.ensure_future(self._copy_log(container["Id"]))
        timer = self._timer(started_at)
        try:
            ended = await patiently(lambda: self._ended(container["Id"]))
            beats.cancel()
            if ended is not None:
                await self._complete_log(log, container["Id"])
                await finish_with(self._engine, self._papers, self._spec, ended, self._ending)
        finally:
            for task in (beats, log, timer):
                if task is not None:
                    task.cancel()

    async def _ended(self, container: str) -> dict[str, Any] | None:
        """What became of it; None if somebody removed it."""
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
        if self._papers.mask is None:
            try:
                self._papers.mask = await asyncio.to_thread(self._find_mask, self._spec)
            except SecretError as problem:
                why = f"the log is withheld, for its secrets cannot be masked: {problem.message}"
                with contextlib.suppress(ObjectsError):
                    await self._papers.calls.call(self._papers.note, why)
                return

        async def copy() -> None:
            logs = self._engine.logs(container, follow=follow)
            await copy_log(logs, self._papers, self._papers.mask, is_whole=not follow)

        with contextlib.suppress(EngineError):  # gone, with its log
            await patiently(copy)

    async def _complete_log(self, following: asyncio.Future[None], container: str) -> None:
        """Whoever follows may be cut off before the last bytes, or never be let go: what counts is the whole of it."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(following, _LAST_LINES_SECONDS)
        await self._copy_log(container, follow=False)

    async def _beat(self, started_at: str) -> None:
        """While the engine answers: one that cannot be asked is silence."""
        while True:
            await asyncio.sleep(self._spec["heartbeat_seconds"])
            with contextlib.suppress(EngineError, ObjectsError):
                await self._engine.inspect(self._name)
                await self._papers.calls.call(self._beat_unless_over, started_at)

    def _beat_unless_over(self, started_at: str) -> None:
        if not self._papers.is_over():
            self._papers.beat(started_at)

    def _timer(self, started_at: str) -> asyncio.TimerHandle | None:
        """A worker inside keeps its own time."""
        seconds = self._spec["timeout"]
        if seconds is None or not is_plain(self._spec):
            return None
        age = (datetime.now(UTC) - datetime.fromisoformat(started_at)).total_seconds()
        return asyncio.get_running_loop().call_later(max(0.0, seconds - age), self._time_is_over, seconds)

    def _time_is_over(self, seconds: float) -> None:
        self._ending = self._ending or endings.timed_out(seconds)
        self._end(at_once=False)

    def _end(self, *, at_once: bool) -> None:
        if self._container is None:
            return
        if self._stopping is not None:
            if not at_once:
                return
            self._stopping.cancel()
        self._stopping = asyncio.ensure_future(self._press(self._container, at_once))

    async def _press(self, container: str, at_once: bool) -> None:
        if not at_once:
            await patiently(lambda: self._engine.signal(container, "TERM"))
            await asyncio.sleep(self._spec["stop_grace_seconds"])
        while True:
            await patiently(lambda: self._engine.signal(container, "KILL"))
            await asyncio.sleep(LONGEST_PAUSE_SECONDS)
