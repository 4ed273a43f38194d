"""The contract of an object store: the seven verbs from which `KeyedDocuments` builds an attempt's documents.

Only implementations inside this package use them; all other code uses `AttemptDocuments`. Every sentence is a test in
tests/conformance/test_objects.py; a new store joins with one entry in tests/conformance/object_stores.py.
docs/contributing.md lists the steps.
"""

from __future__ import annotations

from typing import Protocol


class ObjectStore(Protocol):
    """A reader sees a whole object or none, never a part.

    A key is a relative path with `/`. A NUL, an empty part, `.` or `..` as a part, and parts that begin with `.tmp-` or
    `.ork-` (names that stores keep for themselves) are an ObjectsError: `ork.objects.layout.checked_key` checks that.
    What may pass (time limits, a full disk, no connection) is an ObjectsError, too; after one nothing is known about a
    write, and it can be repeated."""

    url: str  # `ork.objects.opening` opens the same store from it

    def put(self, key: str, data: bytes) -> None:
        """Writes the object. An older one of that key is replaced in one step."""
        ...

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Writes the object if there is none. True for exactly one of any number of callers, for ever."""
        ...

    def get(self, key: str, *, limit: int | None = None) -> bytes | None:
        """The object, or None. One with more than `limit` bytes is a DocumentError, and is not read."""
        ...

    def read(self, key: str, start: int = 0, size: int | None = None) -> bytes:
        """Up to `size` bytes from `start` on, also of an object that is growing (a log). Empty beyond its end or if there is none."""
        ...

    def size(self, key: str) -> int | None:
        """The object's size in bytes, or None."""
        ...

    def list(self, prefix: str) -> list[str]:
        """Every key below the prefix, sorted. `runs/a` and `runs/a/` are the same prefix, which `runs/ab` is not below."""
        ...

    def delete(self, prefix: str) -> None:
        """Deletes every object below the prefix. It is not an error if there is none."""
        ...
