"""The contract for an attempt's documents: written and read by schedulers, executors, workers and readers.

An attempt is named by `str(AttemptKey)`, a run by its id. Documents are bytes; readers verify their
signature (`ork.objects.documents`). Only the implementation knows where they are stored. Verbs are synchronous; coroutines call them
through `ork.objects.calls`. Every sentence is a test in tests/conformance/test_attempt_documents.py.

To implement a new store, write the verbs of `ork.objects.store.ObjectStore` and inherit the rest from
`ork.objects.keyed.KeyedDocuments`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from ork.errors import ObjectsError

# The result of one item of a batch: the document, None if there is none, or why it cannot be read.
Found: TypeAlias = bytes | ObjectsError | None
# The same of a look, which may know that a status was replaced without reading it.
Look: TypeAlias = Found | Literal["beating"]


class LogSink(Protocol):
    """An attempt's log, open for appending by its only writer. It is created in the store with its first byte."""

    def fileno(self) -> int:
        """A descriptor that other processes can append to. OSError if it cannot be opened."""
        ...

    def flush(self) -> bool:
        """Store what was written to the descriptor, or a part of it. True if more waits: call it again, as after an ObjectsError."""
        ...

    def due(self, now: float) -> float | None:
        """When `flush` should be called next, by the monotonic clock; None if it need not be."""
        ...

    def close(self) -> None:
        """Flush as far as possible, and close the descriptor."""
        ...


class ValueSink(Protocol):
    """A value that is not JSON, open for writing by the attempt's only writer. Nobody may read it before `finish`, and nothing
    refers to it before the attempt's status does: what a dead writer leaves is removed with its run."""

    def write(self, data: Any) -> int:
        """Append bytes (any buffer of bytes); a file object, so that libraries can write to it. ObjectsError: it cannot go on."""
        ...

    def finish(self) -> tuple[int, str]:
        """Size and SHA-256 of the value, which is now stored. A store of files keeps equal values once."""
        ...

    def abandon(self) -> None:
        """Remove what was written, as far as possible."""
        ...


class AttemptDocuments(Protocol):
    """Readers see a whole document or none, never a part. ObjectsError: try later; a write may or may not have happened.
    DocumentError: the document is too large or damaged. Every write can be repeated."""

    url: str
    kind: str  # how documents are kept, as the store's identity names it
    answers_at_once: bool  # a call takes microseconds, so that coroutines may make it without a thread
    is_guarded: bool  # a worker must sign in

    def sign_in(self, attempt: str, secret: str, fence_seconds: float | None = None) -> str:
        """For a worker, before its other calls for the attempt, if the store is guarded. `secret` is the hash of its token.

        Returns what the process of the task needs to read values and write its output (see `open_values`). No call takes
        so long that the worker would be late to end its task after `fence_seconds`."""
        ...

    # ── spec ─────────────────────────────────────────────────────────────────────────────────────

    def put_specs(self, specs: Sequence[tuple[str, bytes]]) -> Sequence[int]:
        """Store all specs. ObjectsError: any of them may be missing.

        Returns for each a position in the run's documents, for `skip_to`: the attempt's gate is not claimed before it.
        0 if the store has no such order, or the gate is claimed."""
        ...

    def read_spec(self, attempt: str) -> bytes | None: ...

    # ── gate ─────────────────────────────────────────────────────────────────────────────────────

    def skip_to(self, attempt: str, position: int) -> None:
        """For a worker, before its other calls: `position` comes from `put_specs`. Saves a search; may do nothing."""
        ...

    def claim_gate(self, attempt: str, document: bytes) -> bool:
        """Whether this document is the attempt's gate: True for exactly one of any number of different documents, for ever.

        The claimer makes the document unique with a nonce. After an ObjectsError it calls again with the same document,
        and gets the answer."""
        ...

    def read_gates(self, attempts: Sequence[str]) -> Sequence[Found]: ...

    # ── status ───────────────────────────────────────────────────────────────────────────────────

    def put_status(self, attempt: str, document: bytes, written: int | None = None) -> None:
        """Replaces the attempt's status. `written`: how often the caller, its only writer, has written it before."""
        ...

    def put_last_status(self, attempt: str, document: bytes, written: int | None = None) -> None:
        """The same, for a status that says that the attempt's worker is done. No heartbeat follows."""
        ...

    def put_status_if_absent(self, attempt: str, document: bytes) -> None:
        """Store the status unless there is one."""
        ...

    def put_first_statuses(self, statuses: Sequence[tuple[str, bytes]]) -> None:
        """`put_status` for each; none of them has a status yet. ObjectsError: any of them may be missing."""
        ...

    def read_statuses(self, attempts: Sequence[str]) -> Sequence[Found]: ...

    def look_at_statuses(self, attempts: Sequence[str]) -> Sequence[Look]:
        """What is new, for a caller that looks now and then and decides nothing from it.

        Like `read_statuses`, but may be behind, may be None where the status is as it was at the last call, and may be
        "beating" where a heartbeat was written since then that nobody has read."""
        ...

    # ── values that are too large for a status or spec ───────────────────────────────────────────

    def put_output(self, attempt: str, data: bytes) -> str:
        """Returns its reference, `output_reference(attempt)`, which statuses and rows contain."""
        ...

    def put_shared(self, values: Sequence[tuple[str, bytes]]) -> None:
        """Values that the specs of many attempts name, each under a reference from `shared_reference`."""
        ...

    def read_values(self, references: Sequence[str], limit: int | None) -> Sequence[Found]:
        """A value with more than `limit` bytes is a DocumentError, and is not read."""
        ...

    def read_value(self, reference: str, start: int = 0, size: int | None = None) -> bytes:
        """Part of a value; empty beyond its end or if there is none."""
        ...

    def has_value(self, reference: str) -> bool: ...

    # ── values that are not JSON ─────────────────────────────────────────────────────────────────

    def open_value(self, attempt: str, name: str) -> ValueSink:
        """For the process that runs the attempt. `value_reference(attempt, name)` refers to it; `read_value` reads it."""
        ...

    def write_value(self, attempt: str, name: str, start: int, data: bytes) -> None:
        """Write a part: `start` is a multiple of `layout.PART_BYTES`, and every part but the last has that size. For writers on
        behalf of another process. Writing the same again changes nothing."""
        ...

    def list_values(self, attempt: str) -> Sequence[str]:
        """The names of the attempt's values, sorted, also of those that were not finished."""
        ...

    def delete_values(self, attempt: str) -> None:
        """Delete all values of the attempt. It is not an error if there are none."""
        ...

    def value_size(self, reference: str) -> int | None:
        """The size of a value; None if there is none."""
        ...

    def value_path(self, reference: str) -> str | None:
        """The file on this machine that has a whole value, only for reading; None if the store has no such files."""
        ...

    # ── log ──────────────────────────────────────────────────────────────────────────────────────

    def open_log(self, attempt: str) -> LogSink:
        """For the process that runs the attempt."""
        ...

    def append_log(self, attempt: str, data: bytes) -> None:
        """Append to the log from another process than its writer. May be lost if both write at once."""
        ...

    def write_log(self, attempt: str, start: int, data: bytes) -> None:
        """Write the log's bytes from `start` on. Writing the same again changes nothing."""
        ...

    def read_log(self, attempt: str, start: int = 0, size: int | None = None) -> bytes:
        """Part of it, also while it grows; empty beyond its end or if there is none."""
        ...

    def log_size(self, attempt: str) -> int | None:
        """None if there is none."""
        ...

    # ── stop request ─────────────────────────────────────────────────────────────────────────────

    def request_stop(self, attempt: str, document: bytes) -> None:
        """Store the request. The attempt's worker reads it after each heartbeat."""
        ...

    def read_stop(self, attempt: str) -> bytes | None: ...

    # ── files of a running attempt ───────────────────────────────────────────────────────────────

    def work_file(self, attempt: str, name: str) -> str:
        """A path on this machine for a file that only the running attempt uses. Its creator removes it."""
        ...

    # ── runs and the store itself ────────────────────────────────────────────────────────────────

    def delete_runs(self, runs: Iterable[str]) -> None:
        """Delete all documents of these runs."""
        ...

    def read_identity(self) -> bytes | None:
        """The identity of the store (`ork.objects.opening`), or None."""
        ...

    def put_identity(self, document: bytes) -> bool:
        """True for exactly one of any number of callers, for ever."""
        ...

    def missing_place(self, run: str | None = None) -> str | None:
        """The folder of the store, or of a run, if it should exist but does not; else None."""
        ...

    def is_full(self) -> bool:
        """Whether the store has no space left."""
        ...
