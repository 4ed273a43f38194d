"""`ork db`: the store's schema, and the settings that all schedulers of an installation share."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from ork.cli.errors import DONE, FAILED
from ork.cli.session import current_user, json_option, local_settings, now, print_json, run_short, store_options

if TYPE_CHECKING:
    from ork.app.installation import Installation
    from ork.model.installation import SharedSettings


@click.group(name="db")
def db_command() -> None:
    """Manage the store's schema (migrate, status, indexes) and the settings shared by its schedulers (settings, use-settings)."""


@db_command.command(name="migrate")
@json_option
@store_options
def migrate_command(as_json: bool) -> None:
    """Migrate the store to the newest schema; it may be in use meanwhile.

    \b
    Example:  ork db migrate
    """
    from ork.app.stores import migrate_store

    before, after = migrate_store(local_settings("db"))
    if as_json:
        print_json({"before": before, "schema": after})
    else:
        print(f"schema {after}" + ("" if before == after else f" (was {before})"))


@db_command.command(name="status")
@json_option
@store_options
def status_command(as_json: bool) -> int:
    """Show the store's schema and the one this Ork knows; exit 1 if it must be migrated.

    \b
    Example:  ork db status
    """
    from ork.app.stores import store_schema
    from ork.state.urls import without_password

    settings = local_settings("db")
    current, known = store_schema(settings)
    store = without_password(settings.store)
    if as_json:
        print_json({"store": store, "schema": current, "known": known})
    else:
        print(f"{store}: schema {current}, this Ork knows {known}")
        if current < known:
            print("  ork db migrate")
    return DONE if current == known else FAILED


@db_command.command(name="indexes")
@click.option("--output", "-o", type=click.Path(dir_okay=False), help="Write the file here instead of printing it.")
@store_options
def indexes_command(output: str | None) -> None:
    """Print the indexes that a store on Firestore needs, as the file firestore.indexes.json.

    \b
    Example:  ork db indexes -o firestore.indexes.json
    """
    from ork.app.stores import index_file
    from ork.errors import UsageError

    settings = local_settings("db")
    text = index_file(settings)
    if text is None:
        hint = "only a store on Firestore needs indexes from outside"
        raise UsageError(f"the store {settings.store.partition(':')[0]} makes its own indexes", hint=hint)
    if output is None:
        print(text, end="")
        return
    with open(output, "w", encoding="utf-8") as file:
        file.write(text)
    print(f"wrote {output}")


@db_command.command(name="settings")
@json_option
@store_options
def settings_command(as_json: bool) -> int:
    """Show the settings shared by all schedulers and those of this machine; exit 1 if they differ.

    \b
    Example:  ork db settings
    """
    from ork.app.shared_settings import difference
    from ork.status.shapes import time_json

    local_settings("db")
    recorded, mine = run_short(_read_settings)
    problem = None if recorded is None else difference(recorded, mine)
    if as_json:
        found = (
            None if recorded is None else {**_settings_json(recorded), "recorded_at": time_json(recorded.recorded_at)}
        )
        print_json({"recorded": found, "here": _settings_json(mine), "ok": problem is None})
    else:
        for line in _settings_lines(recorded, mine):
            print(line)
        if problem is not None:
            print(f"\n{problem.message}\n  {problem.hint}")
    return DONE if problem is None else FAILED


@db_command.command(name="use-settings")
@click.option("--force", is_flag=True, help="Even while attempts are active: they may be started a second time.")
@json_option
@store_options
def use_settings_command(as_json: bool, force: bool) -> None:
    """Record the object store and the liveness timeouts of this machine as those of the installation.

    Refused while attempts are active. Schedulers with other settings stop with an error. Documents of earlier runs (logs,
    large outputs) are not moved: copy the folder first, with its identity.json.

    \b
    Example:  ork --objects file:/mnt/ork/objects db use-settings
    """
    local_settings("db")
    before, after = run_short(lambda installation: _use_settings(installation, force), creates=True)
    if as_json:
        print_json({"before": None if before is None else _settings_json(before), "recorded": _settings_json(after)})
    else:
        for line in _settings_lines(after, None):
            print(line)


async def _read_settings(installation: Installation) -> tuple[SharedSettings | None, SharedSettings]:
    from ork.app.installation import open_configured_objects
    from ork.app.shared_settings import local_shared_settings
    from ork.objects.identity import read_identity

    objects = open_configured_objects(installation.settings, creates=False)
    mine = local_shared_settings(installation.settings, objects, read_identity(objects))
    return await installation.store.read_shared_settings(), mine


async def _use_settings(installation: Installation, force: bool) -> tuple[SharedSettings | None, SharedSettings]:
    from ork.app.installation import open_configured_objects
    from ork.app.shared_settings import use_settings

    before = await installation.store.read_shared_settings()
    objects = open_configured_objects(installation.settings, creates=True)
    after = await use_settings(installation.store, objects, installation.settings, force=force)
    detail = {
        "recorded": _settings_json(after),
        "before": None if before is None else _settings_json(before),
        "force": force,
    }
    await installation.record(current_user(), "settings.use", "installation", json.dumps(detail))
    return before, after


def _settings_json(settings: SharedSettings) -> dict[str, object]:
    return {
        "objects": settings.objects or None,
        "objects_url": settings.objects_url,
        "heartbeat_seconds": settings.heartbeat_seconds,
        "stale_seconds": settings.stale_seconds,
        "host": settings.host,
    }


def _settings_lines(recorded: SharedSettings | None, mine: SharedSettings | None) -> list[str]:
    from ork.status.formatting import ago

    lines = []
    if recorded is None:
        lines.append("installation  nothing recorded yet: the first run or scheduler records them")
    for label, each in (("installation", recorded), ("here", mine)):
        if each is not None:
            lines += [
                f"{label:<14}objects    {each.objects_url} (id {each.objects[:8] or 'none yet'})",
                f"{'':<14}heartbeat  {each.heartbeat_seconds:g}s, lost after {each.stale_seconds:g}s",
                f"{'':<14}{'recorded' if each is recorded else 'as seen'} by {each.host}"
                + (f" {ago(each.recorded_at, now())}" if each is recorded else ""),
            ]
    return lines
