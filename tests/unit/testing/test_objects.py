"""The object stores of the testing kit: one keeps every promise of the contract, the other only those that matter."""

from __future__ import annotations

import pytest

from ork.errors import ObjectsError
from ork.objects.store import ObjectStore
from ork.testing.faults import FaultRates, Faults, SimulatedProcess
from ork.testing.kernel import Kernel
from ork.testing.objects import FlakyObjects, MemoryObjects
from tests.conformance.test_objects import (  # noqa: F401 (collected here for the store in memory)
    test_an_object_larger_than_the_limit_is_refused,
    test_keys_below_a_prefix_are_listed_in_order,
    test_none_is_there_until_it_is_put,
    test_nothing_is_left_below_a_deleted_prefix,
    test_parts_can_be_read,
    test_what_was_put_is_there_whole,
)


@pytest.fixture
def objects() -> ObjectStore:
    return MemoryObjects()


@pytest.mark.parametrize("key", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "a/.", "a\0b", "a/"])
def test_keys_that_are_no_relative_paths_are_refused(objects: ObjectStore, key: str) -> None:
    with pytest.raises(ObjectsError):
        objects.put(key, b"")


def flaky(kernel: Kernel, shared: MemoryObjects, name: str, **rates: float) -> FlakyObjects:
    faults = Faults(7, kernel, FaultRates(**rates))  # type: ignore[arg-type]
    return FlakyObjects(shared, SimulatedProcess(name, kernel, faults))


def test_one_process_sees_its_own_writes_at_once_and_others_later() -> None:
    kernel = Kernel(0)
    shared = MemoryObjects(kernel.now)
    kernel.run(100)
    writer, reader = flaky(kernel, shared, "writer", lag=1.0), flaky(kernel, shared, "reader", lag=1.0)
    writer.put("a", b"new")
    assert writer.get("a") == b"new"
    assert reader.get("a") is None
    kernel.run(110)
    assert reader.get("a") == b"new"


def test_creating_has_one_winner_however_much_reads_lag() -> None:
    kernel = Kernel(0)
    shared = MemoryObjects(kernel.now)
    first, second = flaky(kernel, shared, "first", lag=1.0), flaky(kernel, shared, "second", lag=1.0)
    assert first.put_if_absent("gate", b"1")
    assert not second.put_if_absent("gate", b"2")
    assert shared.get("gate") == b"1"


def test_a_failed_write_may_have_been_done() -> None:
    done, errors = 0, 0
    for number in range(200):
        kernel = Kernel(number)
        shared = MemoryObjects(kernel.now)
        view = FlakyObjects(shared, SimulatedProcess("p", kernel, Faults(number, kernel, FaultRates(object_error=0.5))))
        try:
            view.put("a", b"x")
        except ObjectsError:
            errors += 1
            done += shared.get("a") is not None
    assert 0 < done < errors


def test_what_was_written_last_can_be_lost_with_its_machine() -> None:
    moment = [0.0]
    objects = MemoryObjects(lambda: moment[0])
    objects.put("a", b"old")
    moment[0] = 10.0
    objects.put("a", b"new")
    objects.put("b", b"new")
    objects.forget_since("a", 5.0)
    objects.forget_since("b", 5.0)
    assert objects.get("a") == b"old"
    assert objects.get("b") is None
