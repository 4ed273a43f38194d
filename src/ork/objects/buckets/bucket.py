"""The verbs that `BucketDocuments` needs from a client of a bucket."""

from __future__ import annotations

TYPE_CHECKING = False
BYTES = "application/octet-stream"
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NamedTuple, Protocol

    class Listed(NamedTuple):
        """An object in a listing. Its version changes with every write."""

        key: str
        size: int
        version: str

    class Bucket(Protocol):
        """Keys are complete: the prefix of the store's URL is part of them.

        Every verb has a time limit and repeats what may pass (429, 5xx, a broken connection) a few times, with jitter.
        ObjectsError: not now, or not without a person; its hint says which. A bucket that does not exist is an ObjectsError,
        too."""

        def put(self, key: str, data: bytes, content_type: str = BYTES) -> None: ...

        def put_if_absent(self, key: str, data: bytes) -> bool:
            """One conditional request. False if the object exists, also if an answer was lost and this call created it."""
            ...

        def get(self, key: str, *, limit: int | None = None) -> bytes | None:
            """The object, or None. One with more than `limit` bytes is a DocumentError; its body is not read."""
            ...

        def get_range(self, key: str, start: int, size: int | None) -> bytes:
            """Up to `size` bytes. Empty beyond the end, and if there is no object."""
            ...

        def head(self, key: str) -> int | None:
            """The object's size, or None."""
            ...

        def list(self, prefix: str) -> list[Listed]:
            """Objects whose key begins with the text, sorted by key."""
            ...

        def delete_many(self, keys: Sequence[str]) -> None:
            """In as few requests as the service allows. It is not an error if some do not exist."""
            ...
else:
    from collections import namedtuple

    Listed = namedtuple("Listed", ("key", "size", "version"))  # `typing` takes long to load
