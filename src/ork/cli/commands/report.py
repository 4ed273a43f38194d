"""`ork report`: writes a run as one HTML page: the pages of the web UI with the data of this run."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from ork.cli.arguments import run_argument
from ork.cli.session import json_option, print_json, run_reads, store_options

if TYPE_CHECKING:
    from ork.app.installation import Installation


@click.command(name="report")
@run_argument
@click.option("-o", "--output", "file", metavar="FILE", help="Where to write it; `-` for stdout.  [default: RUN.html]")
@json_option
@store_options
def report_command(run: str, file: str | None, as_json: bool) -> None:
    """Write a run as one HTML page that opens from a disk: the web UI with this run, and nothing that runs.

    Of long logs it contains the end, of large runs all states, and the details of the failed and the first tasks. It
    contains params, outputs and logs, so check them before you share it.

    \b
    Example:  ork report @last -o report.html
    """
    page, short = run_reads(lambda installation: _page(installation, run))
    if file == "-":
        sys.stdout.write(page.decode())
        return
    from ork.ui.targets import write_file

    path = file or f"{short}.html"
    write_file(path, page)
    if as_json:
        print_json({"path": os.path.abspath(path), "bytes": len(page)})
    else:
        print(f"{path}  {len(page):,} bytes")


async def _page(installation: Installation, given: str) -> tuple[bytes, str]:
    from ork.cli.commands.ui_export import export_of
    from ork.errors import NotFoundError
    from ork.status.ids import parse_target, resolve_run, short_id
    from ork.ui.documents import Choice
    from ork.ui.export import export_file
    from ork.ui.run_documents import Logs

    store = installation.store
    id = await resolve_run(store, parse_target(given).run)
    run, short = await store.get_run(id), await short_id(store, id)
    if run is None:
        raise NotFoundError(f"no run `{id}`", hint="`ork runs` lists them")
    title = f"{run.workflow} · run {short}"
    export = export_of(installation, Choice(logs=Logs.ALL, only=id), f"runs/{id}", title)
    page, _ = await export_file(export)
    return page, short
