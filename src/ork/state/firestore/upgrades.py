"""Steps from one version of a run's document to the next. Nothing has changed since version 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Fields = dict[str, Any]

STEPS: list[Callable[[Fields], Fields]] = []
"""`STEPS[0]` makes a document of version 2 from one of version 1."""


def newest_version() -> int:
    return len(STEPS) + 1


def upgraded(fields: Fields) -> Fields:
    """The document as the newest version has it. A part of a document, without its version, is left as it is."""
    for step in STEPS[fields.get("v", newest_version()) - 1 :]:
        fields = step(fields)
    return fields if "v" not in fields else {**fields, "v": newest_version()}
