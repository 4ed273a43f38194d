"""Where a task's output is kept."""

from __future__ import annotations

from ork.objects import layout
from ork.worker.status import put_patiently

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ork.objects.store import ObjectStore


def store_output(objects: ObjectStore, stem: str, text: str, inline_limit: int) -> dict[str, Any] | None:
    """Small outputs travel inside the status, larger ones as an object beside it; None if that cannot be written."""
    if len(text) <= inline_limit:
        return {"inline": text}
    key = layout.output_key(stem)
    if not put_patiently(objects, key, text.encode()):
        return None
    return {"object": key, "size": len(text)}
