"""Names of the external jobs that an attempt waits for. Their headers and arguments are not shown."""

from __future__ import annotations

import json
from typing import Any

MAX_NAME = 120


def job_names(waits_for: str | None) -> list[str]:
    """One name for each job; unnamed jobs get a generic name."""
    if waits_for is None:
        return []
    try:
        jobs = json.loads(waits_for)
    except ValueError:
        jobs = None
    return [_name(job) for job in jobs] if isinstance(jobs, list) else ["an external job"]


def _name(job: Any) -> str:
    if isinstance(job, dict):
        if isinstance(job.get("run"), str):
            return f"run {job['run']} of workflow {job.get('workflow')}"
        for kind in ("http", "call"):
            if isinstance(job.get(kind), str):
                # The query and the part before `@` may contain a password.
                address = job[kind].partition("?")[0]
                return str(address.rpartition("@")[2])[:MAX_NAME]
    return "an external job"
