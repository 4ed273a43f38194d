"""Refreshing locations: what is there is taken over as a whole, or the last good version goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ork.compile.content import make_version, to_document
from ork.compile.load import load_workflow
from ork.locations.document import FoundWorkflow
from ork.locations.refresh import Refresher
from ork.locations.source import ScanError, SourceReading
from ork.model.location import Location, LocationEntry
from ork.model.workflow import Version, WorkflowEntry
from ork.objects.json_text import dumps
from ork.state.memory import MemoryStore
from ork.state.store import StateStore
from ork.telemetry import Telemetry

NOW = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)
PROBLEM = {"code": "ORK101", "message": "no such key", "file": "a.yaml", "line": 3, "column": 1, "end_column": 2,
           "source_line": "x", "hint": None}  # fmt: skip


class Shelf:
    """A place whose content a test sets; `looks` counts how often its parser ran."""

    def __init__(self, *names: str) -> None:
        self.content = "sha256:1"
        self.names = names
        self.problems: list[dict[str, Any]] = []
        self.trouble: Exception | None = None
        self.document: bytes | None = None
        self.looks = 0
        self.gate: asyncio.Event | None = None

    async def digest(self) -> str:
        if self.trouble is not None:
            raise self.trouble
        return self.content

    async def parse(self, digest: str) -> SourceReading:
        self.looks += 1
        if self.gate is not None:
            await self.gate.wait()
        workflows = [{"name": name, "file": f"{name}.yaml", "root": ".", "definition": _definition(name, digest)}
                     for name in self.names]  # fmt: skip
        told = {"format": 1, "ork": "1", "folder": "/app", "workflows": workflows, "problems": self.problems}
        return SourceReading(self.document if self.document is not None else dumps(told).encode(), "the end of stderr")

    def version(self, found: FoundWorkflow, digest: str) -> Version:
        return make_version(found.workflow, found.root, found.file)


def _definition(name: str, digest: str) -> dict[str, Any]:
    text = f"name: {name}\nschedule: '0 2 * * *'\ntasks:\n  a: {{command: 'echo {digest}'}}\n"
    return to_document(load_workflow(text.encode(), "x.yaml", read=None).require())


class Bench:
    def __init__(self, **shelves: Shelf) -> None:
        self.store: StateStore = MemoryStore()
        self.shelves = shelves
        self.now = NOW
        self.told: list[tuple[str, dict[str, Any]]] = []

    def refresher(self) -> Refresher:
        telemetry = Telemetry()
        telemetry.listen(lambda happening, fields: self.told.append((str(happening), fields)))
        locations = {name: Location(name, image=f"registry/{name}") for name in self.shelves}
        sources: Callable[[Location], Any] = lambda location: self.shelves[location.name]  # noqa: E731
        return Refresher(self.store, locations, sources, telemetry, now=lambda: self.now)

    async def refresh(self, minutes: float = 5) -> None:
        """The next refresh, and all that is due by then."""
        await self.store.set_locations({name: f"registry/{name}" for name in self.shelves}, self.now)
        await self.refresher().refresh_due()
        self.now += timedelta(minutes=minutes)

    async def entry(self, name: str = "etl") -> LocationEntry:
        return next(entry for entry in await self.store.list_locations() if entry.name == name)

    async def workflow(self, name: str) -> WorkflowEntry:
        entry = await self.store.get_workflow(name)
        assert entry is not None
        return entry


def play(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scene)


def test_what_is_found_is_registered_with_where_it_comes_from_and_its_schedule_counts() -> None:
    async def scene() -> None:
        bench = Bench(etl=Shelf("a", "b"))
        await bench.refresh()
        found = await bench.workflow("a")
        assert (found.origin, found.enabled) == ("location:etl@sha256:1", True)
        assert [entry.next_fire for entry in await bench.store.list_schedules()] == [
            datetime(2026, 3, 2, 2, tzinfo=UTC)
        ] * 2
        entry = await bench.entry()
        assert (entry.digest, entry.error) == ("sha256:1", None)
        assert entry.due_at == datetime(2026, 3, 1, 12, 5, tzinfo=UTC)

    play(scene())


def test_the_parser_runs_only_when_something_changed() -> None:
    async def scene() -> None:
        shelf = Shelf("a")
        bench = Bench(etl=shelf)
        for _ in range(3):
            await bench.refresh()
        assert shelf.looks == 1
        shelf.content = "sha256:2"
        await bench.refresh()
        assert shelf.looks == 2
        assert (await bench.workflow("a")).origin == "location:etl@sha256:2"

    play(scene())


def test_a_location_is_not_scanned_before_it_is_due() -> None:
    async def scene() -> None:
        shelf = Shelf("a")
        bench = Bench(etl=shelf)
        await bench.refresh(minutes=1)
        shelf.content = "sha256:2"
        await bench.refresh()
        assert shelf.looks == 1

    play(scene())


@pytest.mark.parametrize(
    ("breaks", "code", "output"),
    [
        ({"problems": [PROBLEM]}, "ORK708", "a.yaml:3:1: ORK101 no such key"),
        ({"document": b"hello"}, "ORK707", "the end of stderr"),
        ({"document": b'{"format": 2}'}, "ORK707", "the end of stderr"),
        ({"document": b"{}" * 9_000_000}, "ORK707", "the end of stderr"),
    ],
)
def test_errors_are_shown_and_the_last_good_version_stays_in_use(
    breaks: dict[str, Any], code: str, output: str
) -> None:
    async def scene() -> None:
        shelf = Shelf("a", "b")
        bench = Bench(etl=shelf)
        await bench.refresh()
        good = await bench.workflow("a")
        shelf.content, shelf.names = "sha256:2", ("a", "new")
        for name, value in breaks.items():
            setattr(shelf, name, value)
        for _ in range(2):
            await bench.refresh()
        entry = await bench.entry()
        assert (entry.digest, entry.seen, entry.code, entry.output) == ("sha256:1", "sha256:2", code, output)
        assert await bench.workflow("a") == good
        assert await bench.store.get_workflow("new") is None
        assert shelf.looks == 2  # a broken digest is not looked into again and again
        assert [happening for happening, _ in bench.told] == ["location_refreshed", "location_failed"]

    play(scene())


def test_returning_to_the_last_good_content_clears_the_error() -> None:
    async def scene() -> None:
        shelf = Shelf("a")
        bench = Bench(etl=shelf)
        await bench.refresh()
        shelf.content, shelf.document = "sha256:2", b"broken"
        await bench.refresh()
        shelf.content, shelf.document = "sha256:1", None
        await bench.refresh()
        assert (await bench.entry()).error is None
        assert shelf.looks == 2

    play(scene())


def test_a_place_out_of_reach_is_tried_again_and_what_was_wrong_before_is_not_forgotten() -> None:
    async def scene() -> None:
        shelf = Shelf("a")
        bench = Bench(etl=shelf)
        shelf.document = b"broken"
        await bench.refresh()
        shelf.trouble = ScanError("the registry is down", code="ORK706")
        await bench.refresh()
        assert (await bench.entry()).code == "ORK706"
        shelf.trouble = None
        await bench.refresh()
        assert (await bench.entry()).code == "ORK707"

    play(scene())


def test_an_error_in_one_location_does_not_affect_others() -> None:
    async def scene() -> None:
        bad = Shelf("a")
        bad.trouble = RuntimeError("boom")
        bench = Bench(bad=bad, good=Shelf("b"))
        await bench.refresh()
        assert (await bench.workflow("b")).enabled
        assert "boom" in str((await bench.entry("bad")).error)

    play(scene())


def test_a_workflow_that_vanishes_is_disabled_and_comes_back_when_it_is_there_again() -> None:
    async def scene() -> None:
        shelf = Shelf("a", "b")
        bench = Bench(etl=shelf)
        await bench.refresh()
        shelf.content, shelf.names = "sha256:2", ("a",)
        await bench.refresh()
        assert not (await bench.workflow("b")).enabled
        assert (await bench.workflow("a")).enabled
        shelf.content, shelf.names = "sha256:3", ("a", "b")
        await bench.refresh()
        assert (await bench.workflow("b")).enabled

    play(scene())


def test_a_workflow_that_a_person_disabled_stays_so_in_a_new_image() -> None:
    async def scene() -> None:
        shelf = Shelf("a")
        bench = Bench(etl=shelf)
        await bench.refresh()
        await bench.store.set_enabled("a", False)
        shelf.content = "sha256:2"
        await bench.refresh()
        entry = await bench.workflow("a")
        assert (entry.enabled, entry.origin) == (False, "location:etl@sha256:2")

    play(scene())


def test_a_name_that_another_location_has_is_refused_and_nothing_is_taken_over() -> None:
    async def scene() -> None:
        bench = Bench(a=Shelf("same"), b=Shelf("other", "same"))
        await bench.refresh()
        assert (await bench.entry("b")).code == "ORK710"
        assert await bench.store.get_workflow("other") is None
        bench.shelves["a"].content, bench.shelves["a"].names = "sha256:2", ("else",)
        await bench.refresh()
        await bench.refresh()
        assert (await bench.entry("b")).code == "ORK710"  # a disabled one still belongs to where it came from

    play(scene())


def test_only_one_of_three_schedulers_scans() -> None:
    async def scene() -> None:
        shelf = Shelf("a")
        shelf.gate = asyncio.Event()
        bench = Bench(etl=shelf)
        await bench.store.set_locations({"etl": "registry/etl"}, NOW)
        looking = [asyncio.create_task(bench.refresher().refresh_due()) for _ in range(3)]
        while not shelf.looks:
            await asyncio.sleep(0)
        shelf.gate.set()
        await asyncio.gather(*looking)
        assert shelf.looks == 1

    play(scene())


def test_a_stopped_scan_is_left_to_the_next_scheduler() -> None:
    async def scene() -> None:
        shelf = Shelf("a")
        shelf.gate = asyncio.Event()
        bench = Bench(etl=shelf)
        await bench.store.set_locations({"etl": "registry/etl"}, NOW)
        looking = asyncio.create_task(bench.refresher().refresh_due())
        while not shelf.looks:
            await asyncio.sleep(0)
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
        shelf.gate.set()
        await bench.refresh()
        assert (await bench.entry()).digest == "sha256:1"

    play(scene())


def test_the_loop_wakes_on_a_request() -> None:
    async def scene() -> None:
        shelf = Shelf("a")
        bench = Bench(etl=shelf)
        await bench.refresh(minutes=1)
        shelf.content = "sha256:2"
        refresher = bench.refresher()
        running = asyncio.create_task(refresher.run())
        await bench.store.ask_refresh("etl", bench.now)
        refresher.wake()
        while shelf.looks < 2:
            await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    play(scene())


@pytest.mark.parametrize("pauses", range(5))
def test_a_loop_that_is_woken_and_cancelled_at_once_ends(pauses: int) -> None:
    """`asyncio.wait_for` of Python 3.11 swallows a cancellation that comes as it returns: the loop would go on for ever."""

    async def scene() -> None:
        bench = Bench(etl=Shelf("a"))
        await bench.refresh(minutes=1)
        refresher = bench.refresher()
        running = asyncio.create_task(refresher.run())
        for _ in range(20):  # until it waits for its next time
            await asyncio.sleep(0)
        refresher.wake()
        for _ in range(pauses):
            await asyncio.sleep(0)
        running.cancel()
        async with asyncio.timeout(10):
            await asyncio.gather(running, return_exceptions=True)

    play(scene())
