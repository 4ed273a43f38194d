"""Reads the log of an attempt: all of it, a range, or while it grows."""

from __future__ import annotations

import asyncio
import json
import re
from codecs import getincrementaldecoder
from collections.abc import AsyncIterator
from typing import NamedTuple

from ork.api.context import Api
from ork.api.events import KEEP_ALIVE, sse, wait_for_event
from ork.errors import NotFoundError
from ork.model.ids import AttemptKey
from ork.model.task import Attempt

CHUNK = 1 << 16
# Polling interval of followed logs: the store notifies about changes, logs do not.
POLL_SECONDS = 0.5
KEEP_ALIVE_SECONDS = 15.0
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


class ByteRange(NamedTuple):
    """Bytes from `start` up to, not including, `end`."""

    start: int
    end: int


class NotSatisfiable(NamedTuple):
    """The range starts after the end."""


def requested_range(header: str | None, size: int) -> ByteRange | NotSatisfiable | None:
    """The requested range; None means the whole. A header that is not a single byte range is ignored (RFC 9110)."""
    found = _RANGE.fullmatch(header.strip()) if header else None
    if found is None or found.groups() == ("", ""):
        return None
    first, last = found.groups()
    if not first:
        return ByteRange(max(size - int(last), 0), size) if int(last) else NotSatisfiable()
    if last and int(last) < int(first):
        return None
    if int(first) >= size:
        return NotSatisfiable()
    return ByteRange(int(first), min(int(last) + 1, size) if last else size)


async def log_bytes(api: Api, attempt: AttemptKey, span: ByteRange) -> AsyncIterator[bytes]:
    name, offset = str(attempt), span.start
    while offset < span.end:
        data = await asyncio.to_thread(api.objects.read_log, name, offset, min(CHUNK, span.end - offset))
        if not data:
            return
        offset += len(data)
        yield data


async def log_size(api: Api, attempt: AttemptKey) -> int:
    return await asyncio.to_thread(api.objects.log_size, str(attempt)) or 0


async def follow_log(api: Api, attempt: AttemptKey, offset: int) -> AsyncIterator[bytes]:
    """Events `log` with a text and the number of bytes up to its end, then `end` with the attempt's status.

    It also ends when the server stops and, like every stream, with its token. A client that reconnects continues after
    the last id.
    """
    decoder = getincrementaldecoder("utf-8")("replace")
    loop = asyncio.get_running_loop()
    sent_at = loop.time()
    async with api.hub.listening() as changed:
        while not api.hub.is_closed:
            # The status is read before the log, so that everything a finished attempt printed is sent.
            found = await find_attempt(api, attempt)
            async for data in log_bytes(api, attempt, ByteRange(offset, 1 << 62)):
                offset += len(data)
                text = decoder.decode(data)
                pending = len(decoder.getstate()[0])
                if text:
                    sent_at = loop.time()
                    yield sse(json.dumps({"text": text}), event="log", id=str(offset - pending))
            if found.status.is_final:
                yield sse(json.dumps({"status": found.status.value}), event="end", id=str(offset))
                return
            await wait_for_event(changed, POLL_SECONDS)
            if loop.time() - sent_at > KEEP_ALIVE_SECONDS:
                sent_at = loop.time()
                yield KEEP_ALIVE


async def find_attempt(api: Api, key: AttemptKey) -> Attempt:
    for attempt in await api.store.list_attempts(key.run, key.task):
        if attempt.key.number == key.number:
            return attempt
    raise NotFoundError(f"`{key.task}` has no attempt {key.number}", hint=f"ork show {key.run}")
