"""What an attempt's external name says about where it runs."""

from __future__ import annotations

from ork.model.platforms import is_on_platform


def machine_of(external_name: str) -> str | None:
    """The name of the machine; None if the external name does not contain it."""
    kind, _, rest = external_name.partition(":")
    place = rest.partition(":")[0]
    if kind == "local" or kind == "sim":
        return place.partition("+")[0] or None
    if kind == "docker" and "@" in place:
        return place.rpartition("@")[2] or None
    return None


def is_fenced(external_name: str) -> bool:
    """True if the attempt's worker, if it has one, ends its task when it cannot write a heartbeat."""
    return external_name.startswith(("local:", "sim:")) or is_on_platform(external_name)
