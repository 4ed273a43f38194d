"""Which documents a caller may read and write: a scheduler all, an attempt its own and the inputs that its spec names.

All other requests of an attempt are refused with the same message, whether the document exists or not.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from starlette.exceptions import HTTPException

from ork.api.context import Caller
from ork.errors import DocumentError
from ork.model.value_reference import IN_TEXT, references_below
from ork.objects import layout
from ork.objects.calls import DocumentCalls
from ork.objects.documents import DOCUMENT_LIMIT, SPEC_LIMIT, open_signed
from ork.objects.keyed import KeyedDocuments
from ork.objects.references import references_in, values_in

SPECS_KEPT = 1024
SHARED_KEPT = 64
LOG_LIMIT = 1 << 30  # maximum size of one attempt's log in bytes
STATUS_LIMIT = 2 * DOCUMENT_LIMIT
OBJECT_LIMIT = 512 << 20  # maximum size in bytes of an object written by a scheduler


class DocumentAccess:
    """Checks access to documents. Caches the references of recent specs."""

    def __init__(self, objects: KeyedDocuments) -> None:
        self._objects = objects
        self._specs: OrderedDict[str, tuple[frozenset[str], int]] = OrderedDict()
        self._shared: OrderedDict[str, frozenset[str]] = OrderedDict()  # values that shared outputs refer to

    async def check_read(self, caller: Caller, keys: Sequence[str]) -> None:
        """Raise a refusal unless the caller may read all keys."""
        attempt = caller.attempt
        if attempt is None:
            return
        others = set(keys) - _own_keys(attempt)
        if others and not others <= (await self._spec(caller, attempt))[0]:
            self._specs.pop(attempt, None)  # another scheduler may have written a new spec with other references
            if not others <= (await self._spec(caller, attempt))[0]:
                raise _refusal()

    async def check_read_value(self, caller: Caller, key: str) -> None:
        """Raise a refusal unless the caller may read this value: one of its own, one that its spec names, or one of an attempt
        whose output its spec names."""
        attempt = caller.attempt
        if attempt is None or layout.attempt_of(key) == attempt:
            return
        for is_second in (False, True):
            if is_second:
                self._specs.pop(attempt, None)
            named = (await self._spec(caller, attempt))[0]
            if layout.value_root(key) in named or layout.output_key(layout.stem_of(key)) in named:
                return
            if await self._is_shared(key, named):
                return
        raise _refusal()

    async def _is_shared(self, key: str, named: frozenset[str]) -> bool:
        """Whether an output that a scheduler has stored once for many attempts refers to the value."""
        shared = [each for each in named if layout.attempt_of(each) is None]
        for reference in shared:
            if reference not in self._shared:
                (data,) = await DocumentCalls(self._objects).call(self._objects.read_values, [reference], SPEC_LIMIT)
                text = data if isinstance(data, bytes) and IN_TEXT.encode() in data else b"null"
                self._shared[reference] = await asyncio.to_thread(_objects_in, text)
                while len(self._shared) > SHARED_KEPT:
                    self._shared.popitem(last=False)
            if layout.value_root(key) in self._shared[reference]:
                return True
        return False

    def check_own(self, caller: Caller, attempt: str) -> None:
        """Raise a refusal unless this is the caller's attempt, or the caller a scheduler."""
        if caller.attempt is not None and caller.attempt != attempt:
            raise _refusal()

    async def most_to_write(self, caller: Caller, key: str, *, if_absent: bool) -> int:
        """The number of bytes that the caller may write to the key. Raises a refusal if the caller may not write it."""
        attempt = caller.attempt
        if attempt is None:
            return OBJECT_LIMIT
        stem = layout.stem(attempt)
        if key == layout.status_key(stem) or (key == layout.gate_key(stem) and if_absent):
            return STATUS_LIMIT
        if key == layout.output_key(stem):
            return (await self._spec(caller, attempt))[1]
        raise _refusal()

    def check_log(self, caller: Caller, attempt: str, end: int = 0) -> None:
        """Raise a refusal unless the caller may use the log of this attempt up to `end`."""
        if caller.attempt is None:
            return
        if caller.attempt != attempt:
            raise _refusal()
        if end > LOG_LIMIT:
            raise HTTPException(413, f"the log of an attempt may have at most {LOG_LIMIT:,} bytes")

    def check_scheduler(self, caller: Caller) -> None:
        if caller.attempt is not None:
            raise _refusal()

    async def _spec(self, caller: Caller, attempt: str) -> tuple[frozenset[str], int]:
        """The keys that the attempt's spec refers to, and the maximum size of its output. Empty and 0 without a spec
        signed by its scheduler."""
        if attempt not in self._specs:
            data = await DocumentCalls(self._objects).call(self._objects.read_spec, attempt)
            if data is None:
                return frozenset(), 0
            try:
                spec: dict[str, Any] = open_signed(data, caller.digest or "", limit=SPEC_LIMIT)
            except DocumentError:
                return frozenset(), 0
            values = [str(each.get("object")) for each in values_in(spec)]
            self._specs[attempt] = frozenset([*references_in(spec), *values]), int(spec["output_limit"])
            while len(self._specs) > SPECS_KEPT:
                self._specs.popitem(last=False)
        return self._specs[attempt]


def _objects_in(text: bytes) -> frozenset[str]:
    return frozenset(str(each.get("object")) for each in references_below(json.loads(text)))


def _own_keys(attempt: str) -> set[str]:
    stem = layout.stem(attempt)
    named = (layout.spec_key, layout.gate_key, layout.status_key, layout.output_key, layout.stop_key)
    return {key(stem) for key in named}


def _refusal() -> HTTPException:
    return HTTPException(403, "an attempt may use its own documents and the inputs that its spec names")
