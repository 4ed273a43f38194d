"""Checks of `ork doctor` for the web UI: whether its pages are published, and whether the provider of sign-ins answers."""

from __future__ import annotations

from collections.abc import Iterator

from ork.cli.damage_checks import Finding, has_no_store_yet
from ork.cli.session import now, run_short
from ork.settings import Settings


def published(settings: Settings) -> Iterator[Finding]:
    """Where the pages are published, when that was done last, and why it fails."""
    from ork.app.installation import Installation
    from ork.model.publishing import PublishState
    from ork.status.publishing import published_text

    if settings.project is None or settings.project.ui is None or has_no_store_yet(settings):
        return

    async def read(installation: Installation) -> PublishState | None:
        publisher = installation.publisher()
        return None if publisher is None else await publisher.state()

    state = run_short(read)
    if state is not None:
        fix = None if state.problem is None else f"try `ork ui export {state.to}`"
        yield Finding("published", published_text(state, now()), fix)


def provider(settings: Settings) -> Iterator[Finding]:
    """Whether the provider of `sign_in` answers, and is the one that is meant."""
    import asyncio

    from ork.app.sign_on import provider_of
    from ork.errors import UsageError

    try:
        found = provider_of(settings)
    except UsageError as error:
        yield Finding("sign-in", error.message, error.hint)
        return
    if found is None:
        return
    from ork.api.oidc.failures import SignInFailure

    config = found.config
    if config.client_secret is not None and not settings.secrets.own_value(config.client_secret):
        yield Finding(
            "sign-in", f"the secret {config.client_secret} has no value here", "set it where `ork serve` runs"
        )
    try:
        asyncio.run(found.metadata())
    except SignInFailure as failure:
        yield Finding(
            "sign-in", f"{failure.title}: {failure.detail}", "check `sign_in.oidc.issuer`; tokens work all the same"
        )
        return
    yield Finding("sign-in", f"with {config.name}: {config.issuer} answers")
