"""Config as a tree of constants, references and secrets."""

from __future__ import annotations

from ork.model.trees import bind_tree, leaf, list_of, map_of, member_of, merged, pointers
from ork.model.workflow import Const, Ref, Secret

DAY = Ref(("params", "day"))
TOKEN = Secret("TOKEN")
TREE = map_of(
    {
        "url": leaf(Const("http://x")),
        "headers": map_of({"auth": leaf(TOKEN)}),
        "list": list_of([leaf(Const(1)), leaf(DAY)]),
    }
)


def test_a_tree_without_references_is_one_constant() -> None:
    assert map_of({"a": list_of([leaf(Const(1))]), "b": leaf(Const({"ref": "x"}))}) == {
        "const": {"a": [1], "b": {"ref": "x"}}
    }


def test_every_reference_is_found_with_its_path() -> None:
    assert list(pointers(TREE)) == [(TOKEN, ("headers", "auth")), (DAY, ("list", 1))]
    assert list(pointers(None)) == []


def test_binding_asks_for_every_leaf_once() -> None:
    bound = bind_tree(TREE, lambda value: {"value": str(value)} if isinstance(value, Ref) else {"leaf": value})
    assert bound["map"]["list"]["list"][1] == {"value": "params.day"}
    assert bound["map"]["headers"]["map"]["auth"] == {"leaf": TOKEN}
    assert bind_tree(None, lambda _value: {}) == {"value": None}


def test_the_upper_map_takes_precedence_in_a_merge() -> None:
    below = {"const": {"url": "file", "times": 3}}
    assert merged(below, TREE)["map"]["url"] == {"const": "http://x"}
    assert merged(below, TREE)["map"]["times"] == {"const": 3}
    assert merged(below, {"const": {"times": 4}}) == {"const": {"url": "file", "times": 4}}


def test_a_member_is_found_in_either_kind_of_map() -> None:
    assert member_of(TREE, "url") == {"const": "http://x"}
    assert member_of({"const": {"a": 1}}, "a") == {"const": 1}
    assert member_of({"const": [1]}, "a") is None
    assert member_of(None, "a") is None
