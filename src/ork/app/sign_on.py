"""Single sign-on as ork.yaml configures it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ork.errors import UsageError

if TYPE_CHECKING:
    from ork.api.oidc.provider import Provider
    from ork.api.oidc.sign_on import SignOn
    from ork.settings import Settings
    from ork.state.store import StateStore


def provider_of(settings: Settings) -> Provider | None:
    """None if ork.yaml has no `sign_in`. UsageError if its packages are missing. The provider is not asked yet."""
    config = settings.project.sign_in if settings.project is not None else None
    if config is None:
        return None
    from importlib.util import find_spec

    from ork.api.oidc import PACKAGES
    from ork.api.oidc.provider import Provider

    if any(find_spec(name) is None for name in PACKAGES):
        raise UsageError("`sign_in` in ork.yaml needs the package authlib", hint="pip install 'ork-orchestrator[oidc]'")
    return Provider(config, settings.outbound, settings.secrets.own_value)


def sign_on_of(settings: Settings, store: StateStore) -> SignOn | None:
    """None if ork.yaml has no `sign_in`."""
    provider = provider_of(settings)
    if provider is None:
        return None
    from ork.api.oidc.sign_on import SignOn

    return SignOn(provider, store)
