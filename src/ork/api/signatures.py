"""Signed hooks: who knows the secret made this request, and made it lately.

`X-Ork-Signature: t=UNIX_SECONDS,v1=HEX` signs `UNIX_SECONDS.BODY` with HMAC-SHA256 and holds for five minutes.
`X-Hub-Signature-256: sha256=HEX` signs the body alone, as code hosts do. Either way the same signature names the same
run: a request that is sent again starts nothing new.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from hashlib import sha256

TOLERANCE_SECONDS = 300
_STAMPED = re.compile(r"t=(\d{1,12}),v1=([0-9a-f]{64})")
_PLAIN = re.compile(r"sha256=([0-9a-f]{64})")


def is_signed_by(secret: str, headers: Mapping[str, str], body: bytes, now: float) -> bool:
    stamped = _STAMPED.fullmatch(headers.get("x-ork-signature", ""))
    if stamped is not None:
        moment, given = stamped.groups()
        is_fresh = abs(now - int(moment)) <= TOLERANCE_SECONDS
        return is_fresh and hmac.compare_digest(given, sign(secret, f"{moment}.".encode() + body))
    plain = _PLAIN.fullmatch(headers.get("x-hub-signature-256", ""))
    return plain is not None and hmac.compare_digest(plain.group(1), sign(secret, body))


def signature_of(headers: Mapping[str, str]) -> str | None:
    """The signature as a key: equal for the same request sent again."""
    return headers.get("x-ork-signature") or headers.get("x-hub-signature-256")


def sign(secret: str, data: bytes) -> str:
    return hmac.new(secret.encode(), data, sha256).hexdigest()


def secret_name(hook: str) -> str:
    """Under which name the hook's secret is looked up: `nightly-etl` → `ORK_HOOK_NIGHTLY_ETL`."""
    return "ORK_HOOK_" + re.sub(r"[^A-Za-z0-9]", "_", hook).upper()
