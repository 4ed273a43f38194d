"""Records failed sign-ins in the audit log, limited so that a flood of them cannot fill the store."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Protocol

from ork.errors import StoreError
from ork.model.access import AuditEntry, Token

ACTION = "sign_in.failed"
WINDOW_SECONDS = 600.0
ENTRIES_IN_A_WINDOW = 100  # of all addresses together
ENTRIES_KEPT = 1000
ADDRESSES_KEPT = 4096


class Trail(Protocol):
    async def record(self, entry: AuditEntry, keep: int | None = None) -> None: ...


class FailedSignIns:
    """Records the first, tenth, hundredth … failure of an address within ten minutes, with the count. The store keeps
    the newest thousand such entries."""

    def __init__(self, trail: Trail, monotonic: Callable[[], float]) -> None:
        self._trail = trail
        self._monotonic = monotonic
        self._failures: OrderedDict[str, tuple[float, int]] = OrderedDict()
        self._written: tuple[float, int] = (monotonic(), 0)

    async def note(self, address: str, why: str, token: Token | None = None, by: str = "") -> None:
        """`token` is the one that was sent, and `by` the person, if they are known."""
        count = self._count(address)
        if not _is_power_of_ten(count) or not self._may_write():
            return
        entry = AuditEntry(
            datetime.now(UTC),
            token.name if token else by or "unknown",
            ACTION,
            why,
            json.dumps({"failures": count}),
            token=token.id if token else None,
            address=address,
        )
        with suppress(StoreError):  # the request is refused in any case
            await self._trail.record(entry, keep=ENTRIES_KEPT)

    def _count(self, address: str) -> int:
        now = self._monotonic()
        since, count = self._failures.pop(address, (now, 0))
        if now - since >= WINDOW_SECONDS:
            since, count = now, 0
        self._failures[address] = (since, count + 1)
        while len(self._failures) > ADDRESSES_KEPT:
            self._failures.popitem(last=False)
        return count + 1

    def _may_write(self) -> bool:
        now = self._monotonic()
        since, count = self._written
        if now - since >= WINDOW_SECONDS:
            since, count = now, 0
        self._written = (since, count + 1)
        return count < ENTRIES_IN_A_WINDOW


def _is_power_of_ten(number: int) -> bool:
    return str(number).rstrip("0") == "1"
