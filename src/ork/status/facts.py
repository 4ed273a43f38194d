"""Adds to an attempt's row what its documents hold: the metrics of its task, and the process or container it ran in.

The documents are read on request, for a bounded number of attempts. A missing or unreadable document adds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ork.errors import ObjectsError
from ork.model.record import replaced
from ork.model.task import Attempt, read_metrics
from ork.objects.attempt_documents import AttemptDocuments, Found
from ork.objects.documents import open_signed

MOST_ATTEMPTS = 2000
_SHOWN = ("host", "pid", "container", "image", "digest", "engine")


def with_facts(objects: AttemptDocuments, attempts: Sequence[Attempt]) -> tuple[Attempt, ...]:
    """The same attempts, the last MOST_ATTEMPTS of them with `metrics` and `ran_in`.

    Attempts read through a server already have both, and no token hash to verify documents with.
    """
    signed = [attempt for attempt in attempts[-MOST_ATTEMPTS:] if attempt.token_hash]
    if not signed:
        return tuple(attempts)
    names = [str(attempt.key) for attempt in signed]
    read = zip(signed, objects.read_statuses(names), objects.read_gates(names), strict=True)
    known = {attempt.key: _with_facts(attempt, status, gate) for attempt, status, gate in read}
    return tuple(known.get(attempt.key, attempt) for attempt in attempts)


def _with_facts(attempt: Attempt, found_status: Found, found_gate: Found) -> Attempt:
    status, gate = _document(found_status, attempt), _document(found_gate, attempt)
    ran_in = {name: gate[name] for name in _SHOWN if isinstance(gate.get(name), str | int)}
    return replaced(attempt, metrics=read_metrics(status.get("metrics")), ran_in=ran_in or None)


def _document(data: Found, attempt: Attempt) -> dict[str, Any]:
    try:
        found = open_signed(data, attempt.token_hash) if isinstance(data, bytes) else {}
    except ObjectsError:
        return {}
    return found if found.get("attempt") == str(attempt.key) else {}
