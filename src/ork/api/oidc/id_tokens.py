"""Verifies id tokens: signed by a key of the provider, from this issuer, for this client, for this sign-in, and not expired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from ork.api.oidc.failures import wrong_answer

if TYPE_CHECKING:
    from joserfc.jwk import Key

# Only signatures with a public key. `none`, and those with a shared secret, are not accepted from anybody.
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
CLOCK_SKEW_SECONDS = 60
MAX_BYTES = 1 << 16
_PUBLIC_KINDS = ("RSA", "EC", "OKP")


class Expected(NamedTuple):
    """What the token must say."""

    issuer: str
    client_id: str
    nonce: str
    access_token: str | None


class UnknownKey(Exception):  # noqa: N818 (the provider may have new keys)
    """No key of the provider has the id that the token names."""


def verified_claims(
    token: object, keys: Sequence[Mapping[str, Any]], expected: Expected, now: datetime
) -> Mapping[str, Any]:
    """The claims of the token. SignInFailure if it is not valid, and UnknownKey if other keys may be needed."""
    from authlib.oidc.core import CodeIDToken
    from joserfc import jwt
    from joserfc.errors import JoseError

    if not isinstance(token, str) or not token.isascii() or len(token) > MAX_BYTES:
        raise wrong_answer("there is no id token in it")
    try:
        known = _keys_for(token, keys)
        decoded = jwt.decode(token, known, algorithms=list(ALGORITHMS))
        claims = CodeIDToken(
            decoded.claims,
            decoded.header,
            {
                "iss": {"essential": True, "value": expected.issuer},
                "aud": {"essential": True, "value": expected.client_id},
            },
            {"nonce": expected.nonce, "client_id": expected.client_id, "access_token": expected.access_token},
        )
        claims.validate(int(now.timestamp()), CLOCK_SKEW_SECONDS)
    except (JoseError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise wrong_answer(f"its id token is not valid: {_reason(error)}") from None
    if not claims["sub"]:
        raise wrong_answer("its id token names nobody")
    return dict(claims)


def _keys_for(token: str, keys: Sequence[Mapping[str, Any]]) -> Key:
    """The key that the token's header names. A token without a key id is accepted if there is only one key."""
    from joserfc.errors import JoseError
    from joserfc.jwk import import_key
    from joserfc.jws import extract_compact

    named = extract_compact(token.encode()).headers().get("kid")
    usable = [key for key in keys if key.get("kty") in _PUBLIC_KINDS and key.get("use", "sig") == "sig"]
    wanted = [key for key in usable if key.get("kid") == named] if named is not None else usable
    if len(wanted) != 1:
        raise UnknownKey(str(named)[:100])
    try:
        return import_key(dict(wanted[0]))
    except (JoseError, ValueError, TypeError) as error:
        raise wrong_answer(f"a key of the provider cannot be used: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    return str(error).partition("\n")[0][:200] or type(error).__name__
