"""Limits on concurrent use, in total and per client."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class Quota:
    """At most `total` concurrent holders, and at most `each` with the same name."""

    def __init__(self, total: int, each: int) -> None:
        self._total = total
        self._each = each
        self._held: Counter[str] = Counter()

    @contextmanager
    def held(self, name: str) -> Iterator[bool]:
        """Holds a slot for the duration of the block; yields False if there is none."""
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
