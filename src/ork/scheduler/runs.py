"""The runs that a scheduler owns, in memory: passes events to their machines and collects the decisions. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from ork.core import events as ev
from ork.core.effects import Alert, LaunchRequest
from ork.core.launch_groups import GroupSize, no_groups
from ork.core.limits import EVERYTHING, RATE, Capacity, limit_names
from ork.core.machine import NameAttempt, RunMachine
from ork.core.prepare import Question
from ork.core.run_rows import Decisions
from ork.model.ids import RunId
from ork.model.record import Record
from ork.model.run import Run, RunCommand, RunStatus
from ork.model.task import Attempt
from ork.model.workflow import CompiledWorkflow, Version
from ork.state.records import ClaimedRun, Committed, RunChanges
from ork.telemetry import Telemetry, TelemetryEvent

if TYPE_CHECKING:
    from ork.core.budget import BudgetMeter, BudgetState
    from ork.core.cost import PriceList

LAUNCHES_PER_RUN = 32
FIRST_LAUNCHES = 32
MAX_ERRORS = 3


class Owned(Record, frozen=False):
    """An owned run, the epoch of the ownership, and the commands that are applied but not yet committed."""

    machine: RunMachine
    version: Version
    epoch: int
    applied: list[str]
    timer_set: datetime | None = None


class Decided(Record):
    decisions: Decisions
    changes: RunChanges


class OwnedRuns:
    def __init__(
        self,
        telemetry: Telemetry,
        launch_batch: int,
        group_size: GroupSize = no_groups,
        placed: Callable[[CompiledWorkflow], CompiledWorkflow] | None = None,
        prices: Callable[[], PriceList | None] | None = None,
    ) -> None:
        self._placed = placed
        self._prices = prices
        self._telemetry = telemetry
        self._launch_batch = launch_batch
        self._group_size = group_size
        self._is_held = False
        self._next_batch = FIRST_LAUNCHES
        self._owned: dict[RunId, Owned] = {}
        self._touched: dict[RunId, None] = {}  # their machines may have new decisions
        self._ready: dict[RunId, None] = {}  # they may have tasks to launch; in round-robin order
        self._timers: list[tuple[datetime, RunId]] = []
        self._capacity = Capacity()  # of limits that were full
        self._turned_away: set[str] = set()  # full limits whose slots other schedulers may hold
        self._errors: dict[RunId, tuple[int, str]] = {}  # consecutive errors, and the last one
        self._raised: dict[RunId, None] = {}  # their machines raised while decisions were collected

    def __len__(self) -> int:
        return len(self._owned)

    def __iter__(self) -> Iterator[RunId]:
        return iter(self._owned)

    def __contains__(self, run: RunId) -> bool:
        return run in self._owned

    def get(self, run: RunId) -> Owned | None:
        return self._owned.get(run)

    # ── adding and removing ────────────────────────────────────────────────────────────────────────

    def take_over(self, claimed: ClaimedRun, now: datetime, spent: BudgetState | None = None) -> Owned | None:
        """Add a claimed run. None if its machine raised. `spent`: what is known of it, if it has a budget."""
        run = claimed.run
        try:
            workflow = claimed.version.workflow if self._placed is None else self._placed(claimed.version.workflow)
            meter = None if spent is None else self._meter(workflow, run, spent)
            machine = RunMachine(workflow, run, claimed.tasks, claimed.attempts, self._group_size, meter)
        except Exception as problem:
            self.note_error(run.id, problem)
            return None
        owned = Owned(machine, claimed.version, claimed.epoch, [])
        self._owned[run.id] = owned
        self._touch(run.id)
        # A budget is looked at when a run is taken over: it may have been exceeded while nobody owned the run.
        first = ev.Created() if run.status is RunStatus.PENDING else ev.TimerDue() if meter is not None else None
        if first is not None and self.feed([(run.id, first)], now):
            self.forget(run.id)
            return None
        self._set_timer(run.id, owned)
        return owned

    def _meter(self, workflow: CompiledWorkflow, run: Run, spent: BudgetState) -> BudgetMeter | None:
        """Imported here, because few workflows have a budget."""
        from ork.core.budget import BudgetMeter

        prices = None if self._prices is None else self._prices()
        if workflow.budget is None or prices is None:
            return None
        return BudgetMeter(workflow.budget, workflow, run, prices, spent)

    def forget(self, run: RunId) -> bool:
        """Remove the run. False if it was not owned."""
        self._touched.pop(run, None)
        self._ready.pop(run, None)
        return self._owned.pop(run, None) is not None

    def keeps_raising(self, run: RunId) -> str | None:
        """The reason to quarantine the run, if its machine has raised too often in a row. Resets the count."""
        count, problem = self._errors.get(run, (0, ""))
        if count < MAX_ERRORS:
            return None
        del self._errors[run]
        return f"it keeps causing an internal error ({problem})"

    # ── deciding ─────────────────────────────────────────────────────────────────────────────────

    def feed(self, events: Iterable[tuple[RunId, ev.Event]], now: datetime) -> list[RunId]:
        """Pass events to the machines. Returns the runs whose machines raised; the others are not affected."""
        fed: dict[RunId, Owned] = {}
        broken: list[RunId] = []
        for run, event in events:
            owned = self._owned.get(run)
            if owned is None or run in broken:
                continue
            fed[run] = owned
            try:
                owned.machine.handle(event, now)
            except Exception as problem:
                self.note_error(run, problem)
                broken.append(run)
        for run, owned in fed.items():
            self._touch(run)
            self._set_timer(run, owned)  # also without a decision: after a timer without effect the next one is due
        return broken

    def apply(self, command: RunCommand, now: datetime) -> bool:
        """Apply a command once. False if the machine raised."""
        owned = self._owned.get(command.run)
        if owned is None or command.id in owned.applied:
            return True
        owned.applied.append(command.id)
        return not self.feed([(command.run, ev.Commanded(command))], now)

    def take_questions(self) -> list[tuple[RunId, Question]]:
        """Questions that the changed machines need answered before they can continue."""
        return [
            (run, question)
            for run in self._touched
            if (owned := self._owned.get(run)) is not None
            for question in owned.machine.take_questions()
        ]

    def due(self, now: datetime) -> list[RunId]:
        """Runs with a timer that is due."""
        due: dict[RunId, None] = {}
        while self._timers and self._timers[0][0] <= now:
            at, run = heappop(self._timers)
            owned = self._owned.get(run)
            if owned is not None and owned.timer_set == at:  # else it was moved
                owned.timer_set = None
                due[run] = None
        return list(due)

    def collect(self, name: NameAttempt, now: datetime) -> dict[RunId, Decided]:
        """All decisions since the last call, and what to launch next, including into slots that these decisions free."""
        taken = self._taken()
        launches = self._launches(name, now, self._capacity_after(taken))
        decided: dict[RunId, Decided] = {}
        for run in dict.fromkeys((*launches, *taken)):  # with equal priority the first is admitted first
            if run in self._raised:
                continue
            owned = self._owned[run]
            try:
                decisions, is_idle = taken[run] if run in taken else owned.machine.take(), owned.machine.is_idle
            except Exception as problem:
                self._note_raised(run, problem)
                continue
            changes = RunChanges(
                run,
                owned.epoch,
                run=decisions.run,
                tasks=decisions.tasks,
                attempts=decisions.attempts,
                launches=launches.get(run, ()),
                commands_done=tuple(owned.applied),
                alerts=tuple(effect for effect in decisions.effects if isinstance(effect, Alert)),
                release_ownership=is_idle,
            )
            if decisions or changes.launches or changes.commands_done or changes.release_ownership:
                decided[run] = Decided(decisions, changes)
        self._touched = {}
        return decided

    def _taken(self) -> dict[RunId, Decisions]:
        taken: dict[RunId, Decisions] = {}
        for run in self._touched:
            if (owned := self._owned.get(run)) is not None:
                try:
                    taken[run] = owned.machine.take()
                except Exception as problem:
                    self._note_raised(run, problem)
        return taken

    def _note_raised(self, run: RunId, problem: Exception) -> None:
        """Commit nothing of this run: its machine is in an unknown state, so the run is dropped and read again."""
        self.note_error(run, problem)
        self._raised[run] = None
        self._ready.pop(run, None)

    def take_raised(self) -> list[RunId]:
        raised, self._raised = list(self._raised), {}
        return raised

    def _capacity_after(self, decided: Mapping[RunId, Decisions]) -> Capacity:
        """The known capacity including the slots that these decisions free."""
        capacity = self._capacity.copy()
        for run, decisions in decided.items() if capacity else ():
            for kind, ends in self._freed(run, decisions).items():
                capacity.release(limit_names(*kind), ends)
        return capacity

    def _launches(self, name: NameAttempt, now: datetime, capacity: Capacity) -> dict[RunId, tuple[LaunchRequest, ...]]:
        """Highest priority first, over all runs. With equal priority each run gets a share in turn, so that a wide run does
        not starve the others. After a pause the first batch is small: it starts while the next one is prepared."""
        launches: dict[RunId, tuple[LaunchRequest, ...]] = {}
        left = batch = 0 if self._is_held else min(self._next_batch, self._launch_batch)
        while left > 0 and (runs := self._most_urgent(capacity)):
            share = left if len(runs) == 1 else max(1, min(LAUNCHES_PER_RUN, batch // 2))
            for run, min_priority in runs.items():
                try:
                    offered = self._owned[run].machine.offer(min(left, share), name, now, capacity, min_priority)
                except Exception as problem:
                    self._note_raised(run, problem)
                    continue
                if offered:
                    launches[run] = launches.get(run, ()) + offered
                    left -= len(offered)
            if len(self._ready) == 1:
                break  # it has offered everything it has
        self._ready = {run: None for run in self._ready if self._has_ready(run)}
        self._next_batch = 2 * batch if launches else FIRST_LAUNCHES
        return launches

    def _most_urgent(self, capacity: Capacity) -> dict[RunId, int | None]:
        """The runs that have tasks of the highest launchable priority, in turn, with that priority; None if there is only
        one run, since it need not be compared."""
        if len(self._ready) == 1:
            return {run: None for run in self._ready if run in self._owned}
        highest: dict[RunId, int | None] = {}
        top: int | None = None
        for run in tuple(self._ready):
            try:
                highest_priority = self._owned[run].machine.highest_priority(capacity) if run in self._owned else None
            except Exception as problem:
                self._note_raised(run, problem)
                continue
            if highest_priority is None or (top is not None and highest_priority < top):
                continue
            if highest_priority != top:
                highest, top = {}, highest_priority
            highest[run] = highest_priority
        return highest

    # ── after the commit ─────────────────────────────────────────────────────────────────────────

    def settle(self, run: RunId, decided: Decided, committed: Committed) -> tuple[Attempt, ...]:
        """Note that the run's decisions are committed. Returns the attempts to launch."""
        owned = self._owned.get(run)
        if owned is None:
            return ()
        owned.applied = [id for id in owned.applied if id not in decided.changes.commands_done]
        try:
            launched = owned.machine.settle(committed.admitted, committed.parallelism)
        except Exception as problem:  # admitted attempts are committed, and adopted when the run is read again
            self._note_raised(run, problem)
            return ()
        self._errors.pop(run, None)
        if launched:
            self._ready.pop(run, None)  # the other runs come first
        if owned.machine.has_ready():
            self._ready[run] = None
        self._set_timer(run, owned)
        return launched

    def note_limits(self, committed: Committed, decided: Collection[Decided]) -> None:
        """Remember full limits. They are tried again when one of our attempts frees a slot, or when the store changes."""
        full = {name for name in committed.full if not name.startswith(RATE)}
        freed, ours = set[str](), set[str]()
        for each in decided:
            for kind, ends in self._freed(each.changes.run_id, each.decisions).items():
                self._capacity.release(limit_names(*kind), ends)
                freed.update(limit_names(*kind))
            for request in each.changes.launches if self._capacity or full else ():
                group = request.attempt.group
                has_slot = group is None or group.index < committed.parallelism.get(group.id, 0)
                if has_slot and request.attempt.key in committed.admitted:
                    names = limit_names(request.attempt.executor, request.attempt.pool)
                    self._capacity.reserve(names)
                    ours.update(names)
        self._capacity.exhaust(committed.full)
        # If our own attempts freed slots and we took them, no other scheduler was faster.
        self._turned_away = (self._turned_away - freed) | (full - (ours & freed))

    def _freed(self, run: RunId, decisions: Decisions) -> dict[tuple[str, str | None], int]:
        """Number of slots that the run's decisions free, by executor and pool. A launch group frees one only when fewer of
        its attempts are left than may run at the same time."""
        freed: dict[tuple[str, str | None], int] = {}
        groups: dict[str, list[Attempt]] = {}
        for attempt in decisions.attempts:
            if attempt.status.is_final or attempt.waits_for is not None:
                if attempt.group is not None:
                    groups.setdefault(attempt.group.id, []).append(attempt)
                    continue
                kind = attempt.executor, attempt.pool
                freed[kind] = freed.get(kind, 0) + 1
        owned = self._owned.get(run) if groups else None
        for id, ended in groups.items():
            left = owned.machine.working(id) if owned is not None else 0
            most = max(each.group.parallelism for each in ended if each.group is not None)
            kind = ended[0].executor, ended[0].pool
            if slots := min(most, left + len(ended)) - min(most, left):
                freed[kind] = freed.get(kind, 0) + slots
        return freed

    def ask_limits_again(self) -> None:
        self._capacity, self._turned_away = Capacity(), set()

    # ── queries ──────────────────────────────────────────────────────────────────────────────────

    @property
    def idle(self) -> list[RunId]:
        """Runs without active attempts and without uncommitted decisions."""
        return [run for run, owned in self._owned.items() if not owned.machine.active and run not in self._touched]

    @property
    def has_something_to_do(self) -> bool:
        return bool(self._touched) or self._has_something_to_launch

    def hold_launches(self, is_held: bool) -> None:
        """Stop or resume launches."""
        self._is_held = is_held

    @property
    def _has_something_to_launch(self) -> bool:
        if self._capacity.remaining(EVERYTHING) == 0 or self._is_held:
            return False
        return any(self._owned[run].machine.has_ready(self._capacity) for run in self._ready if run in self._owned)

    @property
    def is_starved(self) -> bool:
        """True if a task waits for a slot that may be held by a run without a living owner."""
        return bool(self._turned_away) and any(map(self._has_ready, self._ready))

    def _has_ready(self, run: RunId) -> bool:
        return run in self._owned and self._owned[run].machine.has_ready()

    @property
    def next_timer(self) -> datetime | None:
        while self._timers and not self._is_set(*self._timers[0]):
            heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def _is_set(self, at: datetime, run: RunId) -> bool:
        """False if the timer was moved, or the run is not ours any more."""
        owned = self._owned.get(run)
        return owned is not None and owned.timer_set == at

    def _set_timer(self, run: RunId, owned: Owned) -> None:
        timer = owned.machine.next_timer
        if timer is not None and timer != owned.timer_set:
            heappush(self._timers, (timer, run))
        owned.timer_set = timer

    def _touch(self, run: RunId) -> None:
        self._touched[run] = None
        self._ready[run] = None

    def note_error(self, run: RunId, problem: Exception) -> None:
        self._errors[run] = self._errors.get(run, (0, ""))[0] + 1, repr(problem)
        self._telemetry.emit(TelemetryEvent.STEP_FAILED, run=run, why=repr(problem))
