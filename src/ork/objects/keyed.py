"""Attempt documents as objects under keys: all of the contract, made of the seven verbs of an object store."""

from __future__ import annotations

from ork.errors import ObjectsError
from ork.objects import layout
from ork.objects.documents import DOCUMENT_LIMIT, SPEC_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Literal, TypeVar

    from ork.objects.attempt_documents import Found, LogSink, Look, ValueSink
    from ork.objects.store import ObjectStore as _Verbs

    T = TypeVar("T")
    U = TypeVar("U")
else:
    _Verbs = object  # every worker imports this, and `typing` takes longer to load than all of it

STATUS_LIMIT = 2 * DOCUMENT_LIMIT
BEATING: Literal["beating"] = "beating"  # of `look_at_statuses`


class KeyedDocuments(_Verbs):
    """For a store that has put, put_if_absent, get, read, size, list and delete. See `AttemptDocuments` for what each
    verb promises. A store that answers at once says so; of any other, many operations run at a time, in threads."""

    url: str
    kind = "objects"
    answers_at_once = False
    is_guarded = False

    def sign_in(self, attempt: str, secret: str, fence_seconds: float | None = None) -> str:  # noqa: ARG002
        return ""

    def put_specs(self, specs: Sequence[tuple[str, bytes]]) -> Sequence[int]:
        self._put_many([(layout.spec_key(layout.stem(attempt)), data) for attempt, data in specs])
        return [0] * len(specs)

    def read_spec(self, attempt: str) -> bytes | None:
        return self.get(layout.spec_key(layout.stem(attempt)), limit=SPEC_LIMIT)

    def skip_to(self, attempt: str, position: int) -> None:
        """There is no order of documents here."""

    def claim_gate(self, attempt: str, document: bytes) -> bool:
        key = layout.gate_key(layout.stem(attempt))
        # If it is taken, it may be by us: an earlier call may have won, and its answer got lost.
        return self.put_if_absent(key, document) or self.get(key) == document

    def read_gates(self, attempts: Sequence[str]) -> Sequence[Found]:
        return self._get_many([layout.gate_key(layout.stem(attempt)) for attempt in attempts], STATUS_LIMIT)

    def put_status(self, attempt: str, document: bytes, written: int | None = None) -> None:  # noqa: ARG002
        self.put(layout.status_key(layout.stem(attempt)), document)

    def put_last_status(self, attempt: str, document: bytes, written: int | None = None) -> None:
        self.put_status(attempt, document, written)

    def put_status_if_absent(self, attempt: str, document: bytes) -> None:
        self.put_if_absent(layout.status_key(layout.stem(attempt)), document)

    def put_first_statuses(self, statuses: Sequence[tuple[str, bytes]]) -> None:
        self._put_many([(layout.status_key(layout.stem(attempt)), data) for attempt, data in statuses])

    def read_statuses(self, attempts: Sequence[str]) -> Sequence[Found]:
        return self._get_many([layout.status_key(layout.stem(attempt)) for attempt in attempts], STATUS_LIMIT)

    def look_at_statuses(self, attempts: Sequence[str]) -> Sequence[Look]:
        return self.read_statuses(attempts)

    def put_output(self, attempt: str, data: bytes) -> str:
        reference = layout.output_key(layout.stem(attempt))
        self.put(reference, data)
        return reference

    def put_shared(self, values: Sequence[tuple[str, bytes]]) -> None:
        self._put_many(values)

    def read_values(self, references: Sequence[str], limit: int | None) -> Sequence[Found]:
        return self._get_many(references, limit)

    def read_value(self, reference: str, start: int = 0, size: int | None = None) -> bytes:
        if layout.value_name(reference) is None:
            return self.read(reference, start, size)
        from ork.objects.value_parts import read_parts

        return read_parts(self, reference, start, size)

    def has_value(self, reference: str) -> bool:
        if layout.value_name(reference) is not None:
            reference = layout.part_key(reference, 0)
        return self.size(reference) is not None

    # ── values that are not JSON: objects whose names are the offsets of their first bytes ───────

    def open_value(self, attempt: str, name: str) -> ValueSink:
        from ork.objects.value_parts import PartSink

        return PartSink(self, attempt, name)

    def write_value(self, attempt: str, name: str, start: int, data: bytes) -> None:
        if start % layout.PART_BYTES or len(data) > layout.PART_BYTES:
            raise ObjectsError(f"a value is written in parts of {layout.PART_BYTES} bytes")
        self.put(layout.part_key(layout.value_key(layout.stem(attempt), name), start), data)

    def list_values(self, attempt: str) -> Sequence[str]:
        prefix = layout.stem(attempt) + layout.VALUE
        keys = [key.rpartition("/")[0] for key in self.list(layout.run_folder(layout.run_of(prefix)))]
        return sorted({key[len(prefix) :] for key in keys if key.startswith(prefix)})

    def delete_values(self, attempt: str) -> None:
        for name in self.list_values(attempt):
            self.delete(layout.value_key(layout.stem(attempt), name))

    def value_size(self, reference: str) -> int | None:
        from ork.objects.value_parts import size_of_parts

        return size_of_parts(self, reference)

    def value_path(self, reference: str) -> str | None:  # noqa: ARG002
        return None

    # ── a log: objects whose names are the offsets of their first bytes ──────────────────────────

    def open_log(self, attempt: str) -> LogSink:
        from ork.objects.spooled_log import SpooledLog

        return SpooledLog(self, attempt)

    def append_log(self, attempt: str, data: bytes) -> None:
        self.write_log(attempt, self.log_size(attempt) or 0, data)

    def write_log(self, attempt: str, start: int, data: bytes) -> None:
        if data:
            self.put(f"{layout.log_key(layout.stem(attempt))}/{start:015d}", data)

    def read_log(self, attempt: str, start: int = 0, size: int | None = None) -> bytes:
        """Chunks may overlap where two wrote the same log; a byte is the same in each of them."""
        chunks, parts, place = self._chunks(attempt), [], start
        end = None if size is None else start + size
        for number, (begin, key) in enumerate(chunks):
            is_passed_over = number + 1 < len(chunks) and chunks[number + 1][0] <= place
            if begin > place or (end is not None and place >= end):
                break
            if not is_passed_over:
                parts.append(self.read(key, place - begin, None if end is None else end - place))
                place += len(parts[-1])
        return b"".join(parts)

    def log_size(self, attempt: str) -> int | None:
        chunks = self._chunks(attempt)
        return chunks[-1][0] + (self.size(chunks[-1][1]) or 0) if chunks else None

    def _chunks(self, attempt: str) -> list[tuple[int, str]]:
        """Offset and key of each, in order."""
        return [(int(key.rpartition("/")[2]), key) for key in self.list(layout.log_key(layout.stem(attempt)))]

    # ── the rest ─────────────────────────────────────────────────────────────────────────────────

    def request_stop(self, attempt: str, document: bytes) -> None:
        self.put(layout.stop_key(layout.stem(attempt)), document)

    def read_stop(self, attempt: str) -> bytes | None:
        return self.get(layout.stop_key(layout.stem(attempt)), limit=DOCUMENT_LIMIT)

    def work_file(self, attempt: str, name: str) -> str:
        from tempfile import gettempdir

        return f"{gettempdir()}/ork-{attempt.replace('/', '.')}.{name}"

    def delete_runs(self, runs: Iterable[str]) -> None:
        names = list(runs)
        if any(not run or "/" in run for run in names):
            raise ObjectsError("not the id of a run")
        self._many(lambda run: self.delete(layout.run_folder(run)), names)

    def read_identity(self) -> bytes | None:
        return self.get(layout.IDENTITY_KEY, limit=DOCUMENT_LIMIT)

    def put_identity(self, document: bytes) -> bool:
        return self.put_if_absent(layout.IDENTITY_KEY, document)

    def missing_place(self, run: str | None = None) -> str | None:  # noqa: ARG002
        return None

    def is_full(self) -> bool:
        return False

    # ── many at once ─────────────────────────────────────────────────────────────────────────────

    def _get_many(self, keys: Sequence[str], limit: int | None) -> list[Found]:
        return self._many(lambda key: self._found(key, limit), keys)

    def _put_many(self, objects: Sequence[tuple[str, bytes]]) -> None:
        self._many(lambda each: self.put(*each), objects)

    def _found(self, key: str, limit: int | None) -> Found:
        try:
            return self.get(key, limit=limit)
        except ObjectsError as problem:
            return problem

    def _many(self, action: Callable[[T], U], items: Sequence[T]) -> list[U]:
        """Raises what one of them raised, once all are done."""
        if self.answers_at_once or len(items) < 2:
            return [action(item) for item in items]
        from ork.objects.threads import pool

        futures = [pool("operations").submit(action, item) for item in items]
        problems = [problem for future in futures if (problem := future.exception()) is not None]
        if problems:
            raise problems[0]
        return [future.result() for future in futures]
