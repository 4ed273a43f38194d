"""Attempts on unreachable machines: how long to wait for one, and the message when it counts as over."""

from __future__ import annotations

from ork.errors import DocumentError, ObjectsError
from ork.executors.executor import Executor
from ork.model.digest import sha256
from ork.model.external_names import machine_of
from ork.model.task import Attempt, GiveUp
from ork.model.workflow import CloudRunJob, Container, OnUnreachable, TaskSpec
from ork.objects import documents
from ork.objects.attempt_documents import AttemptDocuments
from ork.scheduler.options import SchedulerOptions
from ork.scheduler.statuses import checked_status
from ork.scheduler.watchlist import Observations, Watched, note_status


def over_after(
    task: TaskSpec, attempt: Attempt, executor: Executor | None, objects: AttemptDocuments, options: SchedulerOptions
) -> float | None:
    """Seconds of silence after which an attempt must have ended by itself; None if nothing ends it.

    A worker that cannot write its heartbeat ends its task after the fence time of its spec. A worker in a container
    writes to the container's own disk, which does not fail, so only its timeout ends it. A plain container has no worker.
    """
    if task.on_unreachable is OnUnreachable.WAIT:
        return None
    stale = options.liveness.stale_seconds
    is_plain = isinstance(task.action, Container | CloudRunJob)
    if executor is not None and executor.traits.fences_itself and not is_plain:
        return stale + max(options.fence_seconds, _fence_seconds(objects, attempt))
    if task.timeout is None or is_plain:
        return None
    return stale + task.timeout + options.stop_grace_seconds


def silence(watched: Watched, objects: AttemptDocuments, mono: float, seen: Observations) -> float:
    """Seconds since a scheduler first saw what the worker wrote last.

    A status that the worker signed and that cannot be decoded counts as well: the worker may be of a newer version, and
    does not fence itself while it can write. Its fingerprint is noted in the store, so each such status counts once,
    however many schedulers or ticks see it.
    """
    (data,) = objects.read_statuses([str(watched.attempt.key)])
    if isinstance(data, ObjectsError):
        raise data
    note_status(watched, None if data is None else _fingerprint(data, watched.attempt), mono, seen)
    return mono - watched.last_seen


def _fingerprint(data: bytes, attempt: Attempt) -> int | None:
    """A number below -1 that identifies a signed status that cannot be decoded; None for any other status."""
    if not documents.is_sealed(data, attempt.token_hash):
        return None
    try:
        checked_status(data, attempt)
    except DocumentError:
        return -2 - int.from_bytes(sha256(data).digest()[:7])
    return None


def look_again_in(limit: float | None, silent: float, options: SchedulerOptions) -> float:
    """Seconds until the next look. Without a limit they are long enough that a tick does not wait for it."""
    if limit is None:
        return max(options.monitor_seconds, options.close_grace_seconds + 2.0)
    return min(options.monitor_seconds, limit - silent)


def why_over(attempt: Attempt, silent_seconds: float) -> str:
    """Why the attempt counts as over; part of its failure message."""
    machine = machine_of(attempt.external_name)
    where = f"machine {machine} does not answer" if machine else "its machine does not answer"
    if attempt.closing is GiveUp.DECLARED_DEAD:
        return where
    return f"{where}, and its worker has been silent for {silent_seconds:.0f} s"


def _fence_seconds(objects: AttemptDocuments, attempt: Attempt) -> float:
    """The fence time in the attempt's spec, which a scheduler with other settings may have written."""
    data = objects.read_spec(str(attempt.key))
    if data is None:
        return 0.0
    try:
        spec = documents.open_signed(data, attempt.token_hash, limit=documents.SPEC_LIMIT)
        return float(spec.get("fence_seconds", 0.0))
    except (DocumentError, TypeError, ValueError):
        return 0.0
