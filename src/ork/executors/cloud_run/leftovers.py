"""Removes Jobs that nobody needs any more: of attempts that have ended, and those that were not used for a week."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from ork.executors.attempt_rows import AttemptOf
from ork.executors.cloud_run.api import CloudRunApi
from ork.executors.cloud_run.making import ATTEMPT_ANNOTATION, LABEL

if TYPE_CHECKING:
    from google.cloud import run_v2

OLD_JOB = timedelta(days=7)  # without an execution


async def remove_old_jobs(
    api: CloudRunApi, installation: str, attempt_of: AttemptOf, uses: Callable[[str], bool]
) -> None:
    """Remove those of this installation, which their label names. `uses`: whether this process is about to use a Job, which
    would end with it: one of a schedule that is due every month was not used for longer than a week."""
    for job in await api.jobs():
        name = job.name.rpartition("/")[2]
        if job.labels.get(LABEL) == installation and await _is_old(job, attempt_of) and not uses(name):
            await api.delete_job(name)


async def _is_old(job: run_v2.Job, attempt_of: AttemptOf) -> bool:
    attempt = job.annotations.get(ATTEMPT_ANNOTATION)
    row = None if attempt is None else await attempt_of(attempt)
    if row is not None:
        return row.status.is_final
    # A Job of many attempts, or of one whose run was deleted.
    last = job.latest_created_execution
    used = (last.create_time if last else None) or job.create_time
    is_running = bool(last) and not last.completion_time
    return not is_running and bool(datetime.now(UTC) - used > OLD_JOB)
