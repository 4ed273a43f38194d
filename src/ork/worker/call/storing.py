"""Texts made fit for a document, and writing while the disk may be full."""

from __future__ import annotations

import time

from ork.errors import ObjectsError
from ork.objects.references import output_reference

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ork.objects.attempt_documents import AttemptDocuments

PATIENCE_SECONDS = 600.0
MESSAGE_CHARACTERS = 4000
_LONGEST_PAUSE = 5.0


def storable(text: str, limit: int = MESSAGE_CHARACTERS) -> str:
    """The text with what no document may hold (NUL, half a surrogate pair) written out, and not too long."""
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")


def put_patiently(put: Callable[[], object], is_told_to_go: Callable[[], bool] = lambda: False) -> bool:
    """Tries again while the store cannot take it (a full disk that is freed loses nothing); False when given up."""
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    pause = 0.1
    while True:
        try:
            put()
            return True
        except ObjectsError:
            if time.monotonic() > give_up_at or is_told_to_go():
                return False
        time.sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE)


def store_output(objects: AttemptDocuments, attempt: str, text: str, inline_limit: int) -> dict[str, Any] | None:
    """Small outputs travel inside the status, larger ones as an object beside it; None if that cannot be written."""
    if len(text) <= inline_limit:
        return {"inline": text}
    data = text.encode()
    if not put_patiently(lambda: objects.put_output(attempt, data)):
        return None
    return {"object": output_reference(attempt), "size": len(text)}
