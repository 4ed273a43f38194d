"""Why attempts have not begun, in the words of the platform that they were handed to."""

from __future__ import annotations

from collections.abc import Mapping

from ork.errors import ObjectsError
from ork.model.ids import TaskKey
from ork.model.platforms import is_on_platform
from ork.model.task import Attempt, AttemptStatus
from ork.objects.attempt_documents import AttemptDocuments
from ork.status.heartbeats import MAX_ATTEMPTS

_TAIL_BYTES = 4096
_OWN = "ork: "  # how lines begin that Ork itself writes into a log


def platform_notes(objects: AttemptDocuments, attempts: Mapping[TaskKey, Attempt]) -> dict[TaskKey, str]:
    """The last note in the log of each attempt that was handed to a platform and has not begun."""
    notes = {}
    for key, attempt in list(attempts.items())[:MAX_ATTEMPTS]:
        if attempt.status is AttemptStatus.DISPATCHED and is_on_platform(attempt.executor):
            note = _last_note(objects, str(attempt.key))
            if note is not None:
                notes[key] = note
    return notes


def _last_note(objects: AttemptDocuments, attempt: str) -> str | None:
    try:
        size = objects.log_size(attempt) or 0
        text = objects.read_log(attempt, max(0, size - _TAIL_BYTES)).decode(errors="replace")
    except ObjectsError:
        return None
    lines = [line.removeprefix(_OWN) for line in text.splitlines() if line.startswith(_OWN)]
    return lines[-1] if lines else None
