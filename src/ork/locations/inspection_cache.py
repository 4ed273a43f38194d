"""A cache of inspection results, valid while the inspected files are unchanged."""

from __future__ import annotations

import hashlib
import os
from typing import Any

from ork.errors import DocumentError
from ork.objects.json_text import dumps, strict_json

MAX_ENTRIES = 500
MAX_BYTES = 64 * 1024 * 1024


class InspectionCache:
    """Errors of the cache are ignored; the file is inspected again."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def find(self, key: str, root: str) -> dict[str, Any] | None:
        try:
            with open(self._path(key), "rb") as file:
                entry = strict_json(file.read(MAX_BYTES + 1), max_size=MAX_BYTES)
            answer: dict[str, Any] = entry["answer"]
            if all(_hash(root, name) == known for name, known in entry["files"].items()):
                os.utime(self._path(key))
                return answer
        except (OSError, DocumentError, KeyError, TypeError, AttributeError):
            pass
        return None

    def keep(self, key: str, root: str, answer: dict[str, Any]) -> None:
        entry = {"files": {name: _hash(root, name) for name in answer["files"]}, "answer": answer}
        temporary = f"{self._path(key)}.{os.getpid()}"
        try:
            os.makedirs(self._folder, exist_ok=True)
            with open(temporary, "wb") as file:
                file.write(dumps(entry).encode())
            os.replace(temporary, self._path(key))
            self._prune()
        except OSError:
            return

    def _prune(self) -> None:
        """Keep the most recently used entries."""
        entries = [entry for entry in os.scandir(self._folder) if entry.is_file()]
        if len(entries) <= MAX_ENTRIES:
            return
        entries.sort(key=lambda entry: entry.stat().st_mtime)
        for entry in entries[: len(entries) - MAX_ENTRIES // 2]:
            os.unlink(entry.path)

    def _path(self, key: str) -> str:
        return os.path.join(self._folder, key + ".json")


def _hash(root: str, name: str) -> str:
    try:
        with open(os.path.join(root, name), "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return "none"
