"""Removes Jobs whose attempts have ended: a scheduler that died could not."""

from __future__ import annotations

from ork.executors.attempt_rows import AttemptOf
from ork.executors.kubernetes.api import ClusterApi, JobSeen
from ork.executors.kubernetes.making import LABEL
from ork.objects.group_members import members_of

OLD_SECONDS = 3600.0  # of a Job that has ended, and whose attempt is in no store


async def remove_leftovers(api: ClusterApi, installation: str, attempt_of: AttemptOf) -> None:
    """Remove those of this installation, which their label names."""
    for job in await api.jobs({LABEL: installation}):
        await remove_if_ended(job, api, attempt_of)


async def remove_if_ended(job: JobSeen, api: ClusterApi, attempt_of: AttemptOf) -> None:
    """Remove the Job if the ends of all its attempts are committed."""
    if not job.is_deleting and await _is_old(job, attempt_of):
        await api.delete_job(job.name)


async def _is_old(job: JobSeen, attempt_of: AttemptOf) -> bool:
    for name in _attempts_of(job):
        row = await attempt_of(name)
        if row is None:
            # Its run was deleted, or it belongs to none, as those that parse images.
            return job.is_over and job.age_seconds > OLD_SECONDS
        if not row.status.is_final:
            return False
    return True


def _attempts_of(job: JobSeen) -> list[str]:
    return members_of(job.attempts) if ":" in job.attempts else [job.attempts]
