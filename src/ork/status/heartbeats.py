"""Reads from attempt documents when each worker last wrote a heartbeat, and on which machine it runs."""

from __future__ import annotations

from datetime import datetime

from ork.errors import ObjectsError
from ork.model.external_names import machine_of
from ork.model.ids import TaskKey
from ork.model.task import Attempt
from ork.objects.attempt_documents import AttemptDocuments
from ork.objects.documents import open_signed

MAX_ATTEMPTS = 20


def last_heartbeats(objects: AttemptDocuments, attempts: dict[TaskKey, Attempt]) -> dict[TaskKey, datetime]:
    """When each worker last wrote its status, by the worker's clock. Unreadable documents are skipped."""
    beats: dict[TaskKey, datetime] = {}
    looked_at = dict(list(attempts.items())[:MAX_ATTEMPTS])
    found = objects.read_statuses([str(attempt.key) for attempt in looked_at.values()])
    for (key, attempt), data in zip(looked_at.items(), found, strict=True):
        try:
            if isinstance(data, bytes):
                beats[key] = datetime.fromisoformat(open_signed(data, attempt.token_hash)["at"])
        except (ObjectsError, KeyError, ValueError, TypeError):
            continue
    return beats


def machines(objects: AttemptDocuments, attempts: dict[TaskKey, Attempt]) -> dict[TaskKey, str]:
    """The machine of each attempt, from its external name or, for attempts that are being given up, from its gate."""
    looked_at = dict(list(attempts.items())[:MAX_ATTEMPTS])
    found = {key: machine_of(attempt.external_name) for key, attempt in looked_at.items()}
    unnamed = [key for key, attempt in looked_at.items() if found[key] is None and attempt.closing is not None]
    gates = objects.read_gates([str(looked_at[key].key) for key in unnamed])
    for key, data in zip(unnamed, gates, strict=True):
        try:
            gate = open_signed(data, looked_at[key].token_hash) if isinstance(data, bytes) else {}
        except ObjectsError:
            gate = {}
        found[key] = str(gate.get("engine") or "").rpartition("@")[2] or gate.get("host")
    return {key: named for key, named in found.items() if named is not None}
