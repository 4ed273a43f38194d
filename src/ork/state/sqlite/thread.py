"""The one thread on which a handle's statements run, so that waiting for the disk never stops the event loop.

What is certain not to wait may be done in the loop itself while the thread has nothing to do: handing it over and back
takes longer than a small commit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

T = TypeVar("T")


class WriterThread:
    """Jobs are done one after another in the order they came, also those whose caller no longer waits."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[Callable[[], Any], AbstractEventLoop, Future[Any]] | None] = SimpleQueue()
        self._free = threading.Lock()  # whoever works with the connection holds it
        # A daemon: a program that ends without closing its store must not hang.
        self._thread = threading.Thread(target=self._work, name="ork-store", daemon=True)
        self._thread.start()

    async def call(self, job: Callable[[], T]) -> T:
        from asyncio import get_running_loop  # the caller has it loaded; a cold start without a loop has not

        loop = get_running_loop()
        future: Future[T] = loop.create_future()
        self._jobs.put((job, loop, future))
        return await future

    @contextmanager
    def stepping_aside(self) -> Iterator[bool]:
        """True if the thread does nothing, nor will before this is left."""
        is_free = self._free.acquire(blocking=False)
        try:
            yield is_free
        finally:
            if is_free:
                self._free.release()

    def stop(self) -> None:
        """Returns when the jobs that were asked for before are done."""
        self._jobs.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            call, loop, future = job
            try:
                with self._free:
                    answer, error = call(), None
            except BaseException as raised:
                answer, error = None, raised
            _deliver(loop, future, answer, error)


def _deliver(loop: AbstractEventLoop, future: Future[Any], answer: Any, error: BaseException | None) -> None:
    def settle() -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(answer)

    # A closed loop has nobody left who waits.
    if not loop.is_closed():
        try:
            loop.call_soon_threadsafe(settle)
        except RuntimeError:
            return
