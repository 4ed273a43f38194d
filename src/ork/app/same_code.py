"""Prepares a version with the code of an earlier run, in a checkout below the installation's folder."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime

from ork.app.stores import create_home
from ork.errors import NotFoundError, RefusedError
from ork.model.run import Run, RunStatus
from ork.model.workflow import Version
from ork.objects.calls import in_thread
from ork.settings import Settings
from ork.source_code.same_code import same_code_version as checked_out_version
from ork.state.records import RunFilter
from ork.state.store import StateStore

FOLDER = "code"
_UNFINISHED = frozenset({RunStatus.PENDING, RunStatus.RUNNING, RunStatus.PAUSED})


async def same_code_version(store: StateStore, settings: Settings, run: Run) -> Version:
    """The version, stored for new runs; the workflow's current version stays. RefusedError says what is missing."""
    version = await store.get_version(run.version)
    if version is None:
        raise NotFoundError(f"version {run.version} of run {run.id} is gone")
    found = await in_thread(checked_out_version, version, os.path.join(settings.home, FOLDER), settings.script_dir)
    if found.id == version.id:
        return version
    if settings.task_user is not None:
        hint = "let the project be at that commit itself: `git checkout`, then `ork rerun`"
        raise RefusedError(
            f"tasks run as `{settings.task_user}`, who cannot read a checkout in {settings.home}", hint=hint
        )
    create_home(settings)
    await store.add_version(found, datetime.now(UTC))
    return found


async def remove_checkouts(store: StateStore, settings: Settings, before: float) -> list[str]:
    """Removes checkouts that were last used before this time and that no unfinished run uses. Returns their folders."""
    top = os.path.join(settings.home, FOLDER)
    used = await _roots_in_use(store)
    removed = []
    for name in sorted(os.listdir(top)) if os.path.isdir(top) else ():
        folder = os.path.join(top, name)
        if os.stat(folder).st_mtime < before and not any(f"{root}/".startswith(f"{folder}/") for root in used):
            shutil.rmtree(folder, ignore_errors=True)
            removed.append(folder)
    return removed


async def _roots_in_use(store: StateStore) -> set[str]:
    roots, cursor = set(), None
    while True:
        page = await store.list_runs(RunFilter(statuses=_UNFINISHED, limit=1000, cursor=cursor))
        for id in {run.version for run in page.runs}:
            version = await store.get_version(id)
            roots |= set() if version is None else {version.root}
        cursor = page.cursor
        if cursor is None:
            return roots
