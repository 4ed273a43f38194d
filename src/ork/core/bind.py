"""Resolves references: builds a task's inputs from the params, outputs and items of its run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, assert_never

from ork.errors import OrkError
from ork.model.record import Record
from ork.model.run import Run
from ork.model.secret import PARAM_PREFIX, is_sealed
from ork.model.task import InlineOutput, Output, StoredOutput
from ork.model.value_reference import FACTS, IN_TEXT, description_in, fact, has_mark
from ork.model.workflow import Const, Ref, Secret, Value

Bound: TypeAlias = dict[str, Any]
"""{"value": …}, {"object": key, "path": […]}, {"list": [Bound…]}, {"secret": name} or {"missing": True}.

{"secret": variable, "json": True, "path": […]} for a sensitive param. {"value": …, "has_values": True} if an output has references to
values that are not JSON in it (`ork.model.value_reference`). {"as_file": Bound, "name": …} if the task gets a file."""

MISSING: Bound = {"missing": True}


class BindError(OrkError):
    """A reference to a value that this run does not have."""

    code = "ORK290"


class Gathered(Record):
    """The outputs of a fan-out in instance order; grouped in rows of `width` if it uses both `foreach` and `parallel`."""

    outputs: tuple[Output | None, ...]
    width: int | None = None


class Scope:
    """The values that references of one task can resolve to. `outputs` maps each finished upstream task to its output,
    or None."""

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
                bound = self._follow(value)
                return {"as_file": bound, "name": _file_name(value)} if value.as_file else bound
            case _:
                assert_never(value)

    def upstream(self, task: str) -> Bound:
        return self._bind_output(self._outputs.get(task))

    def item(self) -> Bound | None:
        return None if self._item is None else _bound(self._parse(self._item), self._item)

    def _follow(self, ref: Ref) -> Bound:
        match ref.path:
            case ("tasks", str(task), "output", *rest):
                return self._follow_output(self._outputs.get(task), rest, ref)
            case ("params", str(name), *rest) if is_sealed(self._run.params.get(name)):
                return sealed_param(name, rest)
            case ("params", *rest):
                value = walk(self._run.params, rest, ref)
                return {"value": value, "has_values": True} if has_mark(value) else {"value": value}
            case ("item", *rest) if self._item is not None:
                return _part(_bound(self._parse(self._item), self._item), rest, ref)
            case ("run", "id"):
                return {"value": self._run.id}
            case ("run", "attempt"):
                return {"value": self._run.round}
            case ("run", "scheduled_for"):
                at = self._run.scheduled_for
                return {"value": at.isoformat() if at else None}
            case _:
                raise BindError(f"`{ref}` does not refer to a value that a task can use")

    def _follow_output(self, output: Output | Gathered | None, path: Sequence[str | int], ref: Ref) -> Bound:
        """Resolve a path into an output. For a fan-out the first part selects an instance, so that only its value is
        read."""
        if isinstance(output, Gathered) and path:
            return self._follow_output(walk(_rows(output), path[:1], ref), path[1:], ref)
        bound = self._bind_output(output)
        if "object" in bound:
            return {"object": bound["object"], "path": [*bound["path"], *path]}
        return _part(bound, path, ref) if "value" in bound else bound

    def _bind_output(self, output: Output | Gathered | None) -> Bound:
        match output:
            case None:
                return MISSING
            case StoredOutput(key):
                return {"object": key, "path": []}
            case InlineOutput(text):
                return _bound(self._parse(text), text)
            case Gathered():
                parts = [self._bind_output(part) for part in _rows(output)]
                if not all("value" in part or "missing" in part for part in parts):
                    return {"list": parts}
                values = [part.get("value") for part in parts]
                return {"value": values, "has_values": True} if _have_values(parts) else {"value": values}
            case _:
                assert_never(output)

    def _parse(self, text: str) -> Any:
        if text not in self._parsed:
            self._parsed[text] = json.loads(text)
        return self._parsed[text]


def _file_name(ref: Ref) -> str:
    """The name of a file with the value, without its extension: `clean`, `clean-frames-0`, `item`."""
    path = ref.path[1:2] + ref.path[3:] if ref.path[0] == "tasks" else ref.path
    return "-".join("".join(c if c.isalnum() or c in "_." else "_" for c in str(step)) for step in path)[:100].strip(
        "."
    )


def _bound(value: Any, text: str) -> Bound:
    """A value from JSON text."""
    return {"value": value, "has_values": True} if IN_TEXT in text else {"value": value}


def _part(bound: Bound, path: Sequence[str | int], ref: Ref) -> Bound:
    """A part of a value: it may be plain JSON although another part is not."""
    value = walk(bound["value"], path, ref)
    return {"value": value, "has_values": True} if "has_values" in bound and has_mark(value) else {"value": value}


def _have_values(parts: Sequence[Bound]) -> bool:
    return any("has_values" in part for part in parts)


def _rows(gathered: Gathered) -> list[Output | Gathered | None]:
    width = gathered.width
    if width is None:
        return list(gathered.outputs)
    starts = range(0, len(gathered.outputs), width)
    return [Gathered(gathered.outputs[start : start + width]) for start in starts]


def sealed_param(name: str, path: Sequence[str | int] = ()) -> Bound:
    """A sensitive param. The worker has its value as JSON in an environment variable."""
    return {"secret": PARAM_PREFIX + name, "json": True, "path": list(path)}


def walk(value: Any, path: Sequence[str | int], ref: object) -> Any:
    for part in path:
        try:
            reference = description_in(value)
            value = value[part] if reference is None else fact(reference, part)
        except (KeyError, IndexError, TypeError):
            raise BindError(f"`{ref}`: there is no `{part}` in {_shape(value)}") from None
    return value


def _shape(value: Any) -> str:
    reference = description_in(value)
    if reference is not None:
        return f"a {reference.get('type')}, of which {', '.join(name for name in FACTS if name in reference)} are known"
    if isinstance(value, dict):
        names = ", ".join(sorted(map(str, value))[:6])
        return f"an object with {names or 'no fields'}"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return f"the value {json.dumps(value)[:40]}"
