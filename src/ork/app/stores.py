"""Which store a URL names, and how it is opened. A backend is loaded when a URL asks for it."""

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

_ON_A_SERVER = ("postgresql:", "postgres:")


def is_on_a_server(settings: Settings) -> bool:
    """Answers come over a network: they are waited for in an event loop."""
    return settings.store.startswith(_ON_A_SERVER)


def store_path(settings: Settings) -> str | None:
    """The database file a `sqlite:` URL names; None for a store that is no file."""
    if is_on_a_server(settings):
        return None
    scheme, colon, path = settings.store.partition(":")
    if scheme != "sqlite" or not colon or not path:
        raise UsageError(
            f"cannot use the store {settings.store}",
            hint="a store is named sqlite:/path/to/ork.db or postgresql://user@host/database",
        )
    path = path[2:] if path.startswith("///") else path
    return os.path.join(settings.root, path)


def has_store(settings: Settings, *, may_be_new: bool) -> bool:
    """Whether there is something to look at. False for a project that has not run anything yet; NotFoundError where
    there should be a store and is none, unless it `may_be_new`; StoreError where nobody can tell."""
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
    if not _is_in_the_project(settings):
        hint = "check --store, ORK_STORE and `store` in ork.yaml; `ork db migrate` creates it"
        raise NotFoundError(f"there is no store {path}", hint=hint)
    if os.path.isdir(os.path.join(settings.home, "objects")):
        hint = f"bring it back; to begin anew, remove {settings.home}"
        raise NotFoundError(f"the store {path} is gone, though there have been runs", hint=hint)
    check_project(settings)


def check_project(settings: Settings) -> None:
    """NotFoundError if the store would be that of the current folder's project, and there is no project."""
    if settings.server is None and _is_in_the_project(settings) and not has_project(settings):
        hint = "go to the project's folder, or begin with `ork init`"
        raise NotFoundError(f"there is no Ork project in {settings.root} or above it", hint=hint)


def has_project(settings: Settings) -> bool:
    return is_project(settings.root) or any(map(os.path.isfile, _of_a_workflow(settings.root)))


def _is_in_the_project(settings: Settings) -> bool:
    """Whether no store is named, so that it is the file in `.ork`."""
    return settings.store == f"sqlite:{settings.home}/ork.db"


def _of_a_workflow(folder: str) -> list[str]:
    """A folder with one of these is a project that has not run anything yet."""
    return [os.path.join(folder, name) for name in ("workflow.yaml", "workflow.yml", "workflow.py")]


def open_store(settings: Settings, *, inline: bool) -> StateStore:
    """`inline` runs the statements of a store in a file in the caller's thread: then awaiting a verb never yields."""
    path = store_path(settings)
    if path is None:
        store: StateStore = _postgres().PostgresStore(settings.store, lease_seconds=settings.lease_seconds)
        return store
    from ork.state.sqlite import SqliteStore

    durability: Literal["normal", "full"] = "full" if settings.durability == "full" else "normal"
    return SqliteStore(path, durability=durability, lease_seconds=settings.lease_seconds, inline=inline)


def empty_store() -> StateStore:
    """For a look where nothing is yet: it leaves no traces."""
    from ork.state.sqlite import SqliteStore

    return SqliteStore(":memory:", inline=True)


def store_schema(settings: Settings) -> tuple[int, int]:
    """The schema the store has (0: there is none yet) and the one this Ork knows."""
    path = store_path(settings)
    if path is None:
        status = _wait_for(_postgres().db_status(settings.store))
        return status.current, status.known
    from ork.state.sqlite import db_status

    found = db_status(path)
    return found.current, found.known


def bring_store_up_to_date(settings: Settings) -> int:
    """The store exists and has the newest schema, which is the answer."""
    path = store_path(settings)
    if path is None:
        return int(_wait_for(_postgres().migrate(settings.store)).current)
    from ork.state.sqlite import migrate

    return migrate(path).current


def migrate_store(settings: Settings) -> tuple[int, int]:
    """Brings the store up to date; gives the schema before and after."""
    before, _ = store_schema(settings)
    make_home(settings)
    return before, bring_store_up_to_date(settings)


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
