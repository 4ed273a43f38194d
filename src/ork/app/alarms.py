"""The alarm in the settings: opened for a process, set after requests, and set by passes of a scheduler."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ork.errors import AlarmError, UsageError
from ork.model.alarm import NO_ALARM, AlarmKind
from ork.model.record import Record

if TYPE_CHECKING:
    from ork.alarms.alarm import Alarm
    from ork.settings import Settings
    from ork.state.store import StateStore

T = TypeVar("T")


def open_alarm(settings: Settings) -> Alarm:
    """The alarm of the installation. Opening it calls nobody."""
    from ork.alarms.alarm import Alarm

    config = settings.alarm or NO_ALARM
    if config.kind is AlarmKind.CLOUD_TASKS:
        from ork.alarms.cloud_tasks import CloudTasks

        return Alarm(CloudTasks(config), config)
    if config.kind is AlarmKind.SYSTEMD:
        from ork.alarms.systemd import SystemdTimers

        return Alarm(SystemdTimers(settings.root, settings.environ), config)
    from ork.alarms.no_timers import NoTimers

    return Alarm(NoTimers(), config)


class AlarmState(Record):
    """What the alarm is, when it calls next, how many of its calls fail, what the last of them was answered, and why it does not
    work (None: it does)."""

    describes: str
    next: datetime | None = None
    failing: int = 0
    last_answer: str = ""
    problem: AlarmError | UsageError | None = None


def read_alarm_state(settings: Settings) -> AlarmState | None:
    """The state of the alarm, as its service shows it; None if there is no alarm. Blocks."""
    if settings.alarm is None:
        return None
    alarm = open_alarm(settings)
    try:
        alarm.timers.check()
        timers = alarm.timers.pending()
        next_at = min((timer.at for timer in timers), default=None)
        called = [timer for timer in timers if timer.is_called]
        last_answer = next((timer.last_answer for timer in called if timer.last_answer), "")
        return AlarmState(alarm.timers.describes, next_at, len(called), last_answer)
    except (AlarmError, UsageError) as problem:
        return AlarmState(alarm.timers.describes, problem=problem)
    finally:
        alarm.close()


def try_alarm(settings: Settings) -> None:
    """Sets a timer that is far ahead, and removes it. AlarmError if either fails. Blocks."""
    import os
    from datetime import timedelta

    from ork.alarms.alarm import CLAMP_MARGIN, utc_now

    alarm = open_alarm(settings)
    name = f"doctor-{os.urandom(8).hex()}"
    try:
        alarm.timers.create(name, utc_now() + min(alarm.timers.longest, timedelta(days=30)) - CLAMP_MARGIN)
        alarm.timers.delete(name)
    finally:
        alarm.close()


class AlarmClock:
    """The alarm for async callers. Calls to the service block, so they are made in a thread where there is an event loop.

    Without an event loop, which short commands do without, they are made at once.
    """

    def __init__(self, alarm: Alarm, on_failure: Callable[[AlarmError], None] = lambda _error: None) -> None:
        self.alarm = alarm
        self.on_failure = on_failure

    async def wake(self, at: datetime | None = None) -> bool:
        """A tick is called at that time, or at once. False, after `on_failure`, if the alarm cannot be set: the safety tick comes later."""
        try:
            await in_thread(lambda: self.alarm.set(at))
        except AlarmError as error:
            self.on_failure(error)
            return False
        return True

    async def during(self, work: Callable[[], Awaitable[T]], next_due: Callable[[T], datetime | None]) -> T:
        """Does the work of a pass under a guard, and sets the alarm to what is due next.

        If the guard cannot be set, the work is done all the same. AlarmError if the alarm cannot be set at the end: the
        caller has to call again.
        """
        try:
            guarded = await in_thread(self.alarm.begin_pass)
        except AlarmError as error:
            self.on_failure(error)
            result = await work()
            await in_thread(lambda: self.alarm.set(due) if (due := next_due(result)) is not None else None)
            return result
        result = await work()
        await in_thread(lambda: guarded.finish(next_due(result)))
        return result


async def in_thread(call: Callable[[], T]) -> T:
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return call()
    return await asyncio.to_thread(call)


def waking(store: StateStore, clock: AlarmClock) -> StateStore:
    """The store, for people and programs that request work: each such request also sets the alarm."""
    return cast("StateStore", WakingStore(store, clock))


class WakingStore:
    """Every verb of a store. A request after which a tick has something to do sets the alarm once it is durable."""

    def __init__(self, store: StateStore, clock: AlarmClock) -> None:
        self._store = store
        self._clock = clock

    def __getattr__(self, verb: str) -> Any:
        call = getattr(self._store, verb)
        makes_work = _MAKES_WORK.get(verb)
        if makes_work is None:
            return call

        async def request(*args: Any, **kwargs: Any) -> Any:
            answer = await call(*args, **kwargs)
            if makes_work(*args):
                await self._clock.wake()
            return answer

        return request


def _always(*_args: object) -> bool:
    return True


# Which requests make work for a tick, by their positional arguments.
_MAKES_WORK: dict[str, Callable[..., bool]] = {
    "create_runs": _always,
    "submit_command": _always,
    "ask_refresh": _always,
    "clear_control": _always,
    "save_version": lambda version, *_: version.workflow.schedule is not None,
    "set_enabled": lambda _workflow, enabled, *_: enabled,
}
