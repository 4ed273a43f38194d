"""What `ork doctor` finds in the store: items that were set aside, and damaged runs that nobody has met yet."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from ork.cli.session import run_short
from ork.settings import Settings


class Finding(NamedTuple):
    """One line. `fix` is there when something should be done; `broken` when nothing works until then."""

    subject: str
    says: str
    fix: str | None = None
    broken: bool = False


def has_no_store_yet(settings: Settings) -> bool:
    from ork.app.stores import store_path

    path = None if settings.server is not None else store_path(settings)
    return path is not None and not os.path.exists(path)


def set_aside(settings: Settings) -> Iterator[Finding]:
    """Items that cannot be decoded or worked with: everything else goes on without them."""
    from ork.app.installation import Installation
    from ork.model.quarantine import Quarantined

    if has_no_store_yet(settings):
        return

    async def read(installation: Installation) -> tuple[Quarantined, ...]:
        return await installation.store.list_quarantined()

    for item in run_short(read):
        yield Finding("set aside", f"{item.kind} {item.id}: {item.reason}", _FIXES[item.kind].format(id=item.id))


def damaged(settings: Settings) -> Iterator[Finding]:
    """Runs with damaged rows that no scheduler has met yet, so that nobody has set them aside."""
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
        yield Finding("damaged", f"run {run}: {reason}", f"repair it, or `ork cancel {run}`; other runs go on")


_FIXES = {
    "run": "repair it and `ork resume {id}`, or `ork cancel {id}`",
    "command": "ask again",
    "version": "`ork deploy` the workflow again",
    "workflow": "`ork deploy` it again",
    "schedule": "`ork deploy` the workflow again",
    "location": "it is read again with its next refresh",
    "token": "`ork token revoke {id}` and create another",
    "alert": "it is not sent; `ork prune` forgets it with its run",
}
