"""`ork ui`: opens the web UI in a browser, signed in, or exports it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from ork.cli.commands.ui_export import export_command
from ork.cli.session import current_settings, run_service, store_options
from ork.errors import NotFoundError, OrkError, RefusedError, StoreUnavailableError
from ork.terminal import has_windows

if TYPE_CHECKING:
    from ork.api.client.connection import Server
    from ork.settings import Settings

HOST = "127.0.0.1"
DEFAULT_PORT = 8700
CONNECT_SECONDS = 5.0


@click.group(name="ui", invoke_without_command=True)
@click.option("--no-browser", is_flag=True, help="Print the address instead; it works once, for a minute.")
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="The port of the server on this machine.",
)
@store_options
@click.pass_context
def ui_command(context: click.Context, no_browser: bool, port: int) -> None:
    """Open the web UI in a browser, signed in with your token, or write its pages to a file or folder (export).

    Uses the server on this machine, or the one of --server. If none runs here, it starts one like `ork serve`, until
    Ctrl-C.

    \b
    Example:  ork ui
              ork ui export status.html
    """
    if context.invoked_subcommand is not None:
        return
    settings = current_settings()
    url = settings.server or f"http://{HOST}:{port}"
    if settings.server is not None or _is_in_use(port):
        _open_page(url, settings, no_browser)
    else:
        _serve(settings, port, no_browser)


ui_command.add_command(export_command)


def _is_in_use(port: int) -> bool:
    import socket

    try:
        socket.create_connection((HOST, port), CONNECT_SECONDS).close()
    except ConnectionRefusedError:
        return False
    except OSError as error:
        raise StoreUnavailableError(f"cannot reach {HOST}:{port}: {error}") from error
    return True


def _serve(settings: Settings, port: int, no_browser: bool) -> None:
    from ork.app.stores import uses_network
    from ork.cli.commands.serve import Options, note_new_project, serve
    from ork.cli.service_log import ServiceLog

    if uses_network(settings):
        # A scheduler here would start tasks of the shared store on this machine.
        raise RefusedError(
            f"no server runs on {HOST}:{port}, and the store is shared with other machines",
            hint="name the server: `ork ui --server URL`; or start one here: `ork serve`",
        )

    def open_when_ready(url: str) -> None:
        try:
            _open_page(url, settings, no_browser)
        except OrkError as error:  # the server goes on
            print(f"cannot open the web UI: {error.message}", file=sys.stderr, flush=True)

    options = Options(HOST, port, True, True, False, (), (), None, None, "text")
    note_new_project(settings)
    log = ServiceLog(options.log_format)
    run_service(lambda installation: serve(installation, options, log, open_when_ready), log)


def _open_page(url: str, settings: Settings, no_browser: bool) -> None:
    from ork.api.client.connection import Server

    server = Server(url, settings.token, settings.home)
    try:
        ticket = _ticket(server, settings)
    finally:
        server.close()
    address = f"{server.url}/ui/#ticket={ticket}"
    if not no_browser and _open_browser(address):
        print(f"opened {server.url}/ui/ in the browser", flush=True)
        return
    print(address, flush=True)
    print("open this address within a minute: it signs in once", file=sys.stderr, flush=True)


def _ticket(server: Server, settings: Settings) -> str:
    try:
        return str(server.post("ui-tickets")["ticket"])
    except NotFoundError:
        raise RefusedError(
            f"the server at {server.url} has no web UI", hint="it is an older version of Ork: upgrade it"
        ) from None
    except RefusedError as error:
        if settings.server is not None:
            hint = "set ORK_TOKEN to a token of that server with the role viewer, operator or admin"
        elif settings.token:
            hint = "ORK_TOKEN is set: it must be a token of that server"
        else:
            hint = "does it serve another project? run `ork ui` there, or choose another --port"
        raise RefusedError(
            f"the server at {server.url} does not sign you in: {error.message}", hint=hint, code=error.code
        ) from None


def _open_browser(address: str) -> bool:
    """False if there is no browser with a window."""
    import webbrowser

    try:
        return has_windows() and webbrowser.open(address)
    except (webbrowser.Error, OSError):
        return False
