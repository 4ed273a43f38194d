"""The attempts that a scheduler watches, and when it looks at each of them next. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush

from ork.executors.executor import ReportedStatus
from ork.model.ids import AttemptKey, RunId
from ork.scheduler.watched import Watched

FEW = 1000


class Watchlist:
    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._watched: dict[AttemptKey, Watched] = {}
        self._of_run: dict[RunId, set[AttemptKey]] = {}
        self._waiting: dict[
            RunId, set[AttemptKey]
        ] = {}  # attempts without a worker that wait for an external job or run
        self._changed: dict[AttemptKey, None] = {}
        self._looks: list[tuple[float, AttemptKey]] = []

    def __contains__(self, key: AttemptKey) -> bool:
        return key in self._watched

    def __iter__(self) -> Iterator[Watched]:
        return iter(self._watched.values())

    def get(self, key: AttemptKey) -> Watched | None:
        return self._watched.get(key)

    # ── adding and removing ────────────────────────────────────────────────────────────────────────

    def add(self, watched: Watched, look_at: float) -> None:
        key = watched.attempt.key
        self._watched[key] = watched
        of_run = self._of_run.get(key.run)
        if of_run is None:
            of_run = self._of_run[key.run] = set()
        of_run.add(key)
        if watched.attempt.waits_for is not None:
            self.wait(key)
        self._set_look(watched, look_at)

    def forget(self, key: AttemptKey) -> None:
        self._watched.pop(key, None)
        self._changed.pop(key, None)
        _drop(self._of_run, key)
        if self._waiting:
            _drop(self._waiting, key)

    def forget_run(self, run: RunId) -> None:
        for key in tuple(self._of_run.get(run, ())):
            self.forget(key)

    # ── waiting without a worker ─────────────────────────────────────────────────────────────────

    def wait(self, key: AttemptKey) -> None:
        self._waiting.setdefault(key.run, set()).add(key)

    @property
    def waiting_runs(self) -> int:
        return len(self._waiting)

    # ── when to look ─────────────────────────────────────────────────────────────────────────────

    def look_now(self, key: AttemptKey, reported: ReportedStatus | None = None) -> None:
        """Look at the attempt in the next step. A call without a status discards an earlier reported one: there may be a
        newer one to read."""
        watched = self._watched.get(key)
        if watched is not None:
            watched.reported = reported
            self._changed[key] = None

    def look_again(self, watched: Watched, seconds: float) -> None:
        self._set_look(watched, self._monotonic() + seconds)

    @property
    def next_look(self) -> float | None:
        if self._changed:
            return self._monotonic()
        while self._looks:
            at, key = self._looks[0]
            watched = self._watched.get(key)
            if watched is not None and watched.look_at == at:
                return at
            heappop(self._looks)
            self._look_later(watched, at)
        return None

    def take_due(self) -> list[Watched]:
        """Attempts to look at now: something changed, or their time has come."""
        mono = self._monotonic()
        due, self._changed = self._changed, {}
        while self._looks and self._looks[0][0] <= mono:
            at, key = heappop(self._looks)
            watched = self._watched.get(key)
            if watched is not None and watched.look_at == at:
                due[key] = None
                watched.in_heap_at = None
            else:
                self._look_later(watched, at)
        return [self._watched[key] for key in due if key in self._watched]

    def _set_look(self, watched: Watched, at: float) -> None:
        """Set the time of the next look. An earlier heap entry is kept until it comes up, since most attempts have ended by
        then. Outdated entries are removed now and then."""
        watched.look_at = at
        if watched.in_heap_at is None or watched.in_heap_at > at:
            self._push(watched, at)

    def _look_later(self, watched: Watched | None, at: float) -> None:
        """Push a new heap entry if the look was postponed after this one was pushed."""
        if watched is not None and watched.in_heap_at == at:
            self._push(watched, watched.look_at)

    def _push(self, watched: Watched, at: float) -> None:
        watched.in_heap_at = at
        heappush(self._looks, (at, watched.attempt.key))
        if len(self._looks) > FEW + 4 * len(self._watched):
            self._looks = [(each.in_heap_at, each.attempt.key) for each in self if each.in_heap_at is not None]
            heapify(self._looks)


def _drop(keys_by_run: dict[RunId, set[AttemptKey]], key: AttemptKey) -> None:
    keys = keys_by_run.get(key.run)
    if keys is not None:
        keys.discard(key)
        if not keys:
            del keys_by_run[key.run]
