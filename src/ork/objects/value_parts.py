"""Values that are not JSON in a store without files: parts of a fixed size, several of them sent at a time.

Parts are objects of their own instead of a service's multipart upload: the same code serves every store, a part that failed is sent
again alone, and an upload that was abandoned leaves nothing that only the service can see.
"""

from __future__ import annotations

from ork.errors import DocumentError, ObjectsError, ObjectsRefusedError
from ork.model.digest import sha256
from ork.objects.layout import PART_BYTES, part_key, stem, value_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor
    from typing import Any

    from ork.objects.attempt_documents import AttemptDocuments
    from ork.objects.store import ObjectStore

MOST_AT_ONCE = 4  # parts in memory, each being sent or received
_PATIENCE_SECONDS = 600.0
_LONGEST_PAUSE_SECONDS = 5.0


class PartSink:
    """Collects parts in memory and sends them in the background."""

    def __init__(self, documents: AttemptDocuments, attempt: str, name: str) -> None:
        value_key(stem(attempt), name)
        self._documents, self._attempt, self._name = documents, attempt, name
        self._hash = hasher()
        self._part = bytearray()
        self._sent = 0
        self._threads: ThreadPoolExecutor | None = None
        self._waiting: list[Future[None]] = []
        self.closed = False

    def write(self, data: Any) -> int:
        rest = memoryview(data).cast("B")
        self._hash.update(rest)
        size = len(rest)
        while rest:
            room = PART_BYTES - len(self._part)
            self._part += rest[:room]
            rest = rest[room:]
            if len(self._part) == PART_BYTES:
                self._send()
        return size

    def _send(self) -> None:
        data, self._part = bytes(self._part), bytearray()
        while len(self._waiting) >= MOST_AT_ONCE:
            self._waiting.pop(0).result()
        if self._threads is None:
            self._threads = few_threads()
        write, start = self._documents.write_value, self._sent
        self._waiting.append(self._threads.submit(patiently, lambda: write(self._attempt, self._name, start, data)))
        self._sent += len(data)

    def finish(self) -> tuple[int, str]:
        if self._sent and self._part:
            self._send()
        elif not self._sent:  # the usual, small value needs no thread
            self._sent = len(self._part)
            patiently(lambda: self._documents.write_value(self._attempt, self._name, 0, bytes(self._part)))
        while self._waiting:
            self._waiting.pop(0).result()
        self._end()
        return self._sent, self._hash.hexdigest()

    def abandon(self) -> None:
        for each in self._waiting:
            each.exception()
        self._waiting.clear()
        self._end()

    def _end(self) -> None:
        self.closed = True
        if self._threads is not None:
            self._threads.shutdown()

    # Libraries ask file objects for these.

    def writable(self) -> bool:
        return not self.closed

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def tell(self) -> int:
        return self._sent if self.closed else self._sent + len(self._part)

    def flush(self) -> None:
        """Parts are sent when they are full."""

    def close(self) -> None:
        """A library that is done with its file says so; `finish` follows."""


def read_parts(store: ObjectStore, key: str, start: int, size: int | None) -> bytes:
    """Bytes of a value; several parts are read at a time."""
    if size is None:
        size = max(0, (size_of_parts(store, key) or 0) - start)
    first, last = start // PART_BYTES, (start + size - 1) // PART_BYTES if size > 0 else -1
    wanted = []
    for number in range(first, last + 1):
        begin = max(start, number * PART_BYTES)
        end = min(start + size, (number + 1) * PART_BYTES)
        wanted.append((part_key(key, number * PART_BYTES), begin - number * PART_BYTES, end - begin))
    if len(wanted) == 1:
        return store.read(*wanted[0])
    with few_threads() as threads:
        return b"".join(threads.map(lambda each: store.read(*each), wanted))


def few_threads() -> ThreadPoolExecutor:
    """Threads that end with their work: a task's process must not keep any while it runs the user's code."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="ork-value")


def size_of_parts(store: ObjectStore, key: str) -> int | None:
    """The size of the value; None if there is none."""
    parts = store.list(key)
    if not parts:
        return None
    return int(parts[-1].rpartition("/")[2]) + (store.size(parts[-1]) or 0)


def hasher() -> Any:
    """SHA-256 of OpenSSL, which is several times as fast for much data, if it can be loaded."""
    try:
        from hashlib import sha256 as of_openssl
    except ImportError:
        return sha256()
    return of_openssl(usedforsecurity=False)


def patiently(write: Any) -> None:
    """Write; tried again for long while the store cannot accept it, as with a full disk."""
    import time

    give_up_at, pause = time.monotonic() + _PATIENCE_SECONDS, 0.1
    while True:
        try:
            write()
            return
        except ObjectsError as error:
            if isinstance(error, (DocumentError, ObjectsRefusedError)) or time.monotonic() > give_up_at:
                raise
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
