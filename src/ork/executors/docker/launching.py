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
from ork.executors.docker.container_documents import ContainerDocuments
from ork.executors.docker.engine import Engine
from ork.executors.docker.files import BOOTSTRAP, OBJECTS_FOLDER, prepare_output, put_input, put_worker
from ork.executors.docker.gate_engine import NO_ENGINE, is_engine_of, was_started
from ork.executors.docker.images import Image, Images
from ork.executors.docker.making import LABEL, container_config, container_name, is_plain
from ork.executors.docker.outcome import finish
from ork.executors.docker.retrying import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, retrying, retrying_call

ENGINE_SECONDS = 30.0  # an engine may be restarted; one that is not there for longer is told of
START_LOOKS = 20  # at a container whose start was asked for without an answer
_LOOK_SECONDS = 0.25


class Launch:
    """`token` and `secrets` are known only to whoever was given the order to start it."""

    def __init__(
        self,
        engine: Engine,
        images: Images,
        documents: ContainerDocuments,
        spec: dict[str, Any],
        store: str,
        token: str | None,
        secrets: Mapping[str, str],
    ) -> None:
        self._engine = engine
        self._images = images
        self._documents = documents
        self._spec = spec
        self._store = store
        self._token = token
        self._secrets = secrets
        self._name = container_name(spec["attempt"])

    async def begun(self) -> dict[str, Any] | None:
        """The container, once it has been started; None if it never will be, by us."""
        gate = await retrying_call(self._documents.gate)
        if gate is None:
            if self._token is None:
                return None  # whoever is given the order will make it
            try:
                made, image, identity = await self._made()
                facts = {"container": made, "image": image.id, "digest": image.digest, "engine": identity}
                if await retrying_call(lambda: self._documents.win_gate(facts)):
                    return await self._started(made)
            except _CannotBeMadeError as problem:
                if await self._is_refused(str(problem), problem.kind):
                    return None
            gate = await retrying_call(self._documents.gate)
        if gate is None or not was_started(gate) or not await self._is_engine_of(gate):
            await retrying(lambda: self._engine.remove(self._name))
            return None
        return await self._under_way(str(gate.get("container") or self._name))

    async def _is_engine_of(self, gate: Mapping[str, Any]) -> bool:
        return await retrying(lambda: is_engine_of(self._engine, gate))

    async def _made(self) -> tuple[str, Image, str]:
        """The container with everything it needs in it, not yet started, and which engine it is on."""
        wanted, engine = self._spec["container"], self._engine
        try:
            image = await retrying(lambda: self._images.get(wanted["image"], wanted["pull"]), seconds=ENGINE_SECONDS)
            log = await retrying(engine.log_config)
            config = container_config(self._spec, image.id, self._environment(), self._store, self._command(), log)
            made = await retrying(lambda: engine.create(self._name, config), seconds=ENGINE_SECONDS)
            if not made.is_new and not await self._is_ours(made.id):
                raise _CannotBeMadeError(f"the engine has another container called {self._name}", "start")
            await retrying(lambda: self._fill(made.id))
            return made.id, image, await retrying(engine.identity)
        except DocumentError as error:
            raise _CannotBeMadeError(error.message, "input") from None
        except EngineError as error:
            raise _CannotBeMadeError(error.message, "start") from None

    async def _is_ours(self, container: str) -> bool:
        """One that was made for this attempt before, and not yet started."""
        found = await retrying(lambda: self._engine.inspect(container))
        if found is None or endings.has_started(found):
            return False
        return bool((found["Config"].get("Labels") or {}).get(LABEL) == self._spec["attempt"])

    def _environment(self) -> dict[str, str]:
        if is_plain(self._spec):
            return self._documents.environment(self._spec, self._secrets)
        return {**self._secrets, "ORK_TOKEN": self._token or "", "ORK_ATTEMPT_ID": self._spec["attempt"]}

    def _command(self) -> list[str] | None:
        if is_plain(self._spec):
            return self._spec["argv"] or None
        return ["python3", "-S", "-E", BOOTSTRAP, f"file:{OBJECTS_FOLDER}", self._spec["attempt"]]

    async def _fill(self, container: str) -> None:
        spec = self._spec
        if not is_plain(spec):
            await put_worker(self._engine, container, self._documents.files(spec))
            return
        # The output first: where it shares a folder with the input, that must be open to whoever it runs as.
        if spec["from_file"]:
            await prepare_output(self._engine, container, spec["from_file"])
        if spec["to_file"]:
            await put_input(self._engine, container, spec["to_file"], self._documents.input(spec, self._secrets))

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
                    await finish(self._documents, endings.failed("start", self._message(error)))
                return None
            return await self._under_way(container)

    async def _under_way(self, container: str) -> dict[str, Any] | None:
        """The container if it was started. If nobody does so for a while nobody shall: it is removed."""
        for _ in range(START_LOOKS):
            found = await retrying(lambda: self._engine.inspect(container))
            if found is None or endings.has_started(found):
                return found
            await asyncio.sleep(_LOOK_SECONDS)
        try:
            await retrying(lambda: self._engine.remove(container))
        except EngineError:  # it runs after all
            return await self._under_way(container)
        return None

    async def _is_refused(self, why: str, kind: str) -> bool:
        """It cannot be started. Said only if nobody else has it, or will."""
        is_ours = await retrying_call(lambda: self._documents.win_gate({"engine": NO_ENGINE}))
        if is_ours:
            await finish(self._documents, endings.failed(kind, why))
        return is_ours

    def _message(self, error: EngineError) -> str:
        if not is_plain(self._spec) and "python3" in error.message:
            return f"there is no python3 in the image {self._spec['container']['image']}"
        return error.message


class _CannotBeMadeError(Exception):
    def __init__(self, why: str, kind: str) -> None:
        super().__init__(why)
        self.kind = kind
