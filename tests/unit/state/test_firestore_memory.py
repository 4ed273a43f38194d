"""What a handle of the Firestore store remembers saves reads. Others may have written meanwhile: then what is remembered must not count."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

pytest.importorskip("google.cloud.firestore_v1", reason="google-cloud-firestore is not installed")

from google.api_core.exceptions import FailedPrecondition

from ork.errors import SettingsDifferError
from ork.model.installation import SharedSettings
from ork.model.record import replaced
from ork.model.run import CommandKind, RunCommand
from ork.model.task import AttemptStatus
from ork.state.firestore.accounts import CONFIG
from ork.state.firestore.wire import Query
from tests.conformance.state_samples import (
    ANN,
    BEN,
    NOW,
    changes,
    claim,
    deploy,
    ended,
    launch_request,
    new_run,
    owned_run,
    register,
)
from tests.unit.state.test_firestore_races import Service

OURS = SharedSettings("0123", 10.0, 60.0, "file:/a", "here", NOW)


def after_reading(store: Any, path: str, happens: Callable[[], Awaitable[Any]]) -> None:
    """Something happens once, when the store has read this document."""
    read = store._db.wire.get_all

    async def late(paths: Any, select: Any = None) -> Any:
        found = await read(paths, select)
        if path in paths:
            store._db.wire.get_all = read
            await happens()
        return found

    store._db.wire.get_all = late


def accounts(service: Service) -> set[str]:
    return {doc.path for doc in service.database.query(Query("accounts"))}


@pytest.mark.parametrize(("before", "after", "admitted"), [(5, 1, 1), (1, 3, 3), (0, 3, 3)])
def test_limits_that_somebody_else_changed_hold_for_the_first_launch_of_a_scheduler(
    before: int, after: int, admitted: int
) -> None:
    """The handle remembers the limits as it read them when it set them."""

    async def go() -> None:
        service = Service()
        ann, ben = service.store(), service.store()
        await ben.set_limits({"*": before})
        await ann.set_limits({"*": before})
        claimed = await owned_run(ann)
        await ben.set_limits({"*": after})
        wanted = tuple(launch_request(claimed.run.id, "wide", index=index) for index in range(3))
        committed = await ann.commit(ANN, [changes(claimed, launches=wanted)], NOW)
        assert len(committed.admitted) == admitted

    asyncio.run(go())


def test_a_command_for_a_run_of_an_earlier_claim_comes_with_the_next_one() -> None:
    """A scheduler that has owned nothing gets the commands of the runs it claims; later it owns others, too."""

    async def go() -> None:
        service = Service()
        ann, ben = service.store(), service.store()
        run = (await owned_run(ann)).run.id
        await ben.submit_command(RunCommand(run, CommandKind.CANCEL, "ben"), NOW)
        found = await ann.claim_runs(ANN, 5, NOW)
        assert [command.run for command in found.commands] == [run]
        await ann.release(ANN)
        await register(ben, BEN)
        assert [command.run for command in (await ben.claim_runs(BEN, 5, NOW)).commands] == [run]

    asyncio.run(go())


def test_who_leaves_after_its_lease_was_taken_leaves_the_runs_to_their_new_owner() -> None:
    async def go() -> None:
        service = Service()
        ann, ben = service.store(), service.store()
        first = await owned_run(ann)
        await ann.commit(ANN, [changes(first, launches=(launch_request(first.run.id, "extract"),))], NOW)
        await ben.expire([ANN])
        await register(ben, BEN)
        (taken,) = await claim(ben, BEN)
        await ann.release(ANN)
        assert await ben.get_owner(taken.run.id) == BEN
        assert [entry.id for entry in await ben.list_schedulers()] == [BEN]

    asyncio.run(go())


def test_limits_that_are_set_between_the_reads_of_a_commit_hold_for_it() -> None:
    """The limits are read before the account, which who sets limits writes, too: the two must go with each other."""

    async def go() -> None:
        service = Service()
        ann, ben = service.store(), service.store()
        await ann.set_limits({"*": 9})
        claimed = await owned_run(ann)
        first = launch_request(claimed.run.id, "extract")
        assert (await ann.commit(ANN, [changes(claimed, launches=(first,))], NOW)).admitted
        ann._db.accounts.clear()  # as after an error, so that both are read
        ann._db.limits = None
        after_reading(ann, CONFIG, lambda: ben.set_limits({"*": 9, "pool:api": 0}))
        over, wanted = (
            replaced(first.attempt, status=AttemptStatus.SUCCESS),
            launch_request(claimed.run.id, "load", pool="api"),
        )
        committed = await ann.commit(ANN, [changes(claimed, attempts=(over,), launches=(wanted,))], NOW)
        assert committed.admitted == frozenset()

    asyncio.run(go())


def test_who_leaves_takes_an_account_along_that_others_have_emptied() -> None:
    """It remembers that its account holds something, but the run that it released and its slot went to somebody else."""

    async def go() -> None:
        service = Service()
        ann, ben = service.store(), service.store()
        await ann.set_limits({"*": 9})
        claimed = await owned_run(ann)
        launch = launch_request(claimed.run.id, "extract")
        await ann.commit(ANN, [changes(claimed, launches=(launch,))], NOW)
        await ann.release(ANN, [claimed.run.id])
        await register(ben, BEN)
        (taken,) = await claim(ben, BEN)
        await ann.release(ANN)
        assert accounts(service) == {f"accounts/{BEN}"}
        over = replaced(launch.attempt, status=AttemptStatus.SUCCESS)
        await ben.commit(BEN, [changes(taken, attempts=(over,))], NOW)
        await ben.release(BEN)
        assert accounts(service) == set()
        assert [use.used for use in await ben.limit_use()] == [0]

    asyncio.run(go())


def test_an_account_of_which_a_released_run_holds_slots_stays() -> None:
    async def go() -> None:
        service = Service()
        ann, ben = service.store(), service.store()
        await ann.set_limits({"*": 1})
        claimed = await owned_run(ann)
        await ann.commit(ANN, [changes(claimed, launches=(launch_request(claimed.run.id, "extract"),))], NOW)
        await ann.release(ANN)
        assert accounts(service) == {f"accounts/{ANN}"}
        await ben.create_runs([new_run(claimed.version, priority=5)], NOW)
        await register(ben, BEN)
        (other,) = await claim(ben, BEN, 1)
        wanted = changes(other, launches=(launch_request(other.run.id, "extract"),))
        assert (await ben.commit(BEN, [wanted], NOW)).full == {"*"}

    asyncio.run(go())


def test_a_scheduler_that_registers_again_owns_nothing_and_gets_the_commands_of_what_it_claims() -> None:
    async def go() -> None:
        service = Service()
        ann, ben = service.store(), service.store()
        claimed = await owned_run(ann)
        await register(ann, ANN)  # as after an error; it is known
        assert await ann.get_owner(claimed.run.id) is None
        await ben.submit_command(RunCommand(claimed.run.id, CommandKind.CANCEL, "ben"), NOW)
        found = await ann.claim_runs(ANN, 5, NOW)
        assert [each.run.id for each in found.runs] == [command.run for command in found.commands] == [claimed.run.id]

    asyncio.run(go())


def test_nobody_registers_under_settings_that_were_replaced() -> None:
    """Neither by the remembered ones, nor is anybody refused by them."""

    async def go() -> None:
        service = Service()
        ann, ben = service.store(), service.store()
        theirs = replaced(OURS, stale_seconds=99.0)
        await ann.record_shared_settings(OURS)
        assert await ann.read_shared_settings() == OURS
        await ben.replace_shared_settings(theirs)
        with pytest.raises(SettingsDifferError):
            await ann.register(ANN, "ann", "tick", NOW, terms=OURS.terms)
        await ann.register(ANN, "ann", "tick", NOW, terms=theirs.terms)
        with pytest.raises(SettingsDifferError):
            await ann.register(BEN, "ben", "tick", NOW, terms=OURS.terms)
        await ben.replace_shared_settings(OURS)
        await ann.register(BEN, "ben", "tick", NOW, terms=OURS.terms)
        assert [entry.id for entry in await ben.list_schedulers()] == [BEN]

    asyncio.run(go())


def test_a_departure_that_arrives_late_leaves_one_that_registered_again() -> None:
    async def go() -> None:
        service = Service()
        ann = service.store()
        await register(ann, ANN)
        held: list[Any] = []
        send = ann._db.wire.commit

        async def hold(puts: Any) -> Any:
            held.append(puts)
            ann._db.wire.commit = send
            return await send(puts)

        ann._db.wire.commit = hold
        await ann.release(ANN)
        await register(ann, ANN)
        with pytest.raises(FailedPrecondition):
            service.database.commit(held[0])
        assert [entry.id for entry in await ann.list_schedulers()] == [ANN]

    asyncio.run(go())


def test_a_claim_says_whether_runs_are_left_that_wait() -> None:
    async def go() -> None:
        store = Service().store()
        flow = await deploy(store, max_active_runs=2)
        await register(store, ANN)
        assert (await store.claim_runs(ANN, 5, NOW)).nothing_waits
        await store.create_runs([new_run(flow) for _ in range(3)], NOW)
        first = await store.claim_runs(ANN, 5, NOW)  # one run has to wait
        assert (len(first.runs), first.nothing_waits) == (2, False)
        await store.commit(ANN, [ended(first.runs[0])], NOW)
        assert not (await store.claim_runs(ANN, 1, NOW)).nothing_waits  # there might be more
        await store.commit(ANN, [ended(first.runs[1])], NOW)
        assert (await store.claim_runs(ANN, 5, NOW)).nothing_waits
        assert not (await store.claim_runs(ANN, 0, NOW)).nothing_waits

    asyncio.run(go())
