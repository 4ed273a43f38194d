"""The documents of attempts in a bucket.

Heartbeats and the last status have keys of their own: a service may allow one write a second to an object, and the last
status must not wait for that. A listing of a run's objects shows which statuses changed; only those are read.
"""

from __future__ import annotations

from ork.errors import ObjectsError
from ork.objects import layout
from ork.objects.keyed import BEATING, STATUS_LIMIT, KeyedDocuments
from ork.objects.layout import checked_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    import builtins
    from collections.abc import Sequence
    from typing import TypeVar

    from ork.objects.attempt_documents import Found, Look
    from ork.objects.buckets.bucket import Bucket, Listed

    T = TypeVar("T")

READS_FOR_A_PAGE = 10
OBJECTS_IN_A_PAGE = 1000
_MOST_KNOWN = 100_000


class BucketDocuments(KeyedDocuments):
    """`prefix` is empty or ends with `/`."""

    kind = "bucket"
    answers_at_once = False

    def __init__(self, url: str, bucket: Bucket, prefix: str) -> None:
        self.url = url
        self.bucket = bucket
        self._prefix = prefix
        self._known: dict[str, str] = {}  # the version of each status that was read or counted before, by its key
        self._pages: dict[str, int] = {}  # of the last listing of a run

    # ── the verbs of an object store ─────────────────────────────────────────────────────────────

    def put(self, key: str, data: bytes) -> None:
        self.bucket.put(self.whole_key(key), data)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        return self.bucket.put_if_absent(self.whole_key(key), data)

    def get(self, key: str, *, limit: int | None = None) -> bytes | None:
        return self.bucket.get(self.whole_key(key), limit=limit)

    def read(self, key: str, start: int = 0, size: int | None = None) -> bytes:
        return self.bucket.get_range(self.whole_key(key), start, size)

    def size(self, key: str) -> int | None:
        return self.bucket.head(self.whole_key(key))

    def list(self, prefix: str) -> builtins.list[str]:
        return [each.key for each in self._listed(prefix)]

    def delete(self, prefix: str) -> None:
        self.bucket.delete_many([self._prefix + each.key for each in self._listed(checked_key(prefix))])

    def _listed(self, prefix: str) -> builtins.list[Listed]:
        """With keys of the store, not of the bucket. An object whose key is the prefix itself is below it, too."""
        inner = prefix.strip("/")
        if inner:
            checked_key(inner)
        start = len(self._prefix)
        found = [each._replace(key=each.key[start:]) for each in self.bucket.list(self._prefix + inner)]
        return [each for each in found if not inner or each.key == inner or each.key.startswith(inner + "/")]

    def whole_key(self, key: str) -> str:
        """The key in the bucket, with the prefix of the store."""
        return self._prefix + checked_key(key)

    # ── statuses ─────────────────────────────────────────────────────────────────────────────────

    def put_last_status(self, attempt: str, document: bytes, written: int | None = None) -> None:  # noqa: ARG002
        self.put(layout.end_key(layout.stem(attempt)), document)

    def read_statuses(self, attempts: Sequence[str]) -> Sequence[Found]:
        return self._many(self._status_of, attempts)

    def _status_of(self, attempt: str) -> Found:
        stem = layout.stem(attempt)
        last = self._found(layout.end_key(stem), STATUS_LIMIT)
        return self._found(layout.status_key(stem), STATUS_LIMIT) if last is None else last

    def look_at_statuses(self, attempts: Sequence[str]) -> Sequence[Look]:
        looked_at: dict[str, int] = {}
        for attempt in attempts:
            run = attempt.partition("/")[0]
            looked_at[run] = looked_at.get(run, 0) + 1
        listed = [run for run, number in looked_at.items() if not self._is_dear_to_list(run, number)]
        versions = dict(zip(listed, self._many(self._versions_in, listed), strict=True))
        return self._many(lambda attempt: self._look(attempt, versions.get(attempt.partition("/")[0])), attempts)

    def _is_dear_to_list(self, run: str, attempts: int) -> bool:
        """A page of a listing costs as much as a dozen reads. A large run with few active attempts is not listed."""
        pages = self._pages.get(run, 1)
        return pages > 1 and attempts < READS_FOR_A_PAGE * pages

    def _versions_in(self, run: str) -> dict[str, str] | ObjectsError:
        """Of each object of the run."""
        try:
            found = {each.key: each.version for each in self._listed(layout.run_folder(run))}
        except ObjectsError as problem:
            return problem
        _note(self._pages, run, 1 + len(found) // OBJECTS_IN_A_PAGE)
        return found

    def _look(self, attempt: str, versions: dict[str, str] | ObjectsError | None) -> Look:
        """`versions` is None if the run was not listed."""
        if isinstance(versions, ObjectsError):
            return versions
        stem = layout.stem(attempt)
        last, status = layout.end_key(stem), layout.status_key(stem)
        if versions is None or last in versions:
            end = self._found(last, STATUS_LIMIT)
            if end is not None:
                self._known.pop(status, None)
                return end
        known = self._known.get(status)
        if versions is None:
            # Without a listing nobody knows whether a heartbeat was written. An attempt that seems silent is read by the caller.
            version: str | None = "unlisted" if known is None else known
        else:
            version = versions.get(status)
        if version is None or version == known:
            return None
        # A heartbeat says nothing but that it was written. Only the first one is read.
        found = BEATING if known is not None else self._found(status, STATUS_LIMIT)
        if found is not None and not isinstance(found, ObjectsError):
            _note(self._known, status, version)
        return found

    # ── logs ─────────────────────────────────────────────────────────────────────────────────────

    def read_log(self, attempt: str, start: int = 0, size: int | None = None) -> bytes:
        """One listing, and the chunks that cover what is wanted, many at a time. Chunks may overlap where two wrote the same
        log; a byte is the same in each of them."""
        wanted, place = [], start
        end = None if size is None else start + size
        for begin, key, length in self._sized_chunks(attempt):
            last = begin + length if end is None else min(end, begin + length)
            if begin > place or (end is not None and place >= end):
                break
            if last > place:
                wanted.append((key, place - begin, last - place))
                place = last
        return b"".join(self._many(lambda each: self.read(*each), wanted))

    def log_size(self, attempt: str) -> int | None:
        chunks = self._sized_chunks(attempt)
        return max(begin + length for begin, _, length in chunks) if chunks else None

    def _sized_chunks(self, attempt: str) -> builtins.list[tuple[int, str, int]]:
        """Offset, key and size of each, in order."""
        listed = self._listed(layout.log_key(layout.stem(attempt)))
        return [(int(each.key.rpartition("/")[2]), each.key, each.size) for each in listed]

    # ── the store itself ─────────────────────────────────────────────────────────────────────────

    def put_identity(self, document: bytes) -> bool:
        """Also checks that the store honours conditional writes: without them a task would run twice. Done once in the life
        of a store, by whoever gives it its identity."""
        if not super().put_identity(document):
            return False
        if super().put_identity(document + b" ") or self.read_identity() != document:
            self.bucket.delete_many([self.whole_key(layout.IDENTITY_KEY)])
            raise ObjectsError(
                f"{self.url} does not honour conditional writes: two workers could run the same task",
                hint="use a service with If-None-Match (S3, Azure) or ifGenerationMatch (GCS); Ork cannot use this one",
            )
        return True


def _note(known: dict[str, T], key: str, value: T) -> None:
    """Forgets the oldest where there are too many."""
    known[key] = value
    if len(known) > _MOST_KNOWN:
        del known[next(iter(known))]
