"""Failed sign-ins are written down, and a flood of them stays small."""

from __future__ import annotations

import json

from ork.api import failed_sign_ins
from ork.api.failed_sign_ins import ENTRIES_IN_A_WINDOW, WINDOW_SECONDS, FailedSignIns
from ork.model.access import AuditEntry
from tests.unit.api.conftest import Bench


class Trail:
    def __init__(self) -> None:
        self.entries: list[AuditEntry] = []
        self.now = 0.0

    async def record(self, entry: AuditEntry, keep: int | None = None) -> None:
        assert keep == failed_sign_ins.ENTRIES_KEPT
        self.entries.append(entry)


async def test_of_many_failures_of_one_address_few_are_written_with_their_number() -> None:
    trail = Trail()
    failed = FailedSignIns(trail, lambda: trail.now)
    for _ in range(1500):
        await failed.note("192.0.2.7", "unknown or revoked token")
    counts = [json.loads(entry.detail or "")["failures"] for entry in trail.entries]
    assert counts == [1, 10, 100, 1000]
    assert {(entry.action, entry.by, entry.address) for entry in trail.entries} == {
        ("sign_in.failed", "unknown", "192.0.2.7")
    }
    trail.now += WINDOW_SECONDS
    await failed.note("192.0.2.7", "unknown or revoked token")
    assert len(trail.entries) == 5


async def test_failures_of_many_addresses_are_few_as_well() -> None:
    trail = Trail()
    failed = FailedSignIns(trail, lambda: trail.now)
    for number in range(5000):
        await failed.note(f"2001:db8::{number:x}", "unknown or revoked token")
    assert len(trail.entries) == ENTRIES_IN_A_WINDOW


async def test_the_store_keeps_the_newest_ones_and_nothing_else_is_lost(bench: Bench) -> None:
    from ork.model.access import Role

    good = {"Authorization": f"Bearer {await bench.token(Role.ADMIN)}"}
    async with await bench.client(None) as client:
        await client.post("/api/v1/tokens", json={"name": "ci", "role": "viewer"}, headers=good)
        for number in range(30):
            wrong = {"Authorization": f"Bearer ork_{number:040}"}
            assert (await client.get("/api/v1/runs", headers=wrong)).status_code in (401, 429)
        entries = (await client.get("/api/v1/audit", headers=good)).json()["entries"]
    assert [entry["action"] for entry in entries] == ["sign_in.failed", "sign_in.failed", "token.create"]
    assert entries[0]["detail"] == {"failures": 10}
    assert entries[0]["address"] == "127.0.0.1"
