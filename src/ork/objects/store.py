"""What an object store must be able to do: seven verbs, of which `KeyedDocuments` makes an attempt's documents.

Only implementations inside this package use them; everybody else uses `AttemptDocuments`.
Every sentence is a test in tests/conformance/test_objects.py.
"""

from __future__ import annotations

from typing import Protocol


class ObjectStore(Protocol):
    """Keys are relative paths with `/`. A reader sees a whole object or none, never a part."""

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
