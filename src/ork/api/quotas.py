"""Limits on what one client may hold at the same time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class Quota:
    """At most `total` holders at once, and at most `each` of them with the same name."""

    def __init__(self, total: int, each: int) -> None:
        self._total = total
        self._each = each
        self._held: Counter[str] = Counter()

    @contextmanager
    def held(self, name: str) -> Iterator[bool]:
        """Takes a place for the duration of the block; False if there is none left."""
        if self._held[name] >= self._each or self._held.total() >= self._total:
            yield False
            return
        self._held[name] += 1
        try:
            yield True
        finally:
            self._held[name] -= 1
            if not self._held[name]:
                del self._held[name]
