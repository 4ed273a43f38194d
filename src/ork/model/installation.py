"""What all schedulers of one installation must have in common."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

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


EVERYBODY = "*"


class Mode(StrEnum):
    """PAUSED: starts nothing new and fires no schedule; what runs is watched to its end. DRAINING: in addition takes over
    nothing from others, and a single scheduler exits when nothing of its own runs any more."""

    PAUSED = "paused"
    DRAINING = "draining"


class Control(Record):
    """What a person told schedulers to do. `target` is EVERYBODY, a scheduler's id or a host's name; it stands until it
    is cleared, also when schedulers restart."""

    target: str
    mode: Mode
    by: str
    at: datetime
    reason: str | None = None

    def applies_to(self, scheduler: str, identity: str) -> bool:
        return self.target in (EVERYBODY, scheduler, host_of(identity))


def host_of(identity: str) -> str:
    """Of a scheduler's identity: host/boot/namespace/pid/start, through a server behind its URL."""
    return identity.split("/")[-5] if identity.count("/") >= 4 else identity


def host_name(host: str) -> str:
    """Of a host as `host_of` returns it: its name without the machine id, which several machines may have."""
    return host.partition("+")[0]


def control_for(controls: Iterable[Control], scheduler: str, identity: str) -> Control | None:
    """The one that counts where several apply: draining before paused, then the older one."""
    applying = [control for control in controls if control.applies_to(scheduler, identity)]
    return min(applying, key=lambda control: (control.mode is not Mode.DRAINING, control.at), default=None)
