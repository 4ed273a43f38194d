"""The statuses and gates of attempts: reported by an executor, or read from the object store in one batch.

They are external input, so everything in them is checked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ork.core import events as ev
from ork.errors import DocumentError, ObjectsError
from ork.model.ids import AttemptKey
from ork.model.task import (
    ENDS,
    UNFINISHED_STATES,
    Attempt,
    Failure,
    FailureKind,
    InlineOutput,
    Output,
    Status,
    StoredOutput,
    read_metrics,
)
from ork.model.value_reference import IN_TEXT, references_below
from ork.objects import documents
from ork.objects.attempt_documents import AttemptDocuments
from ork.objects.calls import DocumentCalls
from ork.objects.references import attempt_of_value, output_reference
from ork.scheduler.watchlist import Watched
from ork.telemetry import Telemetry, TelemetryEvent

if TYPE_CHECKING:
    import re


class Statuses:
    """A document that the attempt did not sign counts as missing, and an event is emitted."""

    def __init__(self, objects: AttemptDocuments, telemetry: Telemetry) -> None:
        self._objects = objects
        self._calls = DocumentCalls(objects)
        self._telemetry = telemetry

    async def of_all(
        self, due: Sequence[Watched], needs_reading: Callable[[Watched], bool]
    ) -> list[tuple[Watched, SeenStatus, bool]]:
        """The status of each attempt, and whether an executor reported it. The others are read, or looked at where that is
        enough, in one batch each. ObjectsError: it cannot be read now."""
        reported = [self._take_reported(watched) for watched in due]
        unread = [watched for watched, (status, _) in zip(due, reported, strict=True) if status is None]
        read: list[Attempt] = []
        looked_at: list[Attempt] = []
        for watched in unread:
            (read if needs_reading(watched) else looked_at).append(watched.attempt)
        found: dict[AttemptKey, SeenStatus] = {}
        found.update(zip((each.key for each in read), await self._read(read), strict=True))
        found.update(zip((each.key for each in looked_at), await self._look(looked_at), strict=True))
        return [
            (watched, found[watched.attempt.key] if status is None else status, was_reported)
            for watched, (status, was_reported) in zip(due, reported, strict=True)
        ]

    async def newest(self, attempt: Attempt) -> Status | None:
        """The stored status, or None if it is older than the attempt's row. ObjectsError: it cannot be read now."""
        (status,) = await self._read([attempt])
        if isinstance(status, ObjectsError):
            raise status
        return None if status is None else if_new(status, attempt)

    def _take_reported(self, watched: Watched) -> tuple[Status | None, bool]:
        """The status that an executor reported, if it is valid, and whether it reported one."""
        reported, watched.reported = watched.reported, None
        if reported is None or isinstance(reported, Status):
            return reported, reported is not None
        try:
            return checked_status(reported, watched.attempt), True
        except DocumentError as problem:
            self._refuse(watched.attempt, problem)
            return None, True

    async def _read(self, attempts: Sequence[Attempt]) -> list[Status | ObjectsError | None]:
        if not attempts:
            return []
        read = await self._calls.call(read_statuses, self._objects, attempts)
        for number, status in enumerate(read):
            if isinstance(status, DocumentError):
                self._refuse(attempts[number], status)
                read[number] = None
        return read

    async def _look(self, attempts: Sequence[Attempt]) -> list[SeenStatus]:
        if not attempts:
            return []
        seen = await self._calls.call(look_at_statuses, self._objects, attempts)
        for number, status in enumerate(seen):
            if isinstance(status, DocumentError):
                self._refuse(attempts[number], status)
                seen[number] = None
        return seen

    def _refuse(self, attempt: Attempt, problem: DocumentError) -> None:
        self._telemetry.emit(TelemetryEvent.DOCUMENT_REFUSED, attempt=attempt.key, why=problem.message)


# "beating": a heartbeat was written since the last look, and nobody has read it.
SeenStatus: TypeAlias = Status | ObjectsError | Literal["beating"] | None

# The final status of a successful attempt, exactly as workers write it; any other text is decoded as JSON.
_TIME = r'"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z)"'
_STRING = r'"((?:[ !#-\[\]-~]++|\\["\\/bfnrt])*+)"'  # possessive quantifiers: no backtracking
_USUAL_SUCCESS = (
    r'\{"v":1,"attempt":"([!#-\[\]-~]+)","seq":([1-9][0-9]{0,8}),"state":"success",'
    rf'"at":{_TIME},"started_at":{_TIME},"finished_at":{_TIME},"exit_code":(0|[1-9][0-9]{{0,2}}),"failure":null,'
    rf'"output":(?:null|\{{"inline":{_STRING}\}}),"metrics":null,"signature":"[0-9a-f]{{64}}"\}}'
)
_usual_success: re.Pattern[str] | None = None


def read_statuses(objects: AttemptDocuments, attempts: Sequence[Attempt]) -> list[Status | ObjectsError | None]:
    """For each attempt its status, None if there is none yet, or the error. A document that the attempt did not sign is a
    DocumentError."""
    found = objects.read_statuses([str(attempt.key) for attempt in attempts])
    return [_read(data, attempt) for data, attempt in zip(found, attempts, strict=True)]


def look_at_statuses(objects: AttemptDocuments, attempts: Sequence[Attempt]) -> list[SeenStatus]:
    """The same for a look, from which nothing is decided: see `AttemptDocuments.look_at_statuses`."""
    found = objects.look_at_statuses([str(attempt.key) for attempt in attempts])
    return [
        "beating" if data == "beating" else _read(data, attempt) for data, attempt in zip(found, attempts, strict=True)
    ]


def _read(data: bytes | ObjectsError | None, attempt: Attempt) -> Status | ObjectsError | None:
    try:
        return checked_status(data, attempt) if isinstance(data, bytes) else data
    except DocumentError as problem:
        return problem


def checked_status(data: bytes, attempt: Attempt) -> Status:
    """The decoded status. DocumentError if the attempt did not sign it."""
    return _usual_end(data, attempt) or _decode(data, attempt)


def expect_many() -> None:
    """Prepare for many statuses: from now on the usual success is matched by a regular expression."""
    global _usual_success
    import re  # compiling takes as long as decoding a hundred statuses

    _usual_success = re.compile(_USUAL_SUCCESS)


def _usual_end(data: bytes, attempt: Attempt) -> Status | None:
    found = None if _usual_success is None else _usual_success.fullmatch(data.decode("latin-1"))
    if found is None or found[1] != str(attempt.key) or not documents.is_sealed(data, attempt.token_hash):
        return None
    _, seq, at, started_at, finished_at, exit_code, output = found.groups()
    if output is not None and "\\" in output:
        output = json.loads(f'"{output}"')
        if IN_TEXT in output:
            return None  # decoded in full, which checks its references
    try:
        started, finished = datetime.fromisoformat(started_at), datetime.fromisoformat(finished_at)
        written = finished if at == finished_at else datetime.fromisoformat(at)
    except ValueError:
        return None
    inline = None if output is None else InlineOutput(output)
    return Status(int(seq), "success", started, written, finished, int(exit_code), None, inline)


def _decode(data: bytes, attempt: Attempt) -> Status:
    name = str(attempt.key)
    doc = documents.open_signed(data, attempt.token_hash)
    if doc.get("attempt") != name:
        raise DocumentError(f"the status of {name} is that of another attempt")
    try:
        return _status(doc, name)
    except (KeyError, TypeError, ValueError) as problem:
        raise DocumentError(f"the status of {name} is malformed: {problem!r}") from None


def if_new(status: Status, attempt: Attempt) -> Status | None:
    """The status, or None if it is older than the attempt's row."""
    if status.seq < attempt.seq or (status.seq == attempt.seq and status.is_final):
        return None
    return status


def gate_state(objects: AttemptDocuments, attempt: Attempt) -> str | None:
    """ "started", "closed", or None if the gate does not exist. An undecodable gate counts as started: it exists, so
    nothing else can claim it."""
    (found,) = objects.read_gates([str(attempt.key)])
    if isinstance(found, ObjectsError) and not isinstance(found, DocumentError):
        raise found
    if found is None:
        return None
    try:
        return "started" if isinstance(found, DocumentError) else _state_in(found, attempt)
    except DocumentError:
        return "started"


def _state_in(gate: bytes, attempt: Attempt) -> str:
    return str(documents.open_signed(gate, attempt.token_hash).get("state", "started"))


def close_gate(objects: AttemptDocuments, attempt: Attempt, now: datetime) -> bool:
    """Close the gate. True if user code of this attempt has not started and never will."""
    closed = {"v": 1, "attempt": str(attempt.key), "state": "closed", "at": now.isoformat()}
    if objects.claim_gate(str(attempt.key), documents.sign(closed, attempt.token_hash)):
        return True
    return gate_state(objects, attempt) == "closed"


def ask_to_stop(objects: AttemptDocuments, attempt: Attempt, why: str) -> None:
    """Write a stop request, for workers that cannot be signalled. They read it with every heartbeat."""
    stop = {"v": 1, "attempt": str(attempt.key), "why": why, "at_once": False}
    objects.request_stop(str(attempt.key), documents.sign(stop, attempt.token_hash))


def as_event(status: Status, attempt: Attempt) -> ev.AttemptEvent:
    """The machine event for a status."""
    _, key, number = attempt.key
    finished = status.finished_at or status.at
    if status.state == "success":
        return ev.Succeeded(key, number, status.seq, status.output, status.started_at, finished, status.exit_code)
    if status.jobs is not None:
        return ev.AttemptDeferred(key, number, status.seq, status.jobs)
    if not status.is_final:
        return ev.Started(key, number, status.seq, status.started_at, status.is_preparing)
    failure = status.failure or Failure(FailureKind.EXIT, f"ended as {status.state}")
    if status.state == "stopped":
        failure = Failure(FailureKind.LOST, "its worker was told to stop", failure.detail)
    return ev.Failed(key, number, status.seq, failure, status.started_at, finished, exit_code=status.exit_code)


def _status(doc: dict[str, Any], attempt: str) -> Status:
    state, seq = doc["state"], doc["seq"]
    if state not in UNFINISHED_STATES and state not in ENDS:
        raise ValueError(f"unknown state {state!r}")
    if not isinstance(seq, int) or seq < 1:
        raise ValueError(f"seq {seq!r}")
    exit_code = doc.get("exit_code")
    if exit_code is not None and not isinstance(exit_code, int):
        raise ValueError(f"exit_code {exit_code!r}")
    failure, output, finished_at = doc.get("failure"), doc.get("output"), doc.get("finished_at")
    return Status(
        seq,
        state,
        _time(doc["started_at"]),
        _time(doc["at"]),
        _time(finished_at) if finished_at else None,
        exit_code,
        None if failure is None else _failure(failure),
        None if output is None else _output(output, attempt),
        is_preparing=doc.get("preparing") is True,
        jobs=_jobs(doc["jobs"]) if state == "deferred" else None,
        metrics=read_metrics(doc.get("metrics")),
    )


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    if time.tzinfo is UTC:
        return time
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def _failure(doc: dict[str, Any]) -> Failure:
    detail = doc.get("detail")
    return Failure(FailureKind(doc["kind"]), str(doc["message"])[:4000], detail if isinstance(detail, dict) else None)


def _jobs(jobs: Any) -> str:
    if not isinstance(jobs, list) or not jobs or not all(isinstance(job, dict) for job in jobs):
        raise ValueError("jobs are a list of maps")
    return json.dumps(jobs, separators=(",", ":"))


def _output(doc: dict[str, Any], attempt: str) -> Output:
    """The output. A stored output, and every value that the output refers to, must belong to the attempt itself."""
    if "inline" in doc:
        text = str(doc["inline"])
        if IN_TEXT in text:
            _check_references(text, attempt)
        return InlineOutput(text)
    if doc["object"] != output_reference(attempt):
        raise ValueError(f"output object {doc['object']!r}")
    return StoredOutput(doc["object"], int(doc["size"]))


def _check_references(text: str, attempt: str) -> None:
    """ValueError if the output refers to a value that the attempt has not written: its reader could not read that otherwise."""
    for description in references_below(json.loads(text)):
        if attempt_of_value(str(description.get("object"))) != attempt:
            raise ValueError(f"a reference to {description.get('object')!r}")
