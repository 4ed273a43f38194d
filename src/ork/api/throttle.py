"""Limits failed attempts to authenticate, by address and token prefix."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

FAILURES = 20
WINDOW_SECONDS = 60.0
PREFIX_LENGTH = 8  # the common prefix of all tokens and four characters of this one
SUSPECTS_KEPT = 4096
TOKENS_KEPT = 256


class Suspect(NamedTuple):
    """An address and a prefix of the tokens that it sends."""

    address: str
    prefix: str


class Throttle:
    """Counts failures by address and token prefix, so that wrong tokens of one client do not block other clients of the
    same address. Tokens that were valid recently are not throttled.

    The limit protects the store from load. Guessing is prevented by the 256 random bits of a token.
    """

    def __init__(self) -> None:
        self._failures: OrderedDict[Suspect, tuple[float, int]] = OrderedDict()
        self._good: OrderedDict[str, None] = OrderedDict()

    def seconds_to_wait(self, suspect: Suspect, digest: str, now: float) -> float | None:
        """Seconds until this token may be checked again; None if it may be checked now."""
        since, count = self._failures.get(suspect, (now, 0))
        left = since + WINDOW_SECONDS - now
        return left if count >= FAILURES and left > 0 and digest not in self._good else None

    def failed(self, suspect: Suspect, digest: str, now: float) -> None:
        self._good.pop(digest, None)
        since, count = self._failures.pop(suspect, (now, 0))
        if now - since >= WINDOW_SECONDS:
            since, count = now, 0
        self._failures[suspect] = (since, count + 1)
        while len(self._failures) > SUSPECTS_KEPT:
            self._failures.popitem(last=False)

    def succeeded(self, digest: str) -> None:
        self._good.pop(digest, None)
        self._good[digest] = None
        while len(self._good) > TOKENS_KEPT:
            self._good.popitem(last=False)


def suspect_of(address: str, text: str) -> Suspect:
    return Suspect(address, text[:PREFIX_LENGTH])
