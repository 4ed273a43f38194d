"""What tests on a real Postgres share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from tests.postgres import Server, fresh_database, server_or_skip


@pytest.fixture
def server() -> Server:
    return server_or_skip()


@pytest.fixture
def url(server: Server) -> Iterator[str]:
    """Of a database with the newest schema. Nobody may have waited for each other in a circle when the test is over."""
    before = len(server.log())
    with fresh_database() as url:
        yield url
    assert "deadlock detected" not in server.log()[before:]


@pytest.fixture
def database(url: str) -> str:
    """Its name."""
    return url.rsplit("/", 1)[1]


def with_stores(url: str, number: int, scene: Callable[..., Awaitable[Any]], **options: Any) -> Any:
    """What the scene gives, played with so many handles on one database."""
    from ork.state.postgres import PostgresStore

    async def run() -> Any:
        stores = [PostgresStore(url, **options) for _ in range(number)]
        try:
            return await scene(*stores)
        finally:
            for store in stores:
                await store.close()

    return asyncio.run(run())
