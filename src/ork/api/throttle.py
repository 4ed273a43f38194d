"""Against guessing: wrong tokens that look alike and come from one address are not looked up for a while."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

FAILURES = 20
WINDOW_SECONDS = 60.0
PREFIX_LENGTH = 8  # of a token's text: what all tokens begin with, and four characters that are its own
SUSPECTS_KEPT = 4096
TOKENS_KEPT = 256


class Suspect(NamedTuple):
    """An address, and how the tokens it shows begin."""

    address: str
    prefix: str


class Throttle:
    """Counts failures by address and by the beginning of the token, so that wrong tokens of one client do not shut out
    good ones behind the same address. A token that was good lately is looked up in any case.

    A token has 256 random bits: the limit keeps the store from repeated work, it is not what makes guessing hopeless.
    """

    def __init__(self) -> None:
        self._failures: OrderedDict[Suspect, tuple[float, int]] = OrderedDict()
        self._good: OrderedDict[str, None] = OrderedDict()

    def seconds_to_wait(self, suspect: Suspect, digest: str, now: float) -> float | None:
        """None if this token may be looked up."""
        begun, count = self._failures.get(suspect, (now, 0))
        left = begun + WINDOW_SECONDS - now
        return left if count >= FAILURES and left > 0 and digest not in self._good else None

    def failed(self, suspect: Suspect, digest: str, now: float) -> None:
        self._good.pop(digest, None)
        begun, count = self._failures.pop(suspect, (now, 0))
        if now - begun >= WINDOW_SECONDS:
            begun, count = now, 0
        self._failures[suspect] = (begun, count + 1)
        while len(self._failures) > SUSPECTS_KEPT:
            self._failures.popitem(last=False)

    def succeeded(self, digest: str) -> None:
        self._good.pop(digest, None)
        self._good[digest] = None
        while len(self._good) > TOKENS_KEPT:
            self._good.popitem(last=False)


def suspect_of(address: str, text: str) -> Suspect:
    return Suspect(address, text[:PREFIX_LENGTH])
