"""A container's output into the attempt's log, byte for byte, also what was written while nobody listened."""

from __future__ import annotations

from collections.abc import AsyncIterator

from ork.executors.docker.papers import Papers
from ork.model.masking import Mask, MaskedStream


async def copy_log(
    pieces: AsyncIterator[tuple[int, bytes]], papers: Papers, mask: Mask | None = None, *, is_whole: bool = True
) -> None:
    """Everything the engine tells, from the first byte on, is in the log, with the values of secrets masked.

    Each byte has its place: what is there already is passed over, and two who copy at the same time write the same.
    Unless this is the whole of it (`is_whole`), the end may be the beginning of a secret, and is left for the next copy.
    ObjectsError where the log cannot be written (a full disk): the engine still has it all, so it can be begun again.
    """
    there, place = await papers.calls.call(papers.log_size), 0
    async for data in _masked(pieces, mask, is_whole) if mask is not None else _plain(pieces):
        new = data[max(0, there - place) :]
        place += len(data)
        if new:
            await papers.calls.call(papers.write_log, place - len(new), new)


async def _plain(pieces: AsyncIterator[tuple[int, bytes]]) -> AsyncIterator[bytes]:
    async for _, data in pieces:
        yield data


async def _masked(pieces: AsyncIterator[tuple[int, bytes]], mask: Mask, is_whole: bool) -> AsyncIterator[bytes]:
    """Each stream by itself: a value is not interrupted by what comes on the other one."""
    streams: dict[int, MaskedStream] = {}
    async for number, data in pieces:
        if number not in streams:
            streams[number] = MaskedStream(mask)
        yield streams[number].feed(data)
    for stream in streams.values() if is_whole else ():
        yield stream.flush()
