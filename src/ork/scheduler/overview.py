"""What a service asks its scheduler between two steps."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from ork.model.ids import RunId
from ork.scheduler.watched import look_by_next_tick

if TYPE_CHECKING:
    from ork.scheduler.answers import Answers
    from ork.scheduler.fire import Firing
    from ork.scheduler.lead import Lead
    from ork.scheduler.observe import Observer
    from ork.scheduler.options import SchedulerOptions
    from ork.scheduler.runs import OwnedRuns


class Overview:
    lead: Lead
    _runs: OwnedRuns
    _observer: Observer
    _firing: Firing
    _options: SchedulerOptions
    _is_draining: bool
    _answers: Answers
    _monotonic: Callable[[], float]
    _fresh_start_at: float | None
    _claim_at: float | None
    _limits_again_at: float | None

    @property
    def is_drained(self) -> bool:
        """Nothing of ours runs, and we are to exit then."""
        is_to_exit = self._is_draining or self.lead.is_to_exit
        return is_to_exit and not self._observer.has_active

    def is_busy(self, until: datetime) -> bool:
        """Something is running, or will be tried again by then."""
        timer = self._runs.next_timer
        return self._observer.has_active or (timer is not None and timer <= until)

    @property
    def soon_seconds(self) -> float:
        """Longer than any pause between two looks at an attempt that is being ended."""
        return self._options.close_grace_seconds + 1.0

    @property
    def next_fire(self) -> datetime | None:
        """When a schedule is due next."""
        return self._firing.next_at

    @property
    def owned_runs(self) -> tuple[RunId, ...]:
        return tuple(self._runs)

    def next_tick(self, now: datetime) -> datetime | None:
        """When the next tick is due, once this one has given everything back: no lease is to be renewed then."""
        mono = self._monotonic()
        looks = [look_by_next_tick(watched, self._options, mono) for watched in self._observer.watchlist]
        planned = (self._fresh_start_at, self._claim_at, self._limits_again_at, self._answers.next_try)
        soonest = min([*looks, *(moment for moment in planned if moment is not None)], default=None)
        work = None if soonest is None else now + timedelta(seconds=max(0.0, soonest - mono))
        return first_of(first_of(work, self._runs.next_timer), self.next_fire)


def first_of(one: datetime | None, other: datetime | None) -> datetime | None:
    return min(one, other) if one is not None and other is not None else one or other
