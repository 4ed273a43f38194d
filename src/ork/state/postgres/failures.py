"""Translates Postgres's errors to store errors with a hint. No exception of the driver leaves this package."""

from __future__ import annotations

import asyncpg

from ork.errors import StoreError, StoreUnavailableError

# Errors with causes outside of Ork. All others are bugs and are not caught.
DRIVER_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)

_TRY_AGAIN = "Try again; work continues automatically when the database responds."
_FOR_NOW = {
    "08": ("lost its connection", _TRY_AGAIN),
    "25": ("does not take writes now", "Is it a standby? Name the primary, or all hosts with target_session_attrs."),
    "40": ("rolled back a transaction", "Try again."),
    "53": ("has run out of a resource", "See the server's log: connections, disk or memory."),
    "55": ("is locked by another process", "Try again."),
    "57": ("was interrupted", _TRY_AGAIN),
    "58": ("has a problem with its machine", "See the server's log."),
}
# PgBouncer uses one code for all errors: only the message distinguishes this from a restarting database.
_POOLER_WORDS = "unsupported startup parameter"
_FOR_GOOD = {
    "28": ("does not accept the login", "Check user and password in the store's URL."),
    "3D": ("does not exist", "Create the database, or check its name in the store's URL."),
    "42501": ("does not allow that", "Its user needs the right to create a schema, or the schema `ork` as its own."),
}


def is_lost(error: BaseException) -> bool:
    """True if the connection failed, not the statement."""
    return not isinstance(error, asyncpg.PostgresError) or isinstance(error, asyncpg.PostgresConnectionError)


def is_locked_out(error: BaseException) -> bool:
    """True if another session held a lock for longer than the lock timeout."""
    return isinstance(error, asyncpg.LockNotAvailableError)


def store_error(error: BaseException, store: str) -> StoreError:
    state = getattr(error, "sqlstate", None)
    if state is not None:
        return _by_state(error, store, state)
    if isinstance(error, TimeoutError):
        return StoreUnavailableError(f"The store {store} did not answer in time.", hint=_TRY_AGAIN)
    if isinstance(error, asyncpg.ClientConfigurationError | ValueError):
        return StoreError(f"The store {store} cannot be used ({error}).", hint="Check the store's URL.")
    return StoreUnavailableError(f"The store {store} cannot be reached ({_words(error)}).", hint=_TRY_AGAIN)


def _by_state(error: BaseException, store: str, state: str) -> StoreError:
    if _POOLER_WORDS in str(error):
        return StoreError(
            f"The store {store} is behind a pooler ({_words(error)}).",
            hint="Add pooler=transaction to the store's URL.",
        )
    for kind, table in ((StoreUnavailableError, _FOR_NOW), (StoreError, _FOR_GOOD)):
        what, hint = table.get(state) or table.get(state[:2]) or (None, None)
        if what is not None:
            return kind(f"The store {store} {what} ({_words(error)}).", hint=hint)
    return StoreError(
        f"The store {store} did not understand a request ({_words(error)}).",
        hint="This is a fault in Ork; please report it.",
    )


def _words(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
