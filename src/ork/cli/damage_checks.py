"""Checks of `ork doctor` for the store: quarantined items, and damaged runs that no scheduler has read yet."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from ork.cli.session import run_short
from ork.settings import Settings


class Finding(NamedTuple):
    """The result of a check. `fix` is set if something should be done; `broken` if nothing works until then."""

    subject: str
    says: str
    fix: str | None = None
    broken: bool = False


def has_no_store_yet(settings: Settings) -> bool:
    from ork.app.stores import store_path

    path = None if settings.server is not None else store_path(settings)
    return path is not None and not os.path.exists(path)


def set_aside(settings: Settings) -> Iterator[Finding]:
    """Quarantined items: they cannot be decoded or processed; everything else works without them."""
    from ork.app.installation import Installation
    from ork.model.quarantine import Quarantined

    if has_no_store_yet(settings):
        return

    async def read(installation: Installation) -> tuple[Quarantined, ...]:
        return await installation.store.list_quarantined()

    for item in run_short(read):
        yield Finding("set aside", f"{item.kind} {item.id}: {item.reason}", _FIXES[item.kind].format(id=item.id))


def damaged(settings: Settings) -> Iterator[Finding]:
    """Runs with damaged rows that are not quarantined, because no scheduler has read them yet."""
    from ork.app.installation import Installation
    from ork.model.quarantine import ItemKind
    from ork.status.damage import damaged_runs

    if has_no_store_yet(settings):
        return

    async def read(installation: Installation) -> dict[str, str]:
        listed = await installation.store.list_quarantined()
        known = {item.id for item in listed if item.kind is ItemKind.RUN}
        found = await damaged_runs(installation.store)
        return {run: reason for run, reason in found.items() if run not in known}

    for run, reason in run_short(read).items():
        yield Finding("damaged", f"run {run}: {reason}", f"repair it, or `ork cancel {run}`; other runs continue")


_FIXES = {
    "run": "repair it and `ork resume {id}`, or `ork cancel {id}`",
    "command": "submit it again",
    "version": "`ork deploy` the workflow again",
    "workflow": "`ork deploy` it again",
    "schedule": "`ork deploy` the workflow again",
    "location": "the next refresh reads it again",
    "token": "`ork token revoke {id}` and create another",
    "alert": "it is not sent; `ork prune` deletes it with its run",
}
