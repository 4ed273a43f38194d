"""An object store in a server of its own: the least that a remote store needs, with the standard library alone."""

from __future__ import annotations

import builtins
import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote, unquote, urlsplit

from ork.errors import DocumentError, ObjectsError
from ork.objects.keyed import KeyedDocuments
from ork.objects.layout import checked_key
from ork.objects.memory import MemoryObjects


class HttpObjects(KeyedDocuments):
    kind = "http"
    answers_at_once = False

    def __init__(self, url: str) -> None:
        self.url = url
        self._address = urlsplit(url).netloc

    def put(self, key: str, data: bytes) -> None:
        self._ask("PUT", key, data)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        return self._ask("PUT", key, data, {"If-None-Match": "*"})[0] != 412

    def get(self, key: str, *, limit: int | None = None) -> bytes | None:
        size = None if limit is None else self.size(key)
        if size is not None and limit is not None and size > limit:
            raise DocumentError(f"{key} has {size} bytes, more than the {limit} allowed")
        status, data, _ = self._ask("GET", key)
        return None if status == 404 else data

    def read(self, key: str, start: int = 0, size: int | None = None) -> bytes:
        last = "" if size is None else start + size - 1
        status, data, _ = self._ask("GET", key, headers={"Range": f"bytes={start}-{last}"})
        return data if status == 206 else b""

    def size(self, key: str) -> int | None:
        status, _, length = self._ask("HEAD", key)
        return None if status == 404 else length

    def list(self, prefix: str) -> builtins.list[str]:
        return self._ask("GET", "?prefix=" + quote(prefix))[1].decode().split()

    def delete(self, prefix: str) -> None:
        self._ask("DELETE", checked_key(prefix))

    def _ask(
        self, method: str, key: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes, int]:
        path = key if key.startswith("?") else quote(checked_key(key))
        connection = http.client.HTTPConnection(self._address, timeout=10)
        try:
            connection.request(method, "/" + path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read(), int(answer.headers.get("Content-Length", 0))
        except OSError as error:
            raise ObjectsError(f"cannot reach the object store: {error}") from error
        finally:
            connection.close()


def serve_objects() -> tuple[ThreadingHTTPServer, str]:
    """A server on a free port, already serving, and its URL."""
    kept = MemoryObjects()

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("If-None-Match") == "*":
                self._answer(200 if kept.put_if_absent(self._key, data) else 412)
            else:
                kept.put(self._key, data)
                self._answer(200)

        def do_GET(self) -> None:
            if self.path.startswith("/?prefix="):
                self._answer(200, "\n".join(kept.list(unquote(self.path[9:]))).encode())
                return
            data = kept.get(self._key)
            span = self.headers.get("Range")
            if data is None or span is None:
                self._answer(404 if data is None else 200, data or b"")
                return
            first, _, last = span.removeprefix("bytes=").partition("-")
            part = data[int(first) : int(last) + 1 if last else None]
            self._answer(206 if part else 416, part)

        def do_HEAD(self) -> None:
            size = kept.size(self._key)
            self.send_response(404 if size is None else 200)
            self.send_header("Content-Length", str(size or 0))
            self.end_headers()

        def do_DELETE(self) -> None:
            kept.delete(self._key)
            self._answer(200)

        @property
        def _key(self) -> str:
            return unquote(self.path[1:])

        def _answer(self, status: int, data: bytes = b"") -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 256

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_address[1]}"
