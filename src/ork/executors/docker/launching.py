"""Creates and starts an attempt's container, or finds one that another scheduler started.

A container must never be started twice. The scheduler that wins the gate requests the start exactly once, for the
container that it created. A container that may or may not be starting is removed, not started again.
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
from ork.executors.docker.values import bring_input_files, bring_worker_values

ENGINE_SECONDS = 30.0  # an engine may be restarted; a longer outage is reported
START_LOOKS = 20  # at a container whose start request got no response
_LOOK_SECONDS = 0.25


class ContainerLaunch:
    """`token` and `secrets` are known only to the scheduler that launches the attempt."""

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
        """The container when it has been started; None if this scheduler will not start it."""
        gate = await retrying_call(self._documents, self._documents.gate)
        if gate is None:
            if self._token is None:
                return None  # the scheduler that launches the attempt creates it
            try:
                made, image, identity = await self._made()
                facts = {"container": made, "image": image.id, "digest": image.digest, "engine": identity}
                if await retrying_call(self._documents, lambda: self._documents.win_gate(facts)):
                    return await self._started(made)
            except _CannotBeMadeError as problem:
                if await self._is_refused(str(problem), problem.kind):
                    return None
            gate = await retrying_call(self._documents, self._documents.gate)
        if gate is None or not was_started(gate) or not await self._is_engine_of(gate):
            await retrying(lambda: self._engine.remove(self._name))
            return None
        return await self._under_way(str(gate.get("container") or self._name))

    async def _is_engine_of(self, gate: Mapping[str, Any]) -> bool:
        return await retrying(lambda: is_engine_of(self._engine, gate))

    async def _made(self) -> tuple[str, Image, str]:
        """Create and fill the container without starting it. Returns its id, its image and the engine's identity."""
        wanted, engine = self._spec["container"], self._engine
        try:
            image = await retrying(lambda: self._images.get(wanted["image"], wanted["pull"]), seconds=ENGINE_SECONDS)
            log = await retrying(engine.log_config)
            config = container_config(
                self._spec, image.id, await self._environment(), self._store, await self._command(), log
            )
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
        """True if the container was created for this attempt and not started yet."""
        found = await retrying(lambda: self._engine.inspect(container))
        if found is None or endings.has_started(found):
            return False
        return bool((found["Config"].get("Labels") or {}).get(LABEL) == self._spec["attempt"])

    async def _environment(self) -> dict[str, str]:
        if is_plain(self._spec):
            return await self._documents.calls.call(self._documents.environment, self._spec, self._secrets)
        return {**self._secrets, "ORK_TOKEN": self._token or "", "ORK_ATTEMPT_ID": self._spec["attempt"]}

    async def _command(self) -> list[str] | None:
        if is_plain(self._spec):
            return await self._documents.calls.call(self._documents.words, self._spec, self._secrets) or None
        return ["python3", "-S", "-E", BOOTSTRAP, f"file:{OBJECTS_FOLDER}", self._spec["attempt"]]

    async def _fill(self, container: str) -> None:
        spec = self._spec
        if not is_plain(spec):
            objects = await self._documents.calls.call(self._documents.files, spec)
            await put_worker(self._engine, container, objects)
            await bring_worker_values(self._engine, container, self._documents, spec, objects.values())
            return
        # The output first: a folder that it shares with the input must be writable by any user.
        if spec["from_file"]:
            await prepare_output(self._engine, container, spec["from_file"])
        if spec["to_file"]:
            data = await self._documents.calls.call(self._documents.input, spec, self._secrets)
            await put_input(self._engine, container, spec["to_file"], data)
        await bring_input_files(self._engine, container, self._documents)

    async def _started(self, container: str) -> dict[str, Any] | None:
        """Start the container after winning the gate. Only requests that never reached the engine are repeated."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                await self._engine.start(container)
            except EngineUnreachableError:
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
                continue
            except AnswerLostError:
                pass  # it may have been started: ask the engine
            except EngineError as error:
                if error.status != 404:  # 404: it was given up and removed before the start
                    await finish(self._documents, endings.failed("start", self._message(error)))
                return None
            return await self._under_way(container)

    async def _under_way(self, container: str) -> dict[str, Any] | None:
        """The container if it was started. One that is not started for a while is removed."""
        for _ in range(START_LOOKS):
            found = await retrying(lambda: self._engine.inspect(container))
            if found is None or endings.has_started(found):
                return found
            await asyncio.sleep(_LOOK_SECONDS)
        try:
            await retrying(lambda: self._engine.remove(container))
        except EngineError:  # it is running
            return await self._under_way(container)
        return None

    async def _is_refused(self, why: str, kind: str) -> bool:
        """Report that the attempt cannot be started, unless another scheduler has won its gate."""
        is_ours = await retrying_call(self._documents, lambda: self._documents.win_gate({"engine": NO_ENGINE}))
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
