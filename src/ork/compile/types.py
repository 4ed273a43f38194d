"""Decides whether a value of one type can be passed where another is expected.

Strict if both types are known, permissive otherwise: `any` is assignable to and from everything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from ork.model.types import Mismatch, check, missing_field, render_type, resolved, side_of, union_of, unknown_field

if TYPE_CHECKING:
    from ork.model.types import Names, TypeJson

# The supertypes of scalar types. Dates are passed as text.
_ALSO = {
    "int": ("float",),
    "date": ("str", "datetime"),
    "datetime": ("str",),
    # Whether a file is a table is found when it runs. The bytes of a table or an array are those of its file.
    "table": ("file", "bytes"),
    "array": ("file", "bytes"),
    "file": ("bytes", "table", "array"),
    "bytes": ("file",),
}
_FACTS: dict[str, dict[str | int, TypeJson]] = {
    "table": {"rows": "int", "columns": {"list": {"object": {"name": "str", "type": "str"}}}, "parts": "int"},
    "array": {"shape": {"list": "int"}, "dtype": "str"},
    "file": {"name": "str", "parts": "int"},
    "bytes": {},
}
_FACTS_OF_ALL: dict[str | int, TypeJson] = {"size": "int", "sha256": "str", "media_type": "str", "type": "str"}


class Typed(NamedTuple):
    """A type with the names it uses: two files may define different types of the same name."""

    type: TypeJson
    names: Names

    def listed(self) -> Typed:
        return Typed({"list": self.type}, self.names)


ANY = Typed("any", {})


def assignable(source: Typed, target: Typed) -> Mismatch | None:
    """None if every value of the source type is valid for the target type, else the first mismatch."""
    return _Comparison(source.names, target.names).compare(source.type, target.type, "")


def type_at(source: Typed, path: Iterable[str | int]) -> Typed | Mismatch:
    """The type at the path, or a mismatch if there is no such path."""
    walked = ""
    found = source
    for step in path:
        below = _below(found, step)
        if below is None:
            place = f"{walked}[{step}]" if isinstance(step, int) else f"{walked}.{step}"
            return Mismatch(place, "nothing", render_type(found.type, "gives"), "is not there")
        walked += f"[{step}]" if isinstance(step, int) else f".{step}"
        found = below
    return found


def item_type(source: Typed) -> Typed | None:
    """The item type of a list, or of the parts of a table or a folder; None if it has no items."""
    shape = _shape(source.type, source.names, "gives")
    return source if shape in ("table", "file") else _below(source, 0)


def _below(source: Typed, step: str | int) -> Typed | None:
    names = source.names
    shape = _shape(source.type, names, "gives")
    if shape == "any":
        return ANY
    if isinstance(shape, str):
        fact = _FACTS_OF_ALL.get(step, _FACTS[shape].get(step)) if shape in _FACTS else None
        return None if fact is None else Typed(fact, names)
    if "union" in shape:
        # None members are ignored: the others decide.
        found = [_below(Typed(member, names), step) for member in shape["union"] if member != "none"]
        kinds = [each.type for each in found if each is not None]
        return Typed(union_of(kinds), names) if kinds and len(kinds) == len(found) else None
    if isinstance(step, int):
        return Typed(shape["list"], names) if "list" in shape else None
    if "dict" in shape:
        return Typed(shape["dict"], names)
    fields = shape.get("object", {})
    return Typed(fields[step], names) if step in fields else None


def _shape(kind: TypeJson, names: Names, side: str) -> TypeJson:
    return resolved(side_of(resolved(kind, names), side), names)


class _Comparison:
    def __init__(self, source_names: Names, target_names: Names) -> None:
        self._source_names = source_names
        self._target_names = target_names
        self._assumed: set[tuple[str, str]] = set()

    def compare(self, source: TypeJson, target: TypeJson, path: str) -> Mismatch | None:
        if not (isinstance(source, str) and source in self._source_names):
            return self._compare(source, target, path)
        # Recursive types: assumed assignable until a difference is found elsewhere.
        pair = (source, render_type(target))
        if pair in self._assumed:
            return None
        self._assumed.add(pair)
        mismatch = self._compare(source, target, path)
        self._assumed.discard(pair)
        return mismatch

    def _compare(self, source: TypeJson, target: TypeJson, path: str) -> Mismatch | None:
        given = _shape(source, self._source_names, "gives")
        wanted = _shape(target, self._target_names, "takes")
        if given == "any" or wanted == "any":
            return None
        differs = Mismatch(path, render_type(target, "takes"), render_type(source, "gives"))
        if isinstance(given, dict) and "union" in given:
            return _first(self.compare(member, target, path) for member in given["union"])
        if isinstance(wanted, dict) and "union" in wanted:
            return self._any_of(source, wanted["union"], path, differs)
        if isinstance(given, dict) and "enum" in given:
            return _literals(given["enum"], wanted, differs)
        if isinstance(given, str) or isinstance(wanted, str):
            fits = given == wanted or (isinstance(given, str) and wanted in _ALSO.get(given, ()))
            return None if fits else differs
        return self._containers(given, wanted, path, differs)

    def _any_of(self, source: TypeJson, members: list[TypeJson], path: str, differs: Mismatch) -> Mismatch | None:
        found = differs
        for member in members:
            mismatch = self.compare(source, member, path)
            if mismatch is None:
                return None
            if mismatch.path != path:
                found = mismatch
        return found

    def _containers(
        self, given: dict[str, Any], wanted: dict[str, Any], path: str, differs: Mismatch
    ) -> Mismatch | None:
        if "list" in given and "list" in wanted:
            return self.compare(given["list"], wanted["list"], f"{path}[]")
        if "dict" in given and "dict" in wanted:
            return self.compare(given["dict"], wanted["dict"], f"{path}.*")
        if "object" in given and "dict" in wanted:
            fields = given["object"].items()
            return _first(self.compare(kind, wanted["dict"], f"{path}.{name}") for name, kind in fields)
        if "dict" in given and "object" in wanted:
            # Missing fields are found at run time; wrong types are reported now.
            fields = wanted["object"].items()
            return _first(self.compare(given["dict"], kind, f"{path}.{name}") for name, kind in fields)
        if "object" in given and "object" in wanted:
            return self._objects(given, wanted, path)
        return differs

    def _objects(self, given: dict[str, Any], wanted: dict[str, Any], path: str) -> Mismatch | None:
        fields, perhaps_absent = given["object"], given.get("optional", ())
        for name, kind in wanted["object"].items():
            place = f"{path}.{name}"
            is_optional = name in wanted.get("optional", ())
            if not is_optional and (name not in fields or name in perhaps_absent):
                return missing_field(place, render_type(kind))
            mismatch = self.compare(fields[name], kind, place) if name in fields else None
            if mismatch is not None:
                return mismatch
        unknown = next((name for name in fields if name not in wanted["object"]), None)
        if unknown is None or not wanted.get("closed"):
            return None
        return unknown_field(f"{path}.{unknown}", render_type(fields[unknown], "gives"))


def _literals(values: list[Any], wanted: TypeJson, differs: Mismatch) -> Mismatch | None:
    return None if all(check(value, wanted) is None for value in values) else differs


def _first(found: Iterable[Mismatch | None]) -> Mismatch | None:
    return next((mismatch for mismatch in found if mismatch is not None), None)
