"""A container's output as the engine sends it: frames of eight bytes of head, then bytes of one of the two streams."""

from __future__ import annotations

from collections.abc import AsyncIterator

_HEAD = 8
STDOUT = 1


async def unframed(parts: AsyncIterator[bytes]) -> AsyncIterator[tuple[int, bytes]]:
    """The number of the stream, and bytes of it; a frame that breaks off is given as far as it came."""
    head = bytearray()
    left, stream = 0, STDOUT
    async for part in parts:
        rest = memoryview(part)
        while rest:
            if left:
                yield stream, bytes(rest[:left])
                taken = min(left, len(rest))
                left, rest = left - taken, rest[taken:]
                continue
            wanted = _HEAD - len(head)
            head += rest[:wanted]
            rest = rest[wanted:]
            if len(head) == _HEAD:
                stream, left = head[0], int.from_bytes(head[4:], "big")
                head.clear()
