"""Against guessing: an address that shows too many wrong tokens is not looked at for a while."""

from __future__ import annotations

from collections import OrderedDict

FAILURES = 20
WINDOW_SECONDS = 60.0
ADDRESSES_KEPT = 4096
TOKENS_KEPT = 256


class Throttle:
    """Counts failures by address. Whoever showed a good token lately is heard all the same: a stranger behind the same
    address must not lock others out."""

    def __init__(self) -> None:
        self._failures: OrderedDict[str, tuple[float, int]] = OrderedDict()
        self._good: OrderedDict[str, None] = OrderedDict()

    def seconds_to_wait(self, address: str, digest: str, now: float) -> float | None:
        """None if this token may be looked up."""
        begun, count = self._failures.get(address, (now, 0))
        left = begun + WINDOW_SECONDS - now
        return left if count >= FAILURES and left > 0 and digest not in self._good else None

    def failed(self, address: str, digest: str, now: float) -> None:
        self._good.pop(digest, None)
        begun, count = self._failures.pop(address, (now, 0))
        if now - begun >= WINDOW_SECONDS:
            begun, count = now, 0
        self._failures[address] = (begun, count + 1)
        _keep(self._failures, ADDRESSES_KEPT)

    def succeeded(self, digest: str) -> None:
        self._good.pop(digest, None)
        self._good[digest] = None
        _keep(self._good, TOKENS_KEPT)


def _keep(
    entries: OrderedDict[str, object] | OrderedDict[str, None] | OrderedDict[str, tuple[float, int]], most: int
) -> None:
    while len(entries) > most:
        entries.popitem(last=False)
