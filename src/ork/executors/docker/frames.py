"""Decodes a container's output: frames with an eight byte header, then bytes of stdout or stderr."""

from __future__ import annotations

from collections.abc import AsyncIterator

_HEAD = 8
STDOUT = 1


async def unframed(parts: AsyncIterator[bytes]) -> AsyncIterator[tuple[int, bytes]]:
    """Pairs of stream number and bytes. The available part of an incomplete frame is returned."""
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
