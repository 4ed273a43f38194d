"""The operations of a container engine (Docker's API) that Ork needs, one method each. Nothing is retried here."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from ork.errors import AnswerLostError, EngineError
from ork.executors.docker.address import EngineAddress
from ork.executors.docker.archives import HEADROOM, PathFacts
from ork.executors.docker.calls import ANSWER_SECONDS, MAX_RESPONSE_BYTES, EngineCalls, EngineResponse, parsed
from ork.executors.docker.frames import unframed
from ork.executors.docker.names import read_image_name

# For `LogConfig`: keeps the complete output unchanged. The default driver replaces bytes that are not UTF-8.
BYTE_EXACT_LOG: dict[str, Any] = {
    "Type": "local",
    "Config": {"max-size": "1000g", "max-file": "1", "compress": "false"},
}

_LONGEST_LINE = 1 << 20
_PULL_SECONDS = 600.0  # until the engine's first response


SLOWEST_BYTES_PER_SECOND = 1 << 20


class CreatedContainer(NamedTuple):
    id: str
    is_new: bool


class Engine:
    """Each call uses a new connection, so a restarted engine is reached again at once.

    Ids and names of containers are interchangeable. An error response is an EngineError.
    """

    def __init__(self, address: EngineAddress) -> None:
        self.address = address
        self._calls = EngineCalls(address)
        self._log_config: dict[str, Any] | None = None
        self._has_lasting_id: bool | None = None

    # ── the engine itself ────────────────────────────────────────────────────────────────────────

    async def ping(self) -> str:
        """The version of its API."""
        return await self._calls.ping()

    async def log_config(self) -> dict[str, Any]:
        """The log driver that keeps output unchanged; the default of an engine without such a driver (podman)."""
        if self._log_config is None:
            drivers = (await self.info()).get("Plugins", {}).get("Log") or []
            self._log_config = BYTE_EXACT_LOG if BYTE_EXACT_LOG["Type"] in drivers else {}
        return self._log_config

    async def info(self) -> dict[str, Any]:
        return await self._calls.json("GET", "/info")  # type: ignore[no-any-return]

    async def identity(self) -> str:
        """A unique name of this engine, `id@machine`. It contains the data folder, since engines of one machine may have the
        same id, and the machine's name, since machines made from one image may. It is read every time, as an address may
        later lead to another engine. An engine whose id changes each time (podman) is identified by its address."""
        info = await self.info()
        if self._has_lasting_id is None:
            self._has_lasting_id = bool(info.get("ID")) and (await self.info()).get("ID") == info["ID"]
        id = f"{info['ID']}{info.get('DockerRootDir') or ''}" if self._has_lasting_id else str(self.address)
        return f"{id}@{info.get('Name') or ''}"

    @property
    def answered_at(self) -> float:
        """Time of its last response, by the monotonic clock."""
        return self._calls.answered_at

    # ── containers ───────────────────────────────────────────────────────────────────────────────

    async def create(self, name: str, config: Mapping[str, Any]) -> CreatedContainer:
        """Create the container, or return the existing one of that name."""
        try:
            answer = await self._calls.json("POST", "/containers/create", {"name": name}, config)
            return CreatedContainer(answer["Id"], is_new=True)
        except EngineError as error:
            if error.status != 409:
                raise
            existing = await self.inspect(name)
            if existing is None:
                raise
            return CreatedContainer(existing["Id"], is_new=False)

    async def inspect(self, container: str) -> dict[str, Any] | None:
        """The container's details; None if it does not exist."""
        return await self._calls.there("GET", f"/containers/{quote(container)}/json")  # type: ignore[no-any-return]

    async def containers(self, labels: list[str]) -> list[dict[str, Any]]:
        """All containers with these labels (`name` or `name=value`), in any state."""
        query = {"all": "1", "filters": json.dumps({"label": labels})}
        return await self._calls.json("GET", "/containers/json", query)  # type: ignore[no-any-return]

    async def start(self, container: str) -> None:
        """Start the container. A running one is not affected, but one that has ended would run again."""
        await self._calls.done("POST", f"/containers/{quote(container)}/start")

    async def wait(self, container: str) -> int:
        """Wait until the container does not run, and return its exit code."""
        async with await self._calls.answer("POST", f"/containers/{quote(container)}/wait") as answer:
            return int(parsed(await answer.read(MAX_RESPONSE_BYTES))["StatusCode"])

    async def signal(self, container: str, name: str) -> None:
        """Send a signal. A container that does not run or exist is not an error."""
        await self._calls.done("POST", f"/containers/{quote(container)}/kill", {"signal": name}, fine=(404, 409))

    async def remove(self, container: str, *, force: bool = False) -> None:
        """Remove the container and its anonymous volumes. A missing container is not an error; without `force`, a running
        one is."""
        query = {"v": "1", "force": "1" if force else "0"}
        try:
            await self._calls.done("DELETE", f"/containers/{quote(container)}", query, fine=(404,))
        except EngineError as error:
            if error.status != 409 or "already in progress" not in error.message:
                raise

    async def logs(self, container: str, *, follow: bool) -> AsyncIterator[tuple[int, bytes]]:
        """Its output from the first byte, in order, as (1 for stdout or 2 for stderr, bytes); until its end with `follow`."""
        query = {"stdout": "1", "stderr": "1", "follow": "1" if follow else "0"}
        async with await self._calls.answer("GET", f"/containers/{quote(container)}/logs", query) as answer:
            async for piece in unframed(answer.parts()):
                yield piece

    # ── files in containers ──────────────────────────────────────────────────────────────────────

    async def look_at(self, container: str, path: str) -> PathFacts | None:
        """Size and kind of the path; None if it does not exist."""
        target = f"/containers/{quote(container)}/archive"
        async with await self._calls.answer("HEAD", target, {"path": path}, fine=(404,)) as answer:
            if answer.status == 404:
                return None
            return PathFacts.from_header(answer.headers.get("x-docker-container-path-stat", ""))

    async def put_archive(self, container: str, folder: str, archive: bytes) -> None:
        """Unpack the archive into an existing folder. The container need not have been started."""
        headers = {"Content-Type": "application/x-tar"}
        query = {"path": folder, "noOverwriteDirNonDir": "1"}
        await self._calls.done("PUT", f"/containers/{quote(container)}/archive", query, archive, headers=headers)

    async def put_large_archive(self, container: str, folder: str, archive: AsyncIterator[bytes], size: int) -> None:
        """The same for an archive of about this size that is made while it is sent."""
        headers = {"Content-Type": "application/x-tar"}
        query = {"path": folder, "noOverwriteDirNonDir": "1"}
        target, seconds = f"/containers/{quote(container)}/archive", ANSWER_SECONDS + size / SLOWEST_BYTES_PER_SECOND
        await self._calls.done("PUT", target, query, archive, headers=headers, seconds=seconds)

    async def read_archive(self, container: str, path: str) -> AsyncIterator[bytes]:
        """The path as an archive in pieces, also after the container ended; nothing if it does not exist."""
        target = f"/containers/{quote(container)}/archive"
        async with await self._calls.answer("GET", target, {"path": path}, fine=(404,)) as answer:
            if answer.status != 404:
                async for part in answer.parts():
                    yield part

    async def get_archive(self, container: str, path: str, limit: int) -> bytes | None:
        """The path as an archive, also after the container ended; None if it does not exist."""
        target = f"/containers/{quote(container)}/archive"
        async with await self._calls.answer("GET", target, {"path": path}, fine=(404,)) as answer:
            return None if answer.status == 404 else await answer.read(limit + HEADROOM)

    # ── images ───────────────────────────────────────────────────────────────────────────────────

    async def image(self, reference: str) -> dict[str, Any] | None:
        """The image's details; None if the engine does not have it."""
        return await self._calls.there("GET", f"/images/{quote(reference, safe='/:@')}/json")  # type: ignore[no-any-return]

    async def pull(self, reference: str, credentials: Mapping[str, str] | None = None) -> None:
        """Pull the current image from its registry. EngineError with the registry's message if that fails.

        `credentials`: username and password, or identitytoken, and serveraddress.
        """
        headers = {} if credentials is None else {"X-Registry-Auth": _encoded(credentials)}
        image = read_image_name(reference)
        query = {"fromImage": image.written, "tag": image.reference}  # without a tag it would pull all tags
        async with await self._pulling(reference, query, headers) as answer:
            async for line in _lines(answer.parts()):
                progress = parsed(line)
                if isinstance(progress, dict) and "error" in progress:
                    raise EngineError(_not_pulled(reference, progress["error"]), status=404)

    async def _pulling(self, reference: str, query: Mapping[str, str], headers: Mapping[str, str]) -> EngineResponse:
        try:
            return await self._calls.answer("POST", "/images/create", query, headers=headers, seconds=_PULL_SECONDS)
        except EngineError as error:
            if error.status == 0:  # an error of the engine, not of the image
                raise
            raise EngineError(_not_pulled(reference, error), status=error.status) from error


def _not_pulled(reference: str, why: object) -> str:
    return f"the image {reference} cannot be pulled: {why}"


async def _lines(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Complete lines that are not empty. AnswerLostError if a line is too long."""
    rest = b""
    async for part in parts:
        *lines, rest = (rest + part).split(b"\n")
        if len(rest) > _LONGEST_LINE:
            raise AnswerLostError("the engine sent a line without end")
        for line in lines:
            if line.strip():
                yield line
    if rest.strip():
        yield rest


def _encoded(credentials: Mapping[str, str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(dict(credentials)).encode()).decode()
