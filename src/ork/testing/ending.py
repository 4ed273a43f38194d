"""Invariants at the end of a simulation."""

from __future__ import annotations

from random import Random

from ork.core.machine import RunMachine
from ork.errors import DocumentError
from ork.model.task import Attempt, TaskStatus
from ork.scheduler.statuses import as_event, checked_status
from ork.state.store import StateStore
from ork.testing.clock import EPOCH
from ork.testing.cluster import Cluster
from ork.testing.invariants import Judge
from ork.testing.ledger import RunRecord
from ork.testing.objects import MemoryObjects


async def check_end(store: StateStore, judge: Judge, cluster: Cluster, objects: MemoryObjects, random: Random) -> None:
    for record in judge.ledger.runs.values():
        _check_ended(record, judge)
        await _check_rows(record, store, judge)
        if record.run.status.is_final:
            _check_replay(record, judge, objects, random)
    for attempt in cluster.living_workers():
        judge.violate("nothing-left", f"{attempt} is still alive")
    for use in await store.limit_use():
        if use.used:
            judge.violate("limits", f"{use.name}: {use.used} slots are taken and nothing runs")


def _check_ended(record: RunRecord, judge: Judge) -> None:
    if not record.run.status.is_final:
        waiting = {str(task.key): str(task.status) for task in record.tasks.values() if not task.status.is_final}
        judge.violate("ends", f"{record.run.id} is still {record.run.status}: {waiting}")
        return
    if record.commands:
        judge.violate("nothing-left", f"{record.run.id} has commands waiting: {sorted(record.commands)}")
    failed = {task.key for task in record.whole_tasks() if task.status is TaskStatus.FAILED}
    alerted = {task for _, task in record.alerted if task is not None}
    if not failed <= alerted:
        judge.violate("one-alert", f"{record.run.id}: no alert about {sorted(map(str, failed - alerted))}")


async def _check_rows(record: RunRecord, store: StateStore, judge: Judge) -> None:
    found = await store.run_updates(record.run.id)
    if found is None:
        judge.violate("durable", f"{record.run.id} was acknowledged and is not there")
        return
    attempts: dict[object, Attempt] = {attempt.key: attempt for attempt in await store.list_attempts(record.run.id)}
    for what, there, expected in (
        ("status", found.run.status, record.run.status),
        ("tasks", {task.key: task for task in found.tasks}, record.tasks),
        ("attempts", attempts, record.attempts),
    ):
        if there != expected:
            judge.violate("durable", f"{what} of {record.run.id}: read {there}, committed {expected}")


def _check_replay(record: RunRecord, judge: Judge, objects: MemoryObjects, random: Random) -> None:
    """Feed all statuses of this run, twice and in random order, to a machine built from its rows: nothing must change."""
    said = []
    for attempt in record.attempts.values():
        for data in objects.statuses_of(str(attempt.key))[-3:]:
            try:
                said += [as_event(checked_status(data, attempt), attempt)] * 2
            except DocumentError:
                continue
    random.shuffle(said)
    machine = RunMachine(record.workflow, record.run, record.tasks.values(), record.active_attempts())
    for event in said:
        machine.handle(event, EPOCH)
    decided = machine.take()
    if decided:
        judge.violate("replay", f"{record.run.id}: replayed documents lead to {decided}")
