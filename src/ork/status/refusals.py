"""Errors for commands that a run's status does not allow."""

from __future__ import annotations

from ork.errors import RefusedError
from ork.model.run import CommandKind, Run, RunCommand, RunStatus


def command_refused(command: RunCommand, run: Run, short: str) -> RefusedError:
    kind, status = command.kind.value, run.status.value
    hint = _HINTS.get((kind, status)) or _HINTS.get((kind, "")) or _HINTS.get(("", status), "ork show {run}")
    reason = "it is paused already" if (kind, status) == ("pause", "paused") else _STATES[status]
    return RefusedError(f"cannot {kind} run {short}: {reason}", hint=hint.format(run=short))


def check_retry(command: RunCommand, run: Run | None, short: str) -> None:
    """Refuses to retry the failed tasks of a successful run: it would only change the run's end time."""
    is_plain = command.kind is CommandKind.RETRY and not command.everything and command.task is None
    if is_plain and run is not None and run.status is RunStatus.SUCCESS:
        hint = f"`ork retry {short} --all` runs everything again"
        raise RefusedError(f"cannot retry run {short}: nothing failed", hint=hint)


_STATES = {
    "pending": "it has not started yet",
    "running": "it is running",
    "paused": "it is paused",
    "success": "it has already succeeded",
    "failed": "it has already failed",
    "cancelled": "it has already been cancelled",
}
# By command and status; an empty string matches any.
_HINTS = {
    ("pause", "paused"): "ork resume {run}",
    ("resume", "running"): "ork watch {run}",
    ("resume", "pending"): "ork why {run}",
    ("retry", ""): "wait for its end, or `ork cancel {run}`",
    ("approve", ""): "ork show {run}",
    ("reject", ""): "ork show {run}",
    ("declare-dead", ""): "ork show {run}",
    ("", "failed"): "ork retry {run}",
    ("", "cancelled"): "ork retry {run}",
    ("", "success"): "`ork rerun {run}` starts a new run with the same params",
}
