"""Single sign-on through a provider of OpenID Connect: the authorization code flow with PKCE.

In: a browser that wants to sign in. Out: a token row for the person, with a role, and a ticket for the browser's session.
`flow` binds a sign-in to the browser that began it, `provider` talks to the provider, `id_tokens` verifies what it says, and
`people` turns that into a person with a role. Nothing is kept in memory that another server on the store would need.
"""

from __future__ import annotations

PACKAGES = ("authlib", "joserfc")
"""What the extra `oidc` installs."""
