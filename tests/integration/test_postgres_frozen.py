"""A process that is frozen in the middle of a request, with rows locked: no time limit of Postgres ends its session."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ork.errors import StoreUnavailableError
from tests.conformance.state_samples import ANN, BEN, NOW, claim, command, owned_run, register, start_runs
from tests.integration.conftest import with_stores
from tests.postgres import Server

pytest.importorskip("asyncpg", reason="asyncpg is not installed: nothing is tried on Postgres")

from ork.state.postgres import PostgresStore, connection

BEGINS = {"user": "ork", "application_name": "ork store"}
_LISTENS = "SELECT 1 FROM pg_stat_activity WHERE client_port = {port} AND wait_event = 'ClientRead'"


@contextmanager
def frozen_after(server: Server, database: str, statement: str) -> Iterator[None]:
    """A session that has run the statement in a transaction, has announced the next one, and falls silent."""
    with socket.create_connection(("127.0.0.1", server.port)) as peer:
        words = [text for pair in {**BEGINS, "database": database}.items() for text in pair]
        start = struct.pack("!I", 196608) + b"".join(word.encode() + b"\0" for word in words) + b"\0"
        peer.sendall(struct.pack("!I", len(start) + 4) + start)
        _hear_until_ready(peer)
        peer.sendall(_message(b"Q", f"BEGIN; {statement}".encode() + b"\0"))
        _hear_until_ready(peer)
        peer.sendall(_message(b"P", b"\0SELECT 1\0\0\0") + _message(b"D", b"S\0") + _message(b"H", b""))
        assert peer.recv(1) == b"1"  # understood
        while not server.sql(_LISTENS.format(port=peer.getsockname()[1])):
            pass  # a session that has answered is not yet one that waits: on a busy machine it takes its time
        yield


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def _hear_until_ready(peer: socket.socket) -> None:
    heard = b""
    while heard[-6:-1] != b"Z\0\0\0\5":
        heard += peer.recv(1 << 16)


def test_whose_lease_is_over_is_taken_over_though_it_holds_the_lock_on_it(
    server: Server, url: str, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ork.state.postgres.database.SILENT_SECONDS", 0.0)

    async def scene(store: PostgresStore) -> None:
        owned = await owned_run(store, ANN)
        await register(store, BEN)
        await store.expire([ANN])
        with frozen_after(server, database, "SELECT FROM ork.schedulers WHERE id = 'ann' FOR UPDATE"):
            (taken,) = await claim(store, BEN)
        assert (taken.run.id, taken.epoch) == (owned.run.id, owned.epoch + 1)

    with_stores(url, 1, scene)


def test_who_has_waited_for_its_lock_in_vain_gets_it_the_next_time(
    server: Server, url: str, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ork.state.postgres.database.SILENT_SECONDS", 0.0)
    monkeypatch.setitem(connection._SESSION, "lock_timeout", "500ms")

    async def scene(store: PostgresStore) -> None:
        (run,) = await start_runs(store)
        with frozen_after(server, database, f"SELECT FROM ork.runs WHERE id = '{run.id}' FOR UPDATE"):
            with pytest.raises(StoreUnavailableError, match="locked by another process"):
                await store.submit_command(command(run.id), NOW)
            assert await store.submit_command(command(run.id), NOW)

    with_stores(url, 1, scene)
