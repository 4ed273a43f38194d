"""Function calls of the scheduler for each task of a run."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.unit.bench.counting import finish_run, scheduler_on, workflow

SMALL, LARGE = 100, 180  # more than the first steps of a run launch, which begin with a few and take more each time


class Counter:
    """Number of calls while it was counting."""

    number = 0


@contextmanager
def counted_calls() -> Iterator[Counter]:
    """Calls of Python functions and of functions of the interpreter."""
    counter = Counter()

    def note(_frame: object, event: str, _argument: object) -> None:
        counter.number += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        yield counter
    finally:
        sys.setprofile(None)


def calls_per_task(shape: str, folder: Path) -> float:
    """The difference between a large and a small run, for each task: what a run costs once cancels out."""
    calls_of(shape, 10, folder)  # what is compiled when it is first used is no part of what a task costs
    return (calls_of(shape, LARGE, folder) - calls_of(shape, SMALL, folder)) / (LARGE - SMALL)


def calls_of(shape: str, count: int, folder: Path) -> int:
    """A run of so many tasks, from its creation to its end."""

    async def run() -> int:
        version = workflow(shape, count)
        async with scheduler_on(folder / f"{shape}-{count}.db", version) as (store, scheduler):
            with counted_calls() as calls:
                await finish_run(store, scheduler, version)
            return calls.number

    return asyncio.run(run())
