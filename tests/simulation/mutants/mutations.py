"""The protocol broken on purpose, one rule at a time. A simulation that lets one of these live proves little.

Each mutation replaces a function of the real scheduler, machine, store or worker by one that forgets what makes it
right. They reach into private names: that is what they are for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ork.core import events as ev
from ork.core.graph import StartVerdict
from ork.core.machine import RunMachine
from ork.errors import DocumentError
from ork.executors.executor import Presence
from ork.model.ids import AttemptKey
from ork.model.record import Record, replaced
from ork.model.run import RunStatus
from ork.model.task import TaskStatus
from ork.model.workflow import RetryOn, Trigger
from ork.objects import documents
from ork.scheduler import statuses, step
from ork.scheduler.specs import LaunchJob
from ork.testing.clock import EPOCH

Make = Callable[[Any], Any]


class Mutant(Record):
    """`swaps`: whose attribute is replaced, its name, and what makes the replacement from the original. `on`: the store of
    the worlds that must notice."""

    name: str
    breaks: str
    swaps: tuple[tuple[Any, str, Make], ...]
    on: str = "sqlite"


def always(value: object) -> Make:
    return lambda _original: lambda *_args, **_kwargs: value


# ── the order of things ──────────────────────────────────────────────────────────────────────────


def launch_before_commit(original: Any) -> Any:
    async def commit(self: Any, now: Any) -> Any:
        decided = self._runs.collect(self._launcher.name, now)
        jobs = []
        for run, each in decided.items():
            owned = self._runs.get(run)
            jobs += [LaunchJob(request.attempt, owned.machine, owned.version) for request in each.changes.launches]
        await self._launcher.launch(jobs)
        collect, self._runs.collect = self._runs.collect, lambda *_: decided
        try:
            return await original(self, now)
        finally:
            self._runs.collect = collect

    return commit


def done_unapplied(_original: Any) -> Any:
    def apply(self: Any, command: Any, _now: Any) -> bool:
        owned = self._owned.get(command.run)
        if owned is not None and command.id not in owned.applied:
            owned.applied.append(command.id)
            self._touch(command.run)
        return True

    return apply


def keep_what_may_be_lost(_original: Any) -> Any:
    def reset_after_store_error(self: Any, _problem: Any) -> None:
        self._claim_at = self._monotonic() + step.STORE_RETRY_SECONDS

    return reset_after_store_error


def stop_without_release(_original: Any) -> Any:
    async def stop(self: Any) -> None:
        for run in self.owned_runs:
            self._forget(run)

    return stop


# ── the machine ──────────────────────────────────────────────────────────────────────────────────


def start_too_early(original: Any) -> Any:
    def judge(rule: Any, upstream: Any) -> Any:
        verdict = original(rule, upstream)
        return StartVerdict.START if verdict is StartVerdict.WAIT and upstream.succeeded else verdict

    return judge


def one_try_more(original: Any) -> Any:
    return lambda spec, failure, tries: original(spec, failure, tries - 1)


def one_try_less(original: Any) -> Any:
    return lambda spec, failure, tries: original(spec, failure, tries + 1)


def retry_anything(original: Any) -> Any:
    return lambda spec, failure, tries: original(replaced(spec, retry_on=frozenset(RetryOn)), failure, tries)


def no_skipping(original: Any) -> Any:
    def judge(rule: Any, upstream: Any) -> Any:
        verdict = original(rule, upstream)
        return StartVerdict.WAIT if verdict is StartVerdict.SKIP else verdict

    return judge


def as_if_not_paused(original: Any) -> Any:
    def ask(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.run.status is not RunStatus.PAUSED:
            return original(self, *args, **kwargs)
        running = replaced(self.run, status=RunStatus.RUNNING)
        twin = RunMachine(self.workflow, running, self.tasks.values(), self.active.values())
        return original(twin, *args, **kwargs)

    return ask


def forget_timers(original: Any) -> Any:
    def take_over(self: Any, claimed: Any, now: Any) -> Any:
        owned = original(self, claimed, now)
        self._timers = [timer for timer in self._timers if timer[1] != claimed.run.id]
        return owned

    return take_over


def ignore_seq(original: Any) -> Any:
    def attempt_of(self: Any, event: Any) -> Any:
        attempt = original(self, event)
        return attempt if attempt is None or not hasattr(event, "seq") else replaced(attempt, seq=0)

    return attempt_of


def believe_old_beats(original: Any) -> Any:
    def look(self: Any, watched: Any, *rest: Any) -> bool:
        watched.attempt = replaced(watched.attempt, seq=0)
        return bool(original(self, watched, *rest))

    return look


def read_any_seq(original: Any) -> Any:
    return lambda self, attempt: original(self, replaced(attempt, seq=0))


def end_with_the_first_success(original: Any) -> Any:
    def take(self: Any) -> Any:
        decided = original(self)
        if self.run.status is RunStatus.RUNNING and any(t.status is TaskStatus.SUCCESS for t in decided.tasks):
            return replaced(decided, run=replaced(self.run, status=RunStatus.SUCCESS))
        return decided

    return take


def use_number_again(original: Any) -> Any:
    return lambda self, task, *rest: original(self, replaced(task, attempt=max(0, task.attempt - 1)), *rest)


def keep_alerts_back(original: Any) -> Any:
    return lambda *args, **kwargs: original(*args, **{**kwargs, "alerts": ()})


def hear_of_what_has_ended(original: Any) -> Any:
    def handle(self: Any, event: Any, now: Any) -> None:
        task = self.tasks.get(getattr(event, "key", None))
        if isinstance(event, ev.Succeeded) and task is not None and task.status is TaskStatus.FAILED:
            self.overturned = replaced(task, status=TaskStatus.SUCCESS)
        original(self, event, now)

    return handle


def change_what_has_ended(original: Any) -> Any:
    def take(self: Any) -> Any:
        decided = original(self)
        overturned = getattr(self, "overturned", None)
        return decided if overturned is None else replaced(decided, tasks=(*decided.tasks, overturned))

    return take


# ── attempts ─────────────────────────────────────────────────────────────────────────────────────


def close_at_once(_original: Any) -> Any:
    async def close_on(self: Any, watched: Any, _presence: Any, seen: Any, now: Any) -> None:
        attempt = watched.attempt
        statuses.close_gate(self._objects, attempt, now)
        await self._executors[attempt.executor].stop([attempt], at_once=False)
        self._report(watched, ev.Closed(attempt.key.task, attempt.key.number, ever_started=True), seen)

    return close_on


def deaf_while_closing(original: Any) -> Any:
    return lambda self, watched, *rest: not watched.closing and original(self, watched, *rest)


def close_without_last_look(_original: Any) -> Any:
    async def close_gone(self: Any, watched: Any, seen: Any, _mono: Any) -> None:
        key = watched.attempt.key
        self._report(watched, ev.Closed(key.task, key.number, ever_started=True), seen)

    return close_gone


def any_attempt_will_do(original: Any) -> Any:
    def read_statuses(objects: Any, attempts: Any) -> Any:
        found = zip(attempts, original(objects, attempts), strict=True)
        return [_of_earlier(objects, attempt.key) if status is None else status for attempt, status in found]

    return read_statuses


def _of_earlier(objects: Any, key: AttemptKey) -> Any:
    earlier = str(AttemptKey(key.run, key.task, key.number - 1))
    (data,) = objects.read_statuses([earlier]) if key.number > 1 else (None,)
    return statuses._status(documents.strict_json(data, max_size=1 << 20), earlier) if isinstance(data, bytes) else None


def unsigned_will_do(_original: Any) -> Any:
    return lambda data, _token_hash, **_: documents.strict_json(data, max_size=1 << 20)


def never_by_force(original: Any) -> Any:
    async def stop(self: Any, attempts: Any, *, at_once: bool) -> None:
        if not at_once:
            await original(self, attempts, at_once=False)

    return stop


def names_without_boot(original: Any) -> Any:
    def place_of(self: Any, attempt: Any) -> Any:
        machine, _ = original(self, attempt)
        return machine, machine.boot

    return place_of


def unknown_is_gone(original: Any) -> Any:
    async def find(self: Any, attempts: Any) -> Any:
        answers = await original(self, attempts)
        return [Presence.GONE if answer is Presence.UNKNOWN else answer for answer in answers]

    return find


def adopt_nothing(_original: Any) -> Any:
    async def adopt(*_: Any) -> None:
        return

    return adopt


def expire_everybody(_original: Any) -> Any:
    async def check_peers(self: Any) -> None:
        others = [entry.id for entry in await self._store.list_schedulers() if entry.id != self.id]
        if others:
            await self._store.expire(others)

    return check_peers


def believe_any_attempt(_original: Any) -> Any:
    def checked_status(data: Any, attempt: Any) -> Any:
        document = documents.open_signed(data, attempt.token_hash)
        try:
            return statuses._status(document, str(attempt.key))
        except (KeyError, TypeError, ValueError) as problem:
            raise DocumentError(str(problem)) from None

    return checked_status


def unreadable_is_not_started(_original: Any) -> Any:
    def gate_state(objects: Any, attempt: Any) -> Any:
        (data,) = objects.read_gates([str(attempt.key)])
        try:
            return None if not isinstance(data, bytes) else documents.open_signed(data, attempt.token_hash)["state"]
        except DocumentError:
            return None

    return gate_state


# ── the store ────────────────────────────────────────────────────────────────────────────────────


def write_as_the_owner(original: Any) -> Any:
    def pass_fence(db: Any, _scheduler: Any, changes: Any, changed: Any) -> Any:
        owner = db.connection.row("get_owner", {"run": changes.run_id})[0]
        for epoch in range(50):
            found = original(db, owner, replaced(changes, epoch=epoch), changed)
            if found is not None:
                return found
        return None

    return pass_fence


def write_at_any_epoch(original: Any) -> Any:
    """The owner is compared, the epoch is not."""

    def pass_fence(db: Any, scheduler: Any, changes: Any, changed: Any) -> Any:
        opened = (original(db, scheduler, replaced(changes, epoch=epoch), changed) for epoch in range(200))
        return next((each for each in opened if each is not None), None)

    return pass_fence


def leases_by_wall_clock(original: Any) -> Any:
    async def claim_runs(self: Any, scheduler: Any, room: Any, now: Any, **only: Any) -> Any:
        clock, self._db.clock = self._db.clock, lambda: ("boot", (now - EPOCH).total_seconds())
        try:
            return await original(self, scheduler, room, now, **only)
        finally:
            self._db.clock = clock

    return claim_runs


def leave_out_attempts(original: Any) -> Any:
    async def commit(self: Any, scheduler: Any, changes: Any, now: Any) -> Any:
        return await original(self, scheduler, [replaced(each, attempts=()) for each in changes], now)

    return commit


def last_come_first_served(original: Any) -> Any:
    return lambda *args: original(*args)[::-1]


def look_then_admit_all(original: Any) -> Any:
    def admit(db: Any, launches: Any) -> Any:
        admission = original(db, launches)
        return (
            admission._replace(admitted=frozenset(range(len(launches))), full=frozenset())
            if admission.admitted
            else admission
        )

    return admit


def slots_not_unique(original: Any) -> Any:
    async def create_runs(self: Any, new: Any, now: Any) -> Any:
        return await original(self, [replaced(run, trigger=Trigger.MANUAL) for run in new], now)

    return create_runs


def all_fit(_original: Any) -> Any:
    return lambda found, _free: [run for run, *_ in found]


def cancel_unheard(original: Any) -> Any:
    """Completion takes no notice of a cancel that stands."""
    return always(False)(original)
