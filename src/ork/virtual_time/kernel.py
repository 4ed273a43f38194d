"""Virtual time: coroutines that take turns on one thread, in an order drawn from a seed.

An actor runs until it awaits `pause` or a `Signal`; then the earliest waiting actor continues and the time is set to its
wake-up time. No real clock is used, so a simulated day takes only as long as its events, and a seed always gives the
same day.
"""

from __future__ import annotations

import heapq
import types
from collections.abc import Callable, Coroutine, Generator
from itertools import count
from random import Random
from typing import Any


class Crashed(BaseException):
    """The process this code runs in has died. Not an Exception: nothing may catch it and go on."""


class Killed(BaseException):
    """The kernel ends this actor. Unlike after a crash of the simulated process, nothing restarts it."""


class Actor:
    """One coroutine of the kernel. `turn` distinguishes current from outdated wake-ups."""

    __slots__ = ("coroutine", "done", "name", "turn")

    def __init__(self, name: str, coroutine: Coroutine[Any, Any, None]) -> None:
        self.name = name
        self.coroutine = coroutine
        self.turn = 0
        self.done = False


class Signal:
    """Wakes the waiting actor when set; if none waits, the next wait returns at once."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._is_set = False
        self._waiter: Actor | None = None

    def set(self) -> None:
        self._is_set = True
        if self._waiter is not None:
            self._kernel.wake(self._waiter)
            self._waiter = None

    async def wait(self, seconds: float | None) -> bool:
        """True when it is set, False after `seconds` without that."""
        if not self._is_set:
            self._waiter = self._kernel.current
            await _park(seconds)
            self._waiter = None
        happened, self._is_set = self._is_set, False
        return happened


class Kernel:
    def __init__(self, seed: int) -> None:
        self.time = 0.0
        self.current: Actor | None = None
        self.stopped = False
        self._order = Random(f"kernel {seed}")
        self._serial = count()
        self._heap: list[tuple[float, float, int, Actor | Callable[[], None], int]] = []
        self._actors: list[Actor] = []
        self._stalled: list[Actor] = []

    def now(self) -> float:
        return self.time

    def spawn(self, name: str, coroutine: Coroutine[Any, Any, None], delay: float = 0.0) -> Actor:
        actor = Actor(name, coroutine)
        self._actors.append(actor)
        self._push(actor, delay)
        return actor

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Call the function after `seconds`."""
        self._push(call, seconds)

    def wake(self, actor: Actor) -> None:
        """Resume the actor now, whatever it waits for."""
        if not actor.done:
            actor.turn += 1
            self._push(actor, 0.0)

    def kill(self, actor: Actor) -> None:
        """End the actor without running any more of its code."""
        if actor.done:
            return
        actor.done = True
        if actor not in self._stalled:  # a stalled actor ends when it continues
            _end(actor.coroutine)

    async def pause(self, seconds: float) -> None:
        await _park(seconds)

    def stall(self, seconds: float) -> None:
        """Suspend the current actor within synchronous code while the others continue."""
        actor = self.current
        if actor is None:
            raise RuntimeError("only an actor can stand still")
        self._stalled.append(actor)
        self._run_until(self.time + seconds)
        self._stalled.remove(actor)
        self.current = actor
        if self.stopped or actor.done:
            raise Killed

    def run(self, until: float, is_over: Callable[[], bool] = lambda: False) -> None:
        """Run until that time, until `is_over`, or until `stopped` is set."""
        self._run_until(until, is_over)

    def close(self) -> None:
        """End all waiting actors, so that nothing outlives the world."""
        for actor in self._actors:
            self.kill(actor)
        self._heap.clear()

    def _push(self, what: Actor | Callable[[], None], delay: float) -> None:
        turn = what.turn if isinstance(what, Actor) else 0
        heapq.heappush(self._heap, (self.time + delay, self._order.random(), next(self._serial), what, turn))

    def _run_until(self, until: float, is_over: Callable[[], bool] = lambda: False) -> None:
        while self._heap and self._heap[0][0] <= until and not self.stopped and not is_over():
            moment, _, _, what, turn = heapq.heappop(self._heap)
            if not isinstance(what, Actor):
                self.time = max(self.time, moment)
                what()
            elif not what.done and turn == what.turn:
                self.time = max(self.time, moment)
                self._resume(what)
        if not self.stopped and not is_over():
            self.time = max(self.time, until)

    def _resume(self, actor: Actor) -> None:
        self.current = actor
        try:
            seconds = actor.coroutine.send(None)
        except (StopIteration, Crashed, Killed):
            actor.done = True
        except BaseException:
            actor.done = True
            raise
        else:
            actor.turn += 1
            if seconds is not None and not actor.done:
                self._push(actor, seconds)
        finally:
            self.current = None


@types.coroutine
def _park(seconds: float | None) -> Generator[float | None, None, None]:
    yield seconds


def _end(coroutine: Coroutine[Any, Any, None]) -> None:
    # close() would run `finally` blocks that await; a dead process runs nothing.
    try:
        while True:
            coroutine.throw(Killed())
    except (Killed, Crashed, StopIteration):
        pass
