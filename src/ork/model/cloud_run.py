"""Cloud Run: where tasks run (a region of a project), and the sizes it offers, as its documentation lists them."""

from __future__ import annotations

from enum import StrEnum

from ork.model.ids import AttemptKey
from ork.model.record import Record

CLOUD_RUN = "cloudrun"

GI = 1 << 30
MI = 1 << 20
SMALLEST_MEMORY = 512 * MI
# Processors, each with the least and the most memory that may go with them.
SIZES: dict[int, tuple[int, int]] = {
    1: (SMALLEST_MEMORY, 4 * GI),
    2: (SMALLEST_MEMORY, 8 * GI),
    4: (2 * GI, 16 * GI),
    6: (4 * GI, 24 * GI),
    8: (4 * GI, 32 * GI),
}
DEFAULT_TIMEOUT_SECONDS = 24 * 3600.0
MAX_TIMEOUT_SECONDS = 7 * 24 * 3600.0


class Gpu(StrEnum):
    """Accelerators that Cloud Run offers."""

    L4 = "nvidia-l4"
    RTX_PRO_6000 = "nvidia-rtx-pro-6000"


class Place(Record):
    """A region of a project."""

    project: str
    region: str

    def __str__(self) -> str:
        return f"{self.project}/{self.region}"

    @property
    def parent(self) -> str:
        return f"projects/{self.project}/locations/{self.region}"

    def job(self, name: str) -> str:
        """The full name of a Job."""
        return f"{self.parent}/jobs/{name}"

    def external_name(self, attempt: AttemptKey) -> str:
        """What an attempt is found by. Schedulers of another project or region do not know it."""
        return f"{CLOUD_RUN}:{self}:{attempt}"


def executor_name(place: Place | None, usual: Place | None) -> str:
    """The executor of the place. That of the project's own place, `gcp:` in ork.yaml, is called `cloudrun`."""
    return CLOUD_RUN if place is None or place == usual else f"{CLOUD_RUN}:{place}"


def is_on_cloud_run(executor: str) -> bool:
    return executor.partition(":")[0] == CLOUD_RUN


def size_problem(cpu: float | None, memory: int | None) -> str | None:
    """Why Cloud Run cannot give a task this much; None if it can."""
    if cpu is not None and cpu > max(SIZES):
        return f"Cloud Run gives a task at most {max(SIZES)} processors"
    if cpu is not None and cpu not in SIZES:
        return f"Cloud Run gives a task {', '.join(map(str, SIZES))} processors, not {cpu:g}"
    most = max(high for _, high in SIZES.values())
    if memory is not None and memory < SMALLEST_MEMORY:
        return "Cloud Run gives a task at least 512Mi of memory"
    if memory is not None and memory > most:
        return f"Cloud Run gives a task at most {most // GI}Gi of memory"
    if cpu is None or memory is None:
        return None
    low, high = SIZES[int(cpu)]
    if memory < low:
        return f"Cloud Run gives a task with {cpu:g} processors at least {low // GI}Gi of memory"
    if memory > high:
        return f"Cloud Run gives a task with {cpu:g} processors at most {high // GI}Gi of memory"
    return None


def size_for(cpu: float | None, memory: float | None) -> tuple[int, int]:
    """The smallest size with at least this much, for tasks that ask for less than their worker config allows."""
    wanted = max(int(memory or 0), SMALLEST_MEMORY)
    for processors, (low, high) in SIZES.items():
        if processors >= (cpu or 1) and wanted <= high:
            return processors, max(wanted, low)
    return max(SIZES), SIZES[max(SIZES)][1]
