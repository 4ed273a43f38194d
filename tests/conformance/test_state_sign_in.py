"""Servers that share a store: a ticket of one works at another, once; a session works at all, until its token ends."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime

from starlette.responses import Response

from ork.api.failed_sign_ins import FailedSignIns
from ork.api.sign_ins import SignIns
from ork.api.tickets import UI
from ork.api.tokens import make_token
from ork.model.access import Role, Token
from ork.state.store import StateStore
from tests.conformance.conftest import Stores


def server_on(store: StateStore) -> SignIns:
    return SignIns(store, FailedSignIns(store, time.monotonic))


async def test_a_ticket_of_one_server_signs_in_at_another_once(stores: Stores) -> None:
    one, others = server_on(stores.open()), [server_on(stores.open()) for _ in range(3)]
    _, token = make_token("t", Role.VIEWER, datetime.now(UTC))
    await stores.open().add_token(token)
    ticket = await one.tickets.make(UI, token.digest, datetime.now(UTC))
    answers = await asyncio.gather(*(other.with_ticket(ticket, UI, "127.0.0.1") for other in (one, *others)))
    assert [answer.id for answer in answers if isinstance(answer, Token)] == [token.id]
    assert [answer.status_code for answer in answers if isinstance(answer, Response)] == [401] * 3


async def test_a_session_works_at_every_server_until_its_token_is_revoked(stores: Stores) -> None:
    store = stores.open()
    one, other = server_on(store), server_on(stores.open())
    _, token = make_token("t", Role.VIEWER, datetime.now(UTC))
    await store.add_token(token)
    session = await one.sessions.begin(token, 8700, datetime.now(UTC))
    for server in (one, other):
        found = await server.with_session([session.cookie], session.half, 8700, "127.0.0.1")
        assert not isinstance(found, Response)
        assert found[0].id == token.id
    assert await store.revoke_token(token.id, datetime.now(UTC))
    for server in (one, other):
        answer = await server.with_session([session.cookie], session.half, 8700, "127.0.0.1")
        assert isinstance(answer, Response)
        assert answer.status_code == 401


async def test_a_session_of_another_store_is_worth_nothing(stores: Stores) -> None:
    from ork.state.memory import MemoryStore

    store = stores.open()
    _, token = make_token("t", Role.VIEWER, datetime.now(UTC))
    await store.add_token(token)
    elsewhere = await server_on(MemoryStore()).sessions.begin(token, 8700, datetime.now(UTC))
    answer = await server_on(store).with_session([elsewhere.cookie], elsewhere.half, 8700, "127.0.0.1")
    assert isinstance(answer, Response)
