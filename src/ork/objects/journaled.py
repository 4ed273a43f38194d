"""Objects as files, but for the small documents of attempts: those of a run are lines of one journal.

A document that is written again (a heartbeat), and one that is large, gets a file of its own, and the journal says so
once: it does not grow as long as a task runs.
"""

from __future__ import annotations

import os
from _thread import allocate_lock

from ork.errors import DocumentError
from ork.objects import layout
from ork.objects.journal import IN_A_FILE, PUT, Journal
from ork.objects.local import OWN, LocalObjects, explained

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
        self._journals: dict[str, Journal] = {}  # by run; the one that was used last is last
        self._lock = allocate_lock()

    def skip_to(self, run: str, position: int) -> None:
        with self._lock:
            journal = self._journal(run, makes=False)
            if journal is not None:
                journal.skip_to(position)

    def put(self, key: str, data: bytes) -> None:
        name = _document(key)
        if name is None:
            super().put(key, data)
        else:
            self._doing("write", key, lambda: self._put(key, name, data))

    def put_first(self, objects: Sequence[tuple[str, bytes]]) -> None:
        by_run: dict[str, builtins.list[tuple[bytes, bytes, bytes]]] = {}
        for key, data in objects:
            name = _document(key)
            if name is None or len(data) > LARGEST_IN_JOURNAL:
                self.put(key, data)
            else:
                run, attempt, kind = name
                by_run.setdefault(run, []).append((kind, attempt, data))
        for run, documents in by_run.items():
            self._doing("write", f"{layout.RUNS}/{run}", lambda run=run, new=documents: self._made(run).append_all(new))  # type: ignore[misc]

    def put_status(self, stem: str, data: bytes, number: int) -> None:
        if number > 1:
            self._put_again(stem, data, number)
            return
        place = self._ready_place(stem)
        if place is None or len(data) > LARGEST_IN_JOURNAL:
            self.put_first([(layout.status_key(stem), data)])
            return
        try:
            with self._lock:
                place[0].append(PUT, _STATUS, place[1], data)
        except OSError as error:
            raise explained(error, "write", layout.status_key(stem)) from error

    def _put_again(self, stem: str, data: bytes, number: int) -> None:
        """A status that was put before."""
        key = layout.status_key(stem)
        name = _document(key)
        super().put(key, data)
        if number == 2 and name is not None:
            run, attempt, kind = name
            self._doing("write", key, lambda: self._made(run).append(IN_A_FILE, kind, attempt))

    def put_specs(self, specs: Sequence[tuple[str, bytes]]) -> builtins.list[int]:
        by_run: dict[str, dict[str, tuple[bytes, bytes]]] = {}
        for key, data in specs:
            name = layout.of_spec(key)
            if name is None or len(data) > LARGEST_IN_JOURNAL or not _is_fit(key):
                return super().put_specs(specs)
            by_run.setdefault(name[0], {})[key] = name[1].encode(), data
        positions: dict[str, int] = {}
        for run, group in by_run.items():
            key = next(iter(group))
            positions |= self._doing("write", key, lambda run=run, group=group: self._put_specs(run, group))  # type: ignore[misc]
        return [positions[key] for key, _ in specs]

    def put_if_absent(self, key: str, data: bytes) -> bool:
        name = _document(key)
        if name is None:
            return super().put_if_absent(key, data)
        return self._doing("write", key, lambda: self._put_if_absent(key, name, data))

    def put_gate(self, stem: str, data: bytes) -> bool:
        place = self._ready_place(stem)
        if place is None:
            return super().put_gate(stem, data)
        try:
            with self._lock:
                return place[0].append_gate(place[1], data)
        except OSError:
            return super().put_gate(stem, data)  # who is late is told so, also on a full disk

    def _ready_place(self, stem: str) -> tuple[Journal, bytes] | None:
        """The journal of somebody's run who has skipped to where the attempt begins, and its name there."""
        _, run, attempt = stem.split("/", 2)
        journal = self._journals.get(run)
        if journal is None or not journal.is_ready_for_gates() or "/" in attempt or " " in attempt or "\n" in attempt:
            return None
        return journal, attempt.encode()

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
        for key, (attempt, data) in specs.items():
            positions[key] = 0 if attempt in known.at_gates else known.position
            if attempt in known.told:
                self._put(key, (run, attempt, _SPEC), data)
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
                return False  # who is late needs no room on the disk
            raise

    def _is_absent(self, journal: Journal, key: str, name: _Name) -> bool:
        """As far as can be seen."""
        _, attempt, kind = name
        # Of an attempt that is known our line will tell: whoever wrote the first one has it.
        if journal.knows(attempt):
            return not journal.known(kind, attempt)
        if journal.find(kind, attempt):
            return False
        return journal.knows(attempt) or super().size(key) is None

    def _get(self, name: _Name) -> tuple[bool, bytes | None]:
        """Whether the journal can say, and what; else there may be a file, also one from before there were journals."""
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
        """Those a prefix may speak of."""
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
    """Run, attempt and kind, if it belongs into a journal."""
    parts = layout.document_parts(key)
    if parts is None or not _is_fit(key):
        return None
    run, attempt, kind = parts
    return run, attempt.encode(), kind.encode()


def _is_fit(name: str) -> bool:
    """For a place in a line."""
    return " " not in name and "\n" not in name
