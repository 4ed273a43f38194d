"""A strict Google Cloud Storage in this process, with faults that a real server cannot be made to have.

The part of the JSON API that Ork uses; unknown parameters and paths are errors. Every operation is counted.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

BUCKET = "bucket"
PAGE = 1000
WRITE, LIST, READ, DELETE = "write", "list", "read", "delete"
_PARAMETERS = {
    WRITE: {"uploadType", "name", "fields", "ifGenerationMatch"},
    LIST: {"prefix", "fields", "pageToken"},
    READ: {"alt", "fields"},
    DELETE: set(),
}


class Operation(NamedTuple):
    at: float
    kind: str
    key: str
    status: int


class Stored(NamedTuple):
    data: bytes
    generation: int
    at: float


class FakeGcs:
    """Faults are attributes that a test may change at any time."""

    def __init__(self) -> None:
        self.loses_answer: Callable[[str, str], bool] = lambda _kind, _key: False  # after the operation took place
        self.refuses: Callable[[str, str], int | None] = lambda _kind, _key: (
            None
        )  # the status to answer, before it takes place
        self.listing_delay = 0.0  # listings show what was there so many seconds ago
        self.limits_writes = False  # to one a second for each object
        self.honours_conditions = True
        self.delay = 0.0  # seconds that each answer takes
        self.is_down = False  # connections are closed without an answer
        self.page = PAGE
        self.operations: list[Operation] = []
        self._objects: dict[str, list[Stored | None]] = {}  # all versions; None: deleted
        self._deleted_at: dict[str, float] = {}
        self._generation = 1000
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def url(self, prefix: str = "team") -> str:
        return f"gs://{BUCKET}/{prefix}?endpoint={self.endpoint}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def keys(self) -> list[str]:
        with self._lock:
            return sorted(key for key, versions in self._objects.items() if versions[-1] is not None)

    def count(self, kind: str, part: str = "", since: float = 0.0) -> int:
        """Operations of a kind on keys (or prefixes) that contain the text."""
        return sum(each.kind == kind and part in each.key and each.at >= since for each in self.operations)

    # ── what a request does; status and body ─────────────────────────────────────────────────────

    def write(self, key: str, data: bytes, only_if_absent: bool) -> tuple[int, Any]:
        with self._lock:
            versions = self._objects.setdefault(key, [])
            current = versions[-1] if versions else None
            if self.limits_writes and current is not None and time.monotonic() - current.at < 1.0:
                return 429, _error(429, f"The object {key} exceeded the rate limit for object mutation operations")
            if only_if_absent and current is not None and self.honours_conditions:
                return 412, _error(412, "At least one of the pre-conditions you specified did not hold.")
            self._generation += 1
            versions.append(Stored(data, self._generation, time.monotonic()))
            return 200, {"generation": str(self._generation)}

    def read(self, key: str) -> Stored | None:
        versions = self._objects.get(key)
        return versions[-1] if versions else None

    def delete(self, key: str) -> tuple[int, Any]:
        with self._lock:
            if self.read(key) is None:
                return 404, _error(404, f"No such object: {BUCKET}/{key}")
            self._objects[key].append(None)
            return 204, None

    def list(self, prefix: str, token: str) -> dict[str, Any]:
        then = time.monotonic() - self.listing_delay
        with self._lock:
            shown = {key: _as_of(versions, then) for key, versions in self._objects.items() if key.startswith(prefix)}
        found = sorted((key, each) for key, each in shown.items() if each is not None and key > token)
        items = [
            {"name": key, "size": str(len(each.data)), "generation": str(each.generation)}
            for key, each in found[: self.page]
        ]
        more = {"nextPageToken": items[-1]["name"]} if len(found) > self.page else {}
        return {**({"items": items} if items else {}), **more}


def _as_of(versions: list[Stored | None], then: float) -> Stored | None:
    if versions and versions[-1] is None:
        return None
    return next((each for each in reversed(versions) if each is not None and each.at <= then), None)


def _error(status: int, message: str) -> dict[str, Any]:
    return {"error": {"code": status, "message": message, "errors": [{"message": message}]}}


class _Server(ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True


def _handler(gcs: FakeGcs) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self._serve("/upload/storage/v1/b/", WRITE)

        def do_GET(self) -> None:
            self._serve("/storage/v1/b/", READ)

        def do_DELETE(self) -> None:
            self._serve("/storage/v1/b/", DELETE)

        def _serve(self, start: str, kind: str) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if gcs.is_down:
                self.close_connection = True
                return
            time.sleep(gcs.delay)
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
            bucket, _, place = parts.path.removeprefix(start).partition("/o")
            key = unquote(place[1:])
            if kind == READ and not key:
                kind = LIST
            key = {WRITE: query.get("name", ""), LIST: query.get("prefix", "")}.get(kind, key)
            status, answer, headers = self._answer(start, kind, bucket, key, query, body)
            gcs.operations.append(Operation(time.monotonic(), kind, key, status))
            if gcs.loses_answer(kind, key):
                self.close_connection = True
                return
            data = answer if isinstance(answer, bytes) else b"" if answer is None else json.dumps(answer).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def _answer(
            self, start: str, kind: str, bucket: str, key: str, query: dict[str, str], body: bytes
        ) -> tuple[int, Any, dict[str, str]]:
            if not self.path.startswith(start) or set(query) - _PARAMETERS[kind]:
                return 400, _error(400, f"not a request of this API: {self.path}"), {}
            if bucket != BUCKET:
                return 404, _error(404, "The specified bucket does not exist."), {}
            refused = gcs.refuses(kind, key)
            if refused is not None:
                return refused, _error(refused, "refused by the test"), {}
            if kind == WRITE:
                if query.get("uploadType") != "media" or not key or query.get("ifGenerationMatch", "0") != "0":
                    return 400, _error(400, "not an upload"), {}
                return *gcs.write(key, body, "ifGenerationMatch" in query), {}
            if kind == LIST:
                return 200, gcs.list(key, query.get("pageToken", "")), {}
            if kind == DELETE:
                return *gcs.delete(key), {}
            found = gcs.read(key)
            if found is None:
                return 404, _error(404, f"No such object: {bucket}/{key}"), {}
            if query.get("alt") != "media":
                return 200, {"size": str(len(found.data))}, {}
            return self._part(found.data)

        def _part(self, data: bytes) -> tuple[int, Any, dict[str, str]]:
            span = self.headers.get("Range")
            if span is None:
                return 200, data, {}
            first, _, last = span.removeprefix("bytes=").partition("-")
            part = data[int(first) : int(last) + 1 if last else None]
            if not part:
                return 416, _error(416, "The requested range cannot be satisfied."), {}
            return 206, part, {"Content-Range": f"bytes {first}-{int(first) + len(part) - 1}/{len(data)}"}

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

    return Handler
