"""Status and gate documents → what they say. Documents are input from outside: nothing in them is believed unchecked."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ork.core import events as ev
from ork.errors import DocumentError
from ork.model.status import ENDS, GOES_ON, Status, read_metrics
from ork.model.task import Attempt, Failure, FailureKind, InlineOutput, Output, StoredOutput
from ork.objects import documents, layout
from ork.objects.store import ObjectStore

if TYPE_CHECKING:
    import re

STATUS_LIMIT = 2 * 1024 * 1024

# The last word of an attempt that went well, as workers write it; whatever differs from that in any way is read closely.
_MOMENT = r'"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z)"'
_STRING = r'"((?:[ !#-\[\]-~]++|\\["\\/bfnrt])*+)"'  # possessive: what fits is not tried in another way
_USUAL_SUCCESS = (
    r'\{"v":1,"attempt":"([!#-\[\]-~]+)","seq":([1-9][0-9]{0,8}),"state":"success",'
    rf'"at":{_MOMENT},"started_at":{_MOMENT},"finished_at":{_MOMENT},"exit_code":(0|[1-9][0-9]{{0,2}}),"failure":null,'
    rf'"output":(?:null|\{{"inline":{_STRING}\}}),"metrics":null,"signature":"[0-9a-f]{{64}}"\}}'
)
_usual_success: re.Pattern[str] | None = None


def read_status(objects: ObjectStore, attempt: Attempt) -> Status | None:
    """None: there is none yet. A document that is not the attempt's own is a DocumentError."""
    data = objects.get(layout.status_key(layout.attempt_stem(attempt.key)), limit=STATUS_LIMIT)
    return None if data is None else checked_status(data, attempt)


def checked_status(data: bytes, attempt: Attempt) -> Status:
    """What a status document says. One that is not the attempt's own is a DocumentError, however it came to us."""
    return _usual_end(data, attempt) or _read_closely(data, attempt)


def expect_many() -> None:
    """From now on what nearly all of them say is read without taking the document apart."""
    global _usual_success
    import re  # to compile this takes as long as to read a hundred of them

    _usual_success = re.compile(_USUAL_SUCCESS)


def _usual_end(data: bytes, attempt: Attempt) -> Status | None:
    found = None if _usual_success is None else _usual_success.fullmatch(data.decode("latin-1"))
    if found is None or found[1] != str(attempt.key) or not documents.is_sealed(data, attempt.token_hash):
        return None
    _, seq, at, started_at, finished_at, exit_code, output = found.groups()
    if output is not None and "\\" in output:
        output = json.loads(f'"{output}"')
    try:
        started, finished = datetime.fromisoformat(started_at), datetime.fromisoformat(finished_at)
        said = finished if at == finished_at else datetime.fromisoformat(at)
    except ValueError:
        return None
    inline = None if output is None else InlineOutput(output)
    return Status(int(seq), "success", started, said, finished, int(exit_code), None, inline)


def _read_closely(data: bytes, attempt: Attempt) -> Status:
    stem = layout.attempt_stem(attempt.key)
    doc = documents.open_signed(data, attempt.token_hash)
    if doc.get("attempt") != str(attempt.key):
        raise DocumentError(f"the status in {stem} speaks of another attempt")
    try:
        return _status(doc, stem)
    except (KeyError, TypeError, ValueError) as problem:
        raise DocumentError(f"the status in {stem} is malformed: {problem!r}") from None


def if_new(status: Status, attempt: Attempt) -> Status | None:
    """None if it is older than what is known of the attempt."""
    if status.seq < attempt.seq or (status.seq == attempt.seq and status.is_final):
        return None
    return status


def gate_state(objects: ObjectStore, attempt: Attempt) -> str | None:
    """ "started", "closed", or None while nobody holds it. A gate that cannot be read counts as started: something
    was written there, so nobody else can win it any more."""
    stem = layout.attempt_stem(attempt.key)
    try:
        data = objects.get(layout.gate_key(stem), limit=STATUS_LIMIT)
        if data is None:
            return None
        return str(documents.open_signed(data, attempt.token_hash).get("state", "started"))
    except DocumentError:
        return "started"


def close_gate(objects: ObjectStore, attempt: Attempt, now: datetime) -> bool:
    """True if user code of this attempt never started and never will."""
    stem = layout.attempt_stem(attempt.key)
    closed = {"v": 1, "attempt": str(attempt.key), "state": "closed", "at": now.isoformat()}
    if objects.put_if_absent(layout.gate_key(stem), documents.sign(closed, attempt.token_hash)):
        return True
    return gate_state(objects, attempt) == "closed"


def ask_to_stop(objects: ObjectStore, attempt: Attempt, why: str) -> None:
    """For workers that no signal of ours reaches: they look for this with every heartbeat."""
    stem = layout.attempt_stem(attempt.key)
    stop = {"v": 1, "attempt": str(attempt.key), "why": why, "at_once": False}
    objects.put(layout.stop_key(stem), documents.sign(stop, attempt.token_hash))


def as_event(status: Status, attempt: Attempt) -> ev.AttemptEvent:
    """What a status document means to the machine."""
    _, key, number = attempt.key
    finished = status.finished_at or status.at
    if status.state == "success":
        return ev.Succeeded(key, number, status.seq, status.output, status.started_at, finished, status.exit_code)
    if status.jobs is not None:
        return ev.Deferred(key, number, status.seq, status.jobs)
    if not status.is_final:
        return ev.Started(key, number, status.seq, status.started_at, status.is_preparing)
    failure = status.failure or Failure(FailureKind.EXIT, f"ended as {status.state}")
    if status.state == "stopped":
        failure = Failure(FailureKind.LOST, "its worker was told to stop", failure.detail)
    return ev.Failed(key, number, status.seq, failure, status.started_at, finished, exit_code=status.exit_code)


def _status(doc: dict[str, Any], stem: str) -> Status:
    state, seq = doc["state"], doc["seq"]
    if state not in GOES_ON and state not in ENDS:
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
        None if output is None else _output(output, stem),
        is_preparing=doc.get("preparing") is True,
        jobs=_jobs(doc["jobs"]) if state == "deferred" else None,
        metrics=read_metrics(doc.get("metrics")),
    )


def _time(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is UTC:
        return moment
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _failure(doc: dict[str, Any]) -> Failure:
    detail = doc.get("detail")
    return Failure(FailureKind(doc["kind"]), str(doc["message"])[:4000], detail if isinstance(detail, dict) else None)


def _jobs(jobs: Any) -> str:
    if not isinstance(jobs, list) or not jobs or not all(isinstance(job, dict) for job in jobs):
        raise ValueError("jobs are a list of maps")
    return json.dumps(jobs, separators=(",", ":"))


def _output(doc: dict[str, Any], stem: str) -> Output:
    """A large output must lie in the attempt's own folder: an attempt cannot pass off another one's."""
    if "inline" in doc:
        return InlineOutput(str(doc["inline"]))
    if doc["object"] != layout.output_key(stem):
        raise ValueError(f"output object {doc['object']!r}")
    return StoredOutput(doc["object"], int(doc["size"]))
