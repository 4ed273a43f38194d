"""Opens the state store that a URL names. A backend is loaded only when it is used."""

from __future__ import annotations

import os
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ork.errors import NotFoundError, StoreError, UsageError
from ork.settings import Settings, is_project

if TYPE_CHECKING:
    from types import ModuleType

    from ork.state.store import StateStore

T = TypeVar("T")

_FIRESTORE = "firestore:"
_EMULATOR = "FIRESTORE_EMULATOR_HOST"
_NETWORK_SCHEMES = ("postgresql:", "postgres:", _FIRESTORE)


def uses_network(settings: Settings) -> bool:
    """Whether the store is reached over a network, which needs an event loop."""
    return settings.store.startswith(_NETWORK_SCHEMES)


def store_path(settings: Settings) -> str | None:
    """The database file of a `sqlite:` URL; None for a store that is not a file."""
    if uses_network(settings):
        return None
    scheme, colon, path = settings.store.partition(":")
    if scheme != "sqlite" or not colon or not path:
        raise UsageError(
            f"cannot use the store {settings.store}",
            hint="write sqlite:/path/to/ork.db, postgresql://user@host/database or firestore://project/database",
        )
    path = path[2:] if path.startswith("///") else path
    return os.path.join(settings.root, path)


def has_store(settings: Settings, *, may_be_new: bool) -> bool:
    """Whether the store exists. False for a project without runs; NotFoundError if a store should exist, unless it
    `may_be_new`; StoreError if that cannot be determined."""
    path = store_path(settings)
    if path is None:
        return True
    try:
        os.stat(path)
    except FileNotFoundError:
        if not may_be_new:
            _check_is_new(settings, path)
        return False
    except OSError as error:
        raise StoreError(f"cannot reach the store {path}: {error.strerror}", hint="see `ork doctor`") from error
    return True


def _check_is_new(settings: Settings, path: str) -> None:
    if not _is_default_store(settings):
        hint = "check --store, ORK_STORE and `store` in ork.yaml; `ork db migrate` creates it"
        raise NotFoundError(f"there is no store {path}", hint=hint)
    if os.path.isdir(os.path.join(settings.home, "objects")):
        hint = f"restore it; to start again without it, remove {settings.home}"
        raise NotFoundError(f"the store {path} is missing, though there have been runs", hint=hint)
    check_project(settings)


def check_project(settings: Settings) -> None:
    """NotFoundError if the store would be that of a project, and there is no project."""
    if settings.server is None and _is_default_store(settings) and not has_project(settings):
        hint = "change to the project's folder, or create a project with `ork init`"
        raise NotFoundError(f"there is no Ork project in {settings.root} or above it", hint=hint)


def has_project(settings: Settings) -> bool:
    return is_project(settings.root) or any(map(os.path.isfile, _workflow_files(settings.root)))


def _is_default_store(settings: Settings) -> bool:
    """Whether no store is configured, so that it is the file in `.ork`."""
    return settings.store == f"sqlite:{settings.home}/ork.db"


def _workflow_files(folder: str) -> list[str]:
    """Files that make a folder a project, even before its first run."""
    return [os.path.join(folder, name) for name in ("workflow.yaml", "workflow.yml", "workflow.py")]


def open_store(settings: Settings, *, inline: bool) -> StateStore:
    """Opens the store. `inline`: SQLite statements run in the caller's thread, so that awaiting a call never yields."""
    path = store_path(settings)
    if path is None:
        kind = "FirestoreStore" if settings.store.startswith(_FIRESTORE) else "PostgresStore"
        options = {"lease_seconds": settings.lease_seconds, **_options(settings)}
        store: StateStore = getattr(_backend(settings), kind)(settings.store, **options)
        return store
    from ork.state.sqlite import SqliteStore

    durability: Literal["normal", "full"] = "full" if settings.durability == "full" else "normal"
    return SqliteStore(path, durability=durability, lease_seconds=settings.lease_seconds, inline=inline)


def empty_store() -> StateStore:
    """An empty store in memory, for reading where no store exists."""
    from ork.state.sqlite import SqliteStore

    return SqliteStore(":memory:", inline=True)


def store_schema(settings: Settings) -> tuple[int, int]:
    """The schema of the store (0: none yet) and the one that this Ork knows."""
    path = store_path(settings)
    if path is None:
        status = _wait_for(_backend(settings).db_status(settings.store, **_options(settings)))
        return status.current, status.known
    from ork.state.sqlite import db_status

    found = db_status(path)
    return found.current, found.known


def upgrade_store(settings: Settings) -> int:
    """Creates or migrates the store; returns its schema."""
    path = store_path(settings)
    if path is None:
        return int(_wait_for(_backend(settings).migrate(settings.store, **_options(settings))).current)
    from ork.state.sqlite import migrate

    return migrate(path).current


def migrate_store(settings: Settings) -> tuple[int, int]:
    """Migrates the store; returns the schema before and after."""
    before, _ = store_schema(settings)
    make_home(settings)
    return before, upgrade_store(settings)


def make_home(settings: Settings) -> None:
    """Create `.ork` in the project, if the store or the objects are kept there."""
    if any(settings.home in url for url in (settings.store, settings.objects)):
        create_home(settings)


def create_home(settings: Settings) -> None:
    """Create `.ork` in the project, ignored by Git. An existing one is left as it is."""
    ignored = os.path.join(settings.home, ".gitignore")
    if os.path.exists(ignored):
        return
    try:
        os.makedirs(settings.home, mode=0o700, exist_ok=True)
        with open(ignored, "w", encoding="utf-8") as file:
            file.write("*\n")
    except OSError as error:
        raise StoreError(f"cannot create {settings.home}: {error.strerror}", hint="see `ork doctor`") from error


def check_access(settings: Settings) -> None:
    """StoreError that says what is missing (credentials, the database, a permission), where the store can tell."""
    if settings.store.startswith(_FIRESTORE):
        _wait_for(_backend(settings).check_access(settings.store, **_options(settings)))


def missing_indexes(settings: Settings) -> list[str]:
    """The indexes that queries need and the database lacks; none for a store that makes its own."""
    if not settings.store.startswith(_FIRESTORE):
        return []
    found: list[str] = _wait_for(_backend(settings).missing_indexes(settings.store, **_options(settings)))
    return found


def index_file(settings: Settings) -> str | None:
    """The indexes the store needs, as a file for its administration; None for a store that makes its own."""
    return str(_backend(settings).index_file()) if settings.store.startswith(_FIRESTORE) else None


def _options(settings: Settings) -> dict[str, str]:
    """Where Firestore's emulator is, if one stands in for the service: its variable is that of Google's own programs."""
    host = settings.environ.get(_EMULATOR)
    return {"emulator": host} if host and settings.store.startswith(_FIRESTORE) else {}


def _backend(settings: Settings) -> ModuleType:
    """The package of a store that is reached over a network."""
    return _firestore() if settings.store.startswith(_FIRESTORE) else _postgres()


def _firestore() -> ModuleType:
    # gRPC's fork handlers can close descriptors that other threads use. Processes that we fork need no gRPC.
    os.putenv("GRPC_ENABLE_FORK_SUPPORT", "0")
    try:
        import ork.state.firestore as backend
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith(("google", "grpc")):
            raise
        raise UsageError(
            "a store on Firestore needs the package google-cloud-firestore", hint="pip install 'ork-orchestrator[gcp]'"
        ) from error
    return backend


def _postgres() -> ModuleType:
    try:
        import ork.state.postgres as backend
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        raise UsageError(
            "a store on Postgres needs the package asyncpg", hint="pip install 'ork-orchestrator[postgres]'"
        ) from error
    return backend


def _wait_for(work: Coroutine[Any, Any, T]) -> T:
    import asyncio

    return asyncio.run(work)
