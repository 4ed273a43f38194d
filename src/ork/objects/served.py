"""An object store behind `ork serve`, for machines without a shared folder or a bucket.

A scheduler shows its token. A worker signs in for each of its attempts, and shows a proof made with the attempt's token: it
opens that attempt's documents and the inputs its spec names, until the attempt has ended. docs/adr/0014 says why.
"""

from __future__ import annotations

import os
import time
from _thread import _local
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from ork.errors import DocumentError, ObjectsError, ObjectsRefusedError, UsageError
from ork.objects.documents import objects_proof
from ork.objects.json_text import dumps, strict_json
from ork.objects.keyed import KeyedDocuments
from ork.objects.layout import PART_BYTES, attempt_of, checked_key, stem, value_key, value_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    import builtins
    from collections.abc import Sequence
    from typing import Any

    from ork.objects.attempt_documents import Found

ROUTE = "/api/v1/objects"
SCHEDULER_SECONDS, READER_SECONDS = 10.0, 3.0  # how long one operation is tried; a worker has a share of its fence time
MOST_AT_ONCE = 500
BATCH_BYTES = 8 << 20
LOG_BYTES = 4 << 20
_SHARE_OF_FENCE = 12  # a worker that is cut off makes up to three calls before it ends its task: see `Shim`
_LEAST_SECONDS = 0.2
_SLOWEST_BYTES_PER_SECOND = 1 << 18
_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 2.0
_MOST_PROOFS = 10_000
_PASSING = (429, 502, 503, 504)  # answers of a server, or of a proxy before it, that did not do what it was asked
_NOTHING_THERE = 204


class ServedObjects(KeyedDocuments):
    """`url` is the server's, e.g. https://ork.example.org. Without TLS only on this machine, or with `?insecure=true`."""

    kind = "served"
    answers_at_once = False
    is_guarded = True

    def __init__(self, url: str, token: str | None = None, access: str = "", *, is_patient: bool = True) -> None:
        """`is_patient`: a server that cannot be reached is asked again. People who wait for an answer are not."""
        self.url = url
        parts = urlsplit(url)
        _check_url(url)
        self._is_secure, self._host, self._port = parts.scheme == "https", parts.hostname or "", parts.port
        self.address = f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/")
        self._route = parts.path.rstrip("/") + ROUTE
        self._token = token
        self._proofs: dict[str, str] = {}
        self._latest = ""  # the attempt that signed in last: it is the one that reads values of others
        self._is_patient = is_patient
        self._seconds = SCHEDULER_SECONDS if is_patient else READER_SECONDS
        self._kept = _local()  # a connection for each thread
        if access:
            self._latest, _, proof = access.partition(" ")
            self._proofs[self._latest] = proof

    def sign_in(self, attempt: str, secret: str, fence_seconds: float | None = None) -> str:
        proof = objects_proof(attempt, secret)
        if fence_seconds is not None:
            self._seconds = max(_LEAST_SECONDS, min(SCHEDULER_SECONDS, fence_seconds / _SHARE_OF_FENCE))
        if self._token is None:
            self._proofs.pop(attempt, None)
            self._proofs[attempt], self._latest = proof, attempt
            while len(self._proofs) > _MOST_PROOFS:
                del self._proofs[next(iter(self._proofs))]
        return f"{attempt} {proof}"

    # ── the seven verbs ──────────────────────────────────────────────────────────────────────────

    def put(self, key: str, data: bytes) -> None:
        self._ask("PUT", self._of(key), {"key": checked_key(key)}, data)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        # Not sent twice: whether the first one won could not be told.
        query = {"key": checked_key(key), "if_absent": "true"}
        answer = self._ask("PUT", self._of(key), query, data, is_repeatable=False)
        return answer is not None and bool(_read(answer)["is_written"])

    def get(self, key: str, *, limit: int | None = None) -> bytes | None:
        query = {"key": checked_key(key)} | ({} if limit is None else {"limit": str(limit)})
        return self._ask("GET", self._of(key), query)

    def read(self, key: str, start: int = 0, size: int | None = None) -> bytes:
        query = {"key": checked_key(key), "start": str(start)} | ({} if size is None else {"size": str(size)})
        return self._ask("GET", self._of(key), query) or b""

    def size(self, key: str) -> int | None:
        size: int | None = _read(self._ask("GET", self._of(key), {"key": checked_key(key)}, path="/size"))["size"]
        return size

    def list(self, prefix: str) -> builtins.list[str]:
        keys: builtins.list[str] = _read(self._ask("GET", "", {"prefix": prefix}, path="/keys"))["keys"]
        return keys

    def delete(self, prefix: str) -> None:
        self._ask("DELETE", "", {"prefix": checked_key(prefix)})

    # ── values that are not JSON, which the server's store may keep as files ─────────────────────

    def write_value(self, attempt: str, name: str, start: int, data: bytes) -> None:
        value_key(stem(attempt), name)
        if start % PART_BYTES or len(data) > PART_BYTES:
            raise ObjectsError(f"a value is written in parts of {PART_BYTES} bytes")
        self._ask("PUT", attempt, {"attempt": attempt, "name": name, "start": str(start)}, data, path="/value")

    def read_value(self, reference: str, start: int = 0, size: int | None = None) -> bytes:
        if value_name(reference) is None:
            return self.read(reference, start, size)
        parts: builtins.list[bytes] = []
        taken = 0
        while size is None or taken < size:
            most = PART_BYTES if size is None else min(PART_BYTES, size - taken)
            query = {"key": reference, "start": str(start + taken), "size": str(most)}
            part = self._ask("GET", self._of(reference), query, path="/value") or b""
            parts.append(part)
            taken += len(part)
            if len(part) < most:
                break
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def has_value(self, reference: str) -> bool:
        if value_name(reference) is None:
            return self.size(reference) is not None
        return self.value_size(reference) is not None

    def value_size(self, reference: str) -> int | None:
        size: int | None = _read(self._ask("GET", self._of(reference), {"key": reference}, path="/value/size"))["size"]
        return size

    def list_values(self, attempt: str) -> builtins.list[str]:
        names: builtins.list[str] = _read(self._ask("GET", attempt, {"attempt": attempt}, path="/values"))["keys"]
        return names

    def delete_values(self, attempt: str) -> None:
        stem(attempt)
        self._ask("DELETE", attempt, {"attempt": attempt}, path="/values")

    # ── logs, which the server's store may append to ─────────────────────────────────────────────

    def append_log(self, attempt: str, data: bytes) -> None:
        if data:
            stem(attempt)
            self._ask("POST", attempt, {"attempt": attempt}, data, path="/log", is_repeatable=False)

    def write_log(self, attempt: str, start: int, data: bytes) -> None:
        for begin in range(0, len(data), LOG_BYTES):
            query = {"attempt": attempt, "start": str(start + begin)}
            self._ask("PUT", attempt, query, data[begin : begin + LOG_BYTES], path="/log")

    def read_log(self, attempt: str, start: int = 0, size: int | None = None) -> bytes:
        parts: builtins.list[bytes] = []
        taken = 0
        while size is None or taken < size:
            most = LOG_BYTES if size is None else min(LOG_BYTES, size - taken)
            query = {"attempt": attempt, "start": str(start + taken), "size": str(most)}
            part = self._ask("GET", attempt, query, path="/log") or b""
            parts.append(part)
            taken += len(part)
            if len(part) < most:
                break
        return b"".join(parts)

    def log_size(self, attempt: str) -> int | None:
        size: int | None = _read(self._ask("GET", attempt, {"attempt": attempt}, path="/log/size"))["size"]
        return size

    # ── many at once ─────────────────────────────────────────────────────────────────────────────

    def _get_many(self, keys: Sequence[str], limit: int | None) -> builtins.list[Found]:
        """One request for many. The server leaves for the next one what would make its answer too large."""
        found: dict[str, Found] = {}
        for caller, group in self._by_caller([(checked_key(key), key) for key in keys]):
            wanted = [key for key, _ in group]
            while wanted:
                found |= self._get_some(caller, wanted[:MOST_AT_ONCE], limit)
                wanted = [key for key in wanted if key not in found]
        return [found[key] for key in keys]

    def _get_some(self, caller: str, keys: Sequence[str], limit: int | None) -> dict[str, Found]:
        body = dumps({"keys": list(keys), "limit": limit}).encode()
        answer = self._ask("POST", caller, {}, body, path="/many/get") or b""
        head, _, rest = answer.partition(b"\n")
        found: dict[str, Found] = {}
        place = 0
        for key, entry in zip(keys, _read(head)["objects"], strict=False):
            if isinstance(entry, int):
                found[key] = rest[place : place + entry]
                place += entry
            elif entry is None:
                found[key] = None
            else:
                found[key] = (DocumentError if entry["is_damaged"] else ObjectsError)(entry["error"])
        if place != len(rest) or not found:
            raise ObjectsError(f"the answer of {self.address} is incomplete")
        return found

    def _put_many(self, objects: Sequence[tuple[str, bytes]]) -> None:
        for caller, group in self._by_caller([(checked_key(key), (key, data)) for key, data in objects]):
            batch: builtins.list[tuple[str, bytes]] = []
            room = BATCH_BYTES
            for _, (key, data) in group:
                if len(data) > room or len(batch) == MOST_AT_ONCE:
                    self._put_batch(caller, batch)
                    batch, room = [], BATCH_BYTES
                batch.append((key, data))
                room -= len(data)
            self._put_batch(caller, batch)

    def _put_batch(self, caller: str, batch: Sequence[tuple[str, bytes]]) -> None:
        if len(batch) == 1:
            self.put(*batch[0])
        elif batch:
            head = dumps({"objects": [[key, len(data)] for key, data in batch]}).encode()
            self._ask("POST", caller, {}, b"\n".join((head, b"".join(data for _, data in batch))), path="/many/put")

    def _by_caller(self, items: Sequence[tuple[str, Any]]) -> builtins.list[tuple[str, builtins.list[tuple[str, Any]]]]:
        groups: dict[str, builtins.list[tuple[str, Any]]] = {}
        for key, item in items:
            groups.setdefault(self._of(key), []).append((key, item))
        return [*groups.items()]

    # ── requests ─────────────────────────────────────────────────────────────────────────────────

    def check(self) -> dict[str, Any]:
        """What the server says of its store, for a person who looks for a mistake; ObjectsError says what is wrong."""
        about: dict[str, Any] = _read(self._ask("GET", "", {}, path="/about"))
        return about

    def _of(self, key: str) -> str:
        """The attempt that asks for this key; "" if a scheduler does."""
        if self._token is not None:
            return ""
        attempt = attempt_of(key) or ""
        return attempt if attempt in self._proofs else self._latest

    def _headers(self, caller: str) -> dict[str, str]:
        if self._token is not None:
            return {"Authorization": f"Bearer {self._token}"}
        proof = self._proofs.get(caller)
        return {} if proof is None else {"X-Ork-Attempt": caller, "X-Ork-Proof": proof}

    def _ask(
        self,
        method: str,
        caller: str,
        query: dict[str, str],
        body: bytes = b"",
        *,
        path: str = "",
        is_repeatable: bool = True,
    ) -> bytes | None:
        """The answer; None if there is no such object. Tried again while that can help and there is time."""
        target = quote(self._route + path) + ("?" + urlencode(query, quote_via=quote) if query else "")
        headers = self._headers(caller)
        give_up_at = time.monotonic() + self._seconds + len(body) / _SLOWEST_BYTES_PER_SECOND
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                status, data, later = self._send(method, target, body, headers, give_up_at)
            except (OSError, HTTPException) as error:
                self._drop()
                problem, may_repeat = self._unreachable(error), is_repeatable and self._is_patient
                later = 0.0
            else:
                if status < 300:
                    return None if status == _NOTHING_THERE else data
                problem = self._refusal(status, data)
                may_repeat = status == 429 or (status in _PASSING and is_repeatable)
            wait = max(later, pause * (0.5 + os.urandom(1)[0] / 255))
            if not may_repeat or time.monotonic() + wait > give_up_at:
                raise problem
            time.sleep(wait)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _send(
        self, method: str, target: str, body: bytes, headers: dict[str, str], give_up_at: float
    ) -> tuple[int, bytes, float]:
        """Status, content, and how long to wait before the next try, in seconds."""
        connection = self._connection()
        connection.timeout = max(_LEAST_SECONDS, give_up_at - time.monotonic())
        if connection.sock is not None:
            connection.sock.settimeout(connection.timeout)
        connection.request(method, target, body or None, headers)
        answer = connection.getresponse()
        data = answer.read()
        if answer.will_close:
            self._drop()
        return answer.status, data, _retry_after(answer)

    def _connection(self) -> HTTPConnection:
        """This thread's. One that was made before a fork is the parent's, and one that the server has closed is of no use."""
        pid, connection = getattr(self._kept, "it", (0, None))
        if connection is not None and pid == os.getpid() and not _is_closed(connection):
            return connection  # type: ignore[no-any-return]
        made = (HTTPSConnection if self._is_secure else HTTPConnection)(self._host, self._port)
        self._kept.it = os.getpid(), made
        return made

    def _drop(self) -> None:
        pid, connection = getattr(self._kept, "it", (0, None))
        self._kept.it = 0, None
        if connection is not None and pid == os.getpid():
            connection.close()

    # ── what goes wrong ──────────────────────────────────────────────────────────────────────────

    def _unreachable(self, error: Exception) -> ObjectsError:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return ObjectsError(
            f"cannot reach the server that keeps the documents, {self.address}: {why}",
            hint="is `ork serve` running there, and is it reached from here? see `ork doctor`",
        )

    def _refusal(self, status: int, data: bytes) -> ObjectsError:
        try:
            problem = strict_json(data, max_size=1 << 16)
            code, detail, hint = str(problem["code"]), str(problem["detail"]), problem.get("hint")
        except (DocumentError, KeyError, TypeError):
            code, detail, hint = "", f"status {status}", None
        if code == DocumentError.code:
            return DocumentError(detail, hint=hint)
        if status in (401, 403):
            return self._not_accepted(status, detail)
        if status in (404, 405):
            return ObjectsError(
                f"{self.address} keeps no documents for other machines: it is an older Ork, or no Ork",
                hint="upgrade the server, or correct ORK_OBJECTS",
            )
        return ObjectsError(f"{self.address}: {detail}", hint=hint)

    def _not_accepted(self, status: int, detail: str) -> ObjectsError:
        create = "set ORK_TOKEN to one: `ork token create --role scheduler`, on the server"
        if self._proofs:
            return ObjectsRefusedError(f"{self.address} does not accept this attempt: {detail}")
        if self._token is None:
            return ObjectsRefusedError(f"{self.address} keeps the documents and needs a scheduler's token", hint=create)
        if status == 401:
            return ObjectsRefusedError(f"{self.address} does not accept the token in ORK_TOKEN: {detail}", hint=create)
        return ObjectsRefusedError(f"the token in ORK_TOKEN is not a scheduler's: {detail}", hint=create)


def _check_url(url: str) -> None:
    parts = urlsplit(url)
    options = parse_qs(parts.query, keep_blank_values=True)
    try:
        port_is_valid = parts.port is None or parts.port > 0
    except ValueError:
        port_is_valid = False
    if not parts.hostname or not port_is_valid or parts.fragment or parts.username or set(options) - {"insecure"}:
        raise UsageError(f"not the URL of a server: {url[:200]!r}", hint="write https://ork.example.org")
    if parts.scheme != "https" and not _is_loopback(parts.hostname) and options.get("insecure") != ["true"]:
        raise UsageError(
            f"{url[:200]} would send documents and tokens over the network in the clear",
            hint="use https://, or add ?insecure=true if this network is private",
        )


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or (host.startswith("127.") and host.replace(".", "").isdecimal())


def _is_closed(connection: HTTPConnection) -> bool:
    """Whether the server has ended a connection that nothing was asked on: there is something to be read, the end."""
    if connection.sock is None:
        return False
    from select import POLLIN, poll

    poller = poll()
    poller.register(connection.sock, POLLIN)
    if not poller.poll(0):
        return False
    connection.close()
    return True


def _retry_after(answer: HTTPResponse) -> float:
    text = answer.headers.get("Retry-After", "")
    return float(text) if text.isdecimal() else 0.0


def _read(data: bytes | None) -> Any:
    return strict_json(data or b"null", max_size=1 << 28)
