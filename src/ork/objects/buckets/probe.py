"""Tries what Ork needs of a bucket, with objects of its own that it removes again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ork.errors import ObjectsError
from ork.objects.buckets.documents import BucketDocuments


class ProbeStep(NamedTuple):
    """`problem` is None if it works."""

    name: str
    problem: str | None
    hint: str | None = None


def try_bucket(documents: BucketDocuments) -> Iterator[ProbeStep]:
    """Write, conditional write, read, list, delete. Without the first of them the others are not tried."""
    folder = f"doctor/{os.urandom(8).hex()}"
    key, once = f"{folder}/written", f"{folder}/once"
    first = _step("write", lambda: documents.put(key, b"1"))
    yield first
    if first.problem is not None:
        return
    yield _step("conditional write", lambda: _check_conditions(documents, once))
    yield _step("read", lambda: _expect(documents.get(key) == b"1", "an object that was just written cannot be read"))
    yield _step("list", lambda: _expect(key in documents.list(folder), "a new object is not in the listing yet"))
    yield _step("delete", lambda: documents.bucket.delete_many([documents.whole_key(each) for each in (key, once)]))


def _check_conditions(documents: BucketDocuments, key: str) -> None:
    documents.put_if_absent(key, b"first")
    is_second_accepted = documents.put_if_absent(key, b"second")
    _expect(not is_second_accepted, "an existing object was replaced: two workers could run the same task")


def _expect(is_true: bool, otherwise: str) -> None:
    if not is_true:
        raise ObjectsError(otherwise)


def _step(name: str, action: Callable[[], None]) -> ProbeStep:
    try:
        action()
    except ObjectsError as error:
        return ProbeStep(name, error.message, error.hint)
    return ProbeStep(name, None)
