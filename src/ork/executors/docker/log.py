"""Copies a container's output to the attempt's log, byte for byte, including output from before the copy started."""

from __future__ import annotations

from collections.abc import AsyncIterator

from ork.executors.docker.container_documents import ContainerDocuments
from ork.model.masking import Mask, MaskedStream


async def copy_log(
    pieces: AsyncIterator[tuple[int, bytes]],
    documents: ContainerDocuments,
    mask: Mask | None = None,
    *,
    is_whole: bool = True,
) -> None:
    """Copy the output from the first byte on, with secrets masked.

    Each byte has a fixed position: existing bytes are skipped, and two concurrent copies write the same. Unless the output
    is complete (`is_whole`), its end may be the start of a secret and is left to the next copy. ObjectsError if the log
    cannot be written (a full disk): the engine still has the output, so the copy can be repeated.
    """
    size, position = await documents.calls.call(documents.log_size), 0
    async for data in _masked(pieces, mask, is_whole) if mask is not None else _plain(pieces):
        new = data[max(0, size - position) :]
        position += len(data)
        if new:
            await documents.calls.call(documents.write_log, position - len(new), new)


async def _plain(pieces: AsyncIterator[tuple[int, bytes]]) -> AsyncIterator[bytes]:
    async for _, data in pieces:
        yield data


async def _masked(pieces: AsyncIterator[tuple[int, bytes]], mask: Mask, is_whole: bool) -> AsyncIterator[bytes]:
    """Each stream is masked separately, so that output of the other one does not split a secret."""
    streams: dict[int, MaskedStream] = {}
    async for number, data in pieces:
        if number not in streams:
            streams[number] = MaskedStream(mask)
        yield streams[number].feed(data)
    for stream in streams.values() if is_whole else ():
        yield stream.flush()
