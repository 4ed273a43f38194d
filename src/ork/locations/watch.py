"""Notices that files change, for as long as somebody works on them. Looks at names, sizes and times a few times a second:
that works on every file system and costs little for a project, and nothing of it runs outside development."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import TypeAlias

from ork.locations.find import TooManyFilesError, files_below

LOOK_SECONDS = 0.3

Snapshot: TypeAlias = frozenset[tuple[str, int, int]]


class Watch:
    """Of folders; what is below one that is watched too belongs to that one alone."""

    def __init__(self, folders: Sequence[str], look_seconds: float = LOOK_SECONDS) -> None:
        self._folders = tuple(folders)
        self._look_seconds = look_seconds
        self._known = [self._snapshot(folder) for folder in self._folders]

    async def changed(self) -> tuple[str, ...]:
        """The folders in which something has changed since the last call, once it has come to rest: who saves many files
        at once is told once."""
        while True:
            before = await self._look()
            if before != self._known:
                await asyncio.sleep(self._look_seconds)
                now = await self._look()
                if now == before:
                    pairs = zip(self._folders, self._known, now, strict=True)
                    self._known, found = now, tuple(folder for folder, old, new in pairs if old != new)
                    return found
            else:
                await asyncio.sleep(self._look_seconds)

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
        return path, -1, -1  # it went while we looked
    return path, facts.st_size, facts.st_mtime_ns
