"""`ork serve`: scheduler and HTTP API in one process."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

import click

from ork.app.stores import check_project
from ork.cli.service_log import LOG_FORMAT, LOG_LEVEL, ServiceLog
from ork.cli.session import current_settings, keep_serving, store_options, task_user_option
from ork.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from ork.app.installation import Installation
    from ork.cli.together import Parts
    from ork.settings import Settings

DEFAULT_PORT = 8700


class Options(NamedTuple):
    host: str
    port: int
    with_scheduler: bool
    with_api: bool
    drains: bool
    allowed_hosts: tuple[str, ...]
    trusted_proxies: tuple[str, ...]
    tls_cert: str | None
    tls_key: str | None
    log_format: str


@click.command(name="serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True, help="0: any.")
@click.option("--no-scheduler", is_flag=True, help="Only the API; schedulers run elsewhere, or `POST /tick` does.")
@click.option("--no-api", is_flag=True, help="Only the scheduler, like `ork scheduler`.")
@click.option("--drain", "drains", is_flag=True, help="When stopped, begin nothing new and see what runs to its end.")
@click.option(
    "--allowed-host", "allowed_hosts", multiple=True, metavar="NAME", help="A name people use for this server."
)
@click.option(
    "--trusted-proxy",
    "trusted_proxies",
    multiple=True,
    metavar="ADDRESS",
    help="A reverse proxy (address or network) whose X-Forwarded-* headers count; also `trusted_proxies` in ork.yaml.",
)
@click.option("--tls-cert", type=click.Path(exists=True, dir_okay=False), help="Certificate chain, PEM.")
@click.option("--tls-key", type=click.Path(exists=True, dir_okay=False), help="Its private key, PEM.")
@LOG_FORMAT
@LOG_LEVEL
@task_user_option
@store_options
def serve_command(
    host: str,
    port: int,
    no_scheduler: bool,
    no_api: bool,
    drains: bool,
    allowed_hosts: tuple[str, ...],
    trusted_proxies: tuple[str, ...],
    tls_cert: str | None,
    tls_key: str | None,
    log_format: str,
    log_level: str,
) -> None:
    """Work on runs and answer over HTTP until stopped (SIGTERM or Ctrl-C). Several may serve one store.

    The first start makes a token in .ork/token, readable by you alone. Tasks go on when this process stops, and the
    next scheduler adopts them.

    \b
    Example:  ork serve --port 8700
    """
    if no_scheduler and no_api:
        raise UsageError("nothing is left to serve")
    names = (allowed_hosts, trusted_proxies)
    options = Options(host, port, not no_scheduler, not no_api, drains, *names, tls_cert, tls_key, log_format)
    note_new_project(current_settings())
    log = ServiceLog(log_format, log_level)
    keep_serving(lambda installation: _work(installation, options, log), log)


def note_new_project(settings: Settings) -> None:
    """Says on stderr that there was no project: a wrong folder would otherwise be served without a sign."""
    try:
        check_project(settings)
    except NotFoundError as problem:
        print(f"{problem.message}: a new one is created in {settings.home}", file=sys.stderr, flush=True)


async def _work(installation: Installation, options: Options, log: ServiceLog) -> None:
    from ork.cli.together import work_together

    if not installation.can_work:
        raise UsageError("a server is not served through another one", hint="leave --server away")
    parts = await make_parts(installation, options, log)
    try:
        await work_together(parts, log)
    finally:
        if parts.api_installation is not None:
            await parts.api_installation.close()


async def make_parts(installation: Installation, options: Options, log: ServiceLog) -> Parts:
    """The scheduler and the API that are wished for, ready to run together."""
    from ork.cli.together import Parts

    service = await installation.scheduler("scheduler") if options.with_scheduler else None
    if service is not None:
        # Ready is told once, when all of it is.
        log.listen_to(service.telemetry, but_ready=True)
    parts = Parts(service, drains=options.drains)
    if options.with_api:
        await _add_api(installation, options, parts, log)
    return parts


async def _add_api(installation: Installation, options: Options, parts: Parts, log: ServiceLog) -> None:
    _need_server_packages()
    from ork.api.app import create_app
    from ork.api.origins import is_loopback
    from ork.api.server import ApiServer, Place, check_exposure
    from ork.api.tokens import ensure_first_token
    from ork.app.installation import http_api, open_installation
    from ork.cli.session import now

    place = Place(options.host, options.port, options.allowed_hosts, options.tls_cert, options.tls_key)
    check_exposure(place, await installation.store.list_tokens())
    if is_loopback(options.host):
        parts.token_file = await ensure_first_token(installation.store, installation.settings.home, now())
    elif options.tls_cert is None:
        print("without --tls-cert tokens travel in the clear: put a proxy with TLS in front", file=sys.stderr)
    parts.api_installation = await open_installation(installation.settings)
    api = http_api(parts.api_installation, parts.service)
    parts.hub = api.hub
    if parts.service is None:
        api.telemetry.listen(log)
    proxies = options.trusted_proxies or installation.settings.trusted_proxies
    app = create_app(api, allowed_hosts=options.allowed_hosts, trusted_proxies=proxies)
    parts.server = ApiServer(app, place, api.telemetry)


def _need_server_packages() -> None:
    from importlib.util import find_spec

    from ork.api import PACKAGES

    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"the API needs packages that are not here: {', '.join(missing)}",
            hint="pip install 'ork-orchestrator[server]', or serve with --no-api",
        )
