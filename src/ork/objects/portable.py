"""The documents that an attempt needs, as files that can be copied to another machine and back."""

from __future__ import annotations

from ork.errors import DocumentError, ObjectsError
from ork.objects import layout
from ork.objects.references import references_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ork.objects.attempt_documents import AttemptDocuments


def files_for(documents: AttemptDocuments, attempt: str, spec: dict[str, Any]) -> dict[str, bytes]:
    """The spec and every value it points at, by their paths in a store of files."""
    files = values_for(documents, spec)
    return {layout.spec_key(layout.stem(attempt)): documents.read_spec(attempt) or b"", **files}


def values_for(documents: AttemptDocuments, spec: dict[str, Any]) -> dict[str, bytes]:
    """Every value the spec points at, by its path. DocumentError if one is gone."""
    references = references_in(spec)
    values: dict[str, bytes] = {}
    for reference, data in zip(references, documents.read_values(references, spec["output_limit"]), strict=True):
        if isinstance(data, ObjectsError):
            raise data
        if data is None:
            raise DocumentError(f"the output of an earlier task is gone: {reference}")
        values[reference] = data
    return values


def status_file(attempt: str) -> str:
    return layout.status_key(layout.stem(attempt))


def output_file(attempt: str) -> str:
    return layout.output_key(layout.stem(attempt))
