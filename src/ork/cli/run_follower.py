"""Follows a run until it ends: shows it, schedules it if no scheduler does, and handles Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from enum import Enum

from ork.app.installation import Installation, timeouts_of
from ork.cli.paint import visible
from ork.cli.progress import ProgressDisplay
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
# A pause between frames is at most this share of the run's elapsed time, so that short runs are not delayed.
FRAME_SHARE = 0.1
HISTORY_AFTER_SECONDS = 2.0
# Lost notifications and dead schedulers are noticed after this long.
POLL_SECONDS = 2.0
RETRY_SECONDS = 1.0
# How long a cancel is retried on a store that cannot accept it. After that the process exits anyway.
CANCEL_TIMEOUT_SECONDS = 10.0
LEAVE_SECONDS = 1.0
ID_LENGTH = 8
MAX_LINES = 10
SIGNALS = (signal.SIGINT, signal.SIGTERM)
RETRIED_ERRORS = frozenset({TelemetryEvent.STORE_FAILED, TelemetryEvent.STEP_FAILED, TelemetryEvent.RUN_QUARANTINED})
# Reported once, however many attempts they affect.
DISK_ERRORS = frozenset({TelemetryEvent.START_FAILED, TelemetryEvent.OBJECTS_FAILED})


class FollowEnd(Enum):
    FINAL = "final"
    TIMED_OUT = "timed out"
    INTERRUPTED = "interrupted"
    DETACHED = "detached"
    WAITING = "waiting for a person"
    LOST = "waiting for machines that do not answer"


class Interrupts:
    """Context manager that counts Ctrl-C and SIGTERM."""

    def __init__(self) -> None:
        self.pressed = 0
        self.signal_name = "Ctrl-C"  # the last signal
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
        self.signal_name = "Ctrl-C" if number is signal.SIGINT else number.name
        if self.on_press is not None:
            self.on_press()


class RunFollower:
    """Shows a run until it ends. With `may_work` it schedules the run itself while no scheduler service is running."""

    def __init__(
        self,
        installation: Installation,
        run: RunId,
        progress: ProgressDisplay,
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
        self.pending: list[PendingApproval] = []  # approvals that the whole run waits for
        self._changed = asyncio.Event()
        self._service: SchedulerService | None = None
        self._work: asyncio.Task[None] | None = None
        self._ending: FollowEnd | None = None
        self._leave = False
        self._history: History | None = None
        self._last_problem: str | None = None
        self._cancelling: asyncio.Future[None] | None = None
        self._shown_attempts: dict[TaskKey, int] = {}
        self._has_shown_unreachable = False
        self._adopted_runs: list[RunId] = []  # other runs that our scheduler took over

    async def follow(self) -> tuple[RunView, FollowEnd]:
        """Returns when the run is final, or when following it ends for another reason."""
        self._started = asyncio.get_running_loop().time()
        self.view, changed = await open_view(self._store, self._run)
        with self._progress.screen():
            try:
                if self.view.run.status.is_final and not await self._is_over():
                    changed = await self._without_retried(changed)
                await self._work_if_needed()
                self._handle_interrupts()
                await self._show_changes(changed)
                await self._finish_adopted_runs()
            finally:
                await self._stop_work()
        return self.view, self._ending or FollowEnd.FINAL

    async def _without_retried(self, tasks: list[Task]) -> list[Task]:
        """The tasks without those that a pending retry command will run again."""
        commands = await self._store.pending_commands(self._run)
        again: set[TaskKey] = set()
        for command in commands:
            if command.kind is CommandKind.RETRY:
                again.update(tasks_to_retry(self.view.version.workflow, self.view.tasks, command))
        self._shown_attempts = {task.key: task.attempt for task in tasks}
        return [task for task in tasks if task.key not in again]

    async def _show_missed(self, changed: list[Task]) -> None:
        """Shows attempts that failed and were retried between two refreshes."""
        missed: list[Attempt] = []
        for task in changed if self._progress.shows_attempts else ():
            shown = max(self._shown_attempts.get(task.key, 0), task.earlier_attempts)
            if task.key.index is None and task.attempt - shown > 1:
                attempts = await self._store.list_attempts(self._run, task.key)
                missed += [each for each in attempts if shown < each.key.number < task.attempt]
            # The current attempt is shown from the task's row once it is over.
            is_over = task.status.is_final or task.retry_at is not None
            self._shown_attempts[task.key] = max(task.attempt - (not is_over), shown)
        self._progress.add_missed(missed)

    async def _show_changes(self, changed: list[Task]) -> None:
        await self._show_missed(changed)
        while True:
            wait = self._progress.show(self.view, changed, datetime.now(UTC), self._history)
            if self._leave or await self._is_over() or await self._waits_only_for_approval():
                return
            if await self._waits_only_for_machines():
                return
            await self._wait(wait)
            await self._check_timeout()
            if self._work is not None and self._work.done():
                self._work.result()  # a scheduler that ends before its run has failed: this raises its error
            changed = await self._refresh()

    async def _refresh(self) -> list[Task]:
        """The tasks that changed. A store that is unavailable for a while is reported; the run continues."""
        changed: list[Task] = []
        try:
            changed = await refresh(self._store, self.view)
            await self._show_missed(changed)
            await self._check_scheduler()
        except StoreUnavailableError as problem:
            self._note_once(f"{problem.message} (trying again)")
        return changed

    async def _is_over(self) -> bool:
        """True if the run is final and has no pending retry."""
        return self.view.run.status.is_final and not await self._store.pending_commands(self._run)

    async def _waits_only_for_approval(self) -> bool:
        """True if only an approval can advance the run: it may take days, so following ends. Not while cancelling."""
        if self._waits_for_people or self._ending is not None:
            return False
        self.pending = await only_pending_approvals(self._store, self.view)
        if self.pending:
            self._ending = FollowEnd.WAITING
        return bool(self.pending)

    async def _waits_only_for_machines(self) -> bool:
        """True if only `ork declare-dead` can end a cancelled run. Shows which machines it waits for."""
        if self._waits_for_machines or self.view.run.cancel_requested_at is None:
            return False
        timeouts = timeouts_of(self._installation.settings)._asdict()
        served_by = tuple(await live_schedulers(self._store, None))
        known = Snapshot(view=self.view, now=datetime.now(UTC), schedulers=served_by, **timeouts)
        lost = await unreachable_tasks(self._store, self._installation.objects, known)
        for text in lost.lines[:MAX_LINES] if lost is not None and not self._has_shown_unreachable else ():
            self._progress.note(visible(f"  {text}"))
        self._has_shown_unreachable = self._has_shown_unreachable or lost is not None
        if lost is not None and lost.is_endless:
            self._ending = FollowEnd.LOST
        return self._ending is FollowEnd.LOST

    # ── waiting ──────────────────────────────────────────────────────────────────────────────────

    async def _wait(self, wanted: float | None) -> None:
        """Waits for a change or `wanted` seconds, then for the rest of the frame, so that changes are batched."""
        waits = [wanted, self._left(), POLL_SECONDS]
        timeout = min(wait for wait in waits if wait is not None)
        if self._work is None:
            await self._wait_for_others(timeout)
        else:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._changed.wait()
        if not self._leave:
            await asyncio.sleep(min(FRAME_SECONDS, self._elapsed() * FRAME_SHARE))
        self._changed.clear()

    async def _wait_for_others(self, timeout: float) -> None:
        change = asyncio.ensure_future(self._change_by_others(timeout))
        event = asyncio.ensure_future(self._changed.wait())
        _, pending = await asyncio.wait({change, event}, return_when=asyncio.FIRST_COMPLETED)
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
        return asyncio.get_running_loop().time() - self._started

    def _left(self) -> float | None:
        if self._timeout is None or self._ending is not None:
            return None
        return max(self._timeout - self._elapsed(), 0.0)

    # ── working ──────────────────────────────────────────────────────────────────────────────────

    async def _check_scheduler(self) -> None:
        if self._history is None and self._progress.wants_history and self._elapsed() > HISTORY_AFTER_SECONDS:
            self._history = await load_history(self._store, self.view.run.workflow, self.view.total)
        await self._work_if_needed()

    async def _work_if_needed(self) -> None:
        if self._work is not None or await self._is_over():
            return
        # If this process can schedule the run itself, it yields only to a scheduler that is certainly alive.
        if await (live_schedulers(self._store) if self._may_work else present_schedulers(self._store, None)):
            return
        if not self._may_work:
            self._note_once(NO_SCHEDULER)
            return
        self._service = await self._installation.scheduler("run", on_commit=self._on_commit, only=self._run)
        self._service.telemetry.listen(self._on_adopted, TelemetryEvent.RUN_ADOPTED)
        reported = (*RETRIED_ERRORS, *DISK_ERRORS, TelemetryEvent.STORE_RECOVERED, TelemetryEvent.ALERT_FAILED)
        self._service.telemetry.listen(self._on_problem, *reported)
        self._service.telemetry.listen(self._on_fallback, TelemetryEvent.FALLBACK)
        self._work = asyncio.create_task(self._service.run())
        self._work.add_done_callback(lambda _: self._changed.set())

    def _on_commit(self, runs: Sequence[RunId]) -> None:
        if self._run in runs or self._adopted_runs:
            self._changed.set()

    def _on_fallback(self, _event: TelemetryEvent, fields: dict[str, object]) -> None:
        self._note_once(f"slower than it should be: {fields['component']}: {fields['why']} (see `ork doctor`)")

    def _on_adopted(self, _event: TelemetryEvent, fields: dict[str, object]) -> None:
        """Reports that our scheduler took over another run whose process had died."""
        run = RunId(str(fields["run"]))
        if run != self._run and "/" not in str(fields["parent"]) and run not in self._adopted_runs:
            self._adopted_runs.append(run)
            self._progress.note(f"also continuing run {run[:ID_LENGTH]} of {fields['workflow']}: its scheduler is gone")

    async def _finish_adopted_runs(self) -> None:
        """Keeps working on adopted runs until none of their tasks is running or about to start."""
        has_noted = False
        while self._adopted_runs and self._service is not None and self._work is not None and not self._work.done():
            if self._leave or not await self._service.is_busy():
                return
            if not has_noted:
                has_noted = True
                self._progress.note(
                    "waiting until the other runs have no running tasks (Ctrl-C leaves them as they are)"
                )
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await self._changed.wait()

    def _on_problem(self, event: TelemetryEvent, fields: dict[str, object]) -> None:
        """Reports a problem once, and its end once."""
        if event is TelemetryEvent.STORE_RECOVERED:
            self._last_problem = None
            self._progress.note("the store works again")
        elif event is TelemetryEvent.ALERT_FAILED:
            self._note_once(f"alert not sent: {fields.get('why')}")
        elif event in RETRIED_ERRORS or (event in DISK_ERRORS and not fields.get("final")):
            kind = str(event) if event in DISK_ERRORS else None
            self._note_once(f"{fields.get('why')} (trying again)", kind)

    def _note_once(self, problem: str, kind: str | None = None) -> None:
        """Shows the problem unless it, or one of the same kind, was the last one shown."""
        if (kind or problem) != self._last_problem:
            self._last_problem = kind or problem
            self._progress.note(visible(problem))

    async def _stop_work(self) -> None:
        if self._service is None or self._work is None:
            return
        if not self._leave:
            self._service.request_stop()
            await self._work
            return
        with suppress(TimeoutError, Exception):
            await asyncio.wait_for(self._wait_for_cancel(), LEAVE_SECONDS)
        self._service.request_stop()
        with suppress(TimeoutError, Exception):
            await asyncio.wait_for(self._work, LEAVE_SECONDS)

    async def _wait_for_cancel(self) -> None:
        """Waits until the scheduler has read the cancel command: it then asks the workers to stop before it ends."""
        if self._cancelling is None:
            return
        await self._cancelling
        while await self._store.pending_commands(self._run):
            await asyncio.sleep(FRAME_SECONDS / 10)

    # ── leaving ──────────────────────────────────────────────────────────────────────────────────

    def _handle_interrupts(self) -> None:
        """Handles signals from now on; those received earlier count as one."""
        self._interrupts.on_press = self._interrupt
        if self._interrupts.pressed:
            self._interrupt()

    def _interrupt(self) -> None:
        if self.view.run.status.is_final:
            self._leave = True  # nothing is left to cancel
        elif self._work is None:
            self._ending, self._leave = FollowEnd.DETACHED, True
        elif self._ending is None:
            self._ending = FollowEnd.INTERRUPTED
            name = self._interrupts.signal_name
            self._progress.note(f"{name}: cancelling run {self.view.short} ({name} again exits at once)")
            self._cancelling = asyncio.ensure_future(self._cancel(name))
        else:
            self._ending, self._leave = FollowEnd.INTERRUPTED, True
        self._changed.set()

    async def _check_timeout(self) -> None:
        if self._left() != 0.0:
            return
        self._ending = FollowEnd.TIMED_OUT
        if self._work is None:
            self._leave = True
            return
        self._progress.note(f"--timeout has passed: cancelling run {self.view.short}")
        await self._cancel("--timeout")

    async def _cancel(self, by: str) -> None:
        """Submits the cancel command, and retries while the store is unavailable."""
        command = RunCommand(self._run, CommandKind.CANCEL, by=by)
        give_up_at = self._elapsed() + CANCEL_TIMEOUT_SECONDS
        while True:
            try:
                await self._store.submit_command(command, datetime.now(UTC))
                break
            except StoreUnavailableError as problem:
                if self._elapsed() > give_up_at:
                    self._progress.note(visible(f"the cancel could not be stored: {problem.message}"))
                    self._leave = True
                    self._changed.set()
                    return
                await asyncio.sleep(RETRY_SECONDS)
        if self._service is not None:
            self._service.wake()
