"""The Firestore store when requests arrive late and calls of one handle overlap, on the model of Firestore in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest

pytest.importorskip("google.cloud.firestore_v1", reason="google-cloud-firestore is not installed")

from ork.model.record import replaced
from ork.model.task import AttemptStatus, TaskStatus
from ork.model.workflow import Rate
from ork.state.firestore import FirestoreStore
from ork.state.firestore.wire import Put
from ork.testing.firestore.model import MemoryFirestore
from ork.testing.firestore.wire import CommitFaults, SimulatedWire
from tests.conformance.state_samples import (
    ANN,
    BEN,
    NOW,
    changes,
    claim,
    deploy,
    ended,
    later,
    launch_request,
    new_run,
    owned_run,
    register,
    task,
)


class LostError(Exception):
    """The process that sent the request is gone."""


class Service:
    """A database in memory; a microsecond passes with each look at its clock, and more where a test says so."""

    def __init__(self) -> None:
        ticks = count(1_700_000_000_000_000)
        self.seconds = 0.0
        self.database = MemoryFirestore(lambda: next(ticks) + round(self.seconds * 1e6))

    def store(self) -> Any:
        wire = SimulatedWire(self.database, None, CommitFaults(), lambda _puts: self.database.commit)
        return FirestoreStore("firestore://simulated/ork", connect=lambda _address: wire)


def test_large_rows_of_a_former_owner_that_arrive_late_change_nothing() -> None:
    """They are written before the commit that names them, so no precondition guards them."""

    async def go() -> None:
        service = Service()
        old, new = service.store(), service.store()
        claimed = await owned_run(old, of=await deploy(old, tasks=("wide",)))
        held: list[Sequence[Put]] = []

        async def hold(puts: Sequence[Put]) -> list[int]:
            held.append(puts)
            raise LostError

        old._db.wire.commit = hold
        with pytest.raises(LostError):
            await old.commit(ANN, [changes(claimed, tasks=_rows("stale"))], NOW)
        await new.expire([ANN])
        await register(new, BEN)
        (taken,) = await claim(new, BEN)
        await new.commit(BEN, [changes(taken, tasks=_rows("newer"))], NOW)
        for puts in held:
            service.database.commit(puts)
        assert (await new.run_updates(claimed.run.id)).tasks[1:] == _rows("newer")

    asyncio.run(go())


def _rows(word: str) -> Any:
    return tuple(task("wide", TaskStatus.SKIPPED, index=index, reason=word * 500) for index in range(20))


def test_a_commit_is_not_fenced_because_another_call_of_the_same_handle_met_a_conflict() -> None:
    """An owner that is told it is fenced drops the run, and nobody else takes it as long as the owner's lease holds."""

    async def go() -> None:
        store = Service().store()
        claimed = await owned_run(store)
        order_of = store._db.order_of

        async def meanwhile(version: Any) -> Any:
            store._db.forget()  # as after a conflict
            return await order_of(version)

        store._db.order_of = meanwhile
        done = (task("extract", TaskStatus.SKIPPED),)
        other = await owned_run(store)
        answer = await store.commit(ANN, [changes(each, tasks=done) for each in (claimed, other)], NOW)
        assert answer.fenced == frozenset()

    asyncio.run(go())


def test_a_rate_counts_from_the_commit_not_from_the_look_at_its_bucket() -> None:
    """A scheduler that stood still in between would otherwise let two attempts start one second apart."""

    async def go() -> None:
        service = Service()
        store = service.store()
        claimed = await owned_run(store)
        rate = ("rate:task:flow.extract", Rate(1, 10.0))
        first, second = (replaced(launch_request(claimed.run.id, name), rate=rate) for name in ("extract", "load"))
        send = store._db.wire.commit

        async def stand_still(puts: Sequence[Put]) -> list[int]:
            service.seconds += 9.0
            return await send(puts)

        store._db.wire.commit = stand_still
        assert (await store.commit(ANN, [changes(claimed, launches=(first,))], NOW)).admitted
        store._db.wire.commit = send
        service.seconds += 1.0
        answer = await store.commit(ANN, [changes(claimed, launches=(second,))], NOW)
        assert (answer.admitted, answer.full) == (frozenset(), {rate[0]})
        service.seconds += 9.0
        assert (await store.commit(ANN, [changes(claimed, launches=(second,))], NOW)).admitted

    asyncio.run(go())


def meanwhile(store: Any, happens: Any) -> None:
    """Something happens between the reads of the store's next change and its commit."""
    send = store._db.wire.commit

    async def late(puts: Sequence[Put]) -> Any:
        store._db.wire.commit = send
        await happens()
        return await send(puts)

    store._db.wire.commit = late


def test_an_owner_that_renews_its_lease_while_another_claims_keeps_its_runs() -> None:
    async def go() -> None:
        service = Service()
        old, new = service.store(), service.store()
        claimed = await owned_run(old)
        await register(new, BEN)
        service.seconds += 59.0
        assert await new.renew(BEN)
        service.seconds += 2.0
        meanwhile(new, lambda: old.renew(ANN))
        assert await claim(new, BEN) == []
        assert await new.get_owner(claimed.run.id) == ANN
        assert (await old.commit(ANN, [changes(claimed, tasks=(task("load"),))], NOW)).fenced == frozenset()

    asyncio.run(go())


def test_two_claims_at_once_stay_below_max_active_runs() -> None:
    """They take different runs: one with a higher priority was created in between."""

    async def go() -> None:
        service = Service()
        one, other = service.store(), service.store()
        flow = await deploy(one, max_active_runs=1)
        await register(one, ANN, BEN)
        await one.create_runs([new_run(flow)], NOW)
        await one.commit(ANN, [ended(each) for each in await claim(one, ANN)], NOW)
        await one.create_runs([new_run(flow)], NOW)
        taken: list[Any] = []

        async def overtake() -> None:
            await other.create_runs([new_run(flow, priority=5)], NOW)
            taken.extend(await claim(other, BEN))

        await other.list_schedulers()
        meanwhile(one, overtake)
        assert await claim(one, ANN) == []
        assert len(taken) == 1

    asyncio.run(go())


def test_a_slot_that_another_owner_freed_is_found_by_one_that_only_remembers_its_account() -> None:
    """The run that held the slot, and the slot with it, went to another scheduler; a refusal writes nothing that could fail."""

    async def go() -> None:
        service = Service()
        ann, ben = service.store(), service.store()
        await ann.set_limits({"*": 1})
        first = await owned_run(ann)
        held = launch_request(first.run.id, "extract")
        assert (await ann.commit(ANN, [changes(first, launches=(held,))], NOW)).admitted
        await register(ann, ANN)  # as after an error: its runs are free
        await ann.create_runs([new_run(first.version, priority=5)], NOW)
        (second,) = await claim(ann, ANN, 1)
        wanted = changes(second, launches=(launch_request(second.run.id, "extract"),))
        assert (await ann.commit(ANN, [wanted], NOW)).full == {"*"}
        await register(ben, BEN)
        (taken,) = await claim(ben, BEN)
        over = replaced(held.attempt, status=AttemptStatus.SUCCESS)
        await ben.commit(BEN, [changes(taken, attempts=(over,))], NOW)
        assert (await ann.commit(ANN, [wanted], NOW)).admitted

    asyncio.run(go())


# ── limits of the service ────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_no_commit_has_more_writes_than_the_service_allows_however_many_runs_there_are() -> None:
    """Claiming, taking over, releasing and pruning 600 runs."""

    async def go() -> None:
        store = Service().store()
        flow = await deploy(store)
        for _ in range(6):
            await store.create_runs([new_run(flow) for _ in range(100)], NOW)
        await register(store, ANN, BEN)
        assert len(await claim(store, ANN, 1000)) == 600
        await store.expire([ANN])
        taken = await claim(store, BEN, 550)
        assert len(taken) == 550
        await store.release(BEN)
        await register(store, ANN)
        claimed = await claim(store, ANN, 1000)
        assert len(claimed) == 600
        for start in range(0, 600, 100):
            await store.commit(ANN, [ended(each) for each in claimed[start : start + 100]], NOW)
        pruned: list[Any] = []
        while found := await store.prune(later(99), 1000):
            pruned += found
        assert len(set(pruned)) == 600

    asyncio.run(go())
