"""Answers of the inspecting child, kept in a folder for as long as the files they speak of stay as they are."""

from __future__ import annotations

import hashlib
import os
from typing import Any

from ork.errors import DocumentError
from ork.objects.json_text import dumps, strict_json

MOST_ENTRIES = 500
MOST_BYTES = 64 * 1024 * 1024


class Answers:
    """A cache: whatever goes wrong with it, the answer is only asked for again."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def find(self, key: str, root: str) -> dict[str, Any] | None:
        try:
            with open(self._path(key), "rb") as file:
                entry = strict_json(file.read(MOST_BYTES + 1), max_size=MOST_BYTES)
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
        """Keeps those used last."""
        entries = [entry for entry in os.scandir(self._folder) if entry.is_file()]
        if len(entries) <= MOST_ENTRIES:
            return
        entries.sort(key=lambda entry: entry.stat().st_mtime)
        for entry in entries[: len(entries) - MOST_ENTRIES // 2]:
            os.unlink(entry.path)

    def _path(self, key: str) -> str:
        return os.path.join(self._folder, key + ".json")


def _hash(root: str, name: str) -> str:
    try:
        with open(os.path.join(root, name), "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return "none"
