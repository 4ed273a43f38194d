"""Verifies the signatures of hooks.

`X-Ork-Signature: t=UNIX_SECONDS,v1=HEX` signs `UNIX_SECONDS.BODY` with HMAC-SHA256 and is valid for five minutes. With a
delivery, `t=UNIX_SECONDS,d=ID,v1=HEX` signs `UNIX_SECONDS.ID.BODY`; a sender that retries later signs the same delivery
again. `X-Hub-Signature-256: sha256=HEX` signs the body alone, as code hosts do.

The idempotency key is derived only from signed data, so that no unsigned header can turn a captured request into a new
one.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from hashlib import sha256

TOLERANCE_SECONDS = 300
_STAMPED = re.compile(r"t=(?P<time>[0-9]{1,12})(?:,d=(?P<delivery>[A-Za-z0-9_-]{1,100}))?,v1=(?P<given>[0-9a-f]{64})")
_PLAIN = re.compile(r"sha256=(?P<given>[0-9a-f]{64})")


def is_signed(headers: Mapping[str, str]) -> bool:
    """Whether there is a signature, valid or not."""
    return _stamped(headers) is not None or _plain(headers) is not None


def verified_key(secret: str, headers: Mapping[str, str], body: bytes, now: float) -> str | None:
    """The idempotency key of a request whose signature is valid; None if it is not."""
    stamped = _stamped(headers)
    if stamped is not None:
        return _stamped_key(secret, stamped, body, now)
    plain = _plain(headers)
    if plain is None or not hmac.compare_digest(plain["given"], sign(secret, body)):
        return None
    return _key(plain.group())


def _stamped_key(secret: str, stamped: re.Match[str], body: bytes, now: float) -> str | None:
    time, delivery, given = stamped["time"], stamped["delivery"], stamped["given"]
    signed = b".".join([*(part.encode() for part in (time, delivery) if part is not None), body])
    is_recent = abs(now - int(time)) <= TOLERANCE_SECONDS
    if not hmac.compare_digest(given, sign(secret, signed)) or not is_recent:
        return None
    return _key(stamped.group() if delivery is None else f"d={delivery}")


def _stamped(headers: Mapping[str, str]) -> re.Match[str] | None:
    return _STAMPED.fullmatch(headers.get("x-ork-signature", ""))


def _plain(headers: Mapping[str, str]) -> re.Match[str] | None:
    """The plain signature; ignored if the request has the other one."""
    if "x-ork-signature" in headers:
        return None
    return _PLAIN.fullmatch(headers.get("x-hub-signature-256", ""))


def _key(text: str) -> str:
    return f"hook-{sha256(text.encode()).hexdigest()}"


def sign(secret: str, data: bytes) -> str:
    return hmac.new(secret.encode(), data, sha256).hexdigest()


def secret_name(hook: str) -> str:
    """The name of the hook's secret: `nightly-etl` → `ORK_HOOK_NIGHTLY_ETL`.

    Several workflow names give the same secret name; `callers.py` rejects hooks of workflows that share a secret.
    """
    return "ORK_HOOK_" + re.sub(r"[^A-Za-z0-9]", "_", hook).upper()
