"""Logs and outputs behind a server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ork.errors import NotFoundError, OrkError, UsageError
from ork.objects.layout import VALUE
from ork.objects.references import attempt_of_output, attempt_of_value

if TYPE_CHECKING:
    from ork.api.client.connection import Server
    from ork.objects.attempt_documents import Found


class RemoteObjects:
    """Reads logs and outputs, and nothing else."""

    kind = "server"
    answers_at_once = True  # commands do one thing at a time

    def __init__(self, server: Server) -> None:
        self._server = server
        self.url = server.url

    def is_full(self) -> bool:
        return bool(self._server.get("status").get("is_disk_full"))  # missing on older servers

    def missing_place(self, run: str | None = None) -> str | None:  # noqa: ARG002 (the server's own affair)
        return None

    def read_log(self, attempt: str, start: int = 0, size: int | None = None) -> bytes:
        """Part of a log; empty after its end or if there is no log."""
        last = "" if size is None else start + size - 1
        try:
            return self._server.call("GET", _log_path(attempt), {}, headers={"Range": f"bytes={start}-{last}"}).content
        except NotFoundError:
            return b""
        except UsageError:
            return b""  # the range starts after the end

    def log_size(self, attempt: str) -> int | None:
        """The current size of a log; None if there is no log."""
        try:
            response = self._server.call("GET", _log_path(attempt), {}, headers={"Range": "bytes=0-0"})
        except (NotFoundError, UsageError):
            return None  # there is no log, or it is empty
        whole = response.headers.get("content-range", "").rpartition("/")[2]
        return int(whole) if whole.isdecimal() else len(response.content)

    def read_values(self, references: Sequence[str], limit: int | None) -> list[Found]:  # noqa: ARG002 (the server has one)
        return [self._output(reference) for reference in references]

    def _output(self, reference: str) -> bytes | None:
        attempt = attempt_of_output(reference)
        if attempt is None:
            raise OrkError(f"not the output of a task: {reference[:200]!r}")
        run, task, index, _ = attempt.split("/")
        try:
            return self._server.call("GET", ("runs", run, "tasks", task, index, "output"), {}).content
        except NotFoundError:
            return None

    def read_value(self, reference: str, start: int = 0, size: int | None = None) -> bytes:
        """Part of a value; empty after its end or if there is none."""
        attempt = attempt_of_value(reference)
        if attempt is None:
            return (self._output(reference) or b"")[start : None if size is None else start + size]
        run, task, index, number = attempt.split("/")
        name = reference[reference.rindex(VALUE) + len(VALUE) :]
        path = ("runs", run, "tasks", task, index, "attempts", number, "values", name)
        last = "" if size is None else start + size - 1
        try:
            return self._server.call("GET", path, {}, headers={"Range": f"bytes={start}-{last}"}).content
        except (NotFoundError, UsageError):
            return b""

    def __getattr__(self, verb: str) -> Any:
        raise UsageError("a server provides only logs and outputs", hint="run it without --server, next to the store")


def _log_path(attempt: str) -> tuple[str, ...]:
    run, task, index, number = attempt.split("/")
    return ("runs", run, "tasks", task, index, "attempts", number, "log")
