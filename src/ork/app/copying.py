"""Copies what a store holds to another: versions, workflows with their schedules, and runs that have ended.

Only verbs of the contract are used, so any store can be copied to any other. A run is created under its id and time, claimed, and
written as it ended. Newest first: a success that is written when there is no earlier run yet is not reported as a recovery.

While a copy is under way its target is paused by a control. A copy that was killed leaves that control, so nobody starts a run that was
created and not yet written. Copying again goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from ork.errors import RefusedError, StoreUnavailableError
from ork.model.ids import RunId, SchedulerId, VersionId
from ork.model.installation import ALL_SCHEDULERS, Control, Mode
from ork.model.record import replaced
from ork.model.run import NewRun, Run, RunStatus
from ork.model.workflow import WorkflowEntry
from ork.state.lenient import UNKNOWN_TIME
from ork.state.records import RunChanges, RunFilter
from ork.state.store import StateStore

COPIER = "ork store copy"
_PAGE = 200
_RENEWED_EVERY = 5
_MANY = 100_000

Clock = Callable[[], datetime]


class Copied(NamedTuple):
    """What was copied, or with a dry run would be. `active` are runs that have not ended and were left out. `differs` are runs
    of which the target has another end, because they were retried here or there since they were copied; they are left as they are."""

    versions: int
    workflows: int
    runs: int
    active: tuple[RunId, ...]
    kept: int  # runs that the target had already
    differs: tuple[RunId, ...] = ()


async def copy_store(
    source: StateStore, target: StateStore, now: Clock, *, leave_active: bool = False, dry_run: bool = False
) -> Copied:
    """RefusedError if runs of the source have not ended, unless they are to be left, or if a scheduler is at work in the target."""
    runs = await _all_runs(source)
    active = tuple(run.id for run in runs if not run.status.is_final)
    if active and not leave_active:
        some = "1 run has" if len(active) == 1 else f"{len(active)} runs have"
        hint = "wait for them or cancel them; --leave-active copies the others"
        raise RefusedError(f"{some} not ended, the newest is {active[0]}.", hint=hint)
    await _check_quiet(target)
    there = {run.id: run for run in await _all_runs(target)}
    ended = [run for run in runs if run.status.is_final]
    missing = [run for run in ended if run.id not in there or _is_unwritten(there[run.id])]
    written = [run for run in ended if run.id in there and not _is_unwritten(there[run.id])]
    differs = tuple(run.id for run in written if _end(run) != _end(there[run.id]))
    entries = await source.list_workflows()
    names = dict.fromkeys([*(entry.name for entry in entries), *(run.workflow for run in ended)])
    if dry_run:
        versions = await _missing_versions(source, target, names)
        new = [entry for entry in entries if await target.get_workflow(entry.name) != entry]
        return Copied(len(versions), len(new), len(missing), active, len(written), differs)
    await target.set_control(Control(ALL_SCHEDULERS, Mode.PAUSED, COPIER, now(), "a copy to this store is under way"))
    settings = await source.read_shared_settings()
    if settings is not None:
        await target.record_shared_settings(settings)
    versions = await _copy_versions(source, target, names)
    await _copy_runs(source, target, missing, now)
    workflows = await _copy_workflows(source, target, entries)
    for name in names.keys() - {entry.name for entry in entries}:
        if await source.get_workflow(name) is None:
            await target.delete_workflow(name)
    await target.clear_control(ALL_SCHEDULERS)
    return Copied(len(versions), workflows, len(missing), active, len(written), differs)


def _is_unwritten(run: Run) -> bool:
    """True of a run in the target that a killed copy created and did not write."""
    return run.status is RunStatus.PENDING and run.round == 1


def _end(run: Run) -> tuple[RunStatus, int]:
    return run.status, run.round


async def _all_runs(store: StateStore) -> list[Run]:
    """Newest first, without params."""
    found: list[Run] = []
    cursor = None
    while True:
        page = await store.list_runs(RunFilter(limit=_PAGE, cursor=cursor))
        found += page.runs
        cursor = page.cursor
        if cursor is None:
            return found


async def _check_quiet(target: StateStore) -> None:
    """Nobody else may claim the runs that are created here. A pause by a person is theirs to end."""
    working = [entry for entry in await target.list_schedulers() if entry.lease_seconds_left > 0]
    working = [entry for entry in working if entry.kind != COPIER]
    if working:
        hint = "stop it first; it may be started again when the copy is done"
        raise RefusedError(f"The scheduler {working[0].id} is at work in the target.", hint=hint)
    for control in await target.list_controls():
        if control.target == ALL_SCHEDULERS and control.by != COPIER:
            hint = "resume it first: ork scheduler resume"
            raise RefusedError(f"The target was paused by {control.by}.", hint=hint)


async def _missing_versions(
    source: StateStore, target: StateStore, names: Iterable[str]
) -> list[tuple[VersionId, datetime]]:
    """Oldest first; a version of an older schema, whose time nobody knows, counts as the oldest."""
    found: list[tuple[VersionId, datetime]] = []
    for name in names:
        for entry in reversed(await source.list_versions(name, _MANY)):
            if await target.get_version(entry.id) is None:
                found.append((entry.id, entry.saved_at or UNKNOWN_TIME))
    return found


async def _copy_versions(
    source: StateStore, target: StateStore, names: Iterable[str]
) -> list[tuple[VersionId, datetime]]:
    missing = await _missing_versions(source, target, names)
    for id, saved_at in missing:
        version = await source.get_version(id)
        if version is not None:
            await target.save_version(version, origin=None, now=saved_at)
    return missing


async def _copy_workflows(source: StateStore, target: StateStore, entries: Sequence[WorkflowEntry]) -> int:
    """Which version is current, from where, whether it is enabled, and when its schedule fires next."""
    next_fires = {entry.workflow: entry.next_fire for entry in await source.list_schedules()}
    copied = 0
    for entry in entries:
        if await target.get_workflow(entry.name) == entry:
            continue
        version = await source.get_version(entry.version)
        if version is None:
            continue
        # Anew: a workflow that is there keeps its origin, and its schedule the time it fires next.
        await target.delete_workflow(entry.name)
        await target.save_version(
            version, origin=entry.origin, now=entry.deployed_at, next_fire=next_fires.get(entry.name)
        )
        if not entry.enabled:
            await target.set_enabled(entry.name, False)
        copied += 1
    return copied


async def _copy_runs(source: StateStore, target: StateStore, runs: Sequence[Run], now: Clock) -> None:
    """One after the other: `max_active_runs` lets one run through, and only the newest may be written first."""
    copier = SchedulerId("store-copy")  # the same each time: what a killed copy held is claimed again at once
    for number, run in enumerate(runs):
        if number % _RENEWED_EVERY == 0 and (number == 0 or not await target.renew(copier)):
            await target.register(copier, COPIER, COPIER, now())
        if await _created(target, await _new_run(source, run), run.created_at) != run.id:
            continue  # the target has a run of the same scheduled time
        claim = await target.claim_runs(copier, 1, now(), only=[run.id])
        epoch = next((each.epoch for each in claim.runs if each.run.id == run.id), None)
        if epoch is None:
            raise StoreUnavailableError(f"The target did not give run {run.id} to the copy.", hint="Copy again.")
        await target.commit(copier, [await _changes(source, run.id, epoch)], now())
    await target.release(copier, exits=True)


async def _created(target: StateStore, new: NewRun, at: datetime) -> RunId:
    """The run is there, with its key unless the target uses that for another run."""
    with suppress(RefusedError):
        (run,) = await target.create_runs([new], at)
        if run.id == new.id or new.key is None:
            return run.id
    (run,) = await target.create_runs([replaced(new, key=None)], at)
    return run.id


async def _new_run(source: StateStore, listed: Run) -> NewRun:
    run = await source.get_run(listed.id) or listed
    return NewRun(
        run.id, run.workflow, run.version, run.params, run.trigger, run.scheduled_for, await source.get_key(run.id),
        run.priority, run.fresh, run.parent, await source.get_starter(run.id),
    )  # fmt: skip


async def _changes(source: StateStore, id: RunId, epoch: int) -> RunChanges:
    update = await source.run_updates(id)
    if update is None:
        raise RefusedError(f"The run {id} was deleted while it was copied.", hint="Copy again.")
    attempts = await source.list_attempts(id)
    return RunChanges(id, epoch, update.run, update.tasks, attempts, release_ownership=True)
