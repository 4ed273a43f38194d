"""Which queries the service would refuse because no index serves them. The emulator serves every query."""

from __future__ import annotations

import functools
import json
from typing import Any

from ork.state.firestore.schema import index_file

Shape = list[Any]
"""A query's collection, the fields compared for equality, those compared otherwise, and the order: pairs of field and direction."""


@functools.cache
def _file() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(index_file())
    return content


def needs_index(shape: Shape) -> bool:
    _, equal, other, order = shape
    ordered = [name for name, _ in order if name != "__name__"]
    return len({*ordered, *other} - {"__name__"}) > 1 or bool(equal and ordered)


def is_served(shape: Shape) -> bool:
    """Whether a composite index of the file serves the query."""
    collection, equal, _, order = shape
    for index in _file()["indexes"]:
        fields = [[field["fieldPath"], field["order"]] for field in index["fields"]]
        first, rest = fields[: len(equal)], fields[len(equal) :]
        if index["collectionGroup"] == collection and sorted(name for name, _ in first) == equal and rest == order:
            return True
    return False


def is_unindexed(collection: str, field: str) -> bool:
    """Whether the file says that this field has no index at all."""
    return any(
        each["collectionGroup"] == collection and each["fieldPath"] == field and not each["indexes"]
        for each in _file()["fieldOverrides"]
    )


def is_refused(shape: Shape) -> bool:
    collection, equal, other, order = shape
    if needs_index(shape) and not is_served(shape):
        return True
    return any(is_unindexed(collection, name) for name in (*equal, *other, *(name for name, _ in order)))
