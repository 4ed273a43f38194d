"""The loop of `ork dev`: deploys workflows when files change, and prints the result."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING

from ork.cli.definitions import print_problems
from ork.cli.session import now, palette
from ork.locations.develop import DeployOutcome, DevelopmentDeployer
from ork.locations.folder import FolderSource
from ork.locations.project_locations import read_locations
from ork.locations.source import ScanError
from ork.locations.watch import Watch
from ork.settings import PROJECT_FILE

if TYPE_CHECKING:
    from ork.app.installation import Installation
    from ork.scheduler.service import SchedulerService


class DevLoop:
    def __init__(self, installation: Installation, service: SchedulerService | None) -> None:
        settings = installation.settings
        self._root = os.getcwd()
        self._store = installation.store
        self._service = service
        self._locations = {
            location.path: name
            for name, location in (read_locations(settings.root) or {}).items()
            if location.path is not None
        }
        project = os.path.join(settings.root, PROJECT_FILE)
        cache_dir = os.path.join(settings.home, "cache")
        place = FolderSource(self._root, project=project, cache_dir=cache_dir, environ=settings.environ)
        self._bench = DevelopmentDeployer(
            self._store, self._root, place, [path for path in self._locations if path != self._root]
        )
        self._watch = Watch([*{self._root: None, **dict.fromkeys(self._locations)}])
        self._had_problems = self._has_noted_empty = False
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        self._stopping.set()

    async def run(self) -> None:
        """Runs until stopped."""
        changes = asyncio.create_task(self._follow())
        stopped = asyncio.create_task(self._stopping.wait())
        await asyncio.wait([changes, stopped], return_when=asyncio.FIRST_COMPLETED)
        for task in (changes, stopped):
            task.cancel()
        ended, _ = await asyncio.gather(changes, stopped, return_exceptions=True)
        if isinstance(ended, Exception):
            raise ended

    async def _follow(self) -> None:
        await self._deploy()
        while True:
            for folder in await self._watch.changed():
                if folder in self._locations:
                    await self._store.ask_refresh(self._locations[folder], now())
                    self._wake()
                else:
                    await self._deploy()

    async def _deploy(self) -> None:
        if self._root in self._locations:
            return  # the whole folder is a location
        try:
            outcome = await self._bench.deploy()
        except ScanError as error:
            print(f"error: {error.message}", error.output or "", sep="\n", file=sys.stderr, flush=True)
            return
        self._show(outcome)
        if not (outcome.deployed or outcome.problems or outcome.refused or self._locations or self._has_noted_empty):
            self._has_noted_empty = True
            print("there is no workflow here yet: `ork init` creates one", file=sys.stderr, flush=True)
        self._wake()

    def _wake(self) -> None:
        """Writes through our own store handle notify only other processes."""
        if self._service is not None:
            self._service.wake()

    def _show(self, outcome: DeployOutcome) -> None:
        """Prints changes only."""
        from ork.cli.paint import Line, Span, line

        lines: list[Line] = [
            line(Span("✓", "good"), f" {each.name}  version {each.version}")
            for each in outcome.deployed
            if each.is_changed
        ]
        lines += [line(Span("⊘", "wait"), f" {name}  is gone: disabled") for name in outcome.gone]
        lines += [line(Span("✗", "bad"), f" {sentence}") for sentence in outcome.refused]
        if outcome.problems:
            print_problems(outcome.problems)
            count = len(outcome.problems)
            lines.append(
                line(Span("✗", "bad"), f" {count:,} error{'' if count == 1 else 's'}: the last valid versions stay")
            )
        elif self._had_problems:
            lines.append(line(Span("✓", "good"), " no more errors"))
        self._had_problems = bool(outcome.problems)
        palette(sys.stderr).write(sys.stderr, lines)
        sys.stderr.flush()
