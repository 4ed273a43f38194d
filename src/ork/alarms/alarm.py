"""The alarm of an installation: sets timers that call a tick, without losing a wake and with few calls.

Timers have three purposes, told apart by their names, because they are removed by different rules:

- `wake`: somebody wrote something or a task ended. All wakes of one second share a timer. Nobody removes one.
- `due`: when the next work is due, as a pass found it. The next pass replaces it.
- `guard`: calls again if the pass that set it dies. Only that pass removes it.

A name carries the second and a generation: the names of timers that were called or removed stay unusable for a while.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from ork.alarms.timers import Timer, TimerService
from ork.errors import AlarmError
from ork.model.alarm import AlarmConfig

GUARD_SECONDS = 60.0
# A wake is due this much after it was requested, so that its call begins later than the request even if the clock of the
# service is ahead by as much.
WAKE_MARGIN_SECONDS = 0.25
# A pass that took longer than this removes no timers of others: its guard may have called another pass.
PASS_TRUSTED_SECONDS = 45.0
CLAMP_MARGIN = timedelta(hours=1)
GENERATIONS = 20
_WAKE, _DUE, _GUARD = "wake", "due", "guard"


def utc_now() -> datetime:
    return datetime.now(UTC)


class Alarm:
    """Sets timers for an installation. Methods block, and raise AlarmError if the service fails."""

    def __init__(self, timers: TimerService, config: AlarmConfig, now: Callable[[], datetime] = utc_now) -> None:
        self.timers = timers
        self.config = config
        self._now = now
        self._last_wake = 0  # the second of the last wake that is certainly set

    def set(self, when: datetime | None = None) -> Timer:
        """A tick is called at `when` (None, or a time that has passed: now), within a second. Setting the same second
        again costs one call at most, and nothing in the process that set it. Other alarms stay as they are."""
        now = self._now()
        second = self._second_of(when, now, WAKE_MARGIN_SECONDS)
        if second == self._last_wake:
            return _timer(_name(_WAKE, second, "0"), second, now)
        for generation in range(GENERATIONS):
            timer = _timer(_name(_WAKE, second, str(generation)), second, now)
            if self.timers.create(timer.name, timer.at) or self._is_waiting(timer.name):
                self._last_wake = second
                return timer
        return self._own(_WAKE, second)

    def cancel(self, timer: Timer) -> None:
        """The timer is not called any more, unless its call has begun."""
        self._last_wake = 0
        self.timers.delete(timer.name)

    def begin_pass(self) -> AlarmPass:
        """A pass begins: the timers that it will replace are noted, then a guard is set. In this order, so that a guard is
        newer than every timer its pass has noted (see `set_due`). The pass reads the store after this."""
        began = self._now()
        pending = self.timers.pending()
        guard = self._own(_GUARD, self._second_of(self._now() + timedelta(seconds=GUARD_SECONDS), self._now()))
        return AlarmPass(self, guard, began, pending)

    def next(self) -> datetime | None:
        """When the next tick is called; None if no alarm is set."""
        return min((timer.at for timer in self.timers.pending()), default=None)

    def close(self) -> None:
        self.timers.close()

    # ── for passes ───────────────────────────────────────────────────────────────────────────────

    def set_due(self, when: datetime, guard: Timer) -> Timer:
        """A tick is called at `when`. A timer that is set for that second already is used if no other pass that still
        runs can have noted it as one to replace: that pass would remove it without knowing that it is needed again."""
        now = self._now()
        second = self._second_of(when, now)
        timer = _timer(_name(_DUE, second, "0"), second, now)
        if self.timers.create(timer.name, timer.at):
            return timer
        # There is a timer of this name, or the name is used up: passes between two runs of a schedule set its time again.
        pending = self.timers.pending()
        same = [each for each in pending if _purpose(each) == _DUE and each.at == timer.at and not each.is_called]
        others = [each for each in pending if _purpose(each) == _GUARD and each.name != guard.name]
        for found in same:
            if all(other.created_at < found.created_at for other in others):
                return found
        return self._own(_DUE, second)

    def trusts_pass(self, began: datetime) -> bool:
        return (self._now() - began).total_seconds() < PASS_TRUSTED_SECONDS

    def _own(self, purpose: str, second: int) -> Timer:
        """Sets a timer under a name that nobody else uses."""
        timer = _timer(_name(purpose, second, os.urandom(6).hex()), second, self._now())
        if not self.timers.create(timer.name, timer.at) and not self._is_waiting(timer.name):
            raise AlarmError(f"{self.timers.describes} says that the new name {timer.name} is in use", hint="try again")
        return timer

    def _is_waiting(self, name: str) -> bool:
        """Whether the timer's call has not begun: then it begins after this request."""
        return any(timer.name == name and not timer.is_called for timer in self.timers.pending())

    def _second_of(self, when: datetime | None, now: datetime, margin: float = 0.0) -> int:
        """The first whole second at which a call for `when` is not too early, at most as far ahead as the service allows."""
        earliest, latest = now + timedelta(seconds=margin), now + self.timers.longest - CLAMP_MARGIN
        return math.ceil(min(max(when or earliest, earliest), latest).timestamp())


class AlarmPass:
    """The alarms of one pass of a scheduler. A pass that dies leaves its guard, which calls the next."""

    def __init__(self, alarm: Alarm, guard: Timer, began: datetime, pending: Sequence[Timer]) -> None:
        self._alarm = alarm
        self._guard = guard
        self._began = began
        self._replaced = [timer for timer in pending if _purpose(timer) == _DUE]

    def finish(self, next_due: datetime | None) -> None:
        """Sets the alarm to the next due time, then removes the guard and the alarms that earlier passes had set.

        Earlier ones only: this pass read the store after they were set, so it knows of everything they were set for. One
        that another pass sets meanwhile stays.
        """
        kept = None if next_due is None else self._alarm.set_due(next_due, self._guard)
        stale = self._replaced if self._alarm.trusts_pass(self._began) else []
        for timer in (*stale, self._guard):
            if kept is None or timer.name != kept.name:
                with suppress(AlarmError):  # then it calls once for nothing
                    self._alarm.timers.delete(timer.name)


def _name(purpose: str, second: int, generation: str) -> str:
    """The hash comes first, because services are slow with names that begin alike."""
    text = f"{purpose}-{second}-{generation}"
    return f"{hashlib.sha256(text.encode()).hexdigest()[:8]}-{text}"


def _purpose(timer: Timer) -> str:
    parts = timer.name.split("-")
    return parts[1] if len(parts) == 4 else ""


def _timer(name: str, second: int, now: datetime) -> Timer:
    return Timer(name, datetime.fromtimestamp(second, UTC), now)
