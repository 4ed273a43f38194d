"""Forgetting runs survives every death in between: no folder is left behind for ever, and none is deleted too soon."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from ork.model.ids import RunId
from ork.objects.layout import run_folder
from ork.objects.local import LocalObjects
from ork.state.memory import MemoryStore
from ork.state.store import StateStore
from ork.status.pruning import prune_some
from tests.conformance.state_samples import ANN, NOW, claim, deploy, ended, new_run, register

LATER = NOW + timedelta(days=1)
RUNS = ("a", "b", "c")


class KilledError(Exception):
    """The process that forgets runs is gone."""


async def ended_runs(store: StateStore, objects: LocalObjects) -> None:
    flow = await deploy(store)
    await store.create_runs([new_run(flow, id) for id in (*RUNS, "busy")], NOW)
    await register(store, ANN)
    claimed = await claim(store)
    await store.commit(ANN, [ended(each) for each in claimed if each.run.id != "busy"], NOW)
    for id in (*RUNS, "busy"):
        objects.put(f"{run_folder(RunId(id))}/extract/0/1/log", b"words")


def folders(objects: LocalObjects) -> set[str]:
    return {path.name for path in (Path(objects.root) / "runs").iterdir()}


@pytest.mark.parametrize("deletions", range(4))
def test_whoever_dies_in_the_middle_leaves_the_rest_to_the_next(tmp_path: Path, deletions: int) -> None:
    async def story() -> None:
        store, objects = MemoryStore(), LocalObjects(str(tmp_path))
        await ended_runs(store, objects)
        done = 0

        async def delete(runs: Sequence[RunId]) -> None:
            nonlocal done
            for run in runs:
                if done == deletions:
                    raise KilledError
                objects.delete_runs([run])
                done += 1

        async def delete_all(runs: Sequence[RunId]) -> None:
            objects.delete_runs(runs)

        if deletions < len(RUNS):
            with pytest.raises(KilledError):
                await prune_some(store, delete, LATER, 0)
        else:
            assert await prune_some(store, delete, LATER, 0) == RUNS
        assert await prune_some(store, delete_all, LATER, 0) == ()
        assert folders(objects) == {"busy"}
        assert await store.leftovers(10) == ()

    asyncio.run(story())


def test_no_folder_goes_before_its_run_is_forgotten(tmp_path: Path) -> None:
    async def story() -> None:
        store, objects = MemoryStore(), LocalObjects(str(tmp_path))
        await ended_runs(store, objects)
        known: list[bool] = []

        async def delete(runs: Sequence[RunId]) -> None:
            known.extend([await store.get_run(run) is not None for run in runs])

        await prune_some(store, delete, LATER, 0)
        assert known == [False] * len(RUNS)

    asyncio.run(story())


@pytest.mark.slow
def test_two_who_delete_the_same_folder_leave_nothing_of_it(tmp_path: Path) -> None:
    objects = LocalObjects(str(tmp_path))
    for _ in range(20):
        for number in range(30):
            objects.put(f"runs/r/t{number}/0/1/log", b"words")
        _at_once([lambda: objects.delete("runs/r")] * 2)
        assert not (tmp_path / "runs/r").exists()


def _at_once(works: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
