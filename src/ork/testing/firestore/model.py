"""Firestore in memory, as far as the store uses it: documents, preconditions, atomic commits, queries, limits.

A test compares it with the official emulator, operation by operation. What the emulator does not do is added from the service's
documentation: a query without an index and a commit over a limit are refused.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from google.api_core import exceptions as google

from ork.state.firestore.values import SERVER_TIME, clean, moment_of
from ork.state.firestore.wire import Doc, Put, Query
from ork.testing.firestore.indexes import Shape, is_refused

MOST_WRITES = 500  # in one commit; the service no longer has this limit, but its libraries and older emulators do
MOST_DOCUMENT_BYTES = 1 << 20
MOST_REQUEST_BYTES = 10 << 20
_MILLISECOND = 1000  # in microseconds

Fields = dict[str, Any]


class Stored(NamedTuple):
    fields: Fields
    time: int


class MemoryFirestore:
    """`now` is the service's clock in microseconds."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._collections: dict[str, dict[str, Stored]] = {}
        self._last_commit = 0

    @property
    def read_time(self) -> int:
        """Now. Everything that was committed before is visible."""
        return max(self._now(), self._last_commit)

    # ── reading ──────────────────────────────────────────────────────────────────────────────────

    def get_all(self, paths: Collection[str], select: Sequence[str] | None = None) -> dict[str, Doc]:
        found = {path: self._stored(path) for path in dict.fromkeys(paths)}
        return {path: self._doc(path, stored, select) for path, stored in found.items() if stored is not None}

    def query(self, query: Query) -> list[Doc]:
        parent = f"{query.under}/{query.collection}" if query.under else query.collection
        select = None if query.select is None else query.select
        return [self._doc(f"{parent}/{id}", stored, select) for id, stored in self._matching(query, parent)]

    def count(self, query: Query) -> int:
        parent = f"{query.under}/{query.collection}" if query.under else query.collection
        return len(self._matching(query, parent))

    def _matching(self, query: Query, parent: str) -> list[tuple[str, Stored]]:
        shape = shape_of(query)
        if is_refused(shape):
            raise google.FailedPrecondition(f"The query requires an index: {shape}")
        if "-__name__" in query.order:
            raise google.FailedPrecondition("Firestore does not support descending key scans")
        order = [(name.removeprefix("-"), name.startswith("-")) for name in query.order]
        order = order or [(name, False) for name in shape[2]]
        if not any(name == "__name__" for name, _ in order):
            order.append(("__name__", bool(order) and order[-1][1]))
        found = [
            (id, stored)
            for id, stored in self._collections.get(parent, {}).items()
            if all(_holds(_value(id, stored, name), op, value) for name, op, value in query.where)
            and all(_value(id, stored, name) is not _ABSENT for name, _ in order)
        ]
        for name, is_descending in reversed(order):
            found.sort(key=partial(_rank_of, name), reverse=is_descending)
        if query.after is not None:
            found = [each for each in found if _is_after(each, order, query.after)]
        return found[: query.limit]

    # ── writing ──────────────────────────────────────────────────────────────────────────────────

    def commit(self, puts: Sequence[Put], received: int | None = None) -> list[int]:
        """All or nothing; the time at which each document was written. A field with the server's time gets the time at which
        the request was received, in milliseconds, which may be before that."""
        self._check_size(puts)
        for put in puts:
            _check_guard(put, self._stored(put.path))
        at = max(self._now(), self._last_commit + 1)
        stamp = (at if received is None else received) // _MILLISECOND * _MILLISECOND
        after = [self._after(put, stamp) for put in puts]
        self._last_commit = at
        return [self._write(put.path, fields, at) for put, fields in zip(puts, after, strict=True)]

    def _after(self, put: Put, stamp: int) -> Fields | None:
        """The document's fields after the write. None: it is deleted."""
        if put.fields is None:
            return None
        given = {name: _kept(value) for name, value in put.fields.items() if value is not SERVER_TIME}
        if put.mask is None:
            fields = given
        else:
            before = self._stored(put.path)
            fields = _copied(before.fields) if before is not None else {}
            for path in put.mask:
                if put.fields.get(path[0]) is not SERVER_TIME:
                    _assign(fields, path, _found(given, path))
        fields |= {name: moment_of(stamp) for name, value in put.fields.items() if value is SERVER_TIME}
        size = _size(fields)
        if size > MOST_DOCUMENT_BYTES:
            raise google.InvalidArgument(f"The document {put.path} is too large: {size} bytes")
        return fields

    def _write(self, path: str, fields: Fields | None, at: int) -> int:
        """A write that changes nothing leaves the document's time as it was."""
        parent, _, id = path.rpartition("/")
        documents = self._collections.setdefault(parent, {})
        if fields is None:
            documents.pop(id, None)
            return at
        before = documents.get(id)
        if before is not None and _is_same(before.fields, fields):
            return before.time
        documents[id] = Stored(fields, at)
        return at

    def _check_size(self, puts: Sequence[Put]) -> None:
        if len(puts) > MOST_WRITES:
            raise google.InvalidArgument(f"A commit has {len(puts)} writes")
        if len({put.path for put in puts}) < len(puts):
            raise google.InvalidArgument("A commit writes a document twice")
        size = sum(len(put.path) + _size({**(put.fields or {})}) for put in puts)
        if size > MOST_REQUEST_BYTES:
            raise google.InvalidArgument(f"A request has {size} bytes")

    def _stored(self, path: str) -> Stored | None:
        parent, _, id = path.rpartition("/")
        return self._collections.get(parent, {}).get(id)

    def _doc(self, path: str, stored: Stored, select: Sequence[str] | None) -> Doc:
        fields = stored.fields
        if select is not None:
            fields = {name: fields[name] for name in select if name in fields}
        return Doc(path, _copied(fields), stored.time, self.read_time)


def shape_of(query: Query) -> Shape:
    equal = sorted({name for name, op, _ in query.where if op in ("==", "in")})
    other = sorted({name for name, op, _ in query.where if op not in ("==", "in")})
    order = [[name.removeprefix("-"), "DESCENDING" if name.startswith("-") else "ASCENDING"] for name in query.order]
    return [query.collection, equal, other, order or [[name, "ASCENDING"] for name in other]]


def _check_guard(put: Put, stored: Stored | None) -> None:
    if put.guard is True and stored is None:
        raise google.NotFound(f"no entity to update: {put.path}")
    if put.guard is False and stored is not None:
        raise google.AlreadyExists(f"entity already exists: {put.path}")
    is_timed = put.guard is not None and not isinstance(put.guard, bool)
    if is_timed and (stored is None or stored.time != put.guard):
        raise google.FailedPrecondition(f"the stored version ({stored and stored.time}) is not {put.guard}: {put.path}")


# ── values ───────────────────────────────────────────────────────────────────────────────────────

_ABSENT = object()
_COMPARED = {"==": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_KINDS: tuple[type, ...] = (type(None), bool, int, datetime, str, bytes)  # in the order in which the service sorts them


def _value(id: str, stored: Stored, name: str) -> Any:
    return id if name == "__name__" else stored.fields.get(name, _ABSENT)


def _kind(value: Any) -> int:
    return _KINDS.index(int if isinstance(value, float) else type(value)) if not isinstance(value, list | dict) else 9


def _rank(value: Any) -> tuple[int, Any]:
    return _kind(value), 0 if value is None else value


def _rank_of(name: str, each: tuple[str, Stored]) -> tuple[int, Any]:
    return _rank(_value(*each, name))


def _holds(found: Any, op: str, wanted: Any) -> bool:
    """Values of different kinds are neither equal nor in order, and null is neither to anything."""
    if found is _ABSENT or found is None:
        return False
    if op == "in":
        return any(_holds(found, "==", each) for each in wanted)
    wanted = _kept(wanted)
    if _kind(found) != _kind(wanted):
        return False
    return bool(_COMPARED[op](_rank(found), _rank(wanted)))


def _is_after(each: tuple[str, Stored], order: Sequence[tuple[str, bool]], cursor: Sequence[Any]) -> bool:
    for (name, is_descending), value in zip(order, cursor, strict=False):
        found, last = _rank_of(name, each), _rank(_kept(value))
        if found != last:
            return (found > last) != is_descending
    return False


def _kept(value: Any) -> Any:
    """As the service gives it back."""
    if isinstance(value, str):
        return clean(value)
    if value is None or isinstance(value, bool | int | float | bytes | datetime):
        return value
    if isinstance(value, Mapping):
        return {key: _kept(each) for key, each in value.items()}
    if isinstance(value, Iterable):
        return [_kept(each) for each in value]
    raise TypeError(f"{type(value).__name__} cannot be kept in a document")


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list) else value


def _found(fields: Any, path: Sequence[str]) -> Any:
    for name in path:
        if not isinstance(fields, dict) or name not in fields:
            return _ABSENT
        fields = fields[name]
    return fields


def _assign(fields: Fields, path: Sequence[str], value: Any) -> None:
    *above, last = path
    for name in above:
        if value is _ABSENT and not isinstance(fields.get(name), dict):
            return
        if not isinstance(fields.get(name), dict):
            fields[name] = {}
        fields = fields[name]
    if value is _ABSENT:
        fields.pop(last, None)
    else:
        fields[last] = value


def _is_same(one: Any, other: Any) -> bool:
    """Equal, and of the same kind: 1 is not True."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return type(one) is type(other) and bool(one == other)


def _size(value: Any) -> int:
    """Bytes, as the service counts them, without names of documents and indexes."""
    if isinstance(value, str):
        return len(value.encode("utf-8", "surrogatepass")) + 1
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, Mapping):
        return sum(len(key) + 1 + _size(each) for key, each in value.items())
    if isinstance(value, list | tuple):
        return sum(map(_size, value))
    return 1 if value is None or isinstance(value, bool) else 8
