"""The contract for an attempt's documents: what scheduler, executors, workers and readers say to each other.

An attempt is named by `str(AttemptKey)`, a run by its id. Documents are bytes; who wrote them is checked by whoever reads
(`ork.objects.documents`). Where they lie is known to the implementation only. Verbs are synchronous; coroutines call them
through `ork.objects.calls`. Every sentence is a test in tests/conformance/test_attempt_documents.py.

To implement a new store, write the verbs of `ork.objects.store.ObjectStore` and inherit the rest from
`ork.objects.keyed.KeyedDocuments`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeAlias

from ork.errors import ObjectsError

# What one item of a batch came to: the document, None if there is none, or why it cannot be read.
Found: TypeAlias = bytes | ObjectsError | None


class LogSink(Protocol):
    """An attempt's log, open for appending by the one process that writes it. Made in the store with its first byte."""

    def fileno(self) -> int:
        """A descriptor that other processes can append to. OSError if it cannot be opened."""
        ...

    def flush(self) -> None:
        """What was written to the descriptor is in the store. ObjectsError if it is not; it can be called again."""
        ...

    def close(self) -> None:
        """Flushes as far as possible, and lets go of the descriptor."""
        ...


class AttemptDocuments(Protocol):
    """Readers see a whole document or none, never a part. ObjectsError: not now, and nothing is known about a write.
    DocumentError: there is a document, and it is too large or damaged. Every write can be repeated."""

    url: str
    kind: str  # how documents are kept, as the store's identity names it
    answers_at_once: bool  # a call takes microseconds, so that coroutines may make it without a thread

    # ── spec ─────────────────────────────────────────────────────────────────────────────────────

    def put_specs(self, specs: Sequence[tuple[str, bytes]]) -> Sequence[int]:
        """All of them are there. ObjectsError: any of them may be missing.

        Returns for each a position in the run's documents before which nobody has claimed the attempt's gate, for
        `skip_to`; 0 where there is no such order, or somebody has claimed it."""
        ...

    def read_spec(self, attempt: str) -> bytes | None: ...

    # ── gate ─────────────────────────────────────────────────────────────────────────────────────

    def skip_to(self, attempt: str, position: int) -> None:
        """For a worker, before its other calls: `position` comes from `put_specs`. Spares it a search; may do nothing."""
        ...

    def claim_gate(self, attempt: str, document: bytes) -> bool:
        """Whether this document is the attempt's gate: True for exactly one of any number of different documents, for ever.

        The claimer makes the document unique with a nonce. After an ObjectsError it calls again with the same document,
        and learns whether it had won."""
        ...

    def read_gates(self, attempts: Sequence[str]) -> Sequence[Found]: ...

    # ── status ───────────────────────────────────────────────────────────────────────────────────

    def put_status(self, attempt: str, document: bytes, written: int | None = None) -> None:
        """Replaces the attempt's status. `written`: how often the caller, who is then the only writer, has done so before."""
        ...

    def put_status_if_absent(self, attempt: str, document: bytes) -> None:
        """There is a status; this one if there was none."""
        ...

    def put_first_statuses(self, statuses: Sequence[tuple[str, bytes]]) -> None:
        """The same as `put_status` for each, where none has a status yet. ObjectsError: any of them may be missing."""
        ...

    def read_statuses(self, attempts: Sequence[str]) -> Sequence[Found]: ...

    # ── values that are too large for a status or spec ───────────────────────────────────────────

    def put_output(self, attempt: str, data: bytes) -> str:
        """Returns its reference, `output_reference(attempt)`: what statuses and rows name it by."""
        ...

    def put_shared(self, values: Sequence[tuple[str, bytes]]) -> None:
        """Values that the specs of many attempts name, each under a reference from `shared_reference`."""
        ...

    def read_values(self, references: Sequence[str], limit: int | None) -> Sequence[Found]:
        """A value with more than `limit` bytes is a DocumentError, and is not read."""
        ...

    def has_value(self, reference: str) -> bool: ...

    # ── log ──────────────────────────────────────────────────────────────────────────────────────

    def open_log(self, attempt: str) -> LogSink:
        """For the process that runs the attempt."""
        ...

    def append_log(self, attempt: str, data: bytes) -> None:
        """Adds to the end, for a writer beside the one that has it open. May be lost where both write at once."""
        ...

    def write_log(self, attempt: str, start: int, data: bytes) -> None:
        """These are the log's bytes from `start` on. Writing the same again changes nothing."""
        ...

    def read_log(self, attempt: str, start: int = 0, size: int | None = None) -> bytes:
        """Part of it, also while it grows; empty beyond its end or if there is none."""
        ...

    def log_size(self, attempt: str) -> int | None:
        """None if there is none."""
        ...

    # ── stop request ─────────────────────────────────────────────────────────────────────────────

    def request_stop(self, attempt: str, document: bytes) -> None:
        """From now on `read_stop` returns it. The attempt's worker looks after each heartbeat."""
        ...

    def read_stop(self, attempt: str) -> bytes | None: ...

    # ── files of a running attempt ───────────────────────────────────────────────────────────────

    def work_file(self, attempt: str, name: str) -> str:
        """A path on this machine for a file that only the running attempt uses; whoever makes it removes it."""
        ...

    # ── runs and the store itself ────────────────────────────────────────────────────────────────

    def delete_runs(self, runs: Iterable[str]) -> None:
        """Nothing of these runs is left."""
        ...

    def read_identity(self) -> bytes | None:
        """The document that says which store this is (`ork.objects.identity`)."""
        ...

    def put_identity(self, document: bytes) -> bool:
        """True for exactly one of any number of callers, for ever."""
        ...

    def missing_place(self, run: str | None = None) -> str | None:
        """Where the store's documents, or those of a run, should be, if that place (a folder) is not there; else None."""
        ...

    def is_full(self) -> bool:
        """Whether there is no room for anything to be written."""
        ...
