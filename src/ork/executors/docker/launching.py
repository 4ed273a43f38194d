"""An attempt's container, from nothing to its start; or what has become of one that somebody else began.

What must never happen is that one is started twice. Whoever wins the gate does so on the container's behalf, and then asks
for the start exactly once, of the very container it made. One that may or may not be on its way is removed rather than
asked for again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from ork.errors import AnswerLostError, DocumentError, EngineError, EngineUnreachableError
from ork.executors.docker import endings
from ork.executors.docker.engine import Engine
from ork.executors.docker.files import BOOTSTRAP, OBJECTS_FOLDER, prepare_output, put_input, put_worker
from ork.executors.docker.images import Image, Images
from ork.executors.docker.making import LABEL, container_config, container_name, is_plain
from ork.executors.docker.outcome import finish
from ork.executors.docker.papers import Papers
from ork.executors.docker.patience import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, patiently, said
from ork.executors.docker.whereabouts import NOWHERE, is_here, was_started

ENGINE_SECONDS = 30.0  # an engine may be restarted; one that is not there for longer is told of
START_LOOKS = 20  # at a container whose start was asked for without an answer
_LOOK_SECONDS = 0.25


class Launch:
    """`token` and `secrets` are known only to whoever was given the order to start it."""

    def __init__(
        self,
        engine: Engine,
        images: Images,
        papers: Papers,
        spec: dict[str, Any],
        store: str,
        token: str | None,
        secrets: Mapping[str, str],
    ) -> None:
        self._engine = engine
        self._images = images
        self._papers = papers
        self._spec = spec
        self._store = store
        self._token = token
        self._secrets = secrets
        self._name = container_name(spec["attempt"])

    async def begun(self) -> dict[str, Any] | None:
        """The container, once it has been started; None if it never will be, by us."""
        gate = await said(self._papers, self._papers.gate)
        if gate is None:
            if self._token is None:
                return None  # whoever is given the order will make it
            try:
                made, image, identity = await self._made()
                facts = {"container": made, "image": image.id, "digest": image.digest, "engine": identity}
                if await said(self._papers, lambda: self._papers.win_gate(facts)):
                    return await self._started(made)
            except _CannotBeMadeError as problem:
                if await self._is_refused(str(problem), problem.kind):
                    return None
            gate = await said(self._papers, self._papers.gate)
        if gate is None or not was_started(gate) or not await self._is_here(gate):
            await patiently(lambda: self._engine.remove(self._name))
            return None
        return await self._under_way(str(gate.get("container") or self._name))

    async def _is_here(self, gate: Mapping[str, Any]) -> bool:
        return await patiently(lambda: is_here(self._engine, gate))

    async def _made(self) -> tuple[str, Image, str]:
        """The container with everything it needs in it, not yet started, and which engine it is on."""
        wanted, engine = self._spec["container"], self._engine
        try:
            image = await patiently(lambda: self._images.get(wanted["image"], wanted["pull"]), seconds=ENGINE_SECONDS)
            log = await patiently(engine.log_config)
            config = container_config(
                self._spec, image.id, await self._environment(), self._store, self._command(), log
            )
            made = await patiently(lambda: engine.create(self._name, config), seconds=ENGINE_SECONDS)
            if not made.is_new and not await self._is_ours(made.id):
                raise _CannotBeMadeError(f"the engine has another container called {self._name}", "start")
            await patiently(lambda: self._fill(made.id))
            return made.id, image, await patiently(engine.identity)
        except DocumentError as error:
            raise _CannotBeMadeError(error.message, "input") from None
        except EngineError as error:
            raise _CannotBeMadeError(error.message, "start") from None

    async def _is_ours(self, container: str) -> bool:
        """One that was made for this attempt before, and not yet started."""
        found = await patiently(lambda: self._engine.inspect(container))
        if found is None or endings.has_started(found):
            return False
        return bool((found["Config"].get("Labels") or {}).get(LABEL) == self._spec["attempt"])

    async def _environment(self) -> dict[str, str]:
        if is_plain(self._spec):
            return await self._papers.calls.call(self._papers.environment, self._spec, self._secrets)
        return {**self._secrets, "ORK_TOKEN": self._token or "", "ORK_ATTEMPT_ID": self._spec["attempt"]}

    def _command(self) -> list[str] | None:
        if is_plain(self._spec):
            return self._spec["argv"] or None
        return ["python3", "-S", "-E", BOOTSTRAP, f"file:{OBJECTS_FOLDER}", self._spec["attempt"]]

    async def _fill(self, container: str) -> None:
        spec = self._spec
        if not is_plain(spec):
            await put_worker(self._engine, container, await self._papers.calls.call(self._papers.files, spec))
            return
        # The output first: where it shares a folder with the input, that must be open to whoever it runs as.
        if spec["from_file"]:
            await prepare_output(self._engine, container, spec["from_file"])
        if spec["to_file"]:
            data = await self._papers.calls.call(self._papers.input, spec, self._secrets)
            await put_input(self._engine, container, spec["to_file"], data)

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
                    await finish(self._papers, endings.failed("start", self._in_words(error)))
                return None
            return await self._under_way(container)

    async def _under_way(self, container: str) -> dict[str, Any] | None:
        """The container if it was started. If nobody does so for a while nobody shall: it is removed."""
        for _ in range(START_LOOKS):
            found = await patiently(lambda: self._engine.inspect(container))
            if found is None or endings.has_started(found):
                return found
            await asyncio.sleep(_LOOK_SECONDS)
        try:
            await patiently(lambda: self._engine.remove(container))
        except EngineError:  # it runs after all
            return await self._under_way(container)
        return None

    async def _is_refused(self, why: str, kind: str) -> bool:
        """It cannot be started. Said only if nobody else has it, or will."""
        is_ours = await said(self._papers, lambda: self._papers.win_gate({"engine": NOWHERE}))
        if is_ours:
            await finish(self._papers, endings.failed(kind, why))
        return is_ours

    def _in_words(self, error: EngineError) -> str:
        if not is_plain(self._spec) and "python3" in error.message:
            return f"there is no python3 in the image {self._spec['container']['image']}"
        return error.message


class _CannotBeMadeError(Exception):
    def __init__(self, why: str, kind: str) -> None:
        super().__init__(why)
        self.kind = kind
