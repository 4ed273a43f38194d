"""Streams end with their token, and only with theirs."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import datetime

import pytest

from ork.api import streams
from ork.api.streams import Streams, TokenEnded


class Tokens:
    """All tokens but the revoked ones are live. Each query waits until `goes_on` is set."""

    def __init__(self) -> None:
        self.revoked: frozenset[str] = frozenset()
        self.asked = asyncio.Event()
        self.goes_on = asyncio.Event()

    async def live_tokens(self, digests: frozenset[str], now: datetime) -> frozenset[str]:
        self.asked.set()
        await self.goes_on.wait()
        return digests - self.revoked


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "POLL_SECONDS", 0.001)


def test_a_stream_that_is_opened_during_the_query_is_not_ended_by_it() -> None:
    async def work() -> None:
        tokens = Tokens()
        opened = Streams(tokens)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(opened.opened("first"))
            await tokens.asked.wait()
            await stack.enter_async_context(opened.opened("second"))
            tokens.asked.clear()
            tokens.goes_on.set()
            await tokens.asked.wait()  # the next query: the one before has been judged
            await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(work(), 30))


def test_a_stream_ends_when_its_token_is_revoked() -> None:
    async def work() -> None:
        tokens = Tokens()
        tokens.goes_on.set()
        async with Streams(tokens).opened("first"):
            tokens.revoked = frozenset({"first"})
            await asyncio.sleep(30)

    with pytest.raises(TokenEnded):
        asyncio.run(work())
