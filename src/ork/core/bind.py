"""References to values: what a task is given, put together from the run's facts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, assert_never

from ork.errors import OrkError
from ork.model.record import Record
from ork.model.run import Run
from ork.model.sealed import PARAM_PREFIX, is_sealed
from ork.model.task import InlineOutput, Output, StoredOutput
from ork.model.workflow import Const, Ref, Secret, Value

Bound: TypeAlias = dict[str, Any]
"""{"value": …}, {"object": key, "path": […]}, {"list": [Bound…]}, {"secret": name} or {"missing": True}.

{"secret": variable, "json": True, "path": […]} for a sensitive param."""

MISSING: Bound = {"missing": True}


class BindError(OrkError):
    """A reference that points nowhere in the values this run really has."""

    code = "ORK290"


class Gathered(Record):
    """The outputs of a fan-out in the order of its instances; in rows of `width` where it fans out two ways."""

    outputs: tuple[Output | None, ...]
    width: int | None = None


class Scope:
    """What references of one task may point at. `outputs` holds each ended upstream task; None if it has none."""

    def __init__(self, run: Run, outputs: Mapping[str, Output | Gathered | None], item: str | None = None) -> None:
        self._run = run
        self._outputs = outputs
        self._item = item
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
        return self._bind_output(self._outputs.get(task))

    def item(self) -> Bound | None:
        return None if self._item is None else {"value": self._parse(self._item)}

    def _follow(self, ref: Ref) -> Bound:
        match ref.path:
            case ("tasks", str(task), "output", *rest):
                return self._follow_output(self._outputs.get(task), rest, ref)
            case ("params", str(name), *rest) if is_sealed(self._run.params.get(name)):
                return sealed_param(name, rest)
            case ("params", *rest):
                return {"value": walk(self._run.params, rest, ref)}
            case ("item", *rest) if self._item is not None:
                return {"value": walk(self._parse(self._item), rest, ref)}
            case ("run", "id"):
                return {"value": self._run.id}
            case ("run", "attempt"):
                return {"value": self._run.round}
            case ("run", "scheduled_for"):
                at = self._run.scheduled_for
                return {"value": at.isoformat() if at else None}
            case _:
                raise BindError(f"`{ref}` points at nothing a task can be given")

    def _follow_output(self, output: Output | Gathered | None, path: Sequence[str | int], ref: Ref) -> Bound:
        """A path into a fan-out's outputs leads to one instance first, so that only its own value is looked at."""
        if isinstance(output, Gathered) and path:
            return self._follow_output(walk(_rows(output), path[:1], ref), path[1:], ref)
        bound = self._bind_output(output)
        if "object" in bound:
            return {"object": bound["object"], "path": [*bound["path"], *path]}
        return {"value": walk(bound["value"], path, ref)} if "value" in bound else bound

    def _bind_output(self, output: Output | Gathered | None) -> Bound:
        match output:
            case None:
                return MISSING
            case StoredOutput(key):
                return {"object": key, "path": []}
            case InlineOutput(text):
                return {"value": self._parse(text)}
            case Gathered():
                parts = [self._bind_output(part) for part in _rows(output)]
                plain = all("value" in part or "missing" in part for part in parts)
                return {"value": [part.get("value") for part in parts]} if plain else {"list": parts}
            case _:
                assert_never(output)

    def _parse(self, text: str) -> Any:
        if text not in self._parsed:
            self._parsed[text] = json.loads(text)
        return self._parsed[text]


def _rows(gathered: Gathered) -> list[Output | Gathered | None]:
    width = gathered.width
    if width is None:
        return list(gathered.outputs)
    starts = range(0, len(gathered.outputs), width)
    return [Gathered(gathered.outputs[start : start + width]) for start in starts]


def sealed_param(name: str, path: Sequence[str | int] = ()) -> Bound:
    """A sensitive param: its value is JSON in a variable of the worker."""
    return {"secret": PARAM_PREFIX + name, "json": True, "path": list(path)}


def walk(value: Any, path: Sequence[str | int], ref: object) -> Any:
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
