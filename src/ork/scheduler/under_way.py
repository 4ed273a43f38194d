"""A commit that is under way, while the step after it has begun already.

Where the store works elsewhere its time is not ours: what was committed before is started and what happens meanwhile is
looked at while a commit is on its way. The order stays: nothing is acted on before its own commit, and no commit is sent
before the last one has been answered, or has failed so that all it was made of is forgotten.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import TypeAlias

from ork.core.events import Event
from ork.core.machine import NameAttempt
from ork.model.ids import RunId, SchedulerId
from ork.model.record import Record
from ork.scheduler.runs import Decided, OwnedRuns
from ork.state.store import Committed, StateStore

Answer: TypeAlias = Callable[[], Awaitable[Committed]]
Send: TypeAlias = Callable[[Answer], Awaitable[Answer]]
"""Sets a commit going, and gives what waits for its answer."""


class UnderWay(Record):
    decided: Mapping[RunId, Decided]
    was_starved: bool
    answer: Answer


class Commits:
    """One at a time. `send` is None where whoever commits waits for it; `was_woken`: since the last one began."""

    def __init__(self, store: StateStore, scheduler: SchedulerId, runs: OwnedRuns) -> None:
        self._store = store
        self._scheduler = scheduler
        self._runs = runs
        self.send: Send | None = None
        self.under_way: UnderWay | None = None
        self.was_woken = False
        self._held: list[tuple[RunId, Event]] = []

    async def begin(self, name: NameAttempt, now: datetime) -> None:
        """One transaction for everything that has been decided, if anything has."""
        was_starved = self._runs.is_starved
        decided = self._runs.collect(name, now)
        self.was_woken = False
        if decided:
            changes = [each.changes for each in decided.values()]
            commit = partial(self._store.commit, self._scheduler, changes, now)
            self.under_way = UnderWay(decided, was_starved, await (self.send or send_later)(commit))

    def take(self) -> UnderWay | None:
        """For whoever waits for its answer."""
        under_way, self.under_way = self.under_way, None
        return under_way

    def hold_back(self, news: Iterable[tuple[RunId, Event]]) -> Iterable[tuple[RunId, Event]]:
        """What may touch tasks whose launch is under way is not let through before that is settled, and a run's events
        stay in their order."""
        if self.under_way is None:
            return news
        through: list[tuple[RunId, Event]] = []
        waiting = {run for run, _ in self._held}
        for run, event in news:
            if run not in waiting and self._runs.may_hear(run, event):
                through.append((run, event))
            else:
                waiting.add(run)
                self._held.append((run, event))
        return through

    def take_held(self) -> list[tuple[RunId, Event]]:
        held, self._held = self._held, []
        return held

    def forget(self) -> None:
        """Whatever comes of it: its epochs are over when the runs are claimed again."""
        self.under_way = None
        self._held.clear()


async def send_beside(commit: Answer) -> Answer:
    """Goes on by itself in the event loop."""
    sent = asyncio.ensure_future(commit())
    sent.add_done_callback(_note_failure)
    await asyncio.sleep(0)  # until it has been sent

    async def answer() -> Committed:
        return await sent

    return answer


def _note_failure(sent: asyncio.Future[Committed]) -> None:
    """Nobody may be there any more to hear of it."""
    if not sent.cancelled():
        sent.exception()


async def send_later(commit: Answer) -> Answer:
    """For stores that work in this process, and for the simulation: the same order, without the event loop."""
    return commit
