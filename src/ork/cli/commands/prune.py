"""`ork prune`: deletes old runs, and unused environments and programs."""

from __future__ import annotations

import os
import re
import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import click

from ork.cli.errors import DONE
from ork.cli.session import current_settings, current_user, json_option, now, print_json, run_short, store_options
from ork.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ork.api.client.connection import Server
    from ork.app.installation import Installation
    from ork.model.ids import RunId

DAY_SECONDS = 86_400.0
DRY_RUN_LIMIT = 10_000
_AGE = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


@click.command(name="prune")
@click.option("--older-than", metavar="AGE", help="Delete runs that ended longer ago: 30d, 12h.")
@click.option("--keep-last", type=click.IntRange(min=0), default=0, metavar="N", help="Keep each workflow's newest N.")
@click.option("--dry-run", is_flag=True, help="Only list the runs that would be deleted.")
@click.option(
    "--days",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    help="Remove builds and checkouts that were not used for this many days.",
    metavar="N",
)
@json_option
@store_options
def prune_command(older_than: str | None, keep_last: int, dry_run: bool, days: float, as_json: bool) -> int:
    """Delete old runs with their logs and outputs, and remove unused environments, programs and checkouts.

    Runs are deleted only with --older-than, a few per transaction, so that others do not wait. Removed builds are
    built again when they are needed.

    \b
    Example:  ork prune --older-than 30d --keep-last 10
    """
    is_remote = current_settings().server is not None
    if is_remote and older_than is None:
        raise UsageError("builds are not pruned through a server", hint="use --older-than AGE to delete old runs")
    runs: list[RunId] = []
    if older_than is not None:
        before = now() - read_age(older_than)
        runs = run_short(lambda installation: _prune(installation, before, keep_last, dry_run))
    removed = [] if dry_run or is_remote else _remove_builds(days) + _remove_checkouts(days)
    if as_json:
        print_json({"removed": removed, "runs": runs, "dry_run": dry_run})
        return DONE
    for folder in removed:
        print(f"removed {os.path.relpath(folder)}")
    if older_than is not None:
        for run in runs if dry_run else ():
            print(run)
        print(f"{len(runs):,} run{'' if len(runs) == 1 else 's'} {'would be ' if dry_run else ''}deleted.")
    if not dry_run and not is_remote:
        print(f"{len(removed)} removed." if removed else "Nothing to remove.")
    return DONE


async def _prune(installation: Installation, before: datetime, keep_last: int, dry_run: bool) -> list[RunId]:
    from ork.app.installation import RemoteInstallation
    from ork.status.pruning import prune_some

    if isinstance(installation, RemoteInstallation):
        return _prune_remotely(installation.server, before, keep_last, dry_run)
    if dry_run:
        return [*await installation.store.prunable_runs(before, DRY_RUN_LIMIT, keep_last)]

    # ObjectsError if this is not the installation's object store: runs are not deleted without their documents.
    installation.objects.read_identity()

    async def delete(runs: Sequence[RunId]) -> None:
        installation.objects.delete_runs(runs)

    deleted: list[RunId] = []
    while runs := await prune_some(installation.store, delete, before, keep_last):
        deleted += runs
    if deleted:
        await installation.record(current_user(), "runs.prune", f"{len(deleted)} runs")
    return deleted


def _prune_remotely(server: Server, before: datetime, keep_last: int, dry_run: bool) -> list[RunId]:
    body = {"before": before.isoformat(), "keep_last": keep_last}
    if dry_run:
        return list(server.post("prune", body={**body, "limit": DRY_RUN_LIMIT, "dry_run": True})["runs"])
    deleted: list[RunId] = []
    while runs := server.post("prune", body=body)["runs"]:
        deleted += runs
    return deleted


def _remove_builds(days: float) -> list[str]:
    from ork.worker.build.builds import SHELVES, prune

    home, at = current_settings().home, time.time()
    return [folder for shelf in SHELVES for folder in prune(f"{home}/{shelf}", at, days * DAY_SECONDS)]


def _remove_checkouts(days: float) -> list[str]:
    """Of `ork rerun --same-code`."""
    from ork.app.same_code import FOLDER, remove_checkouts

    settings, before = current_settings(), time.time() - days * DAY_SECONDS
    if not os.path.isdir(os.path.join(settings.home, FOLDER)):
        return []
    return run_short(lambda installation: remove_checkouts(installation.store, settings, before))


def read_age(text: str) -> timedelta:
    found = _AGE.fullmatch(text)
    if found is None:
        raise UsageError(f"{text} is not an age", hint="such as 30d, 12h or 90m")
    return timedelta(seconds=float(found[1]) * _UNITS[found[2]])
