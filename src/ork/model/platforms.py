"""Platforms that run attempts on machines of their own: Cloud Run and Kubernetes. They confirm by themselves that an attempt has ended."""

from __future__ import annotations

from ork.model.cloud_run import CLOUD_RUN
from ork.model.kubernetes import KUBERNETES

# The fence time of workers there: the platform itself confirms an end, so a worker may be silent for longer before it ends its task.
FENCE_SECONDS = 600.0


def is_on_platform(executor: str) -> bool:
    """True for the name of an executor, or an external name, of such a platform."""
    return executor.partition(":")[0] in (CLOUD_RUN, KUBERNETES)
