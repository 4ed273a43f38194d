"""`ork dev`: serve a project while it is worked on, and deploy what changes."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from ork.cli.service_log import LOG_FORMAT, ServiceLog
from ork.cli.session import current_settings, serve, store_options
from ork.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from ork.app.installation import Installation
    from ork.cli.commands.serve import Options


@click.command(name="dev")
@click.argument("folder", default=".", metavar="[DIR]")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where the API listens.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Its port; any free one when left out.")
@click.option("--no-api", is_flag=True, help="Only the scheduler.")
@LOG_FORMAT
@store_options
def dev_command(folder: str, host: str, port: int, no_api: bool, log_format: str) -> None:
    """Work on a project: serve it, and deploy its workflows whenever a file changes, until Ctrl-C.

    What is right is deployed at once; mistakes are shown with their places, and the last good version goes on. Folders
    in locations.yaml are looked into again as soon as they change, images not at all.

    \b
    Example:  ork dev            then, in another terminal:  ork trigger hello --wait
    """
    from ork.cli.commands.serve import Options, note_new_project

    try:
        os.chdir(folder)
    except OSError as error:
        raise NotFoundError(f"there is no folder {folder}: {error.strerror}") from None
    options = Options(host, port, True, not no_api, False, (), (), None, None, log_format)
    note_new_project(current_settings())
    serve(lambda installation: _work(installation, options))


async def _work(installation: Installation, options: Options) -> None:
    from ork.cli.commands.serve import make_parts
    from ork.cli.dev_loop import DevLoop
    from ork.cli.together import work_together

    if not installation.can_work:
        raise UsageError("files are watched beside their store, not through a server", hint="leave --server away")
    installation.looks_into_images = False  # here it is the files that count
    log = ServiceLog(options.log_format)
    parts = await make_parts(installation, options, log)
    parts.watcher = DevLoop(installation, parts.service)
    print(f"watching {os.getcwd()} · Ctrl-C ends it", file=sys.stderr, flush=True)
    try:
        await work_together(parts, log)
    finally:
        if parts.api_installation is not None:
            await parts.api_installation.close()
