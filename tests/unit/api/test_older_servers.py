"""A client may be newer than its server."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from ork.api.client.objects import RemoteObjects
from ork.api.client.store import RemoteStore


def test_what_a_server_does_not_tell_yet_is_nothing() -> None:
    server: Any = SimpleNamespace(url="http://old", get=lambda *_path, **_query: {"schedulers": [], "waiting": 0})
    assert asyncio.run(RemoteStore(server).unsent_alerts(10)) == ()
    assert not RemoteObjects(server).is_full()
