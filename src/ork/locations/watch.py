"""Detects changes of files during development, by polling names, sizes and times a few times a second: this works on
every file system and costs little for a project."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import TypeAlias

from ork.locations.find import TooManyFilesError, files_below

POLL_SECONDS = 0.3

Snapshot: TypeAlias = frozenset[tuple[str, int, int]]


class Watch:
    """Watches folders; files below a nested watched folder belong to that one only."""

    def __init__(self, folders: Sequence[str], poll_seconds: float = POLL_SECONDS) -> None:
        self._folders = tuple(folders)
        self._poll_seconds = poll_seconds
        self._deployed = [self._snapshot(folder) for folder in self._folders]

    async def changed(self) -> tuple[str, ...]:
        """The folders that changed since the last call, once the changes have settled: saving many files at once is one
        change."""
        while True:
            before = await self._look()
            if before != self._deployed:
                await asyncio.sleep(self._poll_seconds)
                now = await self._look()
                if now == before:
                    pairs = zip(self._folders, self._deployed, now, strict=True)
                    self._deployed, found = now, tuple(folder for folder, old, new in pairs if old != new)
                    return found
            else:
                await asyncio.sleep(self._poll_seconds)

    async def _look(self) -> list[Snapshot]:
        return await asyncio.to_thread(lambda: [self._snapshot(folder) for folder in self._folders])

    def _snapshot(self, folder: str) -> Snapshot:
        inner = tuple(
            other + os.sep for other in self._folders if other != folder and other.startswith(folder + os.sep)
        )
        found = set()
        try:
            for name in files_below(folder):
                path = os.path.join(folder, name)
                if not path.startswith(inner):
                    found.add(_facts(path))
        except TooManyFilesError:
            return frozenset()
        return frozenset(found)


def _facts(path: str) -> tuple[str, int, int]:
    try:
        facts = os.stat(path)
    except OSError:
        return path, -1, -1  # removed meanwhile
    return path, facts.st_size, facts.st_mtime_ns
