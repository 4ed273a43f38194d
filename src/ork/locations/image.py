"""An image as a location: its registry says which one it is, and `ork-parse` runs in that very one, shut in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from ork.errors import EngineError, EngineUnreachableError
from ork.executors.docker.credentials import credentials_for
from ork.executors.docker.frames import STDOUT
from ork.executors.docker.names import read_image_name
from ork.locations.document import MOST_BYTES, Found
from ork.locations.pinning import pinned_version
from ork.locations.place import PARSE_SECONDS, TAIL_BYTES, Answer, LookError
from ork.locations.registry import RegistryError, ask_digest
from ork.model.infra import WorkerConfig
from ork.model.location import Location, Lookup
from ork.model.workflow import Version

if TYPE_CHECKING:
    from ork.executors.docker.engine import Engine

LABEL = "ork.location"
_MOST_SAID = 4 * MOST_BYTES
_MIB = 1 << 20


class Limits(NamedTuple):
    """What the parser of an image may use."""

    seconds: float = PARSE_SECONDS
    memory: int = 1024 * _MIB
    processes: int = 256
    processors: float = 1.0


class Image:
    """`container` names the one its parser runs in: of this installation and this location, so that what a scheduler
    left behind when it died is found. `config_dir` is where `docker login` keeps what it knows."""

    def __init__(
        self,
        location: Location,
        engine: Engine,
        container: str,
        config_dir: str,
        workers: Mapping[str, WorkerConfig],
        limits: Limits | None = None,
    ) -> None:
        assert location.image is not None
        self._location = location
        self._name = read_image_name(location.image)
        self._engine = engine
        self._container = container
        self._config_dir = config_dir
        self._workers = workers
        self._limits = limits or Limits()

    async def digest(self) -> str:
        if self._location.pull is Lookup.NEVER:
            return await self._digest_here()
        try:
            known = await asyncio.to_thread(credentials_for, self._name.registry, self._config_dir)
            return await ask_digest(self._name, known)
        except RegistryError as error:
            raise LookError(str(error), code="ORK706") from None

    async def parse(self, digest: str) -> Answer:
        async with _engine_errors():
            await self._fetch(digest)
            async with self._running(digest) as container:
                try:
                    async with asyncio.timeout(self._limits.seconds):
                        return await self._heard(container)
                except TimeoutError:
                    message = f"ork-parse took more than {self._limits.seconds:g} seconds"
                    raise LookError(message, is_lasting=True) from None

    def version(self, found: Found, digest: str) -> Version:
        return pinned_version(found, self._reference(digest), self._workers)

    def _reference(self, digest: str) -> str:
        """What the engine calls that very image."""
        return digest if self._location.pull is Lookup.NEVER else self._name.at(digest)

    async def _digest_here(self) -> str:
        async with _engine_errors():
            image = await self._engine.image(str(self._location.image))
        if image is None:
            message = f"the engine has no image {self._location.image}, and `pull: never` forbids to fetch it"
            raise LookError(message, code="ORK706")
        return str(image["Id"])

    async def _fetch(self, digest: str) -> None:
        reference = self._reference(digest)
        if await self._engine.image(reference) is None:
            known = await asyncio.to_thread(credentials_for, self._name.registry, self._config_dir)
            await self._engine.pull(reference, known)

    @asynccontextmanager
    async def _running(self, digest: str) -> AsyncIterator[str]:
        """A container that is gone afterwards, whatever happens to us."""
        config = parser_config(self._reference(digest), self._location.name, self._limits)
        made = await self._engine.create(self._container, config)
        if not made.is_new:  # left by somebody who died
            await self._engine.remove(made.id, force=True)
            made = await self._engine.create(self._container, config)
        try:
            await self._start(made.id)
            yield made.id
        finally:
            with suppress(EngineError):
                await asyncio.shield(self._engine.remove(made.id, force=True))

    async def _start(self, container: str) -> None:
        try:
            await self._engine.start(container)
        except EngineError as error:
            if "ork-parse" not in error.message:
                raise
            message = "there is no ork-parse in the image: `pip install ork-orchestrator` in its Dockerfile"
            raise LookError(message, output=error.message, is_lasting=True) from None

    async def _heard(self, container: str) -> Answer:
        document, said, heard = bytearray(), b"", 0
        async for stream, data in self._engine.logs(container, follow=True):
            heard += len(data)
            if stream == STDOUT:
                document += data
            else:
                said = (said + data)[-TAIL_BYTES:]
            if len(document) > MOST_BYTES or heard > _MOST_SAID:
                raise LookError(f"ork-parse said more than {MOST_BYTES // _MIB} MiB", is_lasting=True)
        code = await self._engine.wait(container)
        if not document:
            raise await self._silence(container, code, said.decode("utf-8", "replace"))
        return Answer(bytes(document), said.decode("utf-8", "replace"))

    async def _silence(self, container: str, code: int, said: str) -> LookError:
        facts = await self._engine.inspect(container)
        if facts is not None and facts["State"].get("OOMKilled"):
            message = f"ork-parse ran out of memory (it may use {self._limits.memory // _MIB} MiB)"
        else:
            message = f"ork-parse ended with exit code {code} and said nothing"
        return LookError(message, output=said, is_lasting=True)


def parser_config(image: str, location: str, limits: Limits) -> Mapping[str, Any]:
    """Nothing of the image is trusted: no network, no rights, nothing to write to but a small /tmp."""
    host = {
        "NetworkMode": "none",
        "Memory": limits.memory,
        "MemorySwap": limits.memory,
        "PidsLimit": limits.processes,
        "NanoCpus": int(limits.processors * 1e9),
        "ReadonlyRootfs": True,
        "Tmpfs": {"/tmp": "rw,size=64m"},
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges"],
        "LogConfig": {"Type": "local", "Config": {"max-size": "128m", "max-file": "1", "compress": "false"}},
    }
    return {"Image": image, "Entrypoint": ["ork-parse"], "Cmd": [], "Labels": {LABEL: location}, "HostConfig": host}


@asynccontextmanager
async def _engine_errors() -> AsyncIterator[None]:
    try:
        yield
    except EngineUnreachableError as error:
        raise LookError(f"no container engine: {error.message}", code=error.code) from None
    except EngineError as error:
        raise LookError(error.message, code=error.code) from None
