"""`ork locations`: lists and refreshes the images and folders that workflows come from."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ork.cli.errors import DONE, FAILED
from ork.cli.session import (
    current_settings,
    current_user,
    json_option,
    now,
    palette,
    print_json,
    run_long,
    run_short,
    store_options,
)
from ork.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from datetime import datetime

    from ork.app.installation import Installation
    from ork.cli.paint import Line, Span
    from ork.status.locations import LocationView

_POLL_SECONDS = 0.2
_SHOWN_LINES = 20
_DIGEST_LETTERS = 19  # sha256: and twelve digits
_STYLES = {"ok": ("✓", "good"), "failed": ("✗", "bad"), "looking": ("▶", "busy"), "new": ("◷", "dim")}


@click.group(name="locations", invoke_without_command=True)
@json_option
@store_options
@click.pass_context
def locations_command(context: click.Context, as_json: bool) -> int | None:
    """List the images and folders in locations.yaml, their workflows, and errors.

    Errors in the file are shown too, with exit code 2.

    \b
    Example:  ork locations
              ork locations refresh etl
    """
    if context.invoked_subcommand is not None:
        return None
    views = run_short(_views)
    if as_json:
        _check_file()
        _print_json(views)
        return DONE
    if views:
        palette(sys.stdout).write(sys.stdout, _lines(views))
    else:
        print("no locations: a scheduler reads locations.yaml when it starts", file=sys.stderr)
    _check_file()
    return DONE


def _check_file() -> None:
    """Raises if locations.yaml has errors: the store has what the last scheduler read, before later changes."""
    from ork.locations.project_locations import read_locations

    settings = current_settings()
    if settings.server is None:
        read_locations(settings.root)


@locations_command.command(name="refresh")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@json_option
@store_options
def refresh_command(names: tuple[str, ...], as_json: bool) -> int:
    """Refresh locations now and show the result; exit 1 if one failed.

    A location that failed is read again even if it has not changed. Running schedulers do the work.

    \b
    Example:  ork locations refresh etl
    """
    views = run_long(lambda installation: _refresh(installation, names))
    if as_json:
        _print_json(views)
    else:
        palette(sys.stdout).write(sys.stdout, _lines(views))
    return FAILED if any(view.entry.error is not None for view in views) else DONE


async def _views(installation: Installation) -> list[LocationView]:
    from ork.status.locations import view_locations

    return await view_locations(installation.store)


async def _refresh(installation: Installation, names: tuple[str, ...]) -> list[LocationView]:
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
            hint = f"known are: {', '.join(before)}" if before else "a scheduler reads them from locations.yaml"
            raise NotFoundError(f"no location `{name}`", hint=hint)
        await installation.record(current_user(), "location.refresh", name)
    if refresher is not None:
        await refresher.refresh_due()
    elif not is_served:
        raise UsageError("no scheduler is running", hint="start `ork serve`, or call `ork tick` next to locations.yaml")
    else:
        await _wait_for(installation, {name: before[name] for name in names})
    return [view for view in await _views(installation) if view.entry.name in names]


async def _wait_for(installation: Installation, before: dict[str, datetime | None]) -> None:
    """Waits until all of them have been refreshed."""
    import asyncio

    while True:
        entries = {entry.name: entry for entry in await installation.store.list_locations()}
        if all(name not in entries or entries[name].looked_at != looked_at for name, looked_at in before.items()):
            return
        await asyncio.sleep(_POLL_SECONDS)


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
            lines += _problem_lines(view)
    return lines


def _row(view: LocationView) -> tuple[Span | str, ...]:
    from ork.cli.paint import Span, visible
    from ork.status.formatting import ago

    entry, status = view.entry, view.status(now())
    glyph, style = _STYLES[status]
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


def _problem_lines(view: LocationView) -> list[Line]:
    """The location's error, and the end of its parser's output."""
    from ork.cli.paint import Span, line, visible

    entry = view.entry
    kept = f"; {entry.digest[:_DIGEST_LETTERS]} stays in use" if entry.digest else ""
    output = (entry.output or "").splitlines()[-_SHOWN_LINES:] if entry.output != entry.error else []
    lines = [line(), line(Span(f"✗ {entry.name}", "bad"), f"  {entry.code} {visible(entry.error or '')}{kept}")]
    return lines + [line(Span(f"    {visible(text)}", "dim")) for text in output]
