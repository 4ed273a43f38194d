"""Deploys a project during development: each valid workflow is deployed, and problems are reported."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from ork.definition.problems import Problem
from ork.errors import DocumentError, RefusedError
from ork.locations.document import FoundWorkflow, read_document
from ork.locations.folder import FolderSource
from ork.locations.source import ScanError
from ork.state.schedules import ScheduleStore
from ork.status.schedules import deploy, set_schedule_enabled


class Deployed(NamedTuple):
    """`is_news`: the version changed, or the workflow is new."""

    name: str
    version: str
    is_changed: bool


class DeployOutcome(NamedTuple):
    """`refused` has a message for each workflow that belongs to another source; `gone` names those that were disabled."""

    deployed: tuple[Deployed, ...] = ()
    problems: tuple[Problem, ...] = ()
    refused: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()


class DevelopmentDeployer:
    """`elsewhere` are folders of other locations, whose workflows are not deployed here."""

    def __init__(
        self, store: ScheduleStore, folder: str, source: FolderSource, other_folders: Sequence[str] = ()
    ) -> None:
        self._store = store
        self._folder = folder
        self._source = source
        self._other_folders = tuple(os.path.join(path, "") for path in other_folders)
        self._deployed: dict[str, str] = {}  # workflows deployed here, and their files

    async def deploy(self) -> DeployOutcome:
        """Raises ScanError if the folder cannot be read at all."""
        answer = await self._source.parse("")
        try:
            parsed = await asyncio.to_thread(read_document, answer.document)
        except DocumentError as error:
            raise ScanError(f"invalid output of ork-parse: {error.message}", output=answer.stderr) from None
        found = [each for each in parsed.found if not each.file.startswith(self._other_folders)]
        broken = {os.path.join(self._folder, problem.file) for problem in parsed.problems}
        problems = [
            each
            for each in parsed.problems
            if not os.path.join(self._folder, each.file).startswith(self._other_folders)
        ]
        deployed, refused = await self._deploy(found)
        gone = await self._disable({each.workflow.name for each in found}, broken)
        self._deployed |= {each.workflow.name: each.file for each in found}
        return DeployOutcome(tuple(deployed), tuple(problems), tuple(refused), gone)

    async def _deploy(self, found: Sequence[FoundWorkflow]) -> tuple[list[Deployed], list[str]]:
        deployed, refused = [], []
        for each in found:
            version = await asyncio.to_thread(self._source.version, each, "")
            try:
                is_new = await deploy(self._store, version, origin=version.source, now=datetime.now(UTC))
            except RefusedError as error:
                refused.append(error.message)
            else:
                name = version.workflow.name
                deployed.append(Deployed(name, version.id, is_new or name not in self._deployed))
        return deployed, refused

    async def _disable(self, present: set[str], broken: set[str]) -> tuple[str, ...]:
        """Disable deployed workflows that no longer exist, but not those whose file has a mistake at the moment."""
        gone = tuple(name for name, file in self._deployed.items() if name not in present and file not in broken)
        for name in gone:
            await set_schedule_enabled(self._store, name, False, datetime.now(UTC))
            del self._deployed[name]
        return gone
