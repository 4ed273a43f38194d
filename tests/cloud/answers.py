"""How the fake Cloud Run answers: pages, messages as JSON, errors, and the HTTP server."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler
from typing import Any, Protocol

from google.protobuf import json_format

from tests.cloud.runners import Result


class Answering(Protocol):
    def answer(self, method: str, url: str, body: bytes) -> tuple[int, dict[str, Any]] | None: ...


def failure_words(result: Result) -> str:
    if result.is_out_of_memory:
        return "Memory limit exceeded. Consider increasing the memory limit, see https://cloud.google.com/run/docs/configuring/memory-limits"
    if result.code == -1:
        return "The configured timeout was reached."
    return f"The container exited with an error: exit code {result.code}."


def page(name: str, items: list[dict[str, Any]], query: dict[str, str]) -> dict[str, Any]:
    start, size = int(query.get("pageToken") or 0), int(query.get("pageSize") or 100)
    page: dict[str, Any] = {name: items[start : start + size]}
    return {**page, "nextPageToken": str(start + size)} if start + size < len(items) else page


def as_json(message: Any) -> dict[str, Any]:
    return json_format.MessageToDict(type(message).pb(message))


def error_body(code: int, message: str, status: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": status}}


def utc_now() -> Any:
    from datetime import UTC, datetime

    return datetime.now(UTC)


def handler(cloud: Answering) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer = cloud.answer(self.command, self.path, body)
            if answer is None:
                self.close_connection = True
                return
            data = json.dumps(answer[1]).encode()
            self.send_response(answer[0])
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = do_PATCH = _serve  # noqa: N815

        def log_message(self, *words: Any) -> None:
            return

    return Handler
