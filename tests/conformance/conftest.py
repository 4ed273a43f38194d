"""Every state store, opened the same way. A new one joins with one entry in `STORES`. Object stores are in object_stores.py,
executors in test_executors.py."""

from __future__ import annotations

import asyncio
import atexit
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from ork.state.memory import MemoryStore
from ork.state.sqlite import SqliteStore
from ork.state.store import StateStore
from tests.conformance.object_stores import CLOUD, OBJECT_STORES, Open
from tests.firestore import emulator_or_skip
from tests.pgbouncer import Bouncer, bouncer_or_skip
from tests.postgres import server_or_skip, template

LEASE_SECONDS = 60.0


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Tests may be coroutines: each gets an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    opened = [value for value in pyfuncitem.funcargs.values() if isinstance(value, Stores)]

    async def call() -> None:
        try:
            await pyfuncitem.obj(**wanted)
        finally:
            for stores in opened:  # in the loop they were used in: connections belong to it
                await stores.close()

    asyncio.run(call())
    return True


class LeaseClock:
    """The store's clock, moved by hand. `reboot` begins another boot, whose seconds start again."""

    def __init__(self) -> None:
        self.boot = 1
        self.seconds = 1000.0

    def advance(self, seconds: float) -> None:
        self.seconds += seconds

    def __call__(self) -> tuple[str, float]:
        return f"boot-{self.boot}", self.seconds


Opener = Callable[[Path, LeaseClock], Callable[[], StateStore]]


def _memory(folder: Path, clock: LeaseClock) -> Callable[[], StateStore]:
    return MemoryStore(lambda: clock.seconds, LEASE_SECONDS).sibling


def _sqlite_inline(folder: Path, clock: LeaseClock) -> Callable[[], StateStore]:
    return SqliteStore(":memory:", inline=True, clock=clock, lease_seconds=LEASE_SECONDS).sibling


def _sqlite_file(folder: Path, clock: LeaseClock) -> Callable[[], StateStore]:
    return lambda: SqliteStore(folder / "ork.db", clock=clock, lease_seconds=LEASE_SECONDS)


_databases: list[str] = []


def _postgres(folder: Path, clock: LeaseClock) -> Callable[[], StateStore]:
    return _postgres_at(server_or_skip().url(_next_database()), clock)


def _behind_pgbouncer(folder: Path, clock: LeaseClock) -> Callable[[], StateStore]:
    return _postgres_at(f"{_bouncer().url(_next_database())}?pooler=transaction", clock)


@functools.cache
def _bouncer() -> Bouncer:
    """One for the whole test process."""
    bouncer = bouncer_or_skip(server_or_skip())
    atexit.register(bouncer.remove)
    return bouncer


def _next_database() -> str:
    """A database for each test; that of the test before is dropped when the next one begins."""
    server = server_or_skip()
    while _databases:
        server.drop_database(_databases.pop())
    _databases.append(server.new_database(template()))
    return _databases[0]


def _postgres_at(url: str, clock: LeaseClock) -> Callable[[], StateStore]:
    from ork.state.postgres import PostgresStore

    return lambda: PostgresStore(url, lease_seconds=LEASE_SECONDS, clock=lambda: _moment(clock))


def _moment(clock: LeaseClock) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=clock.seconds)


def _firestore(folder: Path, clock: LeaseClock) -> Callable[[], StateStore]:
    emulator = emulator_or_skip()
    from ork.state.firestore import FirestoreStore

    url, options = emulator.new_database(), {"lease_seconds": LEASE_SECONDS, "emulator": emulator.host}
    return lambda: FirestoreStore(url, clock=lambda: _moment(clock), **options)


STORES: dict[str, Opener] = {
    "memory": _memory,
    "sqlite-inline": _sqlite_inline,
    "sqlite-file": _sqlite_file,
    "postgres": _postgres,
    "postgres-behind-pgbouncer": _behind_pgbouncer,
    "firestore": _firestore,
}
ANSWERS_AT_ONCE = {"sqlite-inline"}


class Stores:
    """One store under test and as many handles on it as a test asks for."""

    def __init__(self, opener: Opener, folder: Path) -> None:
        self.clock = LeaseClock()
        self._open = opener(folder, self.clock)
        self._handles: list[StateStore] = []

    def open(self) -> StateStore:
        handle = self._open()
        self._handles.append(handle)
        return handle

    async def close(self) -> None:
        for handle in self._handles:
            await handle.close()


def _chosen(names: Iterable[str]) -> list[ParameterSet]:
    return [
        pytest.param(name, marks=pytest.mark.slow if name.startswith(("postgres", "firestore")) else ())
        for name in names
    ]


@pytest.fixture(params=_chosen(STORES))
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    opened = Stores(STORES[request.param], tmp_path)
    yield opened
    asyncio.run(opened.close())


@pytest.fixture(params=_chosen(name for name in STORES if name not in ANSWERS_AT_ONCE))
def waiting_stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    """Those whose handles can wait; the others answer at once, as the simulation needs it."""
    opened = Stores(STORES[request.param], tmp_path)
    yield opened
    asyncio.run(opened.close())


@pytest.fixture
def store(stores: Stores) -> StateStore:
    return stores.open()


def _marks(name: str) -> Iterable[pytest.MarkDecorator]:
    if name in CLOUD:
        return [pytest.mark.cloud]
    return [pytest.mark.slow] if name.startswith("server") else []


@pytest.fixture(params=[pytest.param(name, marks=_marks(name)) for name in OBJECT_STORES])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens the object store under test, as often as it is called."""
    with OBJECT_STORES[request.param](tmp_path) as open_store:
        yield open_store
