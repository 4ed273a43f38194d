"""Staying with a run until it ends: showing it, working on it if nobody else does, and heeding Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from enum import Enum

from ork.app.installation import Installation, timeouts_of
from ork.cli.progress import Progress
from ork.cli.visible import visible
from ork.core.commands import tasks_to_retry
from ork.errors import StoreUnavailableError
from ork.model.ids import RunId, TaskKey
from ork.model.run import CommandKind, RunCommand
from ork.model.task import Attempt, Task
from ork.scheduler.service import SchedulerService
from ork.status.approvals import PendingApproval, only_pending_approvals
from ork.status.history import History, load_history
from ork.status.run_view import RunView, open_view, refresh
from ork.status.schedulers import NO_SCHEDULER, live_schedulers, present_schedulers
from ork.status.snapshot import Snapshot
from ork.status.unreachable import unreachable_tasks
from ork.telemetry import TelemetryEvent

FRAME_SECONDS = 0.1
# A wait may cost at most this share of the time the run has taken so far: short runs are not held up by frames.
FRAME_SHARE = 0.1
HISTORY_AFTER_SECONDS = 2.0
# Whatever news got lost, and a scheduler that died, are noticed after this long.
LOOK_SECONDS = 2.0
RETRY_SECONDS = 1.0
# How long a cancel is tried on a store that cannot take it. Then this process ends all the same, as it was told to.
CANCEL_PATIENCE_SECONDS = 10.0
LEAVE_SECONDS = 1.0
SHOWN_LETTERS = 8
MAX_LINES = 10
SIGNALS = (signal.SIGINT, signal.SIGTERM)
TROUBLES = frozenset({TelemetryEvent.STORE_FAILED, TelemetryEvent.STEP_FAILED, TelemetryEvent.RUN_QUARANTINED})
# Told once for all attempts they befall.
DISK_TROUBLES = frozenset({TelemetryEvent.START_FAILED, TelemetryEvent.OBJECTS_FAILED})


class Ending(Enum):
    FINAL = "final"
    TIMED_OUT = "timed out"
    INTERRUPTED = "interrupted"
    DETACHED = "detached"
    WAITING = "waiting for a person"
    LOST = "waiting for machines that do not answer"


class Interrupts:
    """Ctrl-C and SIGTERM, counted from the moment this is entered until it is left."""

    def __init__(self) -> None:
        self.pressed = 0
        self.words = "Ctrl-C"  # what the last one was
        self.on_press: Callable[[], None] | None = None

    def __enter__(self) -> Interrupts:
        for number in SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, self._press, number)
        return self

    def __exit__(self, *_: object) -> None:
        for number in SIGNALS:
            asyncio.get_running_loop().remove_signal_handler(number)

    def _press(self, number: signal.Signals) -> None:
        self.pressed += 1
        self.words = "Ctrl-C" if number is signal.SIGINT else number.name
        if self.on_press is not None:
            self.on_press()


class Attendant:
    """With `may_work` it becomes the run's scheduler whenever no other one serves the store."""

    def __init__(
        self,
        installation: Installation,
        run: RunId,
        progress: Progress,
        interrupts: Interrupts,
        *,
        may_work: bool,
        timeout: float | None = None,
        waits_for_people: bool = True,
        waits_for_machines: bool = True,
    ) -> None:
        self._installation = installation
        self._store = installation.store
        self._run = run
        self._progress = progress
        self._interrupts = interrupts
        self._may_work = may_work and installation.can_work
        self._timeout = timeout
        self._waits_for_people = waits_for_people
        self._waits_for_machines = waits_for_machines
        self.questions: list[PendingApproval] = []  # what nothing of the run can go on without
        self._news = asyncio.Event()
        self._service: SchedulerService | None = None
        self._work: asyncio.Task[None] | None = None
        self._ending: Ending | None = None
        self._leave = False
        self._history: History | None = None
        self._told_trouble: str | None = None
        self._cancelling: asyncio.Future[None] | None = None
        self._told_attempts: dict[TaskKey, int] = {}
        self._has_told_lost = False  # which machines do not answer
        self._others: list[RunId] = []  # runs of others that we go on with

    async def stay(self) -> tuple[RunView, Ending]:
        """Returns when the run is final, or when it is time to leave it."""
        self._begun = asyncio.get_running_loop().time()
        self.view, changed = await open_view(self._store, self._run)
        with self._progress.screen():
            try:
                if self.view.run.status.is_final and not await self._is_over():
                    changed = await self._what_stays(changed)
                await self._work_if_needed()
                self._heed_interrupts()
                await self._follow(changed)
                await self._see_others_through()
            finally:
                await self._stop_work()
        return self.view, self._ending or Ending.FINAL

    async def _what_stays(self, tasks: list[Task]) -> list[Task]:
        """Of a run that is about to go on: what is to be tried again is not worth telling again."""
        commands = await self._store.pending_commands(self._run)
        again: set[TaskKey] = set()
        for command in commands:
            if command.kind is CommandKind.RETRY:
                again.update(tasks_to_retry(self.view.version.workflow, self.view.tasks, command))
        self._told_attempts = {task.key: task.attempt for task in tasks}
        return [task for task in tasks if task.key not in again]

    async def _tell_missed(self, changed: list[Task]) -> None:
        """Tries that failed and were followed by the next one between two looks are told all the same."""
        missed: list[Attempt] = []
        for task in changed if self._progress.tells_attempts else ():
            told = max(self._told_attempts.get(task.key, 0), task.earlier_attempts)
            if task.key.index is None and task.attempt - told > 1:
                attempts = await self._store.list_attempts(self._run, task.key)
                missed += [each for each in attempts if told < each.key.number < task.attempt]
            # The row itself tells of the current try, once that is over.
            is_over = task.status.is_final or task.retry_at is not None
            self._told_attempts[task.key] = max(task.attempt - (not is_over), told)
        self._progress.add_missed(missed)

    async def _follow(self, changed: list[Task]) -> None:
        await self._tell_missed(changed)
        while True:
            wait = self._progress.show(self.view, changed, datetime.now(UTC), self._history)
            if self._leave or await self._is_over() or await self._only_people_are_missing():
                return
            if await self._only_machines_are_missing():
                return
            await self._wait(wait)
            await self._heed_timeout()
            if self._work is not None and self._work.done():
                self._work.result()  # a scheduler that ends before its run does has failed: this raises its error
            changed = await self._look()

    async def _look(self) -> list[Task]:
        """What changed. A store that cannot be read for a while ends nothing: the run goes on behind it."""
        changed: list[Task] = []
        try:
            changed = await refresh(self._store, self.view)
            await self._tell_missed(changed)
            await self._look_around()
        except StoreUnavailableError as problem:
            self._tell_once(f"{problem.message} (trying again)")
        return changed

    async def _is_over(self) -> bool:
        """A final run that somebody asked to retry is about to go on."""
        return self.view.run.status.is_final and not await self._store.pending_commands(self._run)

    async def _only_people_are_missing(self) -> bool:
        """Then there is nothing to stay for: a decision may take days. What is being cancelled is seen to its end."""
        if self._waits_for_people or self._ending is not None:
            return False
        self.questions = await only_pending_approvals(self._store, self.view)
        if self.questions:
            self._ending = Ending.WAITING
        return bool(self.questions)

    async def _only_machines_are_missing(self) -> bool:
        """Of a cancelled run: says what it waits for. If that ends only when a person says something, this need not stay."""
        if self._waits_for_machines or self.view.run.cancel_requested_at is None:
            return False
        timeouts = timeouts_of(self._installation.settings)._asdict()
        served_by = tuple(await live_schedulers(self._store, None))
        known = Snapshot(view=self.view, now=datetime.now(UTC), schedulers=served_by, **timeouts)
        lost = await unreachable_tasks(self._store, self._installation.objects, known)
        for text in lost.lines[:MAX_LINES] if lost is not None and not self._has_told_lost else ():
            self._progress.note(visible(f"  {text}"))
        self._has_told_lost = self._has_told_lost or lost is not None
        if lost is not None and lost.is_endless:
            self._ending = Ending.LOST
        return self._ending is Ending.LOST

    # ── waiting ──────────────────────────────────────────────────────────────────────────────────

    async def _wait(self, wanted: float | None) -> None:
        """Until something changed or `wanted` seconds passed; then out of the frame, so that changes gather."""
        waits = [wanted, self._left(), LOOK_SECONDS]
        timeout = min(wait for wait in waits if wait is not None)
        if self._work is None:
            await self._wait_for_others(timeout)
        else:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._news.wait()
        if not self._leave:
            await asyncio.sleep(min(FRAME_SECONDS, self._elapsed() * FRAME_SHARE))
        self._news.clear()

    async def _wait_for_others(self, timeout: float) -> None:
        change = asyncio.ensure_future(self._change_by_others(timeout))
        news = asyncio.ensure_future(self._news.wait())
        _, pending = await asyncio.wait({change, news}, return_when=asyncio.FIRST_COMPLETED)
        for waiting in pending:
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                await waiting

    async def _change_by_others(self, timeout: float) -> None:
        try:
            await self._store.wait_for_change(timeout)
        except StoreUnavailableError:
            await asyncio.sleep(min(timeout, RETRY_SECONDS))

    def _elapsed(self) -> float:
        return asyncio.get_running_loop().time() - self._begun

    def _left(self) -> float | None:
        if self._timeout is None or self._ending is not None:
            return None
        return max(self._timeout - self._elapsed(), 0.0)

    # ── working ──────────────────────────────────────────────────────────────────────────────────

    async def _look_around(self) -> None:
        if self._history is None and self._progress.wants_history and self._elapsed() > HISTORY_AFTER_SECONDS:
            self._history = await load_history(self._store, self.view.run.workflow, self.view.total)
        await self._work_if_needed()

    async def _work_if_needed(self) -> None:
        if self._work is not None or await self._is_over():
            return
        # Where this process can do the work, it waits only for a scheduler that is certainly alive.
        if await (live_schedulers(self._store) if self._may_work else present_schedulers(self._store, None)):
            return
        if not self._may_work:
            self._tell_once(NO_SCHEDULER)
            return
        self._service = await self._installation.scheduler("run", on_commit=self._heed_commit, only=self._run)
        self._service.telemetry.listen(self._heed_adopted, TelemetryEvent.RUN_ADOPTED)
        told = (*TROUBLES, *DISK_TROUBLES, TelemetryEvent.STORE_RECOVERED, TelemetryEvent.ALERT_FAILED)
        self._service.telemetry.listen(self._heed_trouble, *told)
        self._service.telemetry.listen(self._heed_fallback, TelemetryEvent.FALLBACK)
        self._work = asyncio.create_task(self._service.run())
        self._work.add_done_callback(lambda _: self._news.set())

    def _heed_commit(self, runs: Sequence[RunId]) -> None:
        if self._run in runs or self._others:
            self._news.set()

    def _heed_fallback(self, _event: TelemetryEvent, fields: dict[str, object]) -> None:
        self._tell_once(f"slower than it should be: {fields['component']}: {fields['why']} (see `ork doctor`)")

    def _heed_adopted(self, _event: TelemetryEvent, fields: dict[str, object]) -> None:
        """Another run whose process died in the middle is gone on with: a person is told so."""
        run = RunId(str(fields["run"]))
        if run != self._run and "/" not in str(fields["parent"]) and run not in self._others:
            self._others.append(run)
            self._progress.note(
                f"also going on with run {run[:SHOWN_LETTERS]} of {fields['workflow']}: nobody looked after it any more"
            )

    async def _see_others_through(self) -> None:
        """What was left in the middle by others is not left there by us: until nothing of it runs or is about to."""
        is_told = False
        while self._others and self._service is not None and self._work is not None and not self._work.done():
            if self._leave or not await self._service.is_busy():
                return
            if not is_told:
                is_told = True
                self._progress.note(
                    "staying until the other runs have nothing running (Ctrl-C leaves them as they are)"
                )
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._news.wait()

    def _heed_trouble(self, event: TelemetryEvent, fields: dict[str, object]) -> None:
        """Says once what is wrong, and once when it is over."""
        if event is TelemetryEvent.STORE_RECOVERED:
            self._told_trouble = None
            self._progress.note("the store works again")
        elif event is TelemetryEvent.ALERT_FAILED:
            self._tell_once(f"alert not sent: {fields.get('why')}")
        elif event in TROUBLES or (event in DISK_TROUBLES and not fields.get("final")):
            kind = str(event) if event in DISK_TROUBLES else None
            self._tell_once(f"{fields.get('why')} (trying again)", kind)

    def _tell_once(self, trouble: str, kind: str | None = None) -> None:
        """Of one kind only the first is told, though their words differ."""
        if (kind or trouble) != self._told_trouble:
            self._told_trouble = kind or trouble
            self._progress.note(visible(trouble))

    async def _stop_work(self) -> None:
        if self._service is None or self._work is None:
            return
        if not self._leave:
            self._service.request_stop()
            await self._work
            return
        with suppress(TimeoutError, Exception):
            await asyncio.wait_for(self._see_cancel_through(), LEAVE_SECONDS)
        self._service.request_stop()
        with suppress(TimeoutError, Exception):
            await asyncio.wait_for(self._work, LEAVE_SECONDS)

    async def _see_cancel_through(self) -> None:
        """Until the scheduler knows of it: then it tells the workers before it ends, and they end their tasks."""
        if self._cancelling is None:
            return
        await self._cancelling
        while await self._store.pending_commands(self._run):
            await asyncio.sleep(FRAME_SECONDS / 10)

    # ── leaving ──────────────────────────────────────────────────────────────────────────────────

    def _heed_interrupts(self) -> None:
        """From now on at once; what was pressed before counts as one press."""
        self._interrupts.on_press = self._interrupt
        if self._interrupts.pressed:
            self._interrupt()

    def _interrupt(self) -> None:
        if self.view.run.status.is_final:
            self._leave = True  # of this run there is nothing left to cancel
        elif self._work is None:
            self._ending, self._leave = Ending.DETACHED, True
        elif self._ending is None:
            self._ending = Ending.INTERRUPTED
            words = self._interrupts.words
            self._progress.note(f"{words}: cancelling run {self.view.short} ({words} again leaves at once)")
            self._cancelling = asyncio.ensure_future(self._cancel(words))
        else:
            self._ending, self._leave = Ending.INTERRUPTED, True
        self._news.set()

    async def _heed_timeout(self) -> None:
        if self._left() != 0.0:
            return
        self._ending = Ending.TIMED_OUT
        if self._work is None:
            self._leave = True
            return
        self._progress.note(f"--timeout has passed: cancelling run {self.view.short}")
        await self._cancel("--timeout")

    async def _cancel(self, by: str) -> None:
        """A cancel is not given up because the store is busy or full for a moment."""
        command = RunCommand(self._run, CommandKind.CANCEL, by=by)
        give_up_at = self._elapsed() + CANCEL_PATIENCE_SECONDS
        while True:
            try:
                await self._store.submit_command(command, datetime.now(UTC))
                break
            except StoreUnavailableError as problem:
                if self._elapsed() > give_up_at:
                    self._progress.note(visible(f"the cancel could not be stored: {problem.message}"))
                    self._leave = True
                    self._news.set()
                    return
                await asyncio.sleep(RETRY_SECONDS)
        if self._service is not None:
            self._service.wake()
