"""An image as a location: the registry resolves its digest, and `ork-parse` runs isolated in exactly this image."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from ork.errors import EngineError, EngineUnreachableError
from ork.executors.docker.credentials import credentials_for
from ork.executors.docker.frames import STDOUT
from ork.executors.docker.names import ImageName, read_image_name
from ork.locations.document import MAX_BYTES, FoundWorkflow
from ork.locations.pinning import pinned_version
from ork.locations.registry import RegistryError, ask_digest
from ork.locations.source import PARSE_SECONDS, TAIL_BYTES, ScanError, SourceReading
from ork.model.infra import WorkerConfig
from ork.model.location import Location, Lookup
from ork.model.workflow import Version

if TYPE_CHECKING:
    from ork.executors.docker.engine import Engine

LABEL = "ork.location"
_MAX_OUTPUT = 4 * MAX_BYTES
_MIB = 1 << 20


class ParserLimits(NamedTuple):
    """Resource limits of the parser."""

    seconds: float = PARSE_SECONDS
    memory: int = 1024 * _MIB
    processes: int = 256
    processors: float = 1.0


class ImageSource:
    """`container` is the name of the parser's container, derived from installation and location, so that one left by a
    dead scheduler is found. `config_dir` is the folder of the credentials of `docker login`."""

    def __init__(
        self,
        location: Location,
        engine: Engine,
        container: str,
        config_dir: str,
        workers: Mapping[str, WorkerConfig],
        limits: ParserLimits | None = None,
    ) -> None:
        assert location.image is not None
        self._location = location
        self._name = read_image_name(location.image)
        self._engine = engine
        self._container = container
        self._config_dir = config_dir
        self._workers = workers
        self._limits = limits or ParserLimits()

    async def digest(self) -> str:
        if self._location.pull is Lookup.NEVER:
            return await self._digest_here()
        return await registry_digest(self._name, self._config_dir)

    async def parse(self, digest: str) -> SourceReading:
        async with _engine_errors():
            await self._fetch(digest)
            async with self._running(digest) as container:
                try:
                    async with asyncio.timeout(self._limits.seconds):
                        return await self._read_output(container)
                except TimeoutError:
                    message = f"ork-parse took more than {self._limits.seconds:g} seconds"
                    raise ScanError(message, is_lasting=True) from None

    def version(self, found: FoundWorkflow, digest: str) -> Version:
        return pinned_version(found, self._reference(digest), self._workers)

    def _reference(self, digest: str) -> str:
        """The reference of exactly this image for the engine."""
        return digest if self._location.pull is Lookup.NEVER else self._name.at(digest)

    async def _digest_here(self) -> str:
        async with _engine_errors():
            image = await self._engine.image(str(self._location.image))
        if image is None:
            message = f"the engine has no image {self._location.image}, and `pull: never` does not allow pulling it"
            raise ScanError(message, code="ORK706")
        return str(image["Id"])

    async def _fetch(self, digest: str) -> None:
        reference = self._reference(digest)
        if await self._engine.image(reference) is None:
            known = await asyncio.to_thread(credentials_for, self._name.registry, self._config_dir)
            await self._engine.pull(reference, known)

    @asynccontextmanager
    async def _running(self, digest: str) -> AsyncIterator[str]:
        """A running container that is always removed afterwards."""
        config = parser_config(self._reference(digest), self._location.name, self._limits)
        made = await self._engine.create(self._container, config)
        if not made.is_new:  # left by a scheduler that died
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
            message = "ork-parse is not installed in the image: `pip install ork-orchestrator` in its Dockerfile"
            raise ScanError(message, output=error.message, is_lasting=True) from None

    async def _read_output(self, container: str) -> SourceReading:
        document, stderr, received = bytearray(), b"", 0
        async for stream, data in self._engine.logs(container, follow=True):
            received += len(data)
            if stream == STDOUT:
                document += data
            else:
                stderr = (stderr + data)[-TAIL_BYTES:]
            if len(document) > MAX_BYTES or received > _MAX_OUTPUT:
                raise ScanError(f"ork-parse printed more than {MAX_BYTES // _MIB} MiB", is_lasting=True)
        code = await self._engine.wait(container)
        if not document:
            raise await self._no_output_error(container, code, stderr.decode("utf-8", "replace"))
        return SourceReading(bytes(document), stderr.decode("utf-8", "replace"))

    async def _no_output_error(self, container: str, code: int, stderr: str) -> ScanError:
        facts = await self._engine.inspect(container)
        if facts is not None and facts["State"].get("OOMKilled"):
            message = f"ork-parse ran out of memory (limit: {self._limits.memory // _MIB} MiB)"
        else:
            message = f"ork-parse ended with exit code {code} and printed nothing"
        return ScanError(message, output=stderr, is_lasting=True)


def parser_config(image: str, location: str, limits: ParserLimits) -> Mapping[str, Any]:
    """The image is untrusted: no network, no privileges, no writable files but a small /tmp."""
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


async def registry_digest(name: ImageName, config_dir: str) -> str:
    """The digest that the image has in its registry. ScanError if the registry does not say."""
    try:
        known = await asyncio.to_thread(credentials_for, name.registry, config_dir)
        return await ask_digest(name, known)
    except RegistryError as error:
        raise ScanError(str(error), code="ORK706") from None


@asynccontextmanager
async def _engine_errors() -> AsyncIterator[None]:
    try:
        yield
    except EngineUnreachableError as error:
        raise ScanError(f"no container engine: {error.message}", code=error.code) from None
    except EngineError as error:
        raise ScanError(error.message, code=error.code) from None
