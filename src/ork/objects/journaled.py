"""Objects as files, except for the small documents of attempts: those of a run are lines of one journal.

A document that is written again (a heartbeat) or is large gets a file, and the journal records that once: so the journal
does not grow while a task runs.
"""

from __future__ import annotations

import os
from _thread import allocate_lock

from ork.errors import DocumentError
from ork.objects import layout
from ork.objects.journal import IN_A_FILE, PUT, Journal
from ork.objects.layout import OWN
from ork.objects.local import LocalObjects, explained

TYPE_CHECKING = False
if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    T = TypeVar("T")
    _Name = tuple[str, bytes, bytes]

JOURNAL = OWN + "journal"
LARGEST_IN_JOURNAL = 1 << 18
MOST_OPEN = 64
_SPEC, _STATUS = b"spec.json", b"status.json"


class JournaledObjects(LocalObjects):
    kind = "journal"

    def __init__(self, root: str, durability: str = "normal") -> None:
        super().__init__(root, durability)
        self._journals: dict[str, Journal] = {}  # by run, in the order of their last use
        self._lock = allocate_lock()

    def skip_to(self, attempt: str, position: int) -> None:
        with self._lock:
            journal = self._journal(attempt.partition("/")[0], makes=False)
            if journal is not None:
                journal.skip_to(position)

    def put(self, key: str, data: bytes) -> None:
        name = _document(key)
        if name is None:
            super().put(key, data)
        else:
            self._doing("write", key, lambda: self._put(key, name, data))

    def put_first_statuses(self, statuses: Sequence[tuple[str, bytes]]) -> None:
        by_run: dict[str, builtins.list[tuple[bytes, bytes, bytes]]] = {}
        for attempt, data in statuses:
            run, name = _place_of(attempt)
            if len(data) > LARGEST_IN_JOURNAL or not _is_fit(name):
                super().put_status(attempt, data)
            else:
                by_run.setdefault(run, []).append((_STATUS, name.encode(), data))
        for run, documents in by_run.items():
            self._doing("write", f"{layout.RUNS}/{run}", lambda run=run, new=documents: self._made(run).append_all(new))  # type: ignore[misc]

    def put_status(self, attempt: str, document: bytes, written: int | None = None) -> None:
        if written is None:
            super().put_status(attempt, document)
            return
        if written > 0:
            self._put_again(attempt, document, written)
            return
        place = self._ready_place(attempt)
        if place is None or len(document) > LARGEST_IN_JOURNAL:
            self.put_first_statuses([(attempt, document)])
            return
        try:
            with self._lock:
                place[0].append(PUT, _STATUS, place[1], document)
        except OSError as error:
            raise explained(error, "write", layout.status_key(layout.stem(attempt))) from error

    put_last_status = put_status

    def _put_again(self, attempt: str, document: bytes, written: int) -> None:
        """Replace a status that was written before."""
        key = layout.status_key(layout.stem(attempt))
        name = _document(key)
        super().put(key, document)
        if written == 1 and name is not None:
            run, own, kind = name
            self._doing("write", key, lambda: self._made(run).append(IN_A_FILE, kind, own))

    def put_specs(self, specs: Sequence[tuple[str, bytes]]) -> Sequence[int]:
        by_run: dict[str, dict[str, tuple[bytes, bytes]]] = {}
        for attempt, data in specs:
            run, name = _place_of(attempt)
            if len(data) > LARGEST_IN_JOURNAL or not _is_fit(name):
                return super().put_specs(specs)
            by_run.setdefault(run, {})[attempt] = name.encode(), data
        positions: dict[str, int] = {}
        for run, group in by_run.items():
            key = f"{layout.RUNS}/{run}"
            positions |= self._doing("write", key, lambda run=run, group=group: self._put_specs(run, group))  # type: ignore[misc]
        return [positions[attempt] for attempt, _ in specs]

    def put_if_absent(self, key: str, data: bytes) -> bool:
        name = _document(key)
        if name is None:
            return super().put_if_absent(key, data)
        return self._doing("write", key, lambda: self._put_if_absent(key, name, data))

    def claim_gate(self, attempt: str, document: bytes) -> bool:
        place = self._ready_place(attempt)
        if place is None:
            return super().claim_gate(attempt, document)
        try:
            with self._lock:
                is_first = place[0].append_gate(place[1], document)
        except OSError:
            return super().claim_gate(attempt, document)  # finding another worker's gate needs no disk space
        if is_first is False:  # it may be ours: an earlier call may have written it, and failed after that
            return self.get(layout.gate_key(layout.stem(attempt))) == document
        return bool(is_first)

    def _ready_place(self, attempt: str) -> tuple[Journal, bytes] | None:
        """The journal of a worker's run, if it has skipped to its attempt, and the attempt's name in it."""
        run, name = _place_of(attempt)
        journal = self._journals.get(run)
        if journal is None or not journal.is_ready_for_gates() or not _is_fit(name):
            return None
        return journal, name.encode()

    def get(self, key: str, *, limit: int | None = None) -> bytes | None:
        name = _document(key)
        if name is None:
            return super().get(key, limit=limit)
        is_here, data = self._doing("read", key, lambda: self._get(name))
        if not is_here:
            return super().get(key, limit=limit)
        if data is not None and limit is not None and len(data) > limit:
            raise DocumentError(f"{key} has {len(data)} bytes, more than the {limit} allowed")
        return data

    def read(self, key: str, start: int = 0, size: int | None = None) -> bytes:
        if _document(key) is None:
            return super().read(key, start, size)
        return (self.get(key) or b"")[start : None if size is None else start + size]

    def size(self, key: str) -> int | None:
        if _document(key) is None:
            return super().size(key)
        data = self.get(key)
        return None if data is None else len(data)

    def list(self, prefix: str) -> builtins.list[str]:
        inner = prefix.strip("/")
        found = set(super().list(prefix))
        for run in self._runs(inner):
            keys = self._doing("read", f"{layout.RUNS}/{run}", lambda run=run: self._keys(run))  # type: ignore[misc]
            found.update(key for key in keys if not inner or key.startswith(inner + "/"))
        return sorted(found)

    # ── in a journal ─────────────────────────────────────────────────────────────────────────────

    def _put(self, key: str, name: _Name, data: bytes) -> None:
        run, attempt, kind = name
        journal = self._made(run)
        before = journal.find(kind, attempt)
        if not before and len(data) <= LARGEST_IN_JOURNAL:
            journal.append(PUT, kind, attempt, data)
            return
        super().put(key, data)
        if not before or journal.at(before)[0] != IN_A_FILE:
            journal.append(IN_A_FILE, kind, attempt)

    def _put_specs(self, run: str, specs: dict[str, tuple[bytes, bytes]]) -> dict[str, int]:
        journal, new, positions = self._made(run), [], {}
        known = journal.launches
        known.read_on()
        if not known.position:
            journal.begin()
            known.read_on()
        for name, (attempt, data) in specs.items():
            positions[name] = 0 if attempt in known.at_gates else known.position
            if attempt in known.told:
                self._put(layout.spec_key(layout.stem(name)), (run, attempt, _SPEC), data)
            else:
                new.append((_SPEC, attempt, data))
        if new:
            journal.append_all(new)
            known.told.update([attempt for _, attempt, _ in new])
        return positions

    def _put_if_absent(self, key: str, name: _Name, data: bytes) -> bool:
        run, attempt, kind = name
        journal = self._made(run)
        try:
            return self._is_absent(journal, key, name) and journal.append_first(kind, attempt, data)
        except OSError:
            if journal.find(kind, attempt):
                return False  # losing needs no disk space
            raise

    def _is_absent(self, journal: Journal, key: str, name: _Name) -> bool:
        """Whether the document does not exist, as far as is known."""
        _, attempt, kind = name
        # The attempt is known: append, and see whether ours is the first line.
        if journal.knows(attempt):
            return not journal.known(kind, attempt)
        if journal.find(kind, attempt):
            return False
        return journal.knows(attempt) or super().size(key) is None

    def _get(self, name: _Name) -> tuple[bool, bytes | None]:
        """Whether the journal has the answer, and the document. Otherwise there may be a file, also from an older release."""
        run, attempt, kind = name
        journal = self._journal(run, makes=False)
        if journal is None:
            return False, None
        place = journal.find_anywhere(kind, attempt)
        if not place:
            return journal.knows(attempt), None
        how, data = journal.at(place)
        return how != IN_A_FILE, data

    def _runs(self, prefix: str) -> builtins.list[str]:
        """The runs that a prefix matches."""
        home, _, run = prefix.partition("/")
        if home not in ("", layout.RUNS):
            return []
        try:
            return [run] if run and "/" not in run else os.listdir(f"{self.root}/{layout.RUNS}")
        except (FileNotFoundError, NotADirectoryError):
            return []

    def _keys(self, run: str) -> builtins.list[str]:
        journal = self._journal(run, makes=False)
        found = journal.documents() if journal else ()
        return [f"{layout.RUNS}/{run}/{attempt.decode(errors='replace')}.{kind.decode()}" for kind, attempt in found]

    # ── journals ─────────────────────────────────────────────────────────────────────────────────

    def _doing(self, verb: str, key: str, action: Callable[[], T]) -> T:
        with self._lock:
            try:
                return action()
            except OSError as error:
                raise explained(error, verb, key) from error

    def _made(self, run: str) -> Journal:
        journal = self._journal(run, makes=True)
        assert journal is not None
        return journal

    def _journal(self, run: str, *, makes: bool) -> Journal | None:
        journal = self._journals.pop(run, None)
        if journal is not None and not journal.is_there():
            journal.close()
            journal = None
        if journal is None:
            journal = self._opened(run, makes=makes)
        if journal is not None:
            self._journals[run] = journal
        while len(self._journals) > MOST_OPEN:
            self._journals.pop(next(iter(self._journals))).close()
        return journal

    def _opened(self, run: str, *, makes: bool) -> Journal | None:
        path = self._journal_path(run)
        try:
            return Journal(path, is_durable=self._is_durable)
        except (FileNotFoundError, NotADirectoryError):
            if not makes:
                return None
        self._make_file(path)
        return Journal(path, is_durable=self._is_durable)

    def _journal_path(self, run: str) -> str:
        return f"{self.root}/{layout.RUNS}/{run}/{JOURNAL}"


def _document(key: str) -> _Name | None:
    """Run, attempt and kind if the key is a document for a journal, else None."""
    parts = layout.document_parts(key)
    if parts is None or not _is_fit(key):
        return None
    run, attempt, kind = parts
    return run, attempt.encode(), kind.encode()


def _place_of(attempt: str) -> tuple[str, str]:
    """The attempt's run, and its name in the run's journal."""
    run, task, index, number = attempt.split("/")
    return run, f"{task}.{index}.{number}"


def _is_fit(name: str) -> bool:
    """Whether the document fits into a line."""
    return " " not in name and "\n" not in name
