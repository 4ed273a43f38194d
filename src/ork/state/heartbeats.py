"""What is kept of workers' heartbeats, so that every owner of a run judges silence alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ork.model.task import Heartbeat


class HeartbeatVerbs(Protocol):
    """A part of the state store."""

    async def note_heartbeats(self, heartbeats: Sequence[Heartbeat]) -> None:
        """Keeps, for each attempt that is active, the highest number noted and the moment it was first seen, by the
        store's clock (now less its age). What is kept comes with the attempt when its run is claimed; after a restart
        of the machine whose clock it is, nothing does. A negative number (see `Heartbeat`) replaces any other number and
        is replaced by any other. Needs no ownership, since what somebody saw stays true; wakes nobody."""
        ...
