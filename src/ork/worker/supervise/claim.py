"""Taking an attempt: read its signed spec, then win its gate. Workers of every kind do it this way."""

from __future__ import annotations

import os
import time

from ork.errors import ObjectsError
from ork.objects.documents import SPEC_LIMIT, Signer, entries, open_signed, utc_text
from ork.objects.json_text import dumps
from ork.objects.opening import open_objects
from ork.objects.specs import read_sent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ork.objects.attempt_documents import AttemptDocuments

GATE_PATIENCE_SECONDS = 60.0
_open: dict[tuple[str, str], AttemptDocuments] = {}
_skipped: tuple[AttemptDocuments, str, int] | None = None  # attempts that are launched together begin at the same place


def read_spec(
    objects_url: str, attempt: str, secret: str, position: int, document: bytes = b""
) -> tuple[AttemptDocuments, dict[str, Any]]:
    """What is to be done, and where to write what comes of it; ObjectsError if that cannot be read, or is not meant.

    `position`: before it nobody has won the gate. `document`: the spec, if it came with the token: whoever sent both could
    have signed it."""
    if document:
        spec = read_sent(document)
    else:
        data = _begun(objects_url, "normal", attempt, position).read_spec(attempt)
        if data is None:
            raise ObjectsError(f"there is no spec of {attempt}")
        spec = open_signed(data, secret, limit=SPEC_LIMIT)
    spec.setdefault("paths", [])  # older specs name none
    if spec.get("container") is not None:
        spec["root"] = os.path.abspath(spec["root"])  # the image's own folder, wherever that is: we begin in it
        spec["paths"] = [os.path.abspath(path) for path in spec["paths"]]
    return _begun(objects_url, spec["durability"], attempt, position), spec


def opened(objects_url: str, durability: str) -> AttemptDocuments:
    """Stays open for the next attempt."""
    objects = _open.get((objects_url, durability))
    if objects is None:
        objects = _open[objects_url, durability] = open_objects(objects_url, durability)
    return objects


def forget_opened() -> None:
    """In a process that was forked: what was open is so no more."""
    _open.clear()


def _begun(objects_url: str, durability: str, attempt: str, position: int) -> AttemptDocuments:
    global _skipped
    objects, run = opened(objects_url, durability), attempt.partition("/")[0]
    if _skipped != (objects, run, position):
        objects.skip_to(attempt, position)  # also to the beginning, if an attempt before began later
        _skipped = objects, run, position
    return objects


def win_gate(
    objects: AttemptDocuments,
    attempt: str,
    signer: Signer,
    process: str,
    must_wait: Callable[[], None] = lambda: None,
) -> bool:
    """Whether this worker, and no other, performs the attempt. `process` names it for ever (see `in_words`); `must_wait`
    is called if it takes its time."""
    start = f'{{"v":1,"attempt":{dumps(attempt)},"state":"started","nonce":"{os.urandom(8).hex()}"'
    gate = signer.sign(f'{start},"at":"{utc_text(time.time_ns())}",{process}}}')
    give_up_at = time.monotonic() + GATE_PATIENCE_SECONDS
    while True:
        try:
            return objects.claim_gate(attempt, gate)
        except ObjectsError:
            # A full disk may be freed. Leaving at once would only make the scheduler start us again and again.
            if time.monotonic() > give_up_at:
                raise
            must_wait()
            time.sleep(0.5)


def in_words(process: dict[str, Any]) -> str:
    """What every gate says of a worker; put into words once where there are many of them."""
    return entries(process).decode()
