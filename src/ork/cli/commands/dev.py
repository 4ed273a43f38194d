"""`ork dev`: serves a project, and deploys workflows when files change."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from ork.cli.service_log import LOG_FORMAT, ServiceLog
from ork.cli.session import current_settings, run_long, store_options
from ork.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from ork.app.installation import Installation
    from ork.cli.commands.serve import Options


@click.command(name="dev")
@click.argument("folder", default=".", metavar="[DIR]")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where the API listens.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Its port (default: any free one).")
@click.option("--no-api", is_flag=True, help="Only the scheduler.")
@LOG_FORMAT
@store_options
def dev_command(folder: str, host: str, port: int, no_api: bool, log_format: str) -> None:
    """Serve a project and deploy its workflows when files change, until Ctrl-C.

    Valid workflows are deployed at once; errors are shown, and the last valid version stays. Folders in locations.yaml
    are refreshed when they change; images are not refreshed.

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
    run_long(lambda installation: _work(installation, options))


async def _work(installation: Installation, options: Options) -> None:
    from ork.cli.commands.serve import make_services
    from ork.cli.dev_loop import DevLoop
    from ork.cli.services import run_services

    if not installation.can_work:
        raise UsageError("`ork dev` does not work through a server", hint="run it without --server")
    installation.looks_into_images = False  # only files are deployed
    log = ServiceLog(options.log_format)
    services = await make_services(installation, options, log)
    services.watcher = DevLoop(installation, services.service)
    print(f"watching {os.getcwd()} · Ctrl-C ends it", file=sys.stderr, flush=True)
    try:
        await run_services(services, log)
    finally:
        if services.api_installation is not None:
            await services.api_installation.close()
