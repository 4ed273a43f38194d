"""What the clients of the three services share."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ork.errors import ObjectsError
from ork.objects.buckets.bucket import BYTES
from ork.objects.buckets.requests import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ork.objects.buckets.requests import Answer, Service

_ALREADY_EXISTS = "BlobAlreadyExists"  # Azure answers 409 with it; the others answer 412


class RestBucket(ABC):
    """A client with the standard library only. A subclass says how its service writes, lists, deletes and names errors."""

    name: str  # of the bucket, for messages
    _service: Service
    _media: dict[str, str] = {}  # noqa: RUF012 - parameters of a request for an object's content

    @abstractmethod
    def _path(self, key: str) -> str:
        """Where the object is read, escaped."""
        ...

    @abstractmethod
    def _write(self, key: str, data: bytes, content_type: str = BYTES, *, if_absent: bool) -> Answer: ...

    @abstractmethod
    def _error_code(self, answer: Answer) -> str:
        """The service's own name of an error."""
        ...

    def put(self, key: str, data: bytes, content_type: str = BYTES) -> None:
        self._check(self._write(key, data, content_type, if_absent=False), f"write {key}")

    def put_if_absent(self, key: str, data: bytes) -> bool:
        answer = self._write(key, data, if_absent=True)
        if answer.status == 412 or (answer.status == 409 and self._error_code(answer) == _ALREADY_EXISTS):
            return False
        self._check(answer, f"write {key}")
        return True

    def get(self, key: str, *, limit: int | None = None) -> bytes | None:
        answer = self._service.ask(Request("GET", self._path(key), self._media, limit=limit))
        return answer.body if self._is_there(answer, f"read {key}") else None

    def get_range(self, key: str, start: int, size: int | None) -> bytes:
        if size is not None and size <= 0:
            return b""
        last = "" if size is None else start + size - 1
        request = Request("GET", self._path(key), self._media, {"Range": f"bytes={start}-{last}"})
        answer = self._service.ask(request)
        return b"" if answer.status == 416 or not self._is_there(answer, f"read {key}") else answer.body

    def head(self, key: str) -> int | None:
        answer = self._service.ask(Request("HEAD", self._path(key), self._media))
        return int(answer.headers["content-length"]) if self._is_there(answer, f"read {key}") else None

    def _is_there(self, answer: Answer, what: str) -> bool:
        if answer.status == 404 and self._error_code(answer) not in _MISSING_BUCKET:
            return False
        self._check(answer, what)
        return True

    def _check(self, answer: Answer, what: str) -> None:
        if answer.status >= 300:
            raise refusal(self.name, what, answer.status, self._error_code(answer))


_MISSING_BUCKET = ("NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist.")


def refusal(bucket: str, what: str, status: int, code: str) -> ObjectsError:
    """The error for an answer that is not a success."""
    problem = f"cannot {what} in the bucket {bucket}"
    if status == 404 or code in _MISSING_BUCKET:
        return ObjectsError(f"{problem}: the bucket does not exist", hint="create it, or correct ORK_OBJECTS")
    if status in (401, 403):
        hint = "check the credentials of this process and what they may do there: docs/buckets.md lists the permissions"
        return ObjectsError(f"{problem}: permission denied ({status} {code})", hint=hint)
    if status in (301, 307, 308):
        return ObjectsError(f"{problem}: it is in another region ({code})", hint="add ?region= to the URL")
    return ObjectsError(f"{problem}: {status} {code}".rstrip())


def each_of(action: Callable[[str], None], keys: Sequence[str]) -> None:
    """For a service that deletes one object with each request: up to 64 at a time."""
    if len(keys) == 1:
        action(keys[0])
        return
    from ork.objects.threads import pool

    futures = [pool("deletes").submit(action, key) for key in keys]
    problems = [problem for future in futures if (problem := future.exception()) is not None]
    if problems:
        raise problems[0]
