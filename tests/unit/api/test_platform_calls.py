"""Calls of a platform: identity tokens are verified to the letter, and allow nothing but a tick."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from ork.api.app import create_app
from ork.api.identity_tokens import MIN_KEYS_SECONDS, ExpectedIdentity, IdentityVerifier
from ork.api.routes.services import EVENT_LIMIT
from ork.errors import RefusedError, StoreUnavailableError
from ork.model.record import replaced
from tests.cloud.identity import Signer
from tests.unit.api.conftest import Bench

AUDIENCE, EMAIL = "https://ork.example", "ork-wake@acme.iam.gserviceaccount.com"
EXPECTED = ExpectedIdentity(AUDIENCE, EMAIL, "https://keys.example")
PLATFORM, STRANGER, UNKNOWN = Signer("key-1"), Signer("key-1"), Signer("key-7")


class Keys:
    """The platform's keys, which are counted, and may fail."""

    def __init__(self, *signers: Signer) -> None:
        self.signers = signers
        self.fetched = 0
        self.fails = False
        self.now = 1000.0

    def fetch(self, _url: str) -> tuple[bytes, str]:
        self.fetched += 1
        if self.fails:
            raise OSError("Connection refused")
        found = {signer.id: signer.certificate() for signer in self.signers}
        return json.dumps(found).encode(), "public, max-age=600"

    def verifier(self) -> IdentityVerifier:
        return IdentityVerifier(EXPECTED, self.fetch, lambda: self.now)


def _token(signer: Signer = PLATFORM, *, audience: str = AUDIENCE, email: str = EMAIL, **claims: Any) -> str:
    return signer.token(audience, email, datetime.now(UTC), **claims)


def _unsigned() -> str:
    parts = [{"alg": "none", "kid": "key-1"}, {"aud": AUDIENCE, "email": EMAIL, "email_verified": True}]
    return ".".join(base64.urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in parts) + "."


def _ago(**by: float) -> int:
    return int((datetime.now(UTC) - timedelta(**by)).timestamp())


WRONG: dict[str, Callable[[], str]] = {
    "another audience": lambda: _token(audience="https://other.example"),
    "another account": lambda: _token(email="mallory@acme.iam.gserviceaccount.com"),
    "an address that is not verified": lambda: _token(email_verified=False),
    "an address that is verified as text": lambda: _token(email_verified="true"),
    "no address": lambda: _token(email=None),  # type: ignore[arg-type]
    "another issuer": lambda: _token(iss="https://accounts.evil.example"),
    "expired": lambda: _token(iat=_ago(hours=2), exp=_ago(hours=1)),
    "issued in the future": lambda: _token(iat=_ago(hours=-1), exp=_ago(hours=-2)),
    "no expiry": lambda: _token(exp=None),
    "another key of the same id": lambda: _token(STRANGER),
    "unknown key": lambda: _token(Signer("key-9")),
    "no signature": lambda: _token().rpartition(".")[0] + ".",
    "signature removed": lambda: _token().rpartition(".")[0] + ".SIGNATURE_REMOVED_BY_GOOGLE",
    "no algorithm": _unsigned,
    "no JSON": lambda: "aaaa.bbbb.cccc",
}


def test_a_token_of_the_account_for_this_service_is_accepted() -> None:
    assert asyncio.run(Keys(PLATFORM).verifier().verify(_token())) == f"platform {EMAIL}"


@pytest.mark.parametrize("case", WRONG)
def test_any_other_token_is_refused(case: str) -> None:
    with pytest.raises(RefusedError):
        asyncio.run(Keys(PLATFORM).verifier().verify(WRONG[case]()))


def test_keys_are_kept_and_fetched_anew_when_they_are_old_or_changed() -> None:
    async def scene() -> None:
        keys, later = Keys(PLATFORM), Signer("key-2")
        verifier = keys.verifier()
        for _ in range(3):
            await verifier.verify(_token())
        assert keys.fetched == 1
        keys.now += 599
        await verifier.verify(_token())
        assert keys.fetched == 1
        keys.signers = (PLATFORM, later)
        await verifier.verify(_token(later))  # unknown: asks at once
        assert keys.fetched == 2
        for _ in range(50):  # a flood of unknown keys asks nobody
            with pytest.raises(RefusedError):
                await verifier.verify(_token(UNKNOWN))
        assert keys.fetched == 2
        keys.fails, keys.now = True, keys.now + 601
        await verifier.verify(_token())  # old keys are better than none
        keys.now += MIN_KEYS_SECONDS + 1
        keys.fails = False
        await verifier.verify(_token())
        assert keys.fetched == 4

    asyncio.run(scene())


def test_without_keys_nothing_is_decided() -> None:
    keys = Keys(PLATFORM)
    keys.fails = True
    with pytest.raises(StoreUnavailableError):
        asyncio.run(keys.verifier().verify(_token()))


# ── routes ───────────────────────────────────────────────────────────────────────────────────────


def _client(bench: Bench, token: str | None, **changes: Any) -> httpx.AsyncClient:
    app = create_app(replaced(bench.api, **changes), platform=Keys(PLATFORM).verifier())
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost", headers=headers)


async def test_the_platform_may_call_a_tick_and_nothing_else(bench: Bench) -> None:
    async with _client(bench, _token()) as client:
        assert (await client.post("/api/v1/tick")).status_code == 200
        assert bench.woken == ["tick"]
        for method, path in (("GET", "/runs"), ("GET", "/status"), ("POST", "/wake"), ("POST", "/prune")):
            assert (await client.request(method, f"/api/v1{path}")).status_code == 401, path


async def test_a_wrong_token_calls_nothing_and_is_audited(bench: Bench) -> None:
    for case in ("another account", "expired", "no signature"):
        async with _client(bench, WRONG[case]()) as client:
            assert (await client.post("/api/v1/tick")).status_code == 401, case
            assert (await client.post("/api/v1/events/pubsub", json={})).status_code == 401, case
    assert bench.woken == []
    assert any("identity token" in (entry.subject + str(entry.detail)) for entry in await bench.store.list_audit())


async def test_many_wrong_tokens_do_not_keep_the_platform_out(bench: Bench) -> None:
    app = create_app(bench.api, platform=Keys(PLATFORM).verifier())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        for _ in range(30):
            wrong = {"Authorization": f"Bearer {WRONG['expired']()}"}
            assert (await client.post("/api/v1/tick", headers=wrong)).status_code == 401
        good = {"Authorization": f"Bearer {_token()}"}
        assert (await client.post("/api/v1/tick", headers=good)).status_code == 200


async def test_with_an_alarm_a_wake_and_a_pushed_event_only_set_it(bench: Bench) -> None:
    rung: list[str] = []

    async def set_alarm() -> bool:
        rung.append("alarm")
        return True

    push = {"message": {"data": "e30=", "messageId": "1"}, "subscription": "projects/acme/subscriptions/ends"}
    async with _client(bench, _token(), set_alarm=set_alarm) as client:
        answer = await client.post("/api/v1/events/pubsub", json=push)
        assert (answer.status_code, answer.json()) == (202, {"woken": "alarm"})
        large = await client.post("/api/v1/events/pubsub", content=b"x" * (EVENT_LIMIT + 1))
        assert large.status_code == 413
    from ork.model.access import Role

    async with _client(bench, await bench.token(Role.OPERATOR), set_alarm=set_alarm) as client:
        assert (await client.post("/api/v1/wake")).json() == {"woken": "alarm"}
    assert (rung, bench.woken) == (["alarm", "alarm"], [])


async def test_an_alarm_that_cannot_be_set_makes_the_platform_call_again(bench: Bench) -> None:
    async def set_alarm() -> bool:
        return False

    async with _client(bench, _token(), set_alarm=set_alarm) as client:
        answer = await client.post("/api/v1/events/pubsub", json={})
        assert (answer.status_code, answer.json()["code"]) == (503, "ORK850")


async def test_a_pushed_event_needs_somebody_to_wake(bench: Bench) -> None:
    async with _client(bench, _token()) as client:
        assert (await client.post("/api/v1/events/pubsub", json={})).status_code == 409
