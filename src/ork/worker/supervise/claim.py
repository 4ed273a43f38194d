"""Claims an attempt: reads its signed spec, then wins its gate. All kinds of workers use this."""

from __future__ import annotations

import os
import time

from ork.errors import DocumentError, ObjectsError, ObjectsRefusedError
from ork.objects.documents import SPEC_LIMIT, Signer, entries, open_signed, read_sent, token_hash, utc_text
from ork.objects.json_text import dumps
from ork.objects.opening import open_objects

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from ork.objects.attempt_documents import AttemptDocuments

    T = TypeVar("T")

GATE_PATIENCE_SECONDS = 60.0
_open: dict[tuple[str, str], AttemptDocuments] = {}
_skipped: tuple[AttemptDocuments, str, int] | None = None  # attempts that are launched together share a position


def read_spec(
    objects_url: str, attempt: str, secret: str, position: int, document: bytes = b""
) -> tuple[AttemptDocuments, dict[str, Any]]:
    """The spec of the attempt and the documents to write to. ObjectsError if the spec cannot be read or is invalid.

    `position`: the gate was not won before it. `document`: the spec, if it came together with the token; then it needs no
    signature, because its sender could have signed it."""
    if document:
        spec = read_sent(document)
    else:
        objects = _begun(objects_url, "normal", attempt, position)
        if objects.is_guarded:
            objects.sign_in(attempt, secret)
        data = _patiently(objects, lambda: objects.read_spec(attempt))
        if data is None:
            raise ObjectsError(f"there is no spec of {attempt}")
        spec = open_signed(data, secret, limit=SPEC_LIMIT)
    spec.setdefault("paths", [])  # older specs have none
    if spec.get("container") is not None:
        spec["root"] = os.path.abspath(spec["root"])  # in an image the current folder
        spec["paths"] = [os.path.abspath(path) for path in spec["paths"]]
    objects = _begun(objects_url, spec["durability"], attempt, position)
    if objects.is_guarded:
        spec["access"] = objects.sign_in(attempt, secret, spec["fence_seconds"])
    return objects, spec


def opened_for(request: dict[str, Any], durability: str) -> AttemptDocuments:
    """For the attempt of a request, which has its token."""
    objects = opened(request["objects"], durability)
    if objects.is_guarded:
        objects.sign_in(request["attempt"], token_hash(request["token"]))
    return objects


def opened(objects_url: str, durability: str) -> AttemptDocuments:
    """The object store, kept open for the next attempt."""
    objects = _open.get((objects_url, durability))
    if objects is None:
        objects = _open[objects_url, durability] = open_objects(objects_url, durability)
    return objects


def forget_opened() -> None:
    """For a forked process: it must open the store again."""
    _open.clear()


def _begun(objects_url: str, durability: str, attempt: str, position: int) -> AttemptDocuments:
    global _skipped
    objects, run = opened(objects_url, durability), attempt.partition("/")[0]
    if _skipped != (objects, run, position):
        objects.skip_to(attempt, position)  # also back, if the last attempt had a later position
        _skipped = objects, run, position
    return objects


def _patiently(objects: AttemptDocuments, read: Callable[[], T]) -> T:
    """A store on another machine may be away for a moment."""
    give_up_at = time.monotonic() + (0.0 if objects.answers_at_once else GATE_PATIENCE_SECONDS)
    while True:
        try:
            return read()
        except (DocumentError, ObjectsRefusedError):
            raise
        except ObjectsError:
            if time.monotonic() > give_up_at:
                raise
            time.sleep(0.5)


def win_gate(
    objects: AttemptDocuments,
    attempt: str,
    signer: Signer,
    process: str,
    must_wait: Callable[[], None] = lambda: None,
) -> bool:
    """Whether this worker, and no other, performs the attempt. `process` identifies it (see `process_entries`); `must_wait` is called
    if it takes long."""
    start = f'{{"v":1,"attempt":{dumps(attempt)},"state":"started","nonce":"{os.urandom(8).hex()}"'
    gate = signer.sign(f'{start},"at":"{utc_text(time.time_ns())}",{process}}}')
    give_up_at = time.monotonic() + GATE_PATIENCE_SECONDS
    while True:
        try:
            return objects.claim_gate(attempt, gate)
        except ObjectsRefusedError:
            raise
        except ObjectsError:
            # The disk may be freed. If we exited at once, the scheduler would start us again and again.
            if time.monotonic() > give_up_at:
                raise
            must_wait()
            time.sleep(0.5)


def process_entries(process: dict[str, Any]) -> str:
    """The part of a gate that describes the worker, as text that can be reused for many gates."""
    return entries(process).decode()
