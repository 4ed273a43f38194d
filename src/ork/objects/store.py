"""The object store's contract: seven verbs that carry every document between scheduler and worker.

The verbs are synchronous: workers are, and the stores that exist (files and journals on a local disk) answer at once. The
scheduler calls them in its event loop; a store that waits for a network must not be used that way.
Every sentence is a test in tests/conformance/test_objects.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class ObjectStore(Protocol):
    """Keys are relative paths with `/`. A reader sees a whole object or none, never a part.

    One that can put many cheaper than one by one has `put_specs`."""

    url: str

    def put(self, key: str, data: bytes) -> None:
        """The object is there, whole; an older one of that key is replaced at once."""
        ...

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """True for exactly one of any number of callers, for ever; the others change nothing."""
        ...

    def get(self, key: str, *, limit: int | None = None) -> bytes | None:
        """None if there is none. An object larger than `limit` bytes is a DocumentError, and is not read."""
        ...

    def read(self, key: str, start: int = 0, size: int | None = None) -> bytes:
        """Part of an object that may still be growing (a log); empty beyond its end or if there is none."""
        ...

    def size(self, key: str) -> int | None:
        """None if there is none."""
        ...

    def list(self, prefix: str) -> list[str]:
        """Every key below the prefix, sorted."""
        ...

    def delete(self, prefix: str) -> None:
        """Nothing is left below the prefix."""
        ...


def put_specs(objects: ObjectStore, specs: Sequence[tuple[str, bytes]]) -> Sequence[int]:
    """Puts all of them, as one by one; see `ork.objects.local.LocalObjects.put_specs` for what it says."""
    at_once = getattr(objects, "put_specs", None)
    if at_once is not None:
        positions: Sequence[int] = at_once(specs)
        return positions
    for key, data in specs:
        objects.put(key, data)
    return [0] * len(specs)
