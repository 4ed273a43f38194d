"""What an attempt printed: whole, in part, or as it grows."""

from __future__ import annotations

import asyncio
import json
import re
from codecs import getincrementaldecoder
from collections.abc import AsyncIterator
from typing import NamedTuple

from ork.api.context import Api
from ork.api.events import STILL_HERE, heard_within, sse
from ork.errors import NotFoundError
from ork.model.ids import AttemptKey
from ork.model.task import Attempt

CHUNK = 1 << 16
# Logs send no news: how long growth may go unnoticed while somebody follows.
LOOK_SECONDS = 0.5
BEAT_SECONDS = 15.0
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


class Span(NamedTuple):
    """Bytes from `start` up to, not including, `end`."""

    start: int
    end: int


class NotSatisfiable(NamedTuple):
    """The range lies behind the end."""


def asked_span(header: str | None, size: int) -> Span | NotSatisfiable | None:
    """None: the whole. A header that is no single range of bytes is passed over, as the protocol wants it."""
    found = _RANGE.fullmatch(header.strip()) if header else None
    if found is None or found.groups() == ("", ""):
        return None
    first, last = found.groups()
    if not first:
        return Span(max(size - int(last), 0), size) if int(last) else NotSatisfiable()
    if last and int(last) < int(first):
        return None
    if int(first) >= size:
        return NotSatisfiable()
    return Span(int(first), min(int(last) + 1, size) if last else size)


async def log_bytes(api: Api, attempt: AttemptKey, span: Span) -> AsyncIterator[bytes]:
    name, place = str(attempt), span.start
    while place < span.end:
        data = await asyncio.to_thread(api.objects.read_log, name, place, min(CHUNK, span.end - place))
        if not data:
            return
        place += len(data)
        yield data


async def log_size(api: Api, attempt: AttemptKey) -> int:
    return await asyncio.to_thread(api.objects.log_size, str(attempt)) or 0


async def follow_log(api: Api, attempt: AttemptKey, place: int) -> AsyncIterator[bytes]:
    """Events `log` with a text and the number of bytes up to its end, then `end` with the attempt's status.

    Ends as well when the server stops (and, like every stream, with its token); a client that comes back goes on behind
    the last id.
    """
    decoder = getincrementaldecoder("utf-8")("replace")
    loop = asyncio.get_running_loop()
    told_at = loop.time()
    async with api.hub.listening() as heard:
        while not api.hub.is_closed:
            # The state is read before the log: what was printed before the end is then surely sent.
            found = await find_attempt(api, attempt)
            async for data in log_bytes(api, attempt, Span(place, 1 << 62)):
                place += len(data)
                text = decoder.decode(data)
                pending = len(decoder.getstate()[0])
                if text:
                    told_at = loop.time()
                    yield sse(json.dumps({"text": text}), event="log", id=str(place - pending))
            if found.status.is_final:
                yield sse(json.dumps({"status": found.status.value}), event="end", id=str(place))
                return
            await heard_within(heard, LOOK_SECONDS)
            if loop.time() - told_at > BEAT_SECONDS:
                told_at = loop.time()
                yield STILL_HERE


async def find_attempt(api: Api, key: AttemptKey) -> Attempt:
    for attempt in await api.store.list_attempts(key.run, key.task):
        if attempt.key.number == key.number:
            return attempt
    raise NotFoundError(f"`{key.task}` has no attempt {key.number}", hint=f"ork show {key.run}")
