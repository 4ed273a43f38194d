"""Coroutines call a store's verbs: in threads where the store takes its time, directly where there is no event loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading

from ork.objects.calls import DocumentCalls


class Slow:
    answers_at_once = False


def test_a_slow_store_is_called_in_a_thread() -> None:
    async def names() -> tuple[str, str]:
        return await DocumentCalls(Slow()).call(
            lambda: threading.current_thread().name
        ), threading.current_thread().name

    called, calling = asyncio.run(names())
    assert called != calling


def test_without_an_event_loop_a_slow_store_is_called_directly() -> None:
    """Short commands on SQLite drive their coroutines without one."""
    done: list[int] = []

    async def work(item: int) -> None:
        done.append(await DocumentCalls(Slow()).call(lambda: item))

    with contextlib.suppress(StopIteration):
        DocumentCalls(Slow()).for_each(work, [1, 2]).send(None)
    assert done == [1, 2]
