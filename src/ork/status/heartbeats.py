"""Reads from attempt documents when each worker last wrote a heartbeat, and on which machine it runs."""

from __future__ import annotations

from datetime import datetime

from ork.errors import ObjectsError
from ork.model.external_names import machine_of
from ork.model.ids import TaskKey
from ork.model.task import Attempt
from ork.objects.documents import open_signed
from ork.objects.layout import attempt_stem, gate_key, status_key
from ork.objects.store import ObjectStore

MAX_ATTEMPTS = 20
STATUS_LIMIT = 1 << 20


def last_heartbeats(objects: ObjectStore, attempts: dict[TaskKey, Attempt]) -> dict[TaskKey, datetime]:
    """When each worker last wrote its status, by the worker's clock. Unreadable documents are skipped."""
    beats: dict[TaskKey, datetime] = {}
    for key, attempt in list(attempts.items())[:MAX_ATTEMPTS]:
        try:
            data = objects.get(status_key(attempt_stem(attempt.key)), limit=STATUS_LIMIT)
            if data is not None:
                beats[key] = datetime.fromisoformat(open_signed(data, attempt.token_hash)["at"])
        except (ObjectsError, KeyError, ValueError, TypeError):
            continue
    return beats


def machines(objects: ObjectStore, attempts: dict[TaskKey, Attempt]) -> dict[TaskKey, str]:
    """The machine of each attempt, from its external name or, for attempts that are being given up, from its gate."""
    found: dict[TaskKey, str] = {}
    for key, attempt in list(attempts.items())[:MAX_ATTEMPTS]:
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
