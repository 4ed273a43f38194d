"""Copies what a program without Ork writes, from the API to the attempt's log."""

from __future__ import annotations

import asyncio

from ork.errors import EngineError
from ork.executors.docker.container_documents import ContainerDocuments
from ork.executors.kubernetes.api import ClusterApi
from ork.executors.kubernetes.making import MAIN
from ork.objects.attempt_documents import AttemptDocuments

NOTE = "Kubernetes: "  # how notes about a pod begin
FLUSH_SECONDS = 2.0
_FLUSH_BYTES = 256 * 1024
_OWN_LINE = b"ork: " + NOTE.encode()


async def copy_log(
    api: ClusterApi,
    pod: str,
    attempt: str,
    documents: ContainerDocuments,
    objects: AttemptDocuments,
    *,
    follow: bool,
) -> None:
    """Copy what is not in the log yet; with `follow`, until the program ends. EngineError or ObjectsError: call it again."""
    call = documents.calls.call
    written = await call(objects.read_log, attempt)
    own = sum(len(line) for line in written.splitlines(keepends=True) if line.startswith(_OWN_LINE))
    skip, position, waiting = len(written) - own, len(written), bytearray()
    enough = asyncio.Event()

    async def read() -> None:
        nonlocal skip
        async for line in api.log_lines(pod, MAIN, follow=follow):
            data = line.encode()
            waiting.extend(data[skip:])
            skip = max(0, skip - len(data))
            if len(waiting) > _FLUSH_BYTES:
                enough.set()

    reading = asyncio.ensure_future(read())
    try:
        while True:
            more = asyncio.ensure_future(enough.wait())
            await asyncio.wait([reading, more], timeout=FLUSH_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            more.cancel()
            enough.clear()
            is_over, data = reading.done(), bytes(waiting)
            if data:
                await call(documents.write_log, position, data)
                position += len(data)
                del waiting[: len(data)]
            if is_over and not waiting:
                break
        await reading
    finally:
        reading.cancel()


async def try_to_copy(
    api: ClusterApi, pod: str, attempt: str, documents: ContainerDocuments, objects: AttemptDocuments
) -> str | None:
    """Copy the rest of the log of a program that has ended. Returns why that cannot be done; None if it was."""
    try:
        await copy_log(api, pod, attempt, documents, objects, follow=False)
    except EngineError as error:
        return error.message
    return None
