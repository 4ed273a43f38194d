"""`ork ui export`: writes the pages of the web UI with their data, for a place where nothing runs."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from ork.cli.session import json_option, now, print_json, run_reads, store_options
from ork.errors import RefusedError, UsageError

if TYPE_CHECKING:
    from ork.app.installation import Installation
    from ork.ui.documents import Choice
    from ork.ui.export import Export
    from ork.ui.targets import ExportTarget

MOST_RUNS = 10_000


@click.command(name="export")
@click.argument("target", metavar="FILE.html|FOLDER|BUCKET_URL")
@click.option(
    "--runs",
    type=click.IntRange(1, MOST_RUNS),
    default=200,
    show_default=True,
    help="At most so many runs, the newest ones.",
)
@click.option("--since", metavar="AGE", help="Only runs that were created in the last AGE: 7d, 12h.")
@click.option(
    "--logs",
    type=click.Choice(["all", "failed", "none"]),
    default="failed",
    show_default=True,
    help="The ends of the logs of all tasks, of failed ones, or of none.",
)
@click.option("--public", is_flag=True, help="Allow a bucket that everybody can read.")
@json_option
@store_options
def export_command(target: str, runs: int, since: str | None, logs: str, public: bool, as_json: bool) -> None:
    """Write the pages of the web UI with their data: as one file that opens from a disk, or as a folder for any web
    server or bucket. They show what was there when they were written, and can change nothing.

    A folder or bucket that has a snapshot is updated: only what changed is written. The pages contain params, outputs and
    logs, so check who can read them.

    \b
    Example:  ork ui export status.html
              ork ui export s3://my-bucket/ork --since 7d
    """
    from ork.ui.documents import Choice
    from ork.ui.run_documents import Logs

    choice = Choice(runs, None if since is None else now() - timedelta(seconds=_age(since)), Logs(logs))
    if target.lower().endswith((".html", ".htm")):
        shown = run_reads(lambda installation: _to_file(export_of(installation, choice), target))
    else:
        place = _target(target, public)
        shown = run_reads(lambda installation: _to_target(export_of(installation, choice), place))
    if as_json:
        print_json({"target": target, **shown})
    else:
        _print(target, shown)


def _print(target: str, shown: dict[str, Any]) -> None:
    runs = f"{shown['runs']:,} run{'' if shown['runs'] == 1 else 's'}"
    if "files" not in shown:
        print(f"{target}  {runs}, {shown['bytes']:,} bytes")
        return
    print(
        f"{target}  {runs}; {shown['files']:,} files written ({shown['bytes']:,} bytes), "
        f"{shown['unchanged']:,} unchanged, {shown['deleted']:,} deleted"
    )


async def _to_file(export: Export, path: str) -> dict[str, Any]:
    from ork.ui.export import export_file
    from ork.ui.targets import write_file

    data, runs = await export_file(export)
    write_file(path, data)
    return {"runs": runs, "bytes": len(data)}


async def _to_target(export: Export, target: ExportTarget) -> dict[str, Any]:
    from ork.ui.export import export_to

    return (await export_to(target, export))._asdict()


def export_of(installation: Installation, choice: Choice, start: str | None = None, title: str = "Ork") -> Export:
    """What is exported from this installation. `start` is the page to begin with."""
    from ork.app.page_reads import page_reads
    from ork.ui.export import Export

    settings = installation.settings
    name = settings.server.partition("://")[2] if settings.server else os.path.basename(settings.root)
    return Export(page_reads(installation), choice, now(), name or None, start, title)


def _target(text: str, is_public_allowed: bool) -> ExportTarget:
    """UsageError for an address that is neither a folder nor a bucket; RefusedError for a public bucket."""
    from ork.objects.buckets.address import is_bucket
    from ork.ui.targets import BucketTarget, FolderTarget

    if not is_bucket(text):
        if "://" in text:
            raise UsageError(f"cannot export to {text}", hint="use a file, a folder, gs://, s3:// or az://")
        return FolderTarget(text)
    from ork.objects.buckets.address import read_address
    from ork.objects.buckets.opening import open_bucket
    from ork.ui.public import is_public

    documents = open_bucket(text, forks=False)
    if not is_public_allowed and is_public(documents, read_address(text)):
        raise RefusedError(
            f"everybody can read {documents.url}", hint="use a private bucket, or say --public if that is intended"
        )
    return BucketTarget(documents)


def _age(text: str) -> float:
    from ork.definition.values import seconds_of

    seconds = seconds_of(text)
    if seconds is None:
        raise UsageError(f"--since {text} is not an age", hint="such as 7d, 12h or 30m")
    return seconds
