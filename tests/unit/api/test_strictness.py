"""What is not meant is refused: slips in names, bodies of another kind, and shutting oneself out."""

from __future__ import annotations

import socket

import pytest

from ork.api.server import ListenAddress, bind
from ork.model.access import Role
from tests.unit.api.conftest import Bench


@pytest.mark.parametrize("path", ["/runs?stauts=failed", "/workflows?Limit=1", "/healthz?x", "/runs/@last?limit=1"])
async def test_a_query_nobody_knows_is_refused_by_name(bench: Bench, path: str) -> None:
    await bench.run()
    async with await bench.client() as client:
        answer = await client.get(f"/api/v1{path}")
        assert answer.status_code == 400
        assert path.partition("?")[2].partition("=")[0] in answer.json()["detail"]


@pytest.mark.parametrize("body", [b"null", b"[]", b'"x"', b"1", b'{"params": {}, "parmas": {}}', b'{"params": null}'])
async def test_a_trigger_takes_an_object_of_known_keys_and_nothing_else(bench: Bench, body: bytes) -> None:
    await bench.deploy()
    async with await bench.client() as client:
        assert (await client.post("/api/v1/workflows/flow/runs", content=body)).status_code == 400
        assert (await client.post("/api/v1/workflows/flow/runs", content=b"")).status_code == 201


async def test_no_token_revokes_itself(bench: Bench) -> None:
    await bench.token(Role.ADMIN)
    await bench.token(Role.VIEWER)
    ids = {token.role: token.id for token in await bench.store.list_tokens()}
    async with await bench.client(Role.ADMIN) as client:
        assert (await client.delete(f"/api/v1/tokens/{ids[Role.ADMIN]}")).status_code == 409
        assert (await client.delete(f"/api/v1/tokens/{ids[Role.VIEWER]}")).status_code == 204
        assert (await client.get("/api/v1/tokens")).status_code == 200


async def test_where_nothing_waits_for_a_person_saying_yes_is_refused_not_misunderstood(bench: Bench) -> None:
    await bench.run()
    async with await bench.client() as client:
        answer = await client.post("/api/v1/runs/@last/approve")
        assert (answer.status_code, "waits for a person" in answer.json()["detail"]) == (409, True)


def test_answers_do_not_wait_for_acknowledgements() -> None:
    with bind(ListenAddress("127.0.0.1", 0)) as listening, socket.create_connection(listening.getsockname()):
        connection, _ = listening.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
