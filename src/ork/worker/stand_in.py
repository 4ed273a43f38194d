"""The worker's words for an attempt whose program knows nothing of Ork: whoever keeps its container says them.

What is said, and how it is signed, is as if a worker had said it. Nothing here waits: a store that cannot take a word is
an ObjectsError, and it can be said again.
"""

from __future__ import annotations

import os
import time

from ork.errors import DocumentError, ObjectsError
from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.objects import layout
from ork.objects.documents import DOCUMENT_LIMIT, SPEC_LIMIT, open_signed, sign, utc_text
from ork.objects.json_text import dumps, strict_json
from ork.worker.bound import Bindings, InputError
from ork.worker.command import input_text
from ork.worker.environment import task_environment
from ork.worker.process import log_tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ork.model.masking import Mask
    from ork.model.task import Attempt
    from ork.objects.local import LocalObjects

_ENDS = ("success", "failed", "timed_out", "stopped", "deferred")


class StandIn:
    def __init__(self, objects: LocalObjects, attempt: Attempt) -> None:
        self._objects = objects
        self._secret = attempt.token_hash
        self._stem = layout.attempt_stem(attempt.key)
        self._attempt = str(attempt.key)
        self.spec_key = layout.spec_key(self._stem)
        self.log_path = objects.path(layout.log_key(self._stem))
        self.mask: Mask | None = None

    def spec(self) -> dict[str, Any] | None:
        """What the scheduler wrote down for it; None before that."""
        return self._read(self.spec_key, SPEC_LIMIT)

    # ── the gate ─────────────────────────────────────────────────────────────────────────────────

    def gate(self) -> dict[str, Any] | None:
        return self._read(layout.gate_key(self._stem), DOCUMENT_LIMIT)

    def win_gate(self, facts: Mapping[str, Any]) -> bool:
        """True for one caller only, for ever: it may start the attempt, and nobody else may."""
        gate = {
            "v": 1,
            "attempt": self._attempt,
            "state": "started",
            "host": os.uname().nodename,
            "nonce": os.urandom(8).hex(),
            "at": utc_text(time.time_ns()),
            **facts,
        }
        return self._objects.put_if_absent(layout.gate_key(self._stem), sign(gate, self._secret))

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
                from ork.worker.declared import check_input

                check_input(data, spec)
        except InputError as error:
            raise DocumentError(str(error)) from None
        return data

    def objects_of(self, spec: dict[str, Any]) -> dict[str, bytes]:
        """The spec itself and every object it points at, by key: all that a worker in a place of its own needs."""
        needed = {self.spec_key: self._objects.get(self.spec_key) or b""}
        for key in objects_bound(spec):
            data = self._objects.get(key, limit=spec["output_limit"])
            if data is None:
                raise DocumentError(f"the output of an earlier task is gone: {key}")
            needed[key] = data
        return needed

    # ── what comes out ───────────────────────────────────────────────────────────────────────────

    def status(self) -> dict[str, Any] | None:
        return self._read(layout.status_key(self._stem), 2 * DOCUMENT_LIMIT)

    def is_over(self) -> bool:
        status = self.status()
        return status is not None and status["state"] in _ENDS

    def beat(self, started_at: str) -> None:
        self._say({"state": "running", "started_at": started_at})

    def finish(self, ending: Mapping[str, Any], started_at: str) -> None:
        """`ending`: state, and exit_code, failure, output as a worker would tell them."""
        told = dict(ending) if self.mask is None else {**ending, "failure": self.mask.value(ending.get("failure"))}
        self._say({"started_at": started_at, "finished_at": utc_text(time.time_ns()), **told})

    def pass_on(self, told: bytes, output: bytes | None) -> bool:
        """The last word of a worker in a place of its own, in ours; False if it is not the attempt's own last word."""
        try:
            status = open_signed(told, self._secret)
        except DocumentError:
            return False
        if status.get("attempt") != self._attempt or status.get("state") not in _ENDS:
            return False
        if output is not None:
            self._objects.put(layout.output_key(self._stem), output)
        self._say({name: value for name, value in status.items() if name not in ("v", "attempt", "seq")})
        return True

    def output_key(self) -> str:
        return layout.output_key(self._stem)

    def status_key(self) -> str:
        return layout.status_key(self._stem)

    def store_output(self, data: bytes, spec: dict[str, Any]) -> dict[str, Any]:
        """Where the output is now; DocumentError if it is not JSON as it must be."""
        text = dumps(strict_json(data, max_size=spec["output_limit"]))
        if spec.get("output_type") is not None:
            from ork.worker.declared import wrong_output

            wrong = wrong_output(text, spec)
            if wrong is not None:
                raise DocumentError(str(wrong["message"]))
        if len(text) <= spec["inline_limit"]:
            return {"inline": text}
        key = layout.output_key(self._stem)
        self._objects.put(key, text.encode())
        return {"object": key, "size": len(text)}

    def note(self, text: str) -> None:
        """A line of our own in the log."""
        with open(self.log_path, "a", encoding="utf-8") as log:
            log.write(f"ork: {text}\n")

    def log_tail(self) -> list[str]:
        try:
            return log_tail(self._objects, self._stem)
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
        self._objects.put(layout.status_key(self._stem), sign(document, self._secret))

    def _read(self, key: str, limit: int) -> dict[str, Any] | None:
        data = self._objects.get(key, limit=limit)
        if data is None:
            return None
        document = open_signed(data, self._secret, limit=limit)
        if document.get("attempt") != self._attempt:
            raise DocumentError(f"{key} speaks of another attempt")
        return document

    def _bindings(self, spec: dict[str, Any], secrets: Mapping[str, str]) -> Bindings:
        return Bindings(self._objects, spec["output_limit"], dict(secrets))


def is_left_over(objects: LocalObjects, attempt: str) -> bool:
    """Whether an attempt's last word is written, so that its container holds nothing any more. Of one that nothing is
    known of here, which may be somebody else's: False."""
    try:
        run, task, index, number = attempt.split("/")
        stem = layout.attempt_stem(AttemptKey(RunId(run), TaskKey(task, int(index)), int(number)))
        data = objects.get(layout.status_key(stem), limit=2 * DOCUMENT_LIMIT)
        return data is not None and strict_json(data, max_size=len(data))["state"] in _ENDS
    except (ValueError, KeyError, TypeError, ObjectsError):
        return False


def objects_bound(spec: dict[str, Any]) -> list[str]:
    """Keys of the objects that values of the spec point at."""
    named = (spec["inputs"] or {}, spec["upstream"], spec["env"])
    bounds = [bound for group in named for bound in group.values()]
    single = [spec.get(name) or {} for name in ("item", "config", "task_config")]
    return [key for bound in [*bounds, *single] for key in _keys_in(bound)]


def _keys_in(bound: dict[str, Any]) -> list[str]:
    """Never those in a `value`: that is the user's data, whatever it looks like."""
    if "object" in bound:
        return [bound["object"]]
    below = bound.get("list", []) if "list" in bound else list(bound.get("map", {}).values())
    return [key for member in below for key in _keys_in(member)]
