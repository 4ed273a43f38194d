"""Writes a snapshot: one file, or a folder or bucket of which only what changed is written."""

from __future__ import annotations

import json
import time
from datetime import datetime
from typing import Any, NamedTuple

from ork import __version__
from ork.model.record import Record
from ork.ui.documents import FORMAT, Choice, Documents, Kept, digest, encoded
from ork.ui.reads import Reads
from ork.ui.snapshot_page import folder_files, one_file
from ork.ui.targets import ExportTarget

MANIFEST = "manifest.json"
_DATA = "data/"
_NOTHING = Kept({}, {})
_UNFINISHED = 0  # the format of a manifest until all is written for the first time; it says what is there already
PROGRESS_SECONDS = 5.0


class Export(Record):
    """What is exported, from where, and how it is called."""

    reads: Reads
    choice: Choice
    as_of: datetime
    installation: str | None = None
    start: str | None = None
    title: str = "Ork"


class Written(NamedTuple):
    """`files` and `bytes` are those that were written; the others were as they should be."""

    runs: int
    files: int
    bytes: int
    unchanged: int
    deleted: int


async def export_file(export: Export) -> tuple[bytes, int]:
    """The page with all data inside, and the number of runs in it."""
    documents = Documents(export.reads, export.choice, export.as_of, _NOTHING)
    found = {name: data async for name, data in documents.all() if data is not None}
    manifest = _manifest(export, documents, {name: digest(data) for name, data in found.items()}, {})
    return one_file({MANIFEST: encoded(manifest), **found}, export.title), len(documents.runs)


async def export_to(target: ExportTarget, export: Export) -> Written:
    """Writes what changed since the last export to the same place. The manifest is last: it names all others."""
    before = read_manifest(target.read(_DATA + MANIFEST))
    if not before:
        # Marks the place as ours.
        target.write(_DATA + MANIFEST, encoded({"format": _UNFINISHED}))
    is_first = before.get("format") != FORMAT
    is_alike = before.get("version") == __version__ and before.get("logs") == export.choice.logs.value
    kept = Kept(before["documents"], before["runs"]) if is_alike else _NOTHING
    documents = Documents(export.reads, export.choice, export.as_of, kept)
    change = _Change(target, {**_below_data(before.get("documents", {})), **before.get("files", {})})
    noted_at = time.monotonic()
    async for name, data in documents.all():
        change.put(_DATA + name, data)
        if is_first and time.monotonic() - noted_at >= PROGRESS_SECONDS:
            # If it is interrupted, the next one continues here.
            so_far = _manifest(export, documents, change.documents(), {})
            target.write(_DATA + MANIFEST, encoded({**so_far, "format": _UNFINISHED}))
            noted_at = time.monotonic()
    data_digests = change.documents()
    for name, data in folder_files().items():
        change.put(name, data)
    files = {name: value for name, value in change.now.items() if not name.startswith(_DATA)}
    manifest = _manifest(export, documents, data_digests, files)
    target.write(_DATA + MANIFEST, encoded(manifest))
    deleted = change.delete_others()
    return Written(len(documents.runs), change.files + 1, change.bytes, change.unchanged, deleted)


def read_manifest(data: bytes | None) -> dict[str, Any]:
    """The manifest of an earlier export; empty if there is none that this version can continue."""
    try:
        found = json.loads(data or b"{}")
    except ValueError:
        return {}
    is_known = isinstance(found, dict) and found.get("format") in (FORMAT, _UNFINISHED) and "documents" in found
    return found if is_known else {}


class _Change:
    """Puts files to a target, except those that are there already."""

    def __init__(self, target: ExportTarget, before: dict[str, str]) -> None:
        self._target = target
        self._before = before
        self.now: dict[str, str] = {}
        self.files = self.bytes = self.unchanged = 0

    def put(self, name: str, data: bytes | None) -> None:
        """None: as it was written before."""
        before = self._before.get(name)
        self.now[name] = (before or "") if data is None else digest(data)
        if data is None or self.now[name] == before:
            self.unchanged += 1
            return
        self._target.write(name, data)
        self.files += 1
        self.bytes += len(data)

    def documents(self) -> dict[str, str]:
        """The digests of the documents so far."""
        return {name.removeprefix(_DATA): value for name, value in self.now.items()}

    def delete_others(self) -> int:
        gone = sorted(self._before.keys() - self.now.keys())
        self._target.delete(gone)
        return len(gone)


def _below_data(documents: dict[str, str]) -> dict[str, str]:
    return {_DATA + name: value for name, value in documents.items()}


def _manifest(export: Export, documents: Documents, digests: dict[str, str], files: dict[str, str]) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": __version__,
        "as_of": export.as_of.isoformat().replace("+00:00", "Z"),
        "installation": export.installation,
        "start": export.start,
        "logs": export.choice.logs.value,
        "more_runs": documents.more_runs,
        "runs": documents.runs,
        "documents": digests,
        "files": files,
    }
