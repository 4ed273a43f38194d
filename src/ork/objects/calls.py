"""Calling a store's synchronous verbs from coroutines: directly if it answers at once, else in a bounded pool of threads."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

P = ParamSpec("P")
T = TypeVar("T")


class HasPace(Protocol):
    answers_at_once: bool


class DocumentCalls:
    """The calls of one store. With one that answers at once nothing here waits. Short commands have no event loop: they call
    every store directly."""

    def __init__(self, store: HasPace) -> None:
        self._is_direct = store.answers_at_once

    async def call(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What the verb returns."""
        loop = None if self._is_direct else _running_loop()
        if loop is None:
            return verb(*args, **kwargs)
        from ork.objects.threads import pool

        return await loop.run_in_executor(pool("calls"), partial(verb, *args, **kwargs))

    async def for_each(self, work: Callable[[T], Awaitable[None]], items: Sequence[T]) -> None:
        """Does the work for every item: one after the other, or, where each would wait for the store, all at once.

        Raises what one of them raised, once all are done."""
        if self._is_direct or len(items) < 2 or _running_loop() is None:
            for item in items:
                await work(item)
            return
        import asyncio

        for outcome in await asyncio.gather(*map(work, items), return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome


async def in_thread(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Calls a function that takes longer than the event loop may be held: in a thread, or directly without a loop."""
    if _running_loop() is None:
        return work(*args, **kwargs)
    import asyncio

    return await asyncio.to_thread(work, *args, **kwargs)


def _running_loop() -> AbstractEventLoop | None:
    if "asyncio" not in sys.modules:  # short commands do without it, and importing it takes longer than they do
        return None
    import asyncio

    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
