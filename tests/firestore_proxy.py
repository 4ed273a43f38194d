"""Stands between Ork and the Firestore emulator, for any number of processes: counts operations, records queries, and does what the
emulator does not do: loses answers, takes time, refuses requests, and enforces the service's limits for sizes."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import grpc
from google.cloud.firestore_v1.types import firestore

from ork.testing.firestore.indexes import is_refused, is_unindexed
from tests.firestore import Emulator

MOST_REQUEST = 10 << 20
MOST_DOCUMENT = 1 << 20
MOST_INDEX_ENTRIES = 40_000
_OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]

Fault = Callable[[str, int], str | None]
"""From a method and how many requests of it there have been to what becomes of this one: "before" (lost, not carried out), "after" (carried
out, the answer lost), "aborted", "unavailable", "denied", "no database", "no index", or None."""

_REFUSALS = {
    "before": (grpc.StatusCode.UNAVAILABLE, "the connection was lost"),
    "after": (grpc.StatusCode.UNAVAILABLE, "the connection was lost"),
    "unavailable": (grpc.StatusCode.UNAVAILABLE, "try again later"),
    "denied": (grpc.StatusCode.PERMISSION_DENIED, "Missing or insufficient permissions."),
    "no database": (grpc.StatusCode.NOT_FOUND, "The database ork-state does not exist for project ork-test"),
    "no index": (grpc.StatusCode.FAILED_PRECONDITION, "The query requires an index. You can create it here: https://…"),
    "aborted": (grpc.StatusCode.ABORTED, "too much contention on these documents"),
}


class Proxy:
    """`reads`, `writes` and `deletes` are counted as the service bills them."""

    def __init__(self, emulator: Emulator) -> None:
        self.emulator = emulator
        self.fault: Fault = lambda method, number: None
        self.on_loss: Callable[[], None] = lambda: None  # a request was carried out, and its answer will be lost
        self.latency = 0.0
        self.counts: Counter[str] = Counter()
        self.read_what: Counter[str] = Counter()  # reads by what was asked for
        self.queries: dict[str, Any] = {}
        self.too_large: list[str] = []
        self._numbers: Counter[str] = Counter()
        self._target = emulator.host
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.host = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(30)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)

    @property
    def reads(self) -> int:
        return self.counts["reads"]

    @property
    def writes(self) -> int:
        return self.counts["writes"]

    async def _start(self) -> str:
        self._channel = grpc.aio.insecure_channel(self._target, options=_OPTIONS)
        self._server = grpc.aio.server(options=_OPTIONS)
        self._server.add_generic_rpc_handlers((_Handler(self),))
        port = self._server.add_insecure_port("127.0.0.1:0")
        await self._server.start()
        return f"127.0.0.1:{port}"

    async def _stop(self) -> None:
        await self._server.stop(0)
        await self._channel.close()

    # ── requests ─────────────────────────────────────────────────────────────────────────────────

    async def answer_one(self, method: str, request: bytes, context: Any) -> bytes:
        lost = await self._suffer(method, context)
        if method.endswith("/Commit"):
            self._check_commit(request)
        try:
            answer: bytes = await self._channel.unary_unary(method)(request, metadata=_metadata(context))
        except grpc.aio.AioRpcError as error:
            await context.abort(error.code(), error.details())
        if method.endswith("/Commit"):
            self._count_commit(request)
        if lost == "after":
            self.on_loss()
            await context.abort(*_REFUSALS["after"])
        return answer

    async def answer_many(self, method: str, request: bytes, context: Any) -> AsyncIterator[bytes]:
        lost = await self._suffer(method, context)
        if method.endswith("/RunQuery"):
            self._record(firestore.RunQueryRequest.deserialize(request).structured_query)
        if method.endswith("/RunAggregationQuery"):
            self._record(
                firestore.RunAggregationQueryRequest.deserialize(request).structured_aggregation_query.structured_query
            )
        number = 0
        try:
            async for answer in self._channel.unary_stream(method)(request, metadata=_metadata(context)):
                number += not method.endswith("/RunQuery") or b"/documents/" in answer
                if lost == "after":
                    break
                yield answer
        except grpc.aio.AioRpcError as error:
            await context.abort(error.code(), error.details())
        self.counts["reads"] += max(1, number)
        self.read_what[_asked(method, request)] += max(1, number)
        if lost == "after":
            await context.abort(*_REFUSALS["after"])

    async def answer_stream(self, method: str, requests: Any, context: Any) -> AsyncIterator[bytes]:
        self.counts["Listen"] += 1
        call = self._channel.stream_stream(method)(requests, metadata=_metadata(context))
        try:
            async for answer in call:
                self.counts["reads"] += "document_change" in firestore.ListenResponse.deserialize(answer)
                yield answer
        except grpc.aio.AioRpcError as error:
            await context.abort(error.code(), error.details())

    async def _suffer(self, method: str, context: Any) -> str | None:
        name = method.rpartition("/")[2]
        self._numbers[name] += 1
        self.counts[name] += 1
        if self.latency:
            await asyncio.sleep(self.latency)
        fault = self.fault(name, self._numbers[name])
        if fault is not None and fault != "after":
            await context.abort(*_REFUSALS[fault])
        return fault

    # ── what is counted and checked ──────────────────────────────────────────────────────────────

    def _count_commit(self, request: bytes) -> None:
        for write in firestore.CommitRequest.pb(firestore.CommitRequest.deserialize(request)).writes:
            self.counts["deletes" if write.WhichOneof("operation") == "delete" else "writes"] += 1

    def _check_commit(self, request: bytes) -> None:
        if len(request) > MOST_REQUEST:
            self.too_large.append(f"a request of {len(request)} bytes")

    def _record(self, query: Any) -> None:
        message = firestore.RunQueryRequest.pb(firestore.RunQueryRequest(structured_query=query)).structured_query
        shape = _shape(message)
        self.queries[json.dumps(shape)] = shape

    def missing_indexes(self) -> list[Any]:
        """Queries that the service would refuse because no index of the file serves them."""
        return [shape for shape in self.queries.values() if is_refused(shape)]

    def check_documents(self, url: str) -> list[str]:
        """What the service would have refused: documents that are too large or have too many index entries."""
        return [*self.too_large, *asyncio.run_coroutine_threadsafe(self._oversized(url), self._loop).result(120)]

    async def _oversized(self, url: str) -> list[str]:
        project, database = url.removeprefix("firestore://").split("/")
        parent = f"projects/{project}/databases/{database}/documents"
        found = []
        call = self._channel.unary_stream("/google.firestore.v1.Firestore/RunQuery")
        for collection in ("runs", "chunks", "big", "versions", "parts", "accounts", "limits"):
            query = {"from_": [{"collection_id": collection, "all_descendants": True}]}
            request = firestore.RunQueryRequest(parent=parent, structured_query=query)
            async for answer in call(
                firestore.RunQueryRequest.serialize(request), metadata=[("authorization", "Bearer owner")]
            ):
                document = firestore.RunQueryResponse.pb(firestore.RunQueryResponse.deserialize(answer)).document
                entries = sum(_entries(collection, (name,), value) for name, value in document.fields.items())
                if document.ByteSize() > MOST_DOCUMENT or entries > MOST_INDEX_ENTRIES:
                    found.append(f"{document.name}: {document.ByteSize()} bytes, {entries} index entries")
        return found


class _Handler(grpc.GenericRpcHandler):
    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy

    def service(self, details: Any) -> Any:
        method = details.method
        if method.endswith("/Listen"):
            return grpc.stream_stream_rpc_method_handler(partial(self._proxy.answer_stream, method))
        if method.endswith("/Commit"):
            return grpc.unary_unary_rpc_method_handler(partial(self._proxy.answer_one, method))
        return grpc.unary_stream_rpc_method_handler(partial(self._proxy.answer_many, method))


def _metadata(context: Any) -> list[tuple[str, str]]:
    kept = ("authorization", "google-cloud-resource-prefix", "x-goog-request-params")
    return [(key, value) for key, value in context.invocation_metadata() if key in kept]


def _asked(method: str, request: bytes) -> str:
    """What a request reads: collections of documents, or the shape of a query."""
    if method.endswith("/BatchGetDocuments"):
        names = firestore.BatchGetDocumentsRequest.deserialize(request).documents
        paths = [name.partition("/documents/")[2] for name in names]
        return "get " + ", ".join(path if path.startswith("meta/") else path.partition("/")[0] for path in paths)
    if method.endswith("/RunAggregationQuery"):
        asked = firestore.RunAggregationQueryRequest.deserialize(request).structured_aggregation_query.structured_query
        kind = "count"
    else:
        asked, kind = firestore.RunQueryRequest.deserialize(request).structured_query, "query"
    collection, equal, other, order = _shape(
        firestore.RunQueryRequest.pb(firestore.RunQueryRequest(structured_query=asked)).structured_query
    )
    return f"{kind} {collection} by {', '.join([*equal, *other]) or ', '.join(name for name, _ in order) or 'nothing'}"


# ── indexes ──────────────────────────────────────────────────────────────────────────────────────


def _shape(query: Any) -> list[Any]:
    """The collection, fields compared for equality, fields compared otherwise, and the order."""
    filters = query.where.composite_filter.filters if query.where.HasField("composite_filter") else [query.where]
    fields = [each.field_filter for each in filters if each.HasField("field_filter")]
    equal = sorted({each.field.field_path for each in fields if each.op in (5, 8)})
    other = sorted({each.field.field_path for each in fields if each.op not in (5, 8)})
    order = [[each.field.field_path, "DESCENDING" if each.direction == 2 else "ASCENDING"] for each in query.order_by]
    return [query.from_[0].collection_id, equal, other, order or [[name, "ASCENDING"] for name in other]]


def _entries(collection: str, path: tuple[str, ...], value: Any) -> int:
    if is_unindexed(collection, path[0]):
        return 0
    if value.WhichOneof("value_type") == "map_value":
        return sum(_entries(collection, (*path, name), each) for name, each in value.map_value.fields.items())
    if value.WhichOneof("value_type") == "array_value":
        return 2 + len(value.array_value.values)
    return 2
