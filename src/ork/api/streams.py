"""Limits the number of open streams, and ends them when their token is revoked or expires."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from typing import Protocol

from ork.api.quotas import Quota
from ork.errors import StoreError

# A stream may outlive its token by slightly more than this.
POLL_SECONDS = 1.0
STREAMS, STREAMS_OF_ONE_TOKEN = 256, 64


class LiveTokens(Protocol):
    async def live_tokens(self, digests: frozenset[str], now: datetime) -> frozenset[str]: ...


class TokenEnded(Exception):  # noqa: N818 (an ending, not an error)
    """The token that the stream was opened with is revoked or has expired."""


class Streams:
    """Ends a stream when its token is revoked by any process. While streams are open, one query a second checks all
    their tokens."""

    def __init__(self, tokens: LiveTokens) -> None:
        self._tokens = tokens
        self._quota = Quota(STREAMS, STREAMS_OF_ONE_TOKEN)
        self._open: dict[asyncio.Timeout, str] = {}
        self._watch: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def opened(self, digest: str, until: datetime | None = None) -> AsyncIterator[bool]:
        """Yields False if no more streams may be opened. When the token ends, and at `until`, the block is cancelled with
        TokenEnded."""
        with self._quota.held(digest) as is_free:
            if not is_free:
                yield False
                return
            limit = asyncio.timeout(None if until is None else (until - datetime.now(UTC)).total_seconds())
            try:
                async with limit:
                    with self._watched(limit, digest):
                        yield True
            except TimeoutError:
                if limit.expired():
                    raise TokenEnded from None
                raise

    @contextmanager
    def _watched(self, limit: asyncio.Timeout, digest: str) -> Iterator[None]:
        self._open[limit] = digest
        if self._watch is None:
            self._watch = asyncio.create_task(self._watch_tokens())
        try:
            yield
        finally:
            del self._open[limit]
            if not self._open:
                self._watch.cancel()
                self._watch = None

    async def _watch_tokens(self) -> None:
        while True:
            await asyncio.sleep(POLL_SECONDS)
            asked = frozenset(self._open.values())  # streams that are opened during the query are not in it
            try:
                live = await self._tokens.live_tokens(asked, datetime.now(UTC))
            except StoreError:
                continue  # the tokens cannot be checked now; new requests are rejected meanwhile
            for limit, digest in self._open.items():
                if digest in asked - live and not limit.expired():
                    limit.reschedule(asyncio.get_running_loop().time())
