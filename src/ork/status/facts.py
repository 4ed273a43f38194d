"""Adds to an attempt's row what its documents hold: the metrics of its task, and the process or container it ran in.

The documents are read on request, for a bounded number of attempts. A missing or unreadable document adds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ork.errors import ObjectsError
from ork.model.record import replaced
from ork.model.status import read_metrics
from ork.model.task import Attempt
from ork.objects.documents import open_signed
from ork.objects.layout import attempt_stem, gate_key, status_key
from ork.objects.store import ObjectStore

MOST_ATTEMPTS = 2000
_DOCUMENT_BYTES = 2 << 20
_SHOWN = ("host", "pid", "container", "image", "digest", "engine")


def with_facts(objects: ObjectStore, attempts: Sequence[Attempt]) -> tuple[Attempt, ...]:
    """The same attempts, the last MOST_ATTEMPTS of them with `metrics` and `ran_in`.

    Attempts read through a server already have both, and no token hash to verify documents with.
    """
    first = max(0, len(attempts) - MOST_ATTEMPTS)
    return (*attempts[:first], *(_with_facts(objects, attempt) for attempt in attempts[first:]))


def _with_facts(objects: ObjectStore, attempt: Attempt) -> Attempt:
    if not attempt.token_hash:
        return attempt
    stem = attempt_stem(attempt.key)
    status = _document(objects, status_key(stem), attempt)
    gate = _document(objects, gate_key(stem), attempt)
    ran_in = {name: gate[name] for name in _SHOWN if isinstance(gate.get(name), str | int)}
    return replaced(attempt, metrics=read_metrics(status.get("metrics")), ran_in=ran_in or None)


def _document(objects: ObjectStore, key: str, attempt: Attempt) -> dict[str, Any]:
    try:
        data = objects.get(key, limit=_DOCUMENT_BYTES)
        found = None if data is None else open_signed(data, attempt.token_hash)
    except ObjectsError:
        return {}
    return found if found is not None and found.get("attempt") == str(attempt.key) else {}
