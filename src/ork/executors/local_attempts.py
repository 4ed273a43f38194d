"""Where local attempts are: their external names and their gates.

The external name contains machine, boot and pid namespace. A gate names the process that won it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from ork.errors import DocumentError, ObjectsError
from ork.executors import processes
from ork.executors.executor import Presence
from ork.model.ids import AttemptKey
from ork.model.task import Attempt
from ork.objects.attempt_documents import AttemptDocuments, Found
from ork.objects.calls import DocumentCalls
from ork.objects.documents import open_signed

MAX_KNOWN = 10_000


class Gates:
    """Reads gates directly from a store that answers at once. From a slower store, `look_at` reads all gates that may be
    needed in one batch; a gate that does not exist then is None until the next call."""

    def __init__(self, documents: AttemptDocuments) -> None:
        self._documents = documents
        self._calls = DocumentCalls(documents)
        self._known: dict[AttemptKey, Found] = {}  # a gate never changes once it exists

    async def look_at(self, attempts: Sequence[Attempt]) -> None:
        """Read the gates for later calls of `of`."""
        unknown = [attempt for attempt in attempts if not isinstance(self._known.get(attempt.key), bytes)]
        if self._documents.answers_at_once or not unknown:
            return
        found = await self._calls.call(self._documents.read_gates, [str(attempt.key) for attempt in unknown])
        self._known.update(zip((attempt.key for attempt in unknown), found, strict=True))
        while len(self._known) > MAX_KNOWN:
            del self._known[next(iter(self._known))]

    def of(self, attempt: Attempt) -> dict[str, Any] | None:
        """The gate, or None if it does not exist. ObjectsError if it cannot be read or is not signed by the attempt's token."""
        if self._documents.answers_at_once:
            (found,) = self._documents.read_gates([str(attempt.key)])
        else:
            found = self._known.get(attempt.key)
        if isinstance(found, ObjectsError):
            raise found
        if found is None:
            return None
        gate = open_signed(found, attempt.token_hash)
        if gate.get("attempt") != str(attempt.key):
            raise DocumentError(f"the gate of {attempt.key} is that of another attempt")
        return gate


def name_for(attempt: AttemptKey) -> str:
    return _prefix() + str(attempt)


@cache
def _prefix() -> str:
    return f"local:{processes.machine()}:{processes.boot_id()}:{processes.pid_namespace()}:"


def location_of(attempt: Attempt) -> Presence:
    """RUNNING only means that the attempt, if it is alive, is on this machine."""
    try:
        kind, host, boot, namespace, _ = attempt.external_name.split(":", 4)
    except ValueError:
        return Presence.UNKNOWN
    if kind == "local" and processes.is_another_boot(host, boot):
        return Presence.LOST
    # Names of 0.1.0 have no machine id, but a boot id belongs to one machine.
    if kind != "local" or host not in (processes.machine(), processes.hostname()) or boot != processes.boot_id():
        return Presence.UNKNOWN
    return Presence.RUNNING if namespace == str(processes.pid_namespace()) else Presence.UNKNOWN
