"""`ork locations`: the images and folders that workflows come from."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ork.cli.errors import DONE, FAILED
from ork.cli.session import current_settings, json_option, look, now, palette, print_json, serve, store_options
from ork.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from ork.app.installation import Installation
    from ork.cli.paint import Line, Span
    from ork.status.locations import LocationView

_LOOK_SECONDS = 0.2
_SHOWN_LINES = 20
_DIGEST_LETTERS = 19  # sha256: and twelve letters of it
_LOOKS = {"ok": ("✓", "good"), "failed": ("✗", "bad"), "looking": ("▶", "busy"), "new": ("◷", "dim")}


@click.group(name="locations", invoke_without_command=True)
@json_option
@store_options
@click.pass_context
def locations_command(context: click.Context, as_json: bool) -> int | None:
    """The images and folders in locations.yaml, what was found there, and what is wrong.

    Mistakes in the file are told too, and exit 2.

    \b
    Example:  ork locations
              ork locations refresh etl
    """
    if context.invoked_subcommand is not None:
        return None
    views = look(_views)
    if as_json:
        _check_the_file()
        _print_json(views)
        return DONE
    if views:
        palette(sys.stdout).write(sys.stdout, _lines(views))
    else:
        print("no locations: a scheduler takes them from locations.yaml when it starts", file=sys.stderr)
    _check_the_file()
    return DONE


def _check_the_file() -> None:
    """What is shown is what the last scheduler took from it: mistakes made since are told as well."""
    from ork.locations.written import read_locations

    settings = current_settings()
    if settings.server is None:
        read_locations(settings.root)


@locations_command.command(name="refresh")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@json_option
@store_options
def refresh_command(names: tuple[str, ...], as_json: bool) -> int:
    """Look into a location now, instead of at its next time, and show what came of it; exit 1 if it failed.

    What was not good is looked into again, even if it is the same. Schedulers do the work where there are some.

    \b
    Example:  ork locations refresh etl
    """
    views = serve(lambda installation: _refresh(installation, names))
    if as_json:
        _print_json(views)
    else:
        palette(sys.stdout).write(sys.stdout, _lines(views))
    return FAILED if any(view.entry.error is not None for view in views) else DONE


async def _views(installation: Installation) -> list[LocationView]:
    from ork.status.locations import view_locations

    return await view_locations(installation.store)


async def _refresh(installation: Installation, names: tuple[str, ...]) -> list[LocationView]:
    from ork.cli.commands.act import who_asks
    from ork.status.schedulers import live_schedulers, present_schedulers

    known = live_schedulers if installation.can_work else present_schedulers
    is_served = bool(await known(installation.store))
    refresher = None
    if not is_served and installation.can_work:
        from ork.telemetry import Telemetry

        refresher = await installation.refresher(Telemetry())
    before = {view.entry.name: view.entry.looked_at for view in await _views(installation)}
    for name in names:
        if not await installation.store.ask_refresh(name, now()):
            hint = f"there is: {', '.join(before)}" if before else "a scheduler takes them from locations.yaml"
            raise NotFoundError(f"no location `{name}` here", hint=hint)
        await installation.record(who_asks(), "location.refresh", name)
    if refresher is not None:
        await refresher.refresh_due()
    elif not is_served:
        raise UsageError("no scheduler is there to look", hint="start `ork serve`, or `ork tick` beside locations.yaml")
    else:
        await _wait_for(installation, {name: before[name] for name in names})
    return [view for view in await _views(installation) if view.entry.name in names]


async def _wait_for(installation: Installation, before: dict[str, datetime | None]) -> None:
    """Until somebody has looked into all of them since we asked."""
    import asyncio

    while True:
        entries = {entry.name: entry for entry in await installation.store.list_locations()}
        if all(name not in entries or entries[name].looked_at != looked_at for name, looked_at in before.items()):
            return
        await asyncio.sleep(_LOOK_SECONDS)


def _print_json(views: list[LocationView]) -> None:
    from ork.status.locations import location_json

    print_json({"locations": [location_json(view, now()) for view in views]})


def _lines(views: list[LocationView]) -> list[Line]:
    from ork.cli.tables import table

    lines = table(
        ("location", "", "workflows", "digest", "looked", "next", "source"), [_row(view) for view in views], less=(3, 5)
    )
    for view in views:
        if view.entry.error is not None:
            lines += _trouble(view)
    return lines


def _row(view: LocationView) -> tuple[Span | str, ...]:
    from ork.cli.paint import Span
    from ork.cli.visible import visible
    from ork.status.formatting import ago

    entry, status = view.entry, view.status(now())
    glyph, style = _LOOKS[status]
    gone = f" ({len(view.vanished)} gone)" if view.vanished else ""
    looked = "–" if entry.looked_at is None else ago(entry.looked_at, now())
    return (
        entry.name,
        Span(f"{glyph} {status}", style),
        f"{len(view.workflows)}{gone}",
        "–" if entry.digest is None else entry.digest[:_DIGEST_LETTERS],
        looked,
        ago(entry.due_at, now()),
        visible(entry.source),
    )


def _trouble(view: LocationView) -> list[Line]:
    """What is wrong with it, and the end of what its parser said."""
    from ork.cli.paint import Span, line
    from ork.cli.visible import visible

    entry = view.entry
    goes_on = f"; {entry.digest[:_DIGEST_LETTERS]} goes on" if entry.digest else ""
    said = (entry.output or "").splitlines()[-_SHOWN_LINES:] if entry.output != entry.error else []
    lines = [line(), line(Span(f"✗ {entry.name}", "bad"), f"  {entry.code} {visible(entry.error or '')}{goes_on}")]
    return lines + [line(Span(f"    {visible(text)}", "dim")) for text in said]
