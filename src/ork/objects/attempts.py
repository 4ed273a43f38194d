"""An attempt's documents on this machine's disk, as a local executor needs to know them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ork.errors import DocumentError
from ork.objects import layout
from ork.objects.documents import DOCUMENT_LIMIT, open_signed

if TYPE_CHECKING:
    from ork.model.ids import AttemptKey
    from ork.model.task import Attempt
    from ork.objects.local import LocalObjects


class AttemptDocuments:
    """Reads nothing that this attempt's token did not sign; what it cannot read is a DocumentError."""

    def __init__(self, objects: LocalObjects) -> None:
        self.url = objects.url
        self._objects = objects

    def gate(self, attempt: Attempt) -> dict[str, Any] | None:
        """Who holds the gate, or None while nobody does."""
        key = layout.gate_key(layout.attempt_stem(attempt.key))
        data = self._objects.get(key, limit=DOCUMENT_LIMIT)
        if data is None:
            return None
        gate = open_signed(data, attempt.token_hash)
        if gate.get("attempt") != str(attempt.key):
            raise DocumentError(f"{key} speaks of another attempt")
        return gate

    def log_path(self, key: AttemptKey) -> str:
        """The file itself, for a process to write to."""
        return self._objects.path(layout.log_key(layout.attempt_stem(key)))
