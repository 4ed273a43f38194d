"""One attempt in a container, from its making to its last word. Whoever comes next can take over at any point.

The engine remembers what became of a container until it is removed, and the attempt's documents say how far it got; so a
keeper holds nothing that matters. What it must never do is to start one twice: it wins the gate on the container's behalf,
and then asks for the start exactly once, of the very container it made. One that may or may not be on its way is removed
rather than asked again.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from ork.errors import AnswerLostError, DocumentError, EngineError, EngineUnreachableError, ObjectsError
from ork.executors.docker import endings
from ork.executors.docker.engine import Engine
from ork.executors.docker.files import (
    BOOTSTRAP,
    OBJECTS_FOLDER,
    OutputError,
    prepare_output,
    put_input,
    put_worker,
    take_object,
    take_output,
)
from ork.executors.docker.images import Image, Images
from ork.executors.docker.log import copy_log
from ork.executors.docker.making import LABEL, container_config, container_name, is_plain
from ork.executors.docker.papers import Papers

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.2, 5.0
ENGINE_SECONDS = 30.0  # an engine may be restarted; one that is not there for longer is told of
START_LOOKS = 20  # at a container whose start was asked for without an answer, a quarter of a second apart
_LOOK_SECONDS = 0.25
_LAST_LINES_SECONDS = 5.0
_TRIES = 6  # of what the engine says it failed to do
_STATUS_LIMIT = 2 << 20

T = TypeVar("T")


class Keeper:
    """`token` and `secrets` are known only to whoever was given the order to start it."""

    def __init__(
        self,
        engine: Engine,
        images: Images,
        papers: Papers,
        spec: dict[str, Any],
        store: str,
        token: str | None = None,
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        self._engine = engine
        self._images = images
        self._papers = papers
        self._spec = spec
        self._store = store
        self._token = token
        self._secrets = secrets or {}
        self._name = container_name(spec["attempt"])
        self._ending: dict[str, Any] | None = None  # decided by us: stopped or timed out
        self._stopping: asyncio.Task[None] | None = None
        self._container: str | None = None
        self._started_at = ""

    async def keep(self, news: Callable[[], None]) -> None:
        """Until the attempt's last word is written, or it is clear that there will be none."""
        try:
            container = await self._begun()
            if container is not None:
                await self._say(lambda: self._papers.beat(self._started_at))
                news()
                await self._see_to_its_end(container)
        except (EngineError, ObjectsError):
            raise
        except Exception as error:
            await self._own_fault(error)
        finally:
            if self._stopping is not None:
                self._stopping.cancel()

    def stop(self, *, at_once: bool) -> None:
        """It is asked to end, and after its grace killed; what it says of its end still counts."""
        if self._ending is None:
            self._ending = endings.stopped("asked by the scheduler")
        self._end(at_once=at_once)

    async def _own_fault(self, error: Exception) -> None:
        """A mistake of ours must not leave the container running, nor the scheduler waiting."""
        await self._patiently(lambda: self._engine.signal(self._name, "KILL"))
        await self._finish(endings.failed("internal", f"its keeper failed: {type(error).__name__}: {error}"))

    # ── beginning ────────────────────────────────────────────────────────────────────────────────

    async def _begun(self) -> dict[str, Any] | None:
        """The container, once it has been started; None if it never will be, by us."""
        gate = await self._patiently(self._now(self._papers.gate))
        if gate is None:
            if self._token is None:
                return None  # whoever is given the order will make it
            try:
                made, image = await self._made()
                facts = {"container": made, "image": image.id, "digest": image.digest}
                if await self._patiently(self._now(lambda: self._papers.win_gate(facts))):
                    return await self._started(made)
            except _CannotBeMadeError as problem:
                if await self._is_refused(str(problem), problem.kind):
                    return None
            gate = await self._patiently(self._now(self._papers.gate))
        if gate is None or gate.get("state") != "started":
            await self._patiently(lambda: self._engine.remove(self._name))
            return None
        return await self._under_way(str(gate.get("container") or self._name))

    async def _made(self) -> tuple[str, Image]:
        """The container with everything it needs in it, not yet started."""
        wanted = self._spec["container"]
        try:
            image = await self._patiently(
                lambda: self._images.get(wanted["image"], wanted["pull"]), seconds=ENGINE_SECONDS
            )
            config = container_config(self._spec, image.id, self._environment(), self._store, self._command())
            made = await self._patiently(lambda: self._engine.create(self._name, config), seconds=ENGINE_SECONDS)
            if not made.is_new and not await self._is_ours(made.id):
                raise _CannotBeMadeError(f"the engine has another container called {self._name}", "start")
            await self._patiently(lambda: self._fill(made.id))
            return made.id, image
        except DocumentError as error:
            raise _CannotBeMadeError(error.message, "input") from None
        except EngineError as error:
            raise _CannotBeMadeError(error.message, "start") from None

    async def _is_ours(self, container: str) -> bool:
        """One that was made for this attempt before, and not yet started."""
        found = await self._patiently(lambda: self._engine.inspect(container))
        if found is None or endings.has_started(found):
            return False
        return bool((found["Config"].get("Labels") or {}).get(LABEL) == self._spec["attempt"])

    def _environment(self) -> dict[str, str]:
        if is_plain(self._spec):
            return self._papers.environment(self._spec, self._secrets)
        return {**self._secrets, "ORK_TOKEN": self._token or "", "ORK_ATTEMPT_ID": self._spec["attempt"]}

    def _command(self) -> list[str] | None:
        if is_plain(self._spec):
            return self._spec["argv"] or None
        return ["python3", "-S", "-E", BOOTSTRAP, f"file:{OBJECTS_FOLDER}", self._papers.spec_key]

    async def _fill(self, container: str) -> None:
        spec = self._spec
        if not is_plain(spec):
            objects = self._papers.objects_of(spec)
            await put_worker(self._engine, container, objects)
            return
        # The output first: where it shares a folder with the input, that must be open to whoever it runs as.
        if spec["from_file"]:
            await prepare_output(self._engine, container, spec["from_file"])
        if spec["to_file"]:
            await put_input(self._engine, container, spec["to_file"], self._papers.input(spec, self._secrets))

    async def _started(self, container: str) -> dict[str, Any] | None:
        """We hold the gate: the start is asked for once, unless nobody was there to be asked."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                await self._engine.start(container)
            except EngineUnreachableError:
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
                continue
            except AnswerLostError:
                pass  # it may have been started, or will be: the engine knows
            except EngineError as error:
                if error.status != 404:  # else somebody gave it up before it could begin
                    await self._finish(endings.failed("start", self._in_words(error)))
                return None
            return await self._under_way(container)

    async def _under_way(self, container: str) -> dict[str, Any] | None:
        """The container if it was started. If nobody does so for a while nobody shall: it is removed."""
        for _ in range(START_LOOKS):
            found = await self._patiently(lambda: self._engine.inspect(container))
            if found is None:
                return None
            if endings.has_started(found):
                self._container = found["Id"]
                self._started_at = str(found["State"]["StartedAt"])[:26].rstrip("Z") + "Z"
                return found
            await asyncio.sleep(_LOOK_SECONDS)
        try:
            await self._patiently(lambda: self._engine.remove(container))
        except EngineError:  # it runs after all
            return await self._under_way(container)
        return None

    async def _is_refused(self, why: str, kind: str) -> bool:
        """It cannot be started. Said only if nobody else has it, or will."""
        is_ours = await self._patiently(self._now(lambda: self._papers.win_gate({})))
        if is_ours:
            await self._finish(endings.failed(kind, why))
        return is_ours

    def _in_words(self, error: EngineError) -> str:
        if not is_plain(self._spec) and "python3" in error.message:
            return f"there is no python3 in the image {self._spec['container']['image']}"
        return error.message

    # ── to its end ───────────────────────────────────────────────────────────────────────────────

    async def _see_to_its_end(self, container: dict[str, Any]) -> None:
        if self._ending is not None:
            self._end(at_once=False)  # asked for before there was anything to stop
        beats = asyncio.ensure_future(self._beat())
        timer = self._timer()
        log = asyncio.ensure_future(self._copy_log(container["Id"]))
        try:
            ended = await self._patiently(lambda: self._ended(container["Id"]))
            if timer is not None:
                timer.cancel()
            beats.cancel()
            if ended is not None:
                await self._complete_log(log, container["Id"])
                await self._finish_with(ended)
        finally:
            for task in (beats, log):
                task.cancel()
            if timer is not None:
                timer.cancel()

    async def _ended(self, container: str) -> dict[str, Any] | None:
        """What became of it; None if somebody removed it."""
        while True:
            found = await self._engine.inspect(container)
            if found is None or not endings.is_running(found):
                return found
            try:
                await self._engine.wait(container)
            except EngineError:
                await asyncio.sleep(FIRST_PAUSE_SECONDS)

    async def _copy_log(self, container: str, *, follow: bool = True) -> None:
        async def copy() -> None:
            await copy_log(self._engine.logs(container, follow=follow), self._papers.log_path)

        with contextlib.suppress(EngineError):  # gone, with its log
            await self._patiently(copy)

    async def _complete_log(self, following: asyncio.Future[None], container: str) -> None:
        """Whoever follows may be cut off before the last bytes, or never be let go: what counts is the whole of it."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(following, _LAST_LINES_SECONDS)
        await self._copy_log(container, follow=False)

    async def _beat(self) -> None:
        """While the engine answers: one that cannot be asked is silence."""
        while True:
            await asyncio.sleep(self._spec["heartbeat_seconds"])
            with contextlib.suppress(EngineError, ObjectsError):
                await self._engine.inspect(self._name)
                if not self._papers.is_over():
                    self._papers.beat(self._started_at)

    def _timer(self) -> asyncio.TimerHandle | None:
        """A worker inside keeps its own time."""
        seconds = self._spec["timeout"]
        if seconds is None or not is_plain(self._spec):
            return None
        loop = asyncio.get_running_loop()
        return loop.call_later(max(0.0, seconds - _age(self._started_at)), self._time_is_over, seconds)

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
            await self._patiently(lambda: self._engine.signal(container, "TERM"))
            await asyncio.sleep(self._spec["stop_grace_seconds"])
        while True:
            await self._patiently(lambda: self._engine.signal(container, "KILL"))
            await asyncio.sleep(LONGEST_PAUSE_SECONDS)

    # ── the last word ────────────────────────────────────────────────────────────────────────────

    async def _finish_with(self, ended: dict[str, Any]) -> None:
        code = int(ended["State"]["ExitCode"])
        if not is_plain(self._spec) and await self._passed_on(ended["Id"]):
            return
        if self._ending is not None:
            await self._finish({**self._ending, "exit_code": code})
        elif code != 0 or not is_plain(self._spec):
            memory = self._spec["container"]["memory"]
            await self._finish(endings.ended_badly(ended, memory, self._papers.log_tail()))
        else:
            await self._finish(await self._succeeded(ended["Id"]))

    async def _succeeded(self, container: str) -> dict[str, Any]:
        path, limit = self._spec["from_file"], self._spec["output_limit"]
        if path is None:
            return endings.success(None)
        try:
            data = await self._patiently(lambda: take_output(self._engine, container, path, limit))
        except OutputError as error:
            return endings.failed("output", str(error), exit_code=0)
        try:
            stored = await self._patiently(lambda: asyncio.to_thread(self._papers.store_output, data, self._spec))
            return endings.success(stored)
        except DocumentError as error:
            return endings.failed("output", f"{path} cannot be used as output: {error.message}", exit_code=0)

    async def _passed_on(self, container: str) -> bool:
        """The worker inside has said its last word, and it stands in our store now."""
        told = await self._patiently(
            lambda: take_object(self._engine, container, self._papers.status_key(), _STATUS_LIMIT)
        )
        if told is None:
            return False
        key, limit = self._papers.output_key(), self._spec["output_limit"]
        output = await self._patiently(lambda: take_object(self._engine, container, key, limit))
        return await self._patiently(self._now(lambda: self._papers.pass_on(told, output)))

    async def _finish(self, ending: Mapping[str, Any]) -> None:
        started_at = self._started_at or _utc_now()

        def say() -> None:
            if not self._papers.is_over():
                self._papers.finish(ending, started_at)

        await self._say(say)

    async def _say(self, word: Callable[[], None]) -> None:
        await self._patiently(self._now(word))

    # ── patience ─────────────────────────────────────────────────────────────────────────────────

    async def _patiently(self, act: Callable[[], Awaitable[T]], *, seconds: float = math.inf) -> T:
        """Again and again while engine, store or disk are out of reach; a refusal is passed on, and that nobody was
        there for so many seconds."""
        pause, tries, give_up_at = FIRST_PAUSE_SECONDS, 0, time.monotonic() + seconds
        while True:
            try:
                return await act()
            except DocumentError:
                raise
            except EngineUnreachableError:
                if time.monotonic() > give_up_at:
                    raise
            except (AnswerLostError, ObjectsError, OSError):
                pass
            except EngineError as error:
                tries += 1
                # A name is taken before its container can be seen.
                if (error.status < 500 and error.status != 409) or tries == _TRIES:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    @staticmethod
    def _now(call: Callable[[], T]) -> Callable[[], Awaitable[T]]:
        async def act() -> T:
            return call()

        return act


class _CannotBeMadeError(Exception):
    def __init__(self, why: str, kind: str) -> None:
        super().__init__(why)
        self.kind = kind


def _utc_now() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).isoformat()


def _age(moment: str) -> float:
    from datetime import UTC, datetime

    return (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds()
