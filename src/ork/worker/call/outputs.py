"""Where a task's output is kept."""

from __future__ import annotations

from ork.objects.references import output_reference
from ork.worker.call.storing import put_patiently

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ork.objects.attempt_documents import AttemptDocuments


def store_output(objects: AttemptDocuments, attempt: str, text: str, inline_limit: int) -> dict[str, Any] | None:
    """Small outputs travel inside the status, larger ones as an object beside it; None if that cannot be written."""
    if len(text) <= inline_limit:
        return {"inline": text}
    data = text.encode()
    if not put_patiently(lambda: objects.put_output(attempt, data)):
        return None
    return {"object": output_reference(attempt), "size": len(text)}
