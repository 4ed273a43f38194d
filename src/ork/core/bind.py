"""References to values: what a task is given, put together from the run's facts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias, assert_never

from ork.errors import OrkError
from ork.model.run import Run
from ork.model.task import InlineOutput, Output, StoredOutput
from ork.model.workflow import Const, Ref, Secret, Value

Bound: TypeAlias = dict[str, Any]
"""{"value": …}, {"object": key, "path": […]}, {"secret": name} or {"missing": True}: see docs/protocol.md."""

MISSING: Bound = {"missing": True}


class BindError(OrkError):
    """A reference that points nowhere in the values this run really has."""

    code = "ORK290"


class Scope:
    """What references of one task may point at. `outputs` holds each ended upstream task; None if it has none."""

    def __init__(self, run: Run, outputs: Mapping[str, Output | None]) -> None:
        self._run = run
        self._outputs = outputs
        self._parsed: dict[str, Any] = {}

    def bind(self, value: Value) -> Bound:
        match value:
            case Const(constant):
                return {"value": constant}
            case Secret(name):
                return {"secret": name}
            case Ref():
                return self._follow(value)
            case _:
                assert_never(value)

    def upstream(self, task: str) -> Bound:
        output = self._outputs.get(task)
        match output:
            case None:
                return MISSING
            case StoredOutput(key):
                return {"object": key, "path": []}
            case InlineOutput():
                return {"value": self._value(task, output)}
            case _:
                assert_never(output)

    def _follow(self, ref: Ref) -> Bound:
        match ref.path:
            case ("tasks", str(task), "output", *rest):
                bound = self.upstream(task)
                if "object" in bound:
                    return {"object": bound["object"], "path": rest}
                return {"value": walk(bound["value"], rest, ref)} if "value" in bound else MISSING
            case ("params", *rest):
                return {"value": walk(self._run.params, rest, ref)}
            case ("run", "id"):
                return {"value": self._run.id}
            case ("run", "attempt"):
                return {"value": self._run.round}
            case ("run", "scheduled_for"):
                at = self._run.scheduled_for
                return {"value": at.isoformat() if at else None}
            case _:
                raise BindError(f"`{ref}` points at nothing a task can be given")

    def _value(self, task: str, output: InlineOutput) -> Any:
        if task not in self._parsed:
            self._parsed[task] = json.loads(output.json)
        return self._parsed[task]


def walk(value: Any, path: list[str | int], ref: Ref) -> Any:
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            raise BindError(f"`{ref}`: there is no `{part}` in {_shape(value)}") from None
    return value


def _shape(value: Any) -> str:
    if isinstance(value, dict):
        names = ", ".join(sorted(map(str, value))[:6])
        return f"an object with {names or 'no fields'}"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return f"the value {json.dumps(value)[:40]}"
