"""What all schedulers of one installation must have in common."""

from __future__ import annotations

from datetime import datetime

from ork.model.record import Record


class SharedSettings(Record):
    """Recorded in the state store by the first process that opens an installation; every later one is compared.

    `objects` is the id of the object store, which is written in the object store itself. Where that store is found
    (`objects_url`) may differ from machine to machine, so the URL, the host and the time are only shown to people.
    """

    objects: str
    heartbeat_seconds: float
    stale_seconds: float
    objects_url: str
    host: str
    recorded_at: datetime

    @property
    def terms(self) -> str:
        """What is compared, as one text."""
        return f"objects={self.objects} heartbeat={self.heartbeat_seconds!r} stale={self.stale_seconds!r}"
