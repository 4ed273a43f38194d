"""Records behave as frozen dataclasses with slots do."""

from __future__ import annotations

import copy
import pickle

import pytest

from ork.model.record import Record, made, replaced


class Point(Record):
    x: int
    y: int = 2


class Named(Point):
    name: str = "?"


class Bag(Record, frozen=False):
    things: list[int] = made(default_factory=list)


class Nothing(Record):
    pass


class One(Record):
    only: str


def test_fields_come_by_place_or_by_name_and_have_defaults() -> None:
    assert (Point(1).y, Point(1, 3).y, Point(y=4, x=1).y) == (2, 3, 4)
    assert (Named(1, 2, "a").name, Named(1).name) == ("a", "?")


@pytest.mark.parametrize("wrong", ["Point()", "Point(1, 2, 3)", "Point(1, z=3)", "replaced(Point(1), z=1)"])
def test_unknown_and_missing_fields_are_refused(wrong: str) -> None:
    with pytest.raises(TypeError):
        eval(wrong)


def test_equal_means_same_class_and_same_values() -> None:
    assert (Point(1), hash(Point(1)), {Point(1): 1}[Point(1, 2)]) == (Point(1, 2), hash(Point(1, 2)), 1)
    assert Point(1) != Point(2)
    assert Point(1) != Named(1)
    assert Point(1) != (1, 2)
    assert Nothing() == Nothing()
    assert (One("a"), hash(One("a"))) == (One("a"), hash(One("a")))


def test_a_record_cannot_be_changed_unless_declared_so() -> None:
    for name in ("x", "other"):
        with pytest.raises(AttributeError, match="is immutable"):
            setattr(Point(1), name, 3)
    with pytest.raises(AttributeError, match="is immutable"):
        del Point(1).x  # type: ignore[misc]
    bag = Bag()
    bag.things = [1]
    assert bag == Bag([1])
    with pytest.raises(TypeError, match="unhashable"):
        hash(bag)
    with pytest.raises(AttributeError):
        bag.other = 1  # type: ignore[attr-defined]


def test_a_default_factory_is_called_for_each_record() -> None:
    first, second = Bag(), Bag()
    first.things.append(1)
    assert second.things == []


def test_a_replaced_field_leaves_the_others_and_the_original() -> None:
    point = Named(1, 5, "a")
    assert (replaced(point, x=9), point) == (Named(9, 5, "a"), Named(1, 5, "a"))
    assert replaced(One("a"), only="b") == One("b")


def test_a_copy_is_immutable_too() -> None:
    for copied, name in ((replaced(Named(1), x=2), "x"), (replaced(One("a"), only="b"), "only")):
        with pytest.raises(AttributeError, match="is immutable"):
            setattr(copied, name, 3)
    bag = replaced(Bag([1]), things=[2])
    bag.things = [3]
    assert (type(bag), bag.things) == (Bag, [3])


def test_it_shows_itself_matches_by_place_and_survives_copying() -> None:
    assert repr(Named(1)) == "Named(x=1, y=2, name='?')"
    match Named(1, 5):
        case Named(x, y):
            assert (x, y) == (1, 5)
    assert copy.deepcopy(Point(1)) == pickle.loads(pickle.dumps(Point(1))) == Point(1)


def test_no_record_has_a_dictionary() -> None:
    assert not any(hasattr(each, "__dict__") for each in (Point(1), Named(1), Bag(), Nothing(), One("a")))


def test_first_instance_can_be_created_with_a_field_called_kind() -> None:
    class Item(Record):
        kind: str

    class Open(Record, frozen=False):
        kind: str

    assert Item(kind="run") == Item("run")
    assert Open(kind="run").kind == "run"
