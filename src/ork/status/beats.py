"""What workers wrote of themselves: when last, and on which machine they are."""

from __future__ import annotations

from datetime import datetime

from ork.errors import ObjectsError
from ork.model.external_names import machine_of
from ork.model.ids import TaskKey
from ork.model.task import Attempt
from ork.objects.documents import open_signed
from ork.objects.layout import attempt_stem, gate_key, status_key
from ork.objects.store import ObjectStore

MAX_BEATS = 20
STATUS_LIMIT = 1 << 20


def last_beats(objects: ObjectStore, attempts: dict[TaskKey, Attempt]) -> dict[TaskKey, datetime]:
    """When each worker last wrote its status, by its own clock; unreadable documents tell nothing."""
    beats: dict[TaskKey, datetime] = {}
    for key, attempt in list(attempts.items())[:MAX_BEATS]:
        try:
            data = objects.get(status_key(attempt_stem(attempt.key)), limit=STATUS_LIMIT)
            if data is not None:
                beats[key] = datetime.fromisoformat(open_signed(data, attempt.token_hash)["at"])
        except (ObjectsError, KeyError, ValueError, TypeError):
            continue
    return beats


def machines(objects: ObjectStore, attempts: dict[TaskKey, Attempt]) -> dict[TaskKey, str]:
    """On which machine each attempt that is being given up is, or was: its external name tells, or its gate names the engine."""
    found: dict[TaskKey, str] = {}
    for key, attempt in list(attempts.items())[:MAX_BEATS]:
        named = machine_of(attempt.external_name)
        if attempt.closing is not None and named is None:
            try:
                data = objects.get(gate_key(attempt_stem(attempt.key)), limit=STATUS_LIMIT)
                gate = {} if data is None else open_signed(data, attempt.token_hash)
            except ObjectsError:
                gate = {}
            named = str(gate.get("engine") or "").rpartition("@")[2] or gate.get("host")
        if named is not None:
            found[key] = named
    return found
