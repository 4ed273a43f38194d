"""The versions that a handle has read. They never change, so each is read and decoded once."""

from __future__ import annotations

import json

from ork.compile.content import from_document
from ork.errors import UnreadableError
from ork.model.code import code_of_text
from ork.model.ids import VersionId
from ork.model.workflow import Version
from ork.state.quarantine import broken_version

_KEPT = 256


class KnownVersions:
    """The last few versions. When there are too many, the oldest entry is removed."""

    def __init__(self) -> None:
        self._versions: dict[VersionId, Version] = {}
        self._orders: dict[VersionId, dict[str, int]] = {}

    def get(self, id: VersionId) -> Version | None:
        return self._versions.get(id)

    def known_order(self, id: VersionId) -> dict[str, int] | None:
        return self._orders.get(id)

    def order_of(self, version: Version) -> dict[str, int]:
        """The position of each task in the workflow, cached."""
        order = {task.name: place for place, task in enumerate(version.workflow.tasks)}
        if version.id in self._versions:
            self._orders[version.id] = order
        return order

    def remember(self, version: Version) -> None:
        """Cache the version, which the store has under its id."""
        if len(self._versions) >= _KEPT:
            oldest = next(iter(self._versions))
            del self._versions[oldest]
            self._orders.pop(oldest, None)
        self._versions[version.id] = version

    def decoded(self, id: VersionId, root: str, source: str | None, document: str, code: str | None) -> Version:
        """Decode and cache the version. UnreadableError if its document is damaged."""
        try:
            version = Version(id, from_document(json.loads(document)), root, source, code_of_text(code))
        except Exception as problem:
            raise UnreadableError(broken_version(id, problem), hint="Deploy the workflow again.") from problem
        self.remember(version)
        return version
