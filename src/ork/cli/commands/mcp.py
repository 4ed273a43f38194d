"""`ork mcp`: offers the tools of the Model Context Protocol on standard input and output."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ork.cli.commands.serve import need_mcp_package
from ork.cli.session import current_user, run_long, store_options

if TYPE_CHECKING:
    from ork.app.installation import Installation


@click.command(name="mcp")
@click.option("--read-only", is_flag=True, help="Offer only tools that change nothing.")
@store_options
def mcp_command(read_only: bool) -> None:
    """Offer tools to an assistant, as its configuration starts this command: look at workflows, runs, reasons and logs,
    validate files, start, retry and cancel runs. Each change is confirmed by the user first.

    With --server the token in ORK_TOKEN decides what is allowed. Without it, this is the project of the current folder,
    and runs that are started here are worked on by this process if no scheduler is running. `ork serve --mcp` offers the
    same tools over HTTP.

    \b
    Example:  ork mcp --read-only
    """
    from ork.api import check_packages

    need_mcp_package()  # first: the extra `mcp` brings what the API needs, too
    check_packages("the tools need")
    if sys.stdin.isatty():
        print("ork mcp speaks the Model Context Protocol on standard input: an assistant starts it", file=sys.stderr)
    run_long(lambda installation: _offer(installation, read_only))


async def _offer(installation: Installation, read_only: bool) -> None:
    from ork.api.context import Caller
    from ork.app.api_requests import api_requests
    from ork.mcp.server import mcp_server
    from ork.model.access import Role

    requests = api_requests(installation, Caller(current_user(), Role.VIEWER if read_only else Role.OPERATOR))
    role = Role.VIEWER if read_only else await requests.role()
    try:
        await mcp_server(requests, role).run_stdio_async()
    finally:
        await requests.close()
