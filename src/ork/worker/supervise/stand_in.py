"""Writes the documents of an attempt whose program does not use Ork, in place of a worker.

An executor that acts for such a program (a plain container) uses one `StandIn` for each attempt: read the spec, claim the gate
with `win_gate` before anything is started, `beat` while it runs, `write_log`, and `finish`. Documents are signed as a worker's
are. Nothing here waits: an ObjectsError means that the store cannot be used now, and the call can be repeated.
"""

from __future__ import annotations

import os
import time

from ork.errors import DocumentError, ObjectsError
from ork.objects.calls import DocumentCalls
from ork.objects.documents import DOCUMENT_LIMIT, SPEC_LIMIT, open_signed, sign, utc_text
from ork.objects.json_text import strict_json
from ork.objects.portable import files_for
from ork.worker.call.environment import Bindings, task_environment
from ork.worker.call.results import program_output
from ork.worker.data.errors import InputError
from ork.worker.supervise.command import input_text
from ork.worker.supervise.process import log_tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ork.model.masking import Mask
    from ork.model.task import Attempt
    from ork.objects.attempt_documents import AttemptDocuments, Found

_CHUNK = 4 << 20
_ENDS = ("success", "failed", "timed_out", "stopped", "deferred")


class StandIn:
    def __init__(self, objects: AttemptDocuments, attempt: Attempt) -> None:
        self._objects = objects
        self._secret = attempt.token_hash
        self._attempt = str(attempt.key)
        self._claim: tuple[dict[str, Any], bytes] | None = None
        self._files: dict[str, tuple[str, int, str | bytes]] = {}  # for the container, by their paths
        self.calls = DocumentCalls(objects)
        self.mask: Mask | None = None

    def spec(self) -> dict[str, Any] | None:
        """The attempt's spec; None before it is written."""
        data = self._objects.read_spec(self._attempt)
        return None if data is None else self._opened(data, SPEC_LIMIT)

    # ── the gate ─────────────────────────────────────────────────────────────────────────────────

    def gate(self) -> dict[str, Any] | None:
        return self._one(self._objects.read_gates([self._attempt]))

    def win_gate(self, facts: Mapping[str, Any]) -> bool:
        """True for exactly one caller, which may then start the attempt. After an error it can be called again with the same
        facts: the document is the same, so the result is correct."""
        if self._claim is None or self._claim[0] != facts:
            self._claim = dict(facts), self._gate_of(facts)
        return self._objects.claim_gate(self._attempt, self._claim[1])

    def _gate_of(self, facts: Mapping[str, Any]) -> bytes:
        gate = {
            "v": 1,
            "attempt": self._attempt,
            "state": "started",
            "host": os.uname().nodename,
            "nonce": os.urandom(8).hex(),
            "at": utc_text(time.time_ns()),
            **facts,
        }
        return sign(gate, self._secret)

    # ── what goes in ─────────────────────────────────────────────────────────────────────────────

    def environment(self, spec: dict[str, Any], secrets: Mapping[str, str]) -> dict[str, str]:
        """DocumentError if a value it needs cannot be had."""
        try:
            return task_environment(spec, {}, self._bindings(spec, secrets))
        except InputError as error:
            raise DocumentError(str(error)) from None

    def input(self, spec: dict[str, Any], secrets: Mapping[str, str]) -> bytes:
        """DocumentError if a value it needs cannot be had, or is not of the type declared."""
        try:
            data = input_text(spec, self._bindings(spec, secrets))
            if spec.get("input_type") is not None:
                from ork.worker.call.declared import check_input

                check_input(data, spec)
        except InputError as error:
            raise DocumentError(str(error)) from None
        return data

    def words(self, spec: dict[str, Any], secrets: Mapping[str, str]) -> list[str]:
        """The arguments of the program. DocumentError if a value it needs cannot be had."""
        try:
            return self._bindings(spec, secrets).words(spec["argv"])
        except InputError as error:
            raise DocumentError(str(error)) from None

    def input_files(self) -> list[tuple[str, int, str | bytes]]:
        """The files that `words`, `environment` and `input` have named: path below the inputs folder, size, and where the bytes are."""
        return list(self._files.values())

    def needed_values(self, spec: dict[str, Any], outputs: list[bytes]) -> dict[str, int]:
        """The values that are not JSON which a worker may read, and their sizes."""
        from ork.worker.data.moving import needed_values

        return needed_values(self._objects, spec, outputs)

    def read_value(self, reference: str, start: int, size: int) -> bytes:
        return self._objects.read_value(reference, start, size)

    def files(self, spec: dict[str, Any]) -> dict[str, bytes]:
        """The spec itself and every value it points at, as files of an object store: all that a worker on another
        machine needs."""
        return files_for(self._objects, self._attempt, spec)

    # ── what comes out ───────────────────────────────────────────────────────────────────────────

    def status(self) -> dict[str, Any] | None:
        return self._one(self._objects.read_statuses([self._attempt]))

    def is_over(self) -> bool:
        status = self.status()
        return status is not None and status["state"] in _ENDS

    def beat(self, started_at: str) -> None:
        self._say({"state": "running", "started_at": started_at})

    def finish(self, ending: Mapping[str, Any], started_at: str) -> None:
        """Writes the last status. `ending` has the fields of `ork.worker.supervise.status.Ending`: `state` ("success", "failed",
        "timed_out", "stopped"), `exit_code`, `failure` ({kind, message, detail}; kinds: `ork.model.task.FailureKind`) or None, and
        `output`, which `store_output` returns, or None."""
        fields = dict(ending) if self.mask is None else {**ending, "failure": self.mask.value(ending.get("failure"))}
        self._say({"started_at": started_at, "finished_at": utc_text(time.time_ns()), **fields})

    def leave(self, left: Mapping[str, Any]) -> None:
        """Note what became of the program's output, for whoever writes the last status: `output`, which `store_output` returns,
        or `problem`, a sentence."""
        self._say({"state": "running", "started_at": utc_text(time.time_ns()), "left": dict(left)})

    def pass_on(self, document: bytes, output: bytes | None) -> bool:
        """Store the terminal status of a worker that ran elsewhere. False if it is not a terminal status of this attempt."""
        try:
            status = open_signed(document, self._secret)
        except DocumentError:
            return False
        if status.get("attempt") != self._attempt or status.get("state") not in _ENDS:
            return False
        if output is not None:
            self._objects.put_output(self._attempt, output)
        self._say({name: value for name, value in status.items() if name not in ("v", "attempt", "seq")})
        return True

    def written_values(self, told: bytes, output: bytes | None) -> list[tuple[str, str | None]]:
        """The values that a worker's output refers to, and their hashes if its status has them."""
        from ork.worker.data.moving import written_values

        return written_values(self._attempt, open_signed(told, self._secret).get("output"), output)

    def take_value(self, reference: str, digest: str | None, path: str) -> None:
        """Store a value from a file. DocumentError if it is not what the status says."""
        from ork.worker.data.moving import TakenValue

        taken = TakenValue(self._objects, self._attempt, reference, digest)
        with open(path, "rb") as file:
            while data := file.read(_CHUNK):
                taken.write(data)
        taken.finish()

    def store_file(self, path: str, spec: dict[str, Any]) -> dict[str, Any]:
        """Store a file or folder as the output. Returns its place for `finish`. DocumentError if that is impossible, ObjectsError if
        another try may succeed."""
        from ork.worker.supervise.left_files import LeftFileError, store_left_file

        try:
            text = store_left_file(self._objects, spec, path)
        except LeftFileError as error:
            raise (ObjectsError if error.may_be_repeated else DocumentError)(error.cause) from None
        return self._placed(text, spec)

    def store_output(self, data: bytes, spec: dict[str, Any]) -> dict[str, Any]:
        """Store the output. Returns its place for `finish`. DocumentError if it is not valid JSON."""
        return self._placed(program_output(data, spec["output_limit"]), spec)

    def _placed(self, text: str, spec: dict[str, Any]) -> dict[str, Any]:
        if spec.get("output_type") is not None:
            from ork.worker.call.declared import wrong_output

            wrong = wrong_output(text, spec)
            if wrong is not None:
                raise DocumentError(str(wrong["message"]))
        if len(text) <= spec["inline_limit"]:
            return {"inline": text}
        return {"object": self._objects.put_output(self._attempt, text.encode()), "size": len(text)}

    def note(self, text: str) -> None:
        """Write a line of Ork itself to the log."""
        self._objects.append_log(self._attempt, f"ork: {text}\n".encode())

    def log_size(self) -> int:
        return self._objects.log_size(self._attempt) or 0

    def write_log(self, start: int, data: bytes) -> None:
        """Write the log's bytes from `start` on."""
        self._objects.write_log(self._attempt, start, data)

    def log_tail(self) -> list[str]:
        try:
            return log_tail(self._objects, self._attempt)
        except ObjectsError:
            return []

    def _say(self, words: Mapping[str, Any]) -> None:
        before = self.status()
        document = {
            "v": 1,
            "attempt": self._attempt,
            "seq": 1 if before is None else before["seq"] + 1,
            "at": utc_text(time.time_ns()),
            **words,
        }
        put = self._objects.put_last_status if words["state"] in _ENDS else self._objects.put_status
        put(self._attempt, sign(document, self._secret))

    def _one(self, found: Sequence[Found]) -> dict[str, Any] | None:
        (data,) = found
        if isinstance(data, ObjectsError):
            raise data
        return None if data is None else self._opened(data, 2 * DOCUMENT_LIMIT)

    def _opened(self, data: bytes, limit: int) -> dict[str, Any]:
        document = open_signed(data, self._secret, limit=limit)
        if document.get("attempt") != self._attempt:
            raise DocumentError(f"a document of {self._attempt} speaks of another attempt")
        return document

    def _bindings(self, spec: dict[str, Any], secrets: Mapping[str, str]) -> Bindings:
        from ork.worker.data.container_inputs import ContainerInputs

        bindings = Bindings(self._objects, spec["output_limit"], dict(secrets), spec)
        bindings.use_values(ContainerInputs(self._objects, self._files))
        return bindings


def is_left_over(objects: AttemptDocuments, attempt: str) -> bool:
    """Whether the attempt's terminal status is written, so that its container can be removed. False for an attempt without
    documents here, which may belong to another installation."""
    try:
        (data,) = objects.read_statuses([attempt])
        return isinstance(data, bytes) and strict_json(data, max_size=len(data))["state"] in _ENDS
    except (ValueError, KeyError, TypeError, ObjectsError):
        return False
