"""The contract of a timer service: it calls a tick once, at or soon after a given time.

Every sentence of a docstring is a test in tests/conformance/test_alarms.py. Calls block; a server makes them in a thread.
AlarmError if the service cannot be reached or refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

from ork.model.record import Record


class Timer(Record):
    """One timer. `is_called`: its call has been made at least once, and may be running or be repeated. `last_answer`: what the
    service says of the last call that failed."""

    name: str
    at: datetime
    created_at: datetime
    is_called: bool = False
    last_answer: str = ""


class TimerService(Protocol):
    @property
    def describes(self) -> str:
        """What it is, for people."""
        ...

    @property
    def longest(self) -> timedelta:
        """How far ahead a timer may be."""
        ...

    def create(self, name: str, at: datetime) -> bool:
        """A tick is called at `at`, or at once if that has passed. False, and nothing changes, if there is a timer of
        this name, or was one so lately that the name cannot be used again. After a lost answer the call may be repeated."""
        ...

    def delete(self, name: str) -> None:
        """There is no such timer any more. One that is gone already is no error."""
        ...

    def pending(self) -> Sequence[Timer]:
        """All timers whose calls have not succeeded yet, earliest first. One that was created before this call began
        is among them."""
        ...

    def check(self) -> None:
        """AlarmError if timers would not be called."""
        ...

    def prepare(self) -> None:
        """Does ahead what the first call would have to do, without calling anybody: a cold start is the time for it."""
        ...

    def close(self) -> None: ...
