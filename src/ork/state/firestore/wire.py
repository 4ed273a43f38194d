"""The requests Ork sends to Firestore: get, query, count, commit, listen. There are no read-write transactions, and the library
repeats nothing: a read that failed is tried again here, a commit by `Database.change`."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, TypeVar

from google.cloud.firestore_v1.services.firestore import FirestoreAsyncClient
from google.cloud.firestore_v1.services.firestore.transports import FirestoreGrpcAsyncIOTransport
from google.cloud.firestore_v1.types import firestore

from ork.state.firestore.address import Address
from ork.state.firestore.failures import TROUBLE, commit_error, passes
from ork.state.firestore.values import (
    SERVER_TIME,
    BatchGetRequest,
    CommitRequest,
    CountRequest,
    QueryRequest,
    StructuredQuery,
    Write,
    decoded,
    encoded,
    field_path,
    stamp_micros,
)

REQUEST_SECONDS = 15.0
_TRIES = 5
_OPS = {"==": 5, "<": 1, "<=": 2, ">": 3, ">=": 4, "in": 8}  # as in the service's definition of a field filter

T = TypeVar("T")
Filter = tuple[str, str, Any]


class Doc(NamedTuple):
    """A document as it was read: `time` is when it was last written, in microseconds, `read` when it was read."""

    path: str
    fields: dict[str, Any]
    time: int
    read: int

    @property
    def id(self) -> str:
        return self.path.rpartition("/")[2]


class Put(NamedTuple):
    """A write. `fields` replaces the document, or with `mask` only those field paths (a path without a value is removed).

    `guard`: None, True (it exists), False (it does not exist) or the time it was last written.
    `fields` None deletes the document.
    """

    path: str
    fields: Mapping[str, Any] | None
    guard: bool | int | None = None
    mask: Sequence[tuple[str, ...]] | None = None


class Query(NamedTuple):
    collection: str
    where: tuple[Filter, ...] = ()
    order: tuple[str, ...] = ()  # a field, with "-" in front for descending order
    limit: int | None = None
    select: tuple[str, ...] | None = None
    under: str = ""  # the document whose subcollection it is
    after: tuple[Any, ...] | None = None  # the values of `order` of the last document of the page before


class Wire:
    """One channel. `requests` counts what was sent; `first_read` and `last_read` are moments of the service's clock.

    The store waits and sends only through this class. `ork.testing.firestore` has one in memory, on virtual time.
    """

    def __init__(self, address: Address) -> None:
        self.resource = address.resource
        self.root = f"{address.resource}/documents"
        self.requests = 0
        self.first_read = 0
        self.last_read = 0
        host = address.emulator
        self._metadata = [("google-cloud-resource-prefix", address.resource)]
        if host:
            import grpc

            self._metadata.append(("authorization", "Bearer owner"))
            transport = FirestoreGrpcAsyncIOTransport(channel=grpc.aio.insecure_channel(host), host=host)
            self._client = FirestoreAsyncClient(transport=transport)
        else:
            self._client = FirestoreAsyncClient()

    async def close(self) -> None:
        await self._client.transport.close()

    # ── reading ──────────────────────────────────────────────────────────────────────────────────

    async def get(self, path: str) -> Doc | None:
        return (await self.get_all([path])).get(path)

    async def get_all(self, paths: Collection[str], select: Sequence[str] | None = None) -> dict[str, Doc]:
        """Those that exist."""
        if not paths:
            return {}
        request = BatchGetRequest(
            database=self.resource, documents=[f"{self.root}/{path}" for path in dict.fromkeys(paths)]
        )
        if select is not None:
            request.mask.field_paths.extend(select)

        async def read() -> dict[str, Doc]:
            found = {}
            answers = await self._client.batch_get_documents(
                request=firestore.BatchGetDocumentsRequest.wrap(request), **self._options()
            )
            async for answer in answers:
                message = firestore.BatchGetDocumentsResponse.pb(answer)
                at = self._noted(message.read_time)
                if message.WhichOneof("result") == "found":
                    doc = self._doc(message.found, at)
                    found[doc.path] = doc
            return found

        return await self._patiently(read)

    async def server_time(self) -> int:
        """The service's clock in microseconds; one read."""
        request = BatchGetRequest(database=self.resource, documents=[f"{self.root}/meta/clock"])

        async def read() -> int:
            answers = await self._client.batch_get_documents(
                request=firestore.BatchGetDocumentsRequest.wrap(request), **self._options()
            )
            times = [stamp_micros(firestore.BatchGetDocumentsResponse.pb(answer).read_time) async for answer in answers]
            return times[-1]

        return await self._patiently(read)

    async def query(self, query: Query) -> list[Doc]:
        request = QueryRequest(parent=self._parent(query), structured_query=self.structured(query))

        async def read() -> list[Doc]:
            found = []
            answers = await self._client.run_query(request=firestore.RunQueryRequest.wrap(request), **self._options())
            async for answer in answers:
                message = firestore.RunQueryResponse.pb(answer)
                at = self._noted(message.read_time)
                if message.HasField("document"):
                    found.append(self._doc(message.document, at))
            return found

        return await self._patiently(read)

    async def count(self, query: Query) -> int:
        request = CountRequest(parent=self._parent(query))
        request.structured_aggregation_query.structured_query.CopyFrom(self.structured(query))
        aggregation = request.structured_aggregation_query.aggregations.add(alias="n")
        aggregation.count.SetInParent()

        async def read() -> int:
            number = 0
            answers = await self._client.run_aggregation_query(
                request=firestore.RunAggregationQueryRequest.wrap(request), **self._options()
            )
            async for answer in answers:
                message = firestore.RunAggregationQueryResponse.pb(answer)
                if "n" in message.result.aggregate_fields:
                    number = message.result.aggregate_fields["n"].integer_value
            return number

        return await self._patiently(read)

    def structured(self, query: Query) -> Any:
        message = StructuredQuery()
        message.from_.add(collection_id=query.collection)
        filters = [
            StructuredQuery.Filter(
                field_filter={
                    "field": {"field_path": name},
                    "op": _OPS[op],
                    "value": self._filter_value(query, name, value),
                }
            )
            for name, op, value in query.where
        ]
        if len(filters) == 1:
            message.where.CopyFrom(filters[0])
        elif filters:
            message.where.composite_filter.op = 1
            message.where.composite_filter.filters.extend(filters)
        for name in query.order:
            message.order_by.add(field={"field_path": name.removeprefix("-")}, direction=2 if name[0] == "-" else 1)
        if query.after is not None:
            names = [name.removeprefix("-") for name in query.order]
            values = [self._filter_value(query, *pair) for pair in zip(names, query.after, strict=True)]
            message.start_at.values.extend(values)
        if query.limit is not None:
            message.limit.value = query.limit
        if query.select is not None:
            for name in query.select or ("__name__",):
                message.select.fields.add(field_path=name)
        return message

    def _filter_value(self, query: Query, name: str, value: Any) -> Any:
        if name != "__name__":
            return encoded(value)
        message = encoded(None)
        message.reference_value = f"{self._parent(query)}/{query.collection}/{value}"
        return message

    def _parent(self, query: Query) -> str:
        return f"{self.root}/{query.under}" if query.under else self.root

    # ── writing ──────────────────────────────────────────────────────────────────────────────────

    async def commit(self, puts: Sequence[Put]) -> list[int]:
        """All or nothing; the time at which each document was written. ConflictError, UnansweredError: see failures.py."""
        return await self.send(self.request(puts))

    def request(self, puts: Sequence[Put]) -> Any:
        return CommitRequest(database=self.resource, writes=[self._write(put) for put in puts])

    async def send(self, request: Any) -> list[int]:
        try:
            self.requests += 1
            answer = await self._client.commit(request=firestore.CommitRequest.wrap(request), **self._options())
        except TROUBLE as error:
            raise commit_error(error) from error
        message = firestore.CommitResponse.pb(answer)
        at = stamp_micros(message.commit_time)
        return [
            stamp_micros(result.update_time) if result.HasField("update_time") else at
            for result in message.write_results
        ]

    def _write(self, put: Put) -> Any:
        message, name = Write(), f"{self.root}/{put.path}"
        if put.fields is None:
            message.delete = name
        else:
            message.update.name = name
            for key, value in put.fields.items():
                if value is SERVER_TIME:
                    message.update_transforms.add(field_path=field_path(key), set_to_server_value=1)
                else:
                    message.update.fields[key].CopyFrom(encoded(value))
            if put.mask is not None:
                message.update_mask.SetInParent()
                names = (path for path in put.mask if put.fields.get(path[0]) is not SERVER_TIME)
                message.update_mask.field_paths.extend(field_path(*path) for path in names)
        if put.guard is True or put.guard is False:
            message.current_document.exists = put.guard
        elif put.guard is not None:
            stamp = message.current_document.update_time
            stamp.seconds, stamp.nanos = put.guard // 1_000_000, put.guard % 1_000_000 * 1000
        return message

    # ── listening ────────────────────────────────────────────────────────────────────────────────

    async def listen(self, requests: AsyncIterator[Any]) -> Any:
        """The answers of a listen call, as they come."""
        options = {**self._options(), "timeout": None}
        wrapped = (firestore.ListenRequest.wrap(request) async for request in requests)
        return await self._client.listen(requests=wrapped, **options)

    # ── both ─────────────────────────────────────────────────────────────────────────────────────

    def _options(self) -> dict[str, Any]:
        return {"retry": None, "timeout": REQUEST_SECONDS, "metadata": self._metadata}

    def _doc(self, message: Any, read: int) -> Doc:
        fields = {key: decoded(value) for key, value in message.fields.items()}
        return Doc(message.name[len(self.root) + 1 :], fields, stamp_micros(message.update_time), read)

    def doc(self, message: Any) -> Doc:
        return self._doc(message, 0)

    def _noted(self, read_time: Any) -> int:
        self.last_read = stamp_micros(read_time)
        self.first_read = self.first_read or self.last_read
        return self.last_read

    async def _patiently(self, read: Callable[[], Awaitable[T]]) -> T:
        """Reads change nothing, so one without an answer is repeated."""
        for number in range(_TRIES):
            self.requests += 1
            try:
                return await read()
            except TROUBLE as error:
                if number == _TRIES - 1 or not passes(error):
                    raise
            await self.pause(number)
        raise AssertionError("the last try returns or raises")

    # ── waiting ──────────────────────────────────────────────────────────────────────────────────

    async def pause(self, number: int) -> None:
        """Before try `number` + 1; longer each time, and never the same for two callers."""
        await asyncio.sleep(pause_seconds(number, random.random()))

    async def together(self, *calls: Awaitable[Any]) -> list[Any]:
        """The answers of calls that are made at the same time."""
        return await asyncio.gather(*calls)

    def within(self, seconds: float) -> AbstractAsyncContextManager[Any]:
        """TimeoutError if the block takes longer."""
        return asyncio.timeout(seconds)


def pause_seconds(number: int, chance: float) -> float:
    return min(1.0, 0.02 * 2.0**number) * (0.5 + chance)
