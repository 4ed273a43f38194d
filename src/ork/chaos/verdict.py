"""Compares what Ork recorded with what the ledger says, and names every promise that was broken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from ork.app.executors import CONTAINER
from ork.chaos.ledger import LedgerEntry
from ork.model.run import Run
from ork.model.task import Attempt, AttemptStatus


class Harm(StrEnum):
    """The ways in which a promise can be broken; docs/protocol.md has the promises."""

    LOST = "lost"  # a run or a result is gone, or an attempt was given up though nothing had killed it
    DOUBLED = "doubled"  # work was started or completed twice by mistake
    OVERLAPPING = "overlapping"  # two attempts of one task worked at the same time
    STUCK = "stuck"  # a run did not end after the kills had stopped
    ORPHANED = "orphaned"  # a process outlived its attempt
    DAMAGED = "damaged"  # the database is not sound


class Breach(NamedTuple):
    """A broken promise, and the evidence as a sentence."""

    harm: Harm
    subject: str
    evidence: str


class Kill(NamedTuple):
    """One kill. `attempts` are those that it affected; `several`: and others that were active at that time; `of_scheduler`: a
    scheduler died, and with it the launches that it had begun."""

    kind: str
    what: str
    at: datetime
    attempts: frozenset[str] = frozenset()
    several: bool = False
    of_scheduler: bool = False


class ChaosHistory(NamedTuple):
    """All that is known at the end. `acknowledged` are the runs that the store confirmed, by key; `unrecorded` are tasks, as
    (workflow, task), that write no ledger; `is_real`: tasks may fail and time out by themselves."""

    acknowledged: Mapping[str, str]
    runs: Sequence[Run]
    attempts: Sequence[Attempt]
    entries: Sequence[LedgerEntry]
    kills: Sequence[Kill]
    alive: Mapping[int, str] = {}
    unrecorded: Collection[tuple[str, str]] = ()
    is_real: bool = False


def breaches(history: ChaosHistory) -> list[Breach]:
    """Every broken promise."""
    return [*_runs(history), *_ledger(history), *_attempts(history), *_alive(history)]


def _runs(history: ChaosHistory) -> Iterator[Breach]:
    known = {run.id: run for run in history.runs}
    for key, id in history.acknowledged.items():
        if id not in known:
            yield Breach(Harm.LOST, id, f"the run was acknowledged under the key {key}, and the store does not have it")
    triggered = [run for run in history.runs if run.parent is None]
    if len(triggered) > len(history.acknowledged):
        extra = sorted({run.id for run in triggered} - set(history.acknowledged.values()))
        for id in extra:
            yield Breach(Harm.DOUBLED, id, "the run exists though nobody asked for it: its key has another run")
    for run in history.runs:
        if not run.status.is_final:
            yield Breach(Harm.STUCK, run.id, f"the run of {run.workflow} is {run.status} and makes no progress")


def _ledger(history: ChaosHistory) -> Iterator[Breach]:
    starts = Counter(entry.attempt for entry in history.entries if entry.what == "start")
    known = {str(attempt.key) for attempt in history.attempts}
    for attempt, number in starts.items():
        if number > 1:
            yield Breach(Harm.DOUBLED, attempt, f"the attempt was started {number} times")
        if attempt not in known:
            yield Breach(Harm.DOUBLED, attempt, "the attempt was started, and the store has no such attempt")
    for entry in history.entries:
        if entry.what == "overlap":
            yield Breach(Harm.OVERLAPPING, entry.attempt, "it started while another attempt of the task was at work")


def _attempts(history: ChaosHistory) -> Iterator[Breach]:
    workflows = {run.id: run.workflow for run in history.runs}
    ended = {entry.attempt for entry in history.entries if entry.what == "end"}
    failed = {entry.attempt for entry in history.entries if entry.what == "failed"}
    hit = {attempt for kill in history.kills for attempt in kill.attempts}
    started = {entry.attempt for entry in history.entries if entry.what == "start"}
    vague = [kill.at for kill in history.kills if kill.several]
    launches = [kill.at for kill in history.kills if kill.of_scheduler]
    successes: Counter[str] = Counter()
    for attempt in history.attempts:
        name, status = str(attempt.key), attempt.status
        is_recorded = (workflows.get(attempt.run), attempt.key.task.name) not in history.unrecorded
        if status is AttemptStatus.SUCCESS:
            successes[name.rpartition("/")[0]] += 1
            if is_recorded and name not in ended:
                yield Breach(Harm.LOST, name, "Ork says success, and the ledger has no end of its work")
        elif _needs_cause(status, history.is_real) and not (name in hit or _was_active(attempt, vague)):
            if name in ended:
                yield Breach(Harm.LOST, name, f"its work was done and nothing killed it, and Ork says {_why(attempt)}")
            elif name not in started and _is_lost_launch(attempt, launches):
                continue
            elif name not in failed and (is_recorded or status is AttemptStatus.LOST):
                yield Breach(Harm.LOST, name, f"nothing killed it, and Ork says {_why(attempt)}")
    for task, number in successes.items():
        if number > 1:
            yield Breach(Harm.DOUBLED, task, f"{number} attempts of the task succeeded")


def _needs_cause(status: AttemptStatus, is_real: bool) -> bool:
    """Whether an attempt ends so only if something went wrong. A real task may run into its own timeout."""
    if status is AttemptStatus.TIMED_OUT:
        return not is_real
    return status in (AttemptStatus.LOST, AttemptStatus.FAILED)


def _is_lost_launch(attempt: Attempt, times: Sequence[datetime]) -> bool:
    """Whether a container's attempt may have died with the scheduler that was starting it. For a container the scheduler wins the
    gate. If it is killed between that and the start, nobody may start the container any more, and the attempt is lost."""
    return attempt.executor == CONTAINER and attempt.status is AttemptStatus.LOST and _was_active(attempt, times)


def _was_active(attempt: Attempt, times: Sequence[datetime]) -> bool:
    end = attempt.finished_at
    return any(attempt.dispatched_at <= time and (end is None or time <= end) for time in times)


def _why(attempt: Attempt) -> str:
    message = attempt.failure.message if attempt.failure is not None else None
    return f"{attempt.status}: {message}" if message else str(attempt.status)


def _alive(history: ChaosHistory) -> Iterator[Breach]:
    for pid, attempt in history.alive.items():
        yield Breach(Harm.ORPHANED, attempt, f"its process {pid} is alive though all runs have ended")
