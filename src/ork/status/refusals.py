"""Why a command came too late or too early, in words."""

from __future__ import annotations

from ork.errors import RefusedError
from ork.model.run import CommandKind, Run, RunCommand, RunStatus


def command_refused(command: RunCommand, run: Run, short: str) -> RefusedError:
    kind, status = command.kind.value, run.status.value
    hint = _HINTS.get((kind, status)) or _HINTS.get((kind, "")) or _HINTS.get(("", status), "ork show {run}")
    said = "it is paused already" if (kind, status) == ("pause", "paused") else _STATES[status]
    return RefusedError(f"cannot {kind} run {short}: {said}", hint=hint.format(run=short))


def check_retry(command: RunCommand, run: Run | None, short: str) -> None:
    """A retry of what did not succeed, where everything did, is refused: it would only move the run's end."""
    is_plain = command.kind is CommandKind.RETRY and not command.everything and command.task is None
    if is_plain and run is not None and run.status is RunStatus.SUCCESS:
        hint = f"`ork retry {short} --all` runs everything again"
        raise RefusedError(f"cannot retry run {short}: nothing failed", hint=hint)


_STATES = {
    "pending": "it has not begun yet",
    "running": "it is running",
    "paused": "it is paused",
    "success": "it has already succeeded",
    "failed": "it has already failed",
    "cancelled": "it has already been cancelled",
}
# By command and state; an empty one stands for all.
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
    ("", "success"): "`ork rerun {run}` starts a new one like it",
}
