"""`ork serve`: runs a scheduler and the HTTP API in one process."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import click

from ork.app.stores import check_project
from ork.cli.service_log import LOG_FORMAT, LOG_LEVEL, ServiceLog
from ork.cli.session import current_settings, run_service, store_options, task_user_option
from ork.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ork.api.identity_tokens import IdentityVerifier
    from ork.app.installation import Installation
    from ork.cli.services import Services
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
    on_request: bool = False
    has_mcp: bool = False


@click.command(name="serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True, help="0: any free port."
)
@click.option("--no-scheduler", is_flag=True, help="Only the API; use other schedulers, or `POST /tick`.")
@click.option(
    "--on-request",
    is_flag=True,
    help="Work only inside requests, for platforms that give CPU only then; needs `alarm` in ork.yaml.",
)
@click.option("--no-api", is_flag=True, help="Only the scheduler, like `ork scheduler`.")
@click.option("--drain", "drains", is_flag=True, help="When stopped, start nothing new and wait for running tasks.")
@click.option("--allowed-host", "allowed_hosts", multiple=True, metavar="NAME", help="A host name of this server.")
@click.option(
    "--trusted-proxy",
    "trusted_proxies",
    multiple=True,
    metavar="ADDRESS",
    help="A reverse proxy (address or network) whose X-Forwarded-* headers are trusted; also `trusted_proxies` in ork.yaml.",
)
@click.option(
    "--mcp", "has_mcp", is_flag=True, help="Also offer the tools of `ork mcp` on /mcp; tokens and roles apply."
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
    on_request: bool,
    no_api: bool,
    drains: bool,
    allowed_hosts: tuple[str, ...],
    trusted_proxies: tuple[str, ...],
    has_mcp: bool,
    tls_cert: str | None,
    tls_key: str | None,
    log_format: str,
    log_level: str,
) -> None:
    """Run a scheduler and the HTTP API until stopped (SIGTERM or Ctrl-C). Several can share one store.

    The first start creates a token in .ork/token, readable only by you. Tasks continue when this process stops, and
    the next scheduler adopts them.

    \b
    Example:  ork serve --port 8700
    """
    if no_scheduler and no_api:
        raise UsageError("--no-scheduler and --no-api leave nothing to serve")
    settings = current_settings()
    if on_request:
        _check_on_request(settings, no_api=no_api, drains=drains)
        allowed_hosts = (*allowed_hosts, *_host_of_alarm(settings))
    has_scheduler = not (no_scheduler or on_request)
    names = (allowed_hosts, trusted_proxies)
    if has_mcp:
        need_mcp_package()
    options = Options(
        host, port, has_scheduler, not no_api, drains, *names, tls_cert, tls_key, log_format, on_request, has_mcp
    )
    note_new_project(settings)
    log = ServiceLog(log_format, log_level)
    run_service(lambda installation: serve(installation, options, log), log)


def _check_on_request(settings: Settings, *, no_api: bool, drains: bool) -> None:
    if no_api or drains:
        raise UsageError(f"--on-request works inside requests: {'--no-api' if no_api else '--drain'} has no effect")
    if settings.alarm is None:
        raise UsageError(
            "--on-request needs an alarm: nobody would call a tick when something is due",
            hint="set `alarm` in ork.yaml: `ork explain ORK851` shows how",
        )


def _host_of_alarm(settings: Settings) -> tuple[str, ...]:
    """The host name that the alarm's calls use."""
    from urllib.parse import urlsplit

    host = urlsplit(settings.alarm.url).hostname if settings.alarm is not None else None
    return (host,) if host else ()


def note_new_project(settings: Settings) -> None:
    """Prints on stderr that a new project is created, which reveals a wrong folder."""
    try:
        check_project(settings)
    except NotFoundError as problem:
        print(f"{problem.message}: a new one is created in {settings.home}", file=sys.stderr, flush=True)


async def serve(
    installation: Installation, options: Options, log: ServiceLog, on_ready: Callable[[str], None] | None = None
) -> None:
    """Serves until stopped. `on_ready` is called with the URL when the server has responded to a request."""
    from ork.cli.services import run_services

    if not installation.can_work:
        raise UsageError("`ork serve` does not work through a server", hint="run it without --server")
    services = await make_services(installation, options, log)
    services.on_ready = on_ready
    try:
        await run_services(services, log)
    finally:
        if services.api_installation is not None:
            await services.api_installation.close()


async def make_services(installation: Installation, options: Options, log: ServiceLog) -> Services:
    """The scheduler and the API as requested by the options, ready to run."""
    from ork.cli.services import Services

    service = await installation.scheduler("scheduler") if options.with_scheduler else None
    if service is not None:
        # `ready` is logged once, when all parts are.
        log.listen_to(service.telemetry, except_ready=True)
    services = Services(service, drains=options.drains)
    if options.with_api:
        await _add_api(installation, options, services, log)
    return services


async def _add_api(installation: Installation, options: Options, services: Services, log: ServiceLog) -> None:
    from ork.api import check_packages

    check_packages("the API needs", ", or serve with --no-api")
    from ork.api.app import create_app
    from ork.api.origins import is_loopback
    from ork.api.server import ApiServer, ListenAddress, check_exposure
    from ork.api.tokens import ensure_first_token
    from ork.app.http_api import http_api
    from ork.app.installation import open_installation
    from ork.app.sign_on import sign_on_of
    from ork.cli.session import now
    from ork.model.record import replaced

    address = ListenAddress(options.host, options.port, options.allowed_hosts, options.tls_cert, options.tls_key)
    check_exposure(address, await installation.store.list_tokens())
    if is_loopback(options.host):
        services.token_file = await ensure_first_token(installation.store, installation.settings.home, now())
    elif options.tls_cert is None:
        print("without --tls-cert tokens are sent unencrypted: use a proxy with TLS", file=sys.stderr)
    services.api_installation = await open_installation(installation.settings)
    settings = installation.settings
    seconds = settings.request_seconds if options.on_request else None
    api = http_api(services.api_installation, services.service, request_seconds=seconds, has_mcp=options.has_mcp)
    services.hub = api.hub
    verifier = _identity_verifier(settings)
    if options.on_request:
        await _prepare(services.api_installation, verifier)
    if services.service is None:
        api.telemetry.listen(log)
    proxies = options.trusted_proxies or installation.settings.trusted_proxies
    api = replaced(api, sign_on=sign_on_of(settings, api.store))
    app = create_app(api, allowed_hosts=options.allowed_hosts, trusted_proxies=proxies, platform=verifier)
    services.server = ApiServer(app, address, api.telemetry)


def _identity_verifier(settings: Settings) -> IdentityVerifier | None:
    """Verifies the tokens of the alarm's calls; None if they carry none."""
    alarm = settings.alarm
    if alarm is None or not alarm.service_account:
        return None
    from ork.api.identity_tokens import ExpectedIdentity, IdentityVerifier

    return IdentityVerifier(ExpectedIdentity(alarm.url.rstrip("/"), alarm.service_account, alarm.keys_url))


async def _prepare(installation: Installation, verifier: IdentityVerifier | None) -> None:
    """Loads what the first request needs: a platform gives more CPU to a starting process than to a request."""
    import ork.scheduler.service
    import ork.scheduler.step  # noqa: F401
    from ork.app.platforms import uses_cloud_run

    await installation.prepare_tick()
    if installation.clock is not None:
        installation.clock.alarm.timers.prepare()
    if uses_cloud_run(installation.settings):
        with suppress(ImportError):  # then the first task that needs it says what is missing
            import google.cloud.run_v2  # noqa: F401
    if verifier is not None:
        await verifier.prepare()


def need_mcp_package() -> None:
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        raise UsageError("MCP needs a package that is not installed: mcp", hint="pip install 'ork-orchestrator[mcp]'")
