"""Properties of a scheduler that its service reads between two steps."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from ork.model.ids import RunId
from ork.scheduler.watched import look_by_next_tick

if TYPE_CHECKING:
    from ork.scheduler.fire import Firing
    from ork.scheduler.lease import SchedulerLease
    from ork.scheduler.observe import Observer
    from ork.scheduler.options import SchedulerOptions
    from ork.scheduler.question_resolver import QuestionResolver
    from ork.scheduler.runs import OwnedRuns


class Overview:
    lease: SchedulerLease
    _runs: OwnedRuns
    _observer: Observer
    _firing: Firing
    _options: SchedulerOptions
    _is_draining: bool
    _resolver: QuestionResolver
    _monotonic: Callable[[], float]
    _restart_at: float | None
    _claim_at: float | None
    _limits_again_at: float | None

    @property
    def is_drained(self) -> bool:
        """True if the scheduler drains and has no active attempt left."""
        is_to_exit = self._is_draining or self.lease.is_to_exit
        return is_to_exit and not self._observer.has_active

    def is_busy(self, until: datetime) -> bool:
        """True if an attempt is active, or a timer fires by then."""
        timer = self._runs.next_timer
        return self._observer.has_active or (timer is not None and timer <= until)

    @property
    def soon_seconds(self) -> float:
        """Longer than any pause between two checks of an attempt that is being ended."""
        return self._options.close_grace_seconds + 1.0

    @property
    def next_fire(self) -> datetime | None:
        """When the next schedule is due."""
        return self._firing.next_at

    @property
    def owned_runs(self) -> tuple[RunId, ...]:
        return tuple(self._runs)

    def next_tick(self, now: datetime) -> datetime | None:
        """When the next tick is due after this one has released its runs. There is no lease to renew then."""
        mono = self._monotonic()
        looks = [look_by_next_tick(watched, self._options, mono) for watched in self._observer.watchlist]
        planned = (self._restart_at, self._claim_at, self._limits_again_at, self._resolver.next_try)
        soonest = min([*looks, *(time for time in planned if time is not None)], default=None)
        work = None if soonest is None else now + timedelta(seconds=max(0.0, soonest - mono))
        return first_of(first_of(work, self._runs.next_timer), self.next_fire)


def first_of(one: datetime | None, other: datetime | None) -> datetime | None:
    return min(one, other) if one is not None and other is not None else one or other
