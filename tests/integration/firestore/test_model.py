"""The model of Firestore that simulations use behaves as the official emulator does, operation by operation."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from tests.firestore import emulator_or_skip

pytest.importorskip("google.cloud.firestore_v1", reason="google-cloud-firestore is not installed")

from google.api_core import exceptions as google

from ork.state.firestore.address import read_address
from ork.state.firestore.failures import ConflictError, commit_error
from ork.state.firestore.values import SERVER_TIME
from ork.state.firestore.wire import Put, Query, Wire
from ork.testing.firestore import model
from ork.testing.firestore.model import MemoryFirestore

pytestmark = pytest.mark.slow

PATHS = [*(f"runs/{id}" for id in "abcde"), "meta/x", "runs/a/chunks/1", "runs/a/chunks/2", "runs/b/chunks/1"]
MOMENT = datetime(2026, 3, 1, tzinfo=UTC)
VALUES: dict[str, tuple[Any, ...]] = {
    "owner": ("ann", "bob", "", "Zoë", 7),
    "queue": ("1 a", "1 b", "2", True),
    "n": (0, 1, 2, 1.5, -3, "text", None),
    "changed": (MOMENT, MOMENT + timedelta(microseconds=1), MOMENT - timedelta(days=1)),
    "asks": (True, False),
    "t": ({}, {"x:0": "row"}, {"x:0": "other", "y.z": "odd `name`"}),
    "blob": (b"", b"\0\xff", b"b"),
    "list": ([], [1, "two", None]),
}
QUERIED = ("owner", "queue", "n", "changed", "asks")
OPS = ("==", "<", "<=", ">", ">=", "in")


class Pair:
    """Both databases, with the same operations done to each."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.memory = MemoryFirestore(lambda: time.time_ns() // 1000)
        self.times: dict[str, tuple[int, int]] = {}

    async def commit(self, planned: list[tuple[Put, str]]) -> tuple[list[str], list[str]]:
        """The kind of answer of each: written at a new time, as before, deleted, or which error."""
        return await self._real([_guarded(self.times, put, guard, 0) for put, guard in planned]), self._modelled(
            [_guarded(self.times, put, guard, 1) for put, guard in planned]
        )

    async def _real(self, puts: list[Put]) -> list[str]:
        try:
            return self._kinds(puts, await self.wire.commit(puts), 0)
        except ConflictError:
            return [ConflictError.__name__]

    def _modelled(self, puts: list[Put]) -> list[str]:
        try:
            return self._kinds(puts, self.memory.commit(puts), 1)
        except google.GoogleAPICallError as error:
            return [type(commit_error(error)).__name__]

    def _kinds(self, puts: list[Put], times: list[int], place: int) -> list[str]:
        known = {path: both[place] for path, both in self.times.items()}
        return [
            "deleted" if put.fields is None else "as before" if known.get(put.path) == at else "written"
            for put, at in zip(puts, times, strict=True)
        ]

    async def read_all(self) -> tuple[dict[str, Any], dict[str, Any]]:
        real, modelled = await self.wire.get_all(PATHS), self.memory.get_all(PATHS)
        self.times = {path: (real[path].time, modelled[path].time) for path in real.keys() & modelled.keys()}
        return _shown(real), _shown(modelled)


def _guarded(times: dict[str, tuple[int, int]], put: Put, guard: str, place: int) -> Put:
    known = times.get(put.path, (1_000_000, 1_000_000))[place]
    return put._replace(guard={"any": None, "there": True, "new": False, "same": known, "old": known - 1}[guard])


def _shown(docs: dict[str, Any]) -> dict[str, Any]:
    """Without the times of the server, which differ; but they are there, and have milliseconds."""
    shown = {}
    for path, doc in docs.items():
        stamp = doc.fields.pop("stamp", None)
        assert stamp is None or stamp.microsecond % 1000 == 0
        shown[path] = {**doc.fields, "has stamp": stamp is not None}
    return shown


def draw_put(random: Random, path: str) -> Put:
    if random.random() < 0.15:
        return Put(path, None)
    names = random.sample(list(VALUES), k=random.randrange(len(VALUES)))
    fields = {name: random.choice(VALUES[name]) for name in names}
    if random.random() < 0.2:
        fields["stamp"] = SERVER_TIME
    if random.random() < 0.4:
        return Put(path, fields)
    mask: list[tuple[str, ...]] = [(name,) for name in random.sample(list(VALUES), k=random.randrange(4))]
    if ("t",) not in mask and isinstance(fields.get("t"), dict):
        mask += [("t", key) for key in fields["t"]]
    elif ("t",) not in mask and random.random() < 0.2:
        mask.append(("t", "x:0"))
    return Put(path, fields, None, mask)


def draw_query(random: Random) -> Query:
    fields = random.sample(QUERIED, k=random.choice((0, 1, 1, 2)))
    where: list[tuple[str, str, Any]] = []
    for name in fields:
        op = random.choice(OPS) if len(fields) == 1 else "=="
        value = random.choice(VALUES[name])
        where.append((name, op, [value, random.choice(VALUES[name])] if op == "in" else value))
    if not where and random.random() < 0.3:
        where = [("__name__", random.choice((">", ">=", "<")), random.choice("abcd"))]
    compared = [name for name, op, _ in where if op not in ("==", "in")]
    order: tuple[str, ...] = random.choice([(), (random.choice(QUERIED),), (f"-{random.choice(QUERIED)}",)])
    if compared or len(fields) > 1:
        order = tuple(name if name == "__name__" else random.choice((name, f"-{name}")) for name in compared)
    after = (random.choice(VALUES[order[0].removeprefix("-")]),) if order and not compared and not fields else None
    after = after if after is None or order[0] != "__name__" else None
    under = random.choice(("", "", "", "runs/a"))
    select = random.choice((None, (), ("n", "owner")))
    return Query("chunks" if under else "runs", tuple(where), order, random.choice((None, 1, 2)), select, under, after)


@pytest.mark.parametrize("seed", range(3))
def test_random_commits_and_queries_have_the_same_results(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    emulator = emulator_or_skip()
    monkeypatch.setattr(model, "is_refused", lambda _shape: False)  # the emulator has every index
    random = Random(f"model {seed}")
    seen: set[str] = set()

    async def go() -> None:
        pair = Pair(Wire(read_address(emulator.new_database(), emulator.host)))
        for number in range(150):
            paths = random.sample(PATHS, k=random.choice((1, 1, 2, 4)))
            guards = ("any", "any", "any", "there", "new", "same", "same", "old")
            planned = [(draw_put(random, path), random.choice(guards)) for path in paths]
            if number % 10 == 9:  # again as it is: a write that changes nothing
                docs = pair.memory.get_all(PATHS).values()
                planned = [(Put(doc.path, doc.fields), "same") for doc in docs if "stamp" not in doc.fields]
            real, modelled = await pair.commit(planned)
            assert modelled == real, (number, planned)
            seen.update(real)
            there, here = await pair.read_all()
            assert here == there, (number, planned)
            for _ in range(3):
                query = draw_query(random)
                found = [doc.path for doc in await pair.wire.query(query)]
                assert [doc.path for doc in pair.memory.query(query)] == found, (number, query)
                if query.after is None and query.limit is None:
                    assert pair.memory.count(query) == await pair.wire.count(query), (number, query)
        await pair.wire.close()

    asyncio.run(go())
    assert len(seen) == 4  # written, as before, deleted, refused


def test_a_selection_of_fields_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    emulator = emulator_or_skip()

    async def go() -> None:
        pair = Pair(Wire(read_address(emulator.new_database(), emulator.host)))
        await pair.commit([(Put("runs/a", {"n": 1, "owner": "ann", "t": {"x": "y"}}), "any")])
        for select in (("n",), ("t", "owner"), ("other",)):
            real, modelled = await pair.wire.get_all(["runs/a"], select), pair.memory.get_all(["runs/a"], select)
            assert _shown(modelled) == _shown(real)
            query = Query("runs", (), (), None, select)
            assert [doc.fields for doc in pair.memory.query(query)] == [
                doc.fields for doc in await pair.wire.query(query)
            ]
        await pair.wire.close()

    asyncio.run(go())


@pytest.mark.parametrize(
    "puts",
    [
        [Put("runs/a", {"row": "x" * (1 << 20)})],
        [Put(f"runs/{number}", {"row": "x" * (1 << 19)}) for number in range(21)],
        [Put(f"runs/{number}", {}) for number in range(501)],
        [Put("runs/a", {}), Put("runs/a", {})],
    ],
    ids=["a document over 1 MiB", "a request over 10 MiB", "over 500 writes", "a document twice"],
)
def test_a_commit_over_a_limit_is_refused_and_writes_nothing(puts: list[Put]) -> None:
    memory = MemoryFirestore(lambda: 1)
    with pytest.raises(google.InvalidArgument):
        memory.commit(puts)
    assert memory.query(Query("runs")) == []


def test_a_query_without_its_index_is_refused() -> None:
    memory = MemoryFirestore(lambda: 1)
    with pytest.raises(google.FailedPrecondition, match="index"):
        memory.query(Query("runs", (("owner", "==", "ann"),), ("-place",)))
    with pytest.raises(google.FailedPrecondition, match="index"):
        memory.query(Query("runs", (("act", "==", "{}"),)))
