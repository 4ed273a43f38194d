"""Creates tokens. They are random and stored as digests; the first one is written to a private file."""

from __future__ import annotations

import os
import secrets
from datetime import datetime
from hashlib import sha256

from ork.api.signing import KeyStore, StoreKeySigner
from ork.errors import StoreError, UsageError
from ork.model.access import Role, Token
from ork.model.token_strength import weakness_of
from ork.state.administration import AdminStore

PREFIX = "ork_"
FILE = "token"
FIRST = "first"


def make_token(name: str, role: Role, now: datetime, expires_at: datetime | None = None) -> tuple[str, Token]:
    """The text of a new token, which is not stored, and the row to store."""
    text = PREFIX + secrets.token_urlsafe(32)
    return text, Token(secrets.token_hex(4), name, role, digest_of(text), now, expires_at=expires_at)


def given_token(path: str, name: str, role: Role, now: datetime, expires_at: datetime | None = None) -> Token:
    """The row of a token that somebody else made: the content of a file. UsageError if it is easy to guess."""
    try:
        with open(path, encoding="ascii") as file:
            text = file.read(1000).strip()
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path}: {error}") from error
    weakness = weakness_of(text)
    if weakness is not None:
        raise UsageError(
            f"the token in {path} is easy to guess: {weakness}", hint="openssl rand -hex 32 makes a good one"
        )
    return Token(secrets.token_hex(4), name, role, digest_of(text), now, expires_at=expires_at)


def digest_of(text: str) -> str:
    """The stored form of a token. With 256 random bits, a single hash is enough."""
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


async def sign_in_digest(store: KeyStore, id: str) -> str:
    """The digest of the row of a single sign-on. It follows from the row's id, so that these rows can be told from tokens.
    Nobody has a text with this digest: only a ticket, and then a session, can use the row."""
    return digest_of(await StoreKeySigner(store, "sign-in").sign(id))


async def ensure_first_token(store: AdminStore, home: str, now: datetime) -> str:
    """The path of a file with an admin token for this store; creates both if needed."""
    path = os.path.join(home, FILE)
    text = read_token_file(home)
    known = await store.find_token(digest_of(text)) if text else None
    if text and weakness_of(text) is None and known is not None and known.is_live(now):
        return path
    text, token = make_token(FIRST, Role.ADMIN, now)
    await store.add_token(token)  # first, so that the file never has a token without a row
    _write_private(path, text)
    return path


def read_token_file(home: str) -> str | None:
    path = os.path.join(home, FILE)
    try:
        with open(path, encoding="ascii") as file:
            facts = os.fstat(file.fileno())
            if facts.st_mode & 0o077:
                raise UsageError(f"{path} can be read by others", hint=f"chmod 600 {path}")
            return file.read().strip() or None
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path}: {error}") from error


def _write_private(path: str, text: str) -> None:
    temporary = f"{path}.{os.getpid()}"
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(text + "\n")
        os.replace(temporary, path)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}") from error
