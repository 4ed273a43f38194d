"""`ork db`: the store's schema."""

from __future__ import annotations

import click

from ork.cli.errors import DONE, FAILED
from ork.cli.session import json_option, print_json, settings_beside_the_store, store_options


@click.group(name="db")
def db_command() -> None:
    """The store's schema: migrate, status."""


@db_command.command(name="migrate")
@json_option
@store_options
def migrate_command(as_json: bool) -> None:
    """Bring the store to the newest schema; it may be in use meanwhile.

    \b
    Example:  ork db migrate
    """
    from ork.app import migrate_store

    before, after = migrate_store(settings_beside_the_store("db"))
    if as_json:
        print_json({"before": before, "schema": after})
    else:
        print(f"schema {after}" + ("" if before == after else f" (was {before})"))


@db_command.command(name="status")
@json_option
@store_options
def status_command(as_json: bool) -> int:
    """Which schema the store has and which one this Ork knows; exit 1 if it must be migrated.

    \b
    Example:  ork db status
    """
    from ork.state.urls import without_password
    from ork.stores import store_schema

    settings = settings_beside_the_store("db")
    current, known = store_schema(settings)
    store = without_password(settings.store)
    if as_json:
        print_json({"store": store, "schema": current, "known": known})
    else:
        print(f"{store}: schema {current}, this Ork knows {known}")
        if current < known:
            print("  ork db migrate")
    return DONE if current == known else FAILED
