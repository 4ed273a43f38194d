"""Config trees: JSON whose leaves may be references or secrets. A tree is JSON itself, so it can be stored and sent.

A tree is one of {"const": json}, {"ref": [path]} (with "as": "file" for a file), {"secret": name}, {"map": {name: tree}}, {"list": [tree]}.
A subtree without references and secrets is a single constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from ork.model.workflow import Const, Ref, Secret, Value

Tree: TypeAlias = dict[str, Any]
# Keys and indexes from the root to a leaf.
TreePath: TypeAlias = tuple[str | int, ...]


def leaf(value: Value) -> Tree:
    match value:
        case Const(constant):
            return {"const": constant}
        case Ref(path, as_file):
            return {"ref": list(path), "as": "file"} if as_file else {"ref": list(path)}
        case Secret(name):
            return {"secret": name}


def map_of(members: dict[str, Tree]) -> Tree:
    if all("const" in member for member in members.values()):
        return {"const": {name: member["const"] for name, member in members.items()}}
    return {"map": members}


def list_of(items: list[Tree]) -> Tree:
    return {"const": [item["const"] for item in items]} if all("const" in item for item in items) else {"list": items}


def member_of(tree: Tree | None, name: str) -> Tree | None:
    """The member of a map; None if it is missing or the tree is no map."""
    if tree is None:
        return None
    if "map" in tree:
        return tree["map"].get(name)  # type: ignore[no-any-return]
    constant = tree.get("const")
    return {"const": constant[name]} if isinstance(constant, dict) and name in constant else None


def merged(below: Tree, above: Tree) -> Tree:
    """Merge two maps; members of `above` take precedence."""
    return map_of({**_members(below), **_members(above)})


def pointers(tree: Tree | None, path: TreePath = ()) -> Iterator[tuple[Ref | Secret, TreePath]]:
    """Yield each reference and secret in the tree with its path."""
    if tree is None:
        return
    match tree:
        case {"ref": steps}:
            yield Ref(tuple(steps), tree.get("as") == "file"), path
        case {"secret": name}:
            yield Secret(name), path
        case {"map": members}:
            for name, member in members.items():
                yield from pointers(member, (*path, name))
        case {"list": items}:
            for index, item in enumerate(items):
                yield from pointers(item, (*path, index))


def bind_tree(tree: Tree | None, bind: Callable[[Value], dict[str, Any]]) -> dict[str, Any]:
    """The tree with every leaf replaced by what `bind` returns, as {"map": …} and {"list": …}."""
    match tree:
        case None:
            return {"value": None}
        case {"map": members}:
            return {"map": {name: bind_tree(member, bind) for name, member in members.items()}}
        case {"list": items}:
            return {"list": [bind_tree(item, bind) for item in items]}
        case {"ref": steps}:
            return bind(Ref(tuple(steps), tree.get("as") == "file"))
        case {"secret": name}:
            return bind(Secret(name))
        case _:
            return bind(Const(tree["const"]))


def _members(tree: Tree) -> dict[str, Tree]:
    if "map" in tree:
        return tree["map"]  # type: ignore[no-any-return]
    return {name: {"const": value} for name, value in tree["const"].items()}
