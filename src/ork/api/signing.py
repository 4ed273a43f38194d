"""Signs texts with a key that is derived from the store's key, so that every server on the store can verify them."""

from __future__ import annotations

import hmac
import json
from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import Protocol


class KeyStore(Protocol):
    async def signing_key(self) -> bytes: ...


class StoreKeySigner:
    """Signatures for one purpose are not valid for another. The store's key is read once."""

    def __init__(self, store: KeyStore, purpose: str) -> None:
        self._store = store
        self._purpose = purpose
        self._key: bytes | None = None

    async def sign(self, *parts: str | int) -> str:
        if self._key is None:
            self._key = hmac.digest(await self._store.signing_key(), f"ork {self._purpose}".encode(), "sha256")
        # As JSON, so that two different lists of parts are never the same text.
        made = hmac.new(self._key, json.dumps(parts).encode(), sha256).digest()
        return urlsafe_b64encode(made).rstrip(b"=").decode()

    async def is_signed(self, signature: str, *parts: str | int) -> bool:
        return hmac.compare_digest(signature.encode(), (await self.sign(*parts)).encode())
