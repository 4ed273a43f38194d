"""The emulator behind a proxy, and a database in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.firestore import HOST, emulator_or_skip


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    emulator = emulator_or_skip()
    from tests.firestore_proxy import Proxy

    proxy = Proxy(emulator)
    monkeypatch.setenv(HOST, proxy.host)
    yield proxy
    proxy.close()


@pytest.fixture
def url(proxy: Any) -> str:
    name: str = proxy.emulator.new_database()
    return name
