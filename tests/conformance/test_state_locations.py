"""What every state store promises about code locations and the workflows that come from them."""

from __future__ import annotations

import pytest

from ork.errors import RefusedError
from ork.model.location import LocationEntry, LocationScan, origin_of
from ork.model.workflow import Schedule
from ork.state.store import StateStore
from tests.conformance.conftest import Stores
from tests.conformance.state_samples import NOW, later, version

ALL = ("a", "b", "et", "etl")
ETL, ETL_IMAGE = "etl", "registry/etl:latest"


async def taken(store: StateStore, seconds: float = 0, hold: float = 60) -> LocationEntry:
    entry = await store.take_location(ALL, later(seconds), hold)
    assert entry is not None
    return entry


async def entry_of(store: StateStore, name: str = ETL) -> LocationEntry:
    return next(entry for entry in await store.list_locations() if entry.name == name)


async def found(store: StateStore, digest: str = "sha256:1", **what: object) -> None:
    """A workflow was found in the location, and that is settled."""
    held = await taken(store)
    flow = version(id=f"v-{digest}", **what)
    await store.save_version(flow, origin=origin_of(ETL, digest), now=NOW, next_fire=later(3600))
    assert await store.settle_location(held, LocationScan(digest, digest), later(300), NOW)


async def test_a_new_location_is_due_at_once_and_nothing_has_been_seen_of_it(store: StateStore) -> None:
    await store.set_locations({ETL: ETL_IMAGE, "b": "/flows"}, NOW)
    assert await store.list_locations() == (LocationEntry("b", "/flows", NOW), LocationEntry(ETL, ETL_IMAGE, NOW))
    assert await store.next_location_at(ALL) == NOW


async def test_a_store_without_locations_has_nothing_to_look_into(store: StateStore) -> None:
    assert await store.next_location_at(ALL) is None
    assert await store.take_location(ALL, NOW, 60) is None
    assert not await store.ask_refresh(ETL, NOW)


async def test_nobody_is_given_a_location_that_is_not_known_there(store: StateStore) -> None:
    await store.set_locations({ETL: ETL_IMAGE, "b": "x"}, NOW)
    assert await store.take_location(["other"], NOW, 60) is None
    assert await store.next_location_at(["other"]) is None
    found = await store.take_location(["b", "other"], NOW, 60)
    assert found is not None
    assert found.name == "b"


async def test_who_lets_go_leaves_it_to_the_next_as_it_was(store: StateStore) -> None:
    await store.set_locations({ETL: ETL_IMAGE}, NOW)
    before = await entry_of(store)
    held = await taken(store)
    assert await store.keep_location(held, later(5), 0)
    assert (await taken(store, 5)).looked_at is before.looked_at is None


async def test_of_several_schedulers_one_looks(stores: Stores) -> None:
    one, other = stores.open(), stores.open()
    await one.set_locations({ETL: ETL_IMAGE}, NOW)
    held = await taken(one, hold=60)
    assert (held.name, held.held_until) == (ETL, later(60))
    assert await other.take_location(ALL, later(59), 60) is None
    assert await other.next_location_at(ALL) == later(60)


async def test_whose_hold_ran_out_has_lost_it_to_the_next(stores: Stores) -> None:
    one, other = stores.open(), stores.open()
    await one.set_locations({ETL: ETL_IMAGE}, NOW)
    slow = await taken(one, hold=60)
    quick = await taken(other, 60, hold=60)
    assert not await one.settle_location(slow, LocationScan("sha256:1", "sha256:1"), later(300), later(61))
    assert await other.settle_location(quick, LocationScan("sha256:2", "sha256:2"), later(300), later(62))
    assert (await entry_of(one)).digest == "sha256:2"


async def test_who_keeps_holding_is_not_disturbed(stores: Stores) -> None:
    one, other = stores.open(), stores.open()
    await one.set_locations({ETL: ETL_IMAGE}, NOW)
    held = await taken(one, hold=60)
    kept = await one.keep_location(held, later(40), 60)
    assert kept is not None
    assert kept.held_until == later(100)
    assert await other.take_location(ALL, later(99), 60) is None
    assert await one.keep_location(held, later(50), 60) is None
    assert await one.settle_location(kept, LocationScan("sha256:1", "sha256:1"), later(300), later(101))
    assert await one.keep_location(kept, later(102), 60) is None


async def test_the_one_that_waited_longest_comes_first(store: StateStore) -> None:
    await store.set_locations({"b": "x", "a": "y"}, NOW)
    for _ in range(2):
        held = await taken(store)
        await store.settle_location(held, LocationScan(None), later(50 if held.name == "b" else 90), NOW)
    assert [(await taken(store, 100)).name, (await taken(store, 100)).name] == ["b", "a"]


async def test_what_came_of_a_look_is_kept(store: StateStore) -> None:
    await store.set_locations({ETL: ETL_IMAGE}, NOW)
    await store.settle_location(await taken(store), LocationScan("sha256:1", "sha256:1"), later(300), later(1))
    good = await entry_of(store)
    assert (good.digest, good.seen, good.looked_at, good.changed_at) == ("sha256:1", "sha256:1", later(1), later(1))
    assert (good.due_at, good.held_until, good.error) == (later(300), None, None)
    bad = LocationScan("sha256:2", None, "ORK707", "it said nothing", "Traceback")
    await store.settle_location(await taken(store, 300), bad, later(600), later(301))
    kept = await entry_of(store)
    assert (kept.digest, kept.seen, kept.looked_at, kept.changed_at) == ("sha256:1", "sha256:2", later(301), later(1))
    assert (kept.code, kept.error, kept.output) == ("ORK707", "it said nothing", "Traceback")


async def test_the_same_digest_again_is_no_change(store: StateStore) -> None:
    await store.set_locations({ETL: ETL_IMAGE}, NOW)
    for seconds in (0, 300):
        held = await taken(store, seconds)
        await store.settle_location(held, LocationScan("sha256:1", "sha256:1"), later(seconds + 300), later(seconds))
    assert (await entry_of(store)).changed_at == NOW


async def test_a_look_that_is_asked_for_is_due_at_once(store: StateStore) -> None:
    await store.set_locations({ETL: ETL_IMAGE}, NOW)
    await store.settle_location(await taken(store), LocationScan(None), later(300), NOW)
    assert await store.take_location(ALL, later(10), 60) is None
    assert await store.ask_refresh(ETL, later(10))
    assert await store.next_location_at(ALL) == later(10)
    assert (await taken(store, 10)).name == ETL


async def test_who_asks_wants_what_was_not_good_looked_into_again(store: StateStore) -> None:
    await store.set_locations({ETL: ETL_IMAGE}, NOW)
    await store.settle_location(await taken(store), LocationScan("sha256:1", "sha256:1"), later(300), NOW)
    await store.settle_location(
        await taken(store, 300), LocationScan("sha256:2", None, "ORK707", "no"), later(600), NOW
    )
    await store.ask_refresh(ETL, later(301))
    assert (await taken(store, 301)).seen == "sha256:1"


async def test_who_asks_during_a_look_gets_another_one(store: StateStore) -> None:
    await store.set_locations({ETL: ETL_IMAGE}, NOW)
    held = await taken(store)
    await store.ask_refresh(ETL, later(5))
    await store.settle_location(held, LocationScan(None), later(300), later(6))
    again = await taken(store, 6)
    await store.settle_location(again, LocationScan(None), later(300), later(7))
    assert await store.take_location(ALL, later(8), 60) is None


async def test_asking_wakes_those_who_might_look(waiting_stores: Stores) -> None:
    one, other = waiting_stores.open(), waiting_stores.open()
    await one.set_locations({ETL: ETL_IMAGE}, NOW)
    await other.wait_for_change(0.0)
    await one.ask_refresh(ETL, NOW)
    assert await other.wait_for_change(5.0)


async def test_the_same_locations_again_stay_as_they_are(store: StateStore) -> None:
    await store.set_locations({ETL: ETL_IMAGE}, NOW)
    await store.settle_location(await taken(store), LocationScan("sha256:1", "sha256:1"), later(300), NOW)
    before = await store.list_locations()
    await store.set_locations({ETL: ETL_IMAGE}, later(1))
    assert await store.list_locations() == before


async def test_another_source_is_another_location_under_the_same_name(store: StateStore) -> None:
    await store.set_locations({ETL: ETL_IMAGE}, NOW)
    held = await taken(store)
    await store.set_locations({ETL: "elsewhere/etl"}, later(1))
    assert await store.list_locations() == (LocationEntry(ETL, "elsewhere/etl", later(1)),)
    assert not await store.settle_location(held, LocationScan("sha256:1", "sha256:1"), later(300), later(2))


async def test_a_workflow_of_a_location_cannot_be_deployed_from_elsewhere_or_deleted(store: StateStore) -> None:
    await store.set_locations({ETL: ETL_IMAGE}, NOW)
    await found(store)
    with pytest.raises(RefusedError) as refused:
        await store.save_version(version(id="mine"), origin="flow.yaml", now=NOW)
    assert refused.value.code == "ORK709"
    with pytest.raises(RefusedError, match="belongs to location etl"):
        await store.delete_workflow("flow")
    entry = await store.get_workflow("flow")
    assert entry is not None
    assert (entry.version, entry.origin) == ("v-sha256:1", "location:etl@sha256:1")
    assert await store.get_version(version(id="mine").id) is None


async def test_a_location_takes_over_what_was_deployed_and_not_what_another_location_has(store: StateStore) -> None:
    await store.save_version(version(), origin="flow.yaml", now=NOW)
    await store.set_locations({ETL: ETL_IMAGE, "other": "x"}, NOW)
    await store.save_version(version(), origin=origin_of(ETL, "sha256:1"), now=later(1))
    entry = await store.get_workflow("flow")
    assert entry is not None
    assert (entry.origin, entry.deployed_at) == ("location:etl@sha256:1", NOW)
    with pytest.raises(RefusedError) as refused:
        await store.save_version(version(id="b"), origin=origin_of("other", "sha256:1"), now=later(2))
    assert refused.value.code == "ORK710"


async def test_an_identical_version_of_a_newer_digest_names_that_digest(store: StateStore) -> None:
    await store.set_locations({ETL: ETL_IMAGE}, NOW)
    for digest in ("sha256:1", "sha256:2"):
        await store.save_version(version(), origin=origin_of(ETL, digest), now=NOW)
    entry = await store.get_workflow("flow")
    assert entry is not None
    assert entry.origin == "location:etl@sha256:2"


async def test_the_workflows_of_a_location_that_goes_are_disabled_and_free(store: StateStore) -> None:
    await store.set_locations({ETL: ETL_IMAGE, "et": "x"}, NOW)
    await found(store, schedule=Schedule("0 2 * * *"))
    await store.set_locations({"et": "x"}, NOW)
    entry = await store.get_workflow("flow")
    assert entry is not None
    assert not entry.enabled
    assert await store.next_fire_at(NOW) is None
    await store.save_version(version(id="mine"), origin="flow.yaml", now=NOW)
    assert await store.delete_workflow("flow")
