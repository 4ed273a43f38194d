"""`ork store`: copies one store to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ork.cli.session import json_option, local_settings, now, print_json

if TYPE_CHECKING:
    from ork.app.copying import Copied
    from ork.settings import Settings


@click.group(name="store")
def store_command() -> None:
    """Move from one store to another (copy).

    \b
    Example:  ork store copy sqlite:.ork/ork.db postgresql://ork@db.example.com/ork
    """


@store_command.command(name="copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--dry-run", is_flag=True, help="Only count what would be copied.")
@click.option("--leave-active", is_flag=True, help="Leave out runs that have not ended, instead of refusing.")
@json_option
def copy_command(source: str, target: str, dry_run: bool, leave_active: bool, as_json: bool) -> None:
    """Copy versions, workflows with their schedules, and runs that have ended from one store to another.

    FROM and TO are URLs: sqlite:PATH, postgresql://USER@HOST/DATABASE, firestore://PROJECT/DATABASE. Stop the schedulers of both
    first. TO is paused while the copy is under way; if it is killed, copy again: what is there already is not copied twice.

    \b
    Example:  ork store copy sqlite:.ork/ork.db firestore://my-project/ork
    """
    import asyncio

    from ork.status.formatting import count

    settings = local_settings("store copy")
    copied = asyncio.run(_copy(settings, source, target, dry_run=dry_run, leave_active=leave_active))
    if as_json:
        lists = {"active": list(copied.active), "differs": list(copied.differs)}
        print_json({**copied._asdict(), **lists, "dry_run": dry_run})
        return
    verb = "would copy" if dry_run else "copied"
    parts = (count(copied.versions, "version"), count(copied.workflows, "workflow"), count(copied.runs, "run"))
    print(f"{verb} {', '.join(parts)}; {count(copied.kept, 'run')} there already")
    if copied.active:
        print(f"left out: {count(len(copied.active), 'run')} not ended")
    if copied.differs:
        print(
            f"left as in the target: {count(len(copied.differs), 'run')} with another end, the newest is {copied.differs[0]}"
        )


async def _copy(settings: Settings, source: str, target: str, *, dry_run: bool, leave_active: bool) -> Copied:
    from ork.app.copying import copy_store
    from ork.app.stores import has_store, open_store
    from ork.errors import UsageError

    if source == target:
        raise UsageError("FROM and TO are the same store", hint="name another store as TO")
    has_store(settings._replace(store=source), may_be_new=False)
    one, other = (open_store(settings._replace(store=url), inline=False) for url in (source, target))
    try:
        return await copy_store(one, other, now, dry_run=dry_run, leave_active=leave_active)
    finally:
        await one.close()
        await other.close()
