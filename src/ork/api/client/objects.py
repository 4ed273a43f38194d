"""Logs and outputs as a server shows them, under the keys they have in the object store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ork.errors import NotFoundError, OrkError, UsageError
from ork.objects.layout import parts_of

if TYPE_CHECKING:
    from ork.api.client.connection import Server


class RemoteObjects:
    """Reads what people look at, and nothing else."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.url = server.url

    def is_full(self) -> bool:
        return bool(self._server.get("status").get("is_disk_full"))  # an older server does not tell

    def read(self, key: str, start: int = 0, size: int | None = None) -> bytes:
        """Part of a log; empty beyond its end or if there is none."""
        last = "" if size is None else start + size - 1
        try:
            return self._server.call("GET", _path(key), {}, headers={"Range": f"bytes={start}-{last}"}).content
        except NotFoundError:
            return b""
        except UsageError:
            return b""  # the range lies behind the end

    def size(self, key: str) -> int | None:
        """How long a log is by now; None if there is none."""
        try:
            answer = self._server.call("GET", _path(key), {}, headers={"Range": "bytes=0-0"})
        except (NotFoundError, UsageError):
            return None  # there is none, or nothing in it
        whole = answer.headers.get("content-range", "").rpartition("/")[2]
        return int(whole) if whole.isdecimal() else len(answer.content)

    def get(self, key: str, *, limit: int | None = None) -> bytes | None:  # noqa: ARG002 (the server's own limit holds)
        """A task's output; None if there is none."""
        run, task, index, _, name = _parts(key)
        if name != "output.json":
            raise UsageError("a server shows logs and outputs only", hint="leave --server away, beside the store")
        try:
            return self._server.call("GET", ("runs", run, "tasks", task, index, "output"), {}).content
        except NotFoundError:
            return None


def _path(key: str) -> tuple[str, ...]:
    run, task, index, attempt, name = _parts(key)
    return ("runs", run, "tasks", task, index, "attempts", attempt, name)


def _parts(key: str) -> tuple[str, str, str, str, str]:
    parts = parts_of(key)
    if parts is None:
        raise OrkError(f"not a key of an attempt: {key[:200]!r}")
    return parts
