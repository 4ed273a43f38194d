"""What functions import is imported while their process waits, where that can make no difference to them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.integration.workshop import Workshop, in_workshop, is_alive

# A library, not the project's own: it takes a while, and says when it was imported.
LIBRARY = """
import os, time
time.sleep(0.02)
WHEN = 'with the task' if 'ORK_TASK_NAME' in os.environ else 'ahead'
VALUE = 1
"""
TASKS = "import heavy\n\ndef main():\n    return [heavy.WHEN, heavy.VALUE]\n"
InLibraryShop = Callable[[Callable[[Workshop, Path], Coroutine[Any, Any, None]]], None]


@pytest.fixture
def with_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> InLibraryShop:
    library = tmp_path / "library"
    library.mkdir()
    (library / "heavy.py").write_text(LIBRARY)
    monkeypatch.setenv("PYTHONPATH", str(library))

    def run(test: Callable[[Workshop, Path], Coroutine[Any, Any, None]]) -> None:
        @in_workshop
        async def inside(shop: Workshop) -> None:
            shop.write("tasks.py", TASKS)
            # The first worker does not stay; the next one learns from its first attempt.
            assert await answer(shop, "first") == ["with the task", 1]
            assert await answer(shop, "second") == ["with the task", 1]
            await test(shop, library / "heavy.py")

        inside(tmp_path)

    return run


async def answer(shop: Workshop, name: str, **spec: Any) -> Any:
    attempt = shop.attempt(name)
    status = await shop.run(attempt, **spec)
    assert status["state"] == "success", status["failure"]
    await shop.vanished(attempt)
    return json.loads(status["output"]["inline"])


def test_a_library_is_imported_while_the_process_waits(with_library: InLibraryShop) -> None:
    async def test(shop: Workshop, _library: Path) -> None:
        assert [await answer(shop, f"t{n}") for n in range(3)] == [["ahead", 1]] * 3

    with_library(test)


def test_a_task_with_an_environment_of_its_own_imports_in_it(with_library: InLibraryShop) -> None:
    async def test(shop: Workshop, _library: Path) -> None:
        assert await answer(shop, "own", env={"COLOUR": {"value": "blue"}}) == ["with the task", 1]

    with_library(test)


def test_a_library_that_changed_is_imported_anew(with_library: InLibraryShop) -> None:
    async def test(shop: Workshop, library: Path) -> None:
        library.write_text(LIBRARY.replace("VALUE = 1", "VALUE = 'another'"))
        assert await answer(shop, "changed") == ["with the task", "another"]

    with_library(test)


def test_a_file_of_the_project_that_hides_the_library_from_now_on_is_what_is_imported(
    with_library: InLibraryShop,
) -> None:
    async def test(shop: Workshop, _library: Path) -> None:
        shop.write("heavy.py", "WHEN = 'own'\nVALUE = 2\n")
        assert await answer(shop, "hidden") == ["own", 2]

    with_library(test)


def test_a_library_that_starts_a_thread_is_imported_ahead_no_more(with_library: InLibraryShop) -> None:
    async def test(shop: Workshop, library: Path) -> None:
        thread = "import threading\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
        library.write_text(LIBRARY + thread)
        whens = [(await answer(shop, f"t{n}"))[0] for n in range(4)]
        # Learned anew by the first, tried once, and seen then.
        assert whens == ["with the task", "ahead", "with the task", "with the task"]

    with_library(test)


def test_a_library_that_cannot_be_imported_is_told_by_the_task(with_library: InLibraryShop) -> None:
    async def test(shop: Workshop, library: Path) -> None:
        library.write_text("raise RuntimeError('not today')\n")
        status = await shop.run(shop.attempt("broken"))
        assert status["failure"]["message"] == "RuntimeError: not today"

    with_library(test)


def test_a_process_that_was_killed_while_it_waited_for_its_task_is_replaced(with_library: InLibraryShop) -> None:
    async def test(shop: Workshop, _library: Path) -> None:
        waiting = await waiting_process(shop)
        async with asyncio.timeout(30):
            while not (forked := children_of(waiting)):  # else it may be the one before, which is about to go
                waiting = await waiting_process(shop)
                await asyncio.sleep(0.01)
        both = [waiting, *forked]  # what it has forked dies with it, a moment later
        os.kill(waiting, signal.SIGKILL)
        while any(map(is_alive, both)):
            await asyncio.sleep(0.01)
        assert await answer(shop, "after") == ["with the task", 1]

    with_library(test)


def test_a_command_after_a_function_is_over_when_it_ends(with_library: InLibraryShop) -> None:
    """The process that waited for another function is not taken for something the command left behind."""

    async def test(shop: Workshop, _library: Path) -> None:
        waiting = await waiting_process(shop)
        assert await answer(shop, "command", argv=["echo", "1"]) == 1
        assert not is_alive(waiting)

    with_library(test)


async def waiting_process(shop: Workshop) -> int:
    """Below the worker that had the last attempt."""
    gate = shop.gates.of(shop.made[-1])
    assert gate is not None
    async with asyncio.timeout(30):
        while not (below := children_of(gate["pid"])):
            await asyncio.sleep(0.01)
    return below[0]


def children_of(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []  # it is gone
