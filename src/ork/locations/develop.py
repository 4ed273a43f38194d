"""A project under work: whatever of it is right is deployed, file by file, and the rest is told."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from ork.definition.problems import Problem
from ork.errors import DocumentError, RefusedError
from ork.locations.document import Found, read_document
from ork.locations.folder import Folder
from ork.locations.place import LookError
from ork.state.schedules import ScheduleStore
from ork.status.schedules import deploy, set_schedule_enabled


class Deployed(NamedTuple):
    """`is_news`: another version than before, or it was not there before."""

    name: str
    version: str
    is_news: bool


class Outcome(NamedTuple):
    """`refused` holds a sentence for each workflow that somebody else has; `gone` names those that are disabled now."""

    deployed: tuple[Deployed, ...] = ()
    problems: tuple[Problem, ...] = ()
    refused: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


class Workbench:
    """`elsewhere` are folders that are looked into by others: what is in them is not ours to deploy."""

    def __init__(self, store: ScheduleStore, folder: str, place: Folder, elsewhere: Sequence[str] = ()) -> None:
        self._store = store
        self._folder = folder
        self._place = place
        self._elsewhere = tuple(os.path.join(path, "") for path in elsewhere)
        self._known: dict[str, str] = {}  # workflows of ours, and their files

    async def deploy(self) -> Outcome:
        """LookError if nothing can be told at all."""
        answer = await self._place.parse("")
        try:
            parsed = await asyncio.to_thread(read_document, answer.document)
        except DocumentError as error:
            raise LookError(f"ork-parse answered {error.message}", output=answer.said) from None
        found = [each for each in parsed.found if not each.file.startswith(self._elsewhere)]
        broken = {os.path.join(self._folder, problem.file) for problem in parsed.problems}
        problems = [
            each for each in parsed.problems if not os.path.join(self._folder, each.file).startswith(self._elsewhere)
        ]
        deployed, refused = await self._deploy(found)
        gone = await self._disable({each.workflow.name for each in found}, broken)
        self._known |= {each.workflow.name: each.file for each in found}
        return Outcome(tuple(deployed), tuple(problems), tuple(refused), gone)

    async def _deploy(self, found: Sequence[Found]) -> tuple[list[Deployed], list[str]]:
        deployed, refused = [], []
        for each in found:
            version = self._place.version(each, "")
            try:
                is_new = await deploy(self._store, version, origin=version.source, now=datetime.now(UTC))
            except RefusedError as error:
                refused.append(error.message)
            else:
                name = version.workflow.name
                deployed.append(Deployed(name, version.id, is_new or name not in self._known))
        return deployed, refused

    async def _disable(self, there: set[str], broken: set[str]) -> tuple[str, ...]:
        """What we deployed and cannot find any more; not what only has a mistake in it at the moment."""
        gone = tuple(name for name, file in self._known.items() if name not in there and file not in broken)
        for name in gone:
            await set_schedule_enabled(self._store, name, False, datetime.now(UTC))
            del self._known[name]
        return gone
