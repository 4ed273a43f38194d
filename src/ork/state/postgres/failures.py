"""What Postgres's errors mean to a person. Nothing of the driver leaves this folder."""

from __future__ import annotations

import asyncpg

from ork.errors import StoreError, StoreUnavailableError

# What a statement may end in when the fault is not ours; everything else is left to fail loudly.
TROUBLE = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)

_TRY_AGAIN = "Try again; work goes on by itself when the database answers."
_FOR_NOW = {
    "08": ("lost its connection", _TRY_AGAIN),
    "25": ("does not take writes now", "Is it a standby? Name the primary, or all hosts with target_session_attrs."),
    "40": ("undid a transaction", "Try again."),
    "53": ("has run out of something", "See the server's log: connections, disk or memory."),
    "55": ("is locked by somebody else", "Try again."),
    "57": ("was interrupted", _TRY_AGAIN),
    "58": ("has trouble with its machine", "See the server's log."),
}
# PgBouncer has one code for all it says: only by its words can this be told from a database that restarts behind it.
_POOLER_WORDS = "unsupported startup parameter"
_FOR_GOOD = {
    "28": ("does not let us in", "Check user and password in the store's URL."),
    "3D": ("does not exist", "Create the database, or check its name in the store's URL."),
    "42501": ("does not allow that", "Its user needs the right to create a schema, or the schema `ork` as its own."),
}


def is_lost(error: BaseException) -> bool:
    """The connection, not the statement, came to an end."""
    return not isinstance(error, asyncpg.PostgresError) or isinstance(error, asyncpg.PostgresConnectionError)


def is_locked_out(error: BaseException) -> bool:
    """Somebody else held what we needed for as long as we may wait."""
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
