"""Settings and controls that all schedulers of one installation share."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

from ork.model.record import Record


class SharedSettings(Record):
    """Recorded in the state store by the first process that opens an installation, and compared by every later one.

    `objects` is the id written in the object store itself. The store's URL (`objects_url`) may differ between machines,
    so URL, host and time are only for display.
    """

    objects: str
    heartbeat_seconds: float
    stale_seconds: float
    objects_url: str
    host: str
    recorded_at: datetime

    @property
    def terms(self) -> str:
        """The settings that are compared, as one string."""
        return f"objects={self.objects} heartbeat={self.heartbeat_seconds!r} stale={self.stale_seconds!r}"


ALL_SCHEDULERS = "*"


class Mode(StrEnum):
    """PAUSED: no new runs or tasks are started and no schedule fires; running tasks are watched to their end. DRAINING:
    in addition no runs are taken over, and a single scheduler exits when it owns nothing that runs."""

    PAUSED = "paused"
    DRAINING = "draining"


class Control(Record):
    """A pause or drain request. `target` is ALL_SCHEDULERS, a scheduler id or a host name. It stays in effect across
    restarts until it is cleared."""

    target: str
    mode: Mode
    by: str
    at: datetime
    reason: str | None = None

    def applies_to(self, scheduler: str, identity: str) -> bool:
        return self.target in (ALL_SCHEDULERS, scheduler, host_of(identity))


def host_of(identity: str) -> str:
    """The host part of a scheduler's identity (host/boot/namespace/pid/start, prefixed by the URL if it uses a server)."""
    return identity.split("/")[-5] if identity.count("/") >= 4 else identity


def host_name(host: str) -> str:
    """The name of a host as returned by `host_of`, without the machine id."""
    return host.partition("+")[0]


def control_for(controls: Iterable[Control], scheduler: str, identity: str) -> Control | None:
    """The control in effect for a scheduler: draining takes precedence over paused, then the older one."""
    applying = [control for control in controls if control.applies_to(scheduler, identity)]
    return min(applying, key=lambda control: (control.mode is not Mode.DRAINING, control.at), default=None)
