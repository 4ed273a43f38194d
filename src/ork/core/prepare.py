"""Between "its rule holds" and "it starts": conditions, and how many of it there are to be.

Values that are too large to be in the state store have to be fetched first. The machine cannot do that, so it asks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from ork.core.bind import BindError, Bound, Scope
from ork.model.ids import TaskKey
from ork.model.record import Record
from ork.model.workflow import Condition, Const, Op, TaskSpec, Value

MOST_INSTANCES = 100_000

CACHE = "cache"


class Question(NamedTuple):
    """Something the machine needs to know before it can go on with a task: the value of `bound`, or, about CACHE,
    whether equal work has been done before."""

    key: TaskKey
    about: str
    bound: Bound | None = None


class Unanswerable(NamedTuple):
    """The answer cannot be had: the task fails with this reason."""

    why: str


class Nowhere(Record):
    """The value is there and the path leads to nothing in it: no different from a small value that was looked into."""

    why: str


class Skip(NamedTuple):
    reason: str


class Expand(NamedTuple):
    """One instance for each item; with a `width`, that many for each."""

    items: tuple[str | None, ...]  # JSON
    width: int | None = None


class Go(Record):
    """Nothing stands in the way of a plain start."""


Preparation: TypeAlias = Question | Skip | Expand | Go


def is_plain(spec: TaskSpec) -> bool:
    """Nothing has to be looked up before it starts."""
    return not spec.when and not spec.fans_out


def prepare(spec: TaskSpec, scope: Scope, known: Mapping[str, Any]) -> Preparation:
    """`known` holds the answers to earlier questions about this task. BindError: it can never start."""
    key = TaskKey(spec.name)
    for number, condition in enumerate(spec.when):
        answer = _look_up(key, f"when {number}", condition.ref, scope, known)
        if isinstance(answer, Question):
            return answer
        if not holds(condition, answer.value, answer.exists):
            shown = json.dumps(answer.value)[:80] if answer.exists else "nothing"
            return Skip(f"when {condition}: it is {shown}")
    if not spec.fans_out:
        return Go()
    items, width = None, None
    if spec.foreach is not None:
        answer = _look_up(key, "foreach", spec.foreach, scope, known)
        if isinstance(answer, Question):
            return answer
        items = _list_of_items(answer.value)
    if spec.parallel is not None:
        answer = _look_up(key, "parallel", spec.parallel, scope, known)
        if isinstance(answer, Question):
            return answer
        width = _count(answer.value)
    return _expansion(items, width)


class _Answer(NamedTuple):
    value: Any
    exists: bool = True


def _look_up(
    key: TaskKey, about: str, value: Value | int, scope: Scope, known: Mapping[str, Any]
) -> Question | _Answer:
    is_condition = about.startswith("when")
    found = known.get(about)
    if isinstance(found, Nowhere):
        if is_condition:
            return _Answer(None, exists=False)
        raise BindError(found.why)
    if about in known:
        return _Answer(found)
    try:
        bound = scope.bind(Const(value) if isinstance(value, int) else value)
    except BindError:
        if is_condition:
            return _Answer(None, exists=False)
        raise
    if "value" in bound:
        return _Answer(bound["value"])
    return _Answer(None, exists=False) if "missing" in bound else Question(key, about, bound)


def holds(condition: Condition, value: Any, exists: bool) -> bool:
    """A value that is not there holds for no comparison but "exists: false" and "not_equals"."""
    wanted = condition.value
    match condition.op:
        case Op.EXISTS:
            return exists is bool(wanted)
        case Op.EQUALS:
            return exists and bool(value == wanted)
        case Op.NOT_EQUALS:
            return not exists or bool(value != wanted)
        case Op.IN:
            return exists and value in wanted
    try:
        return exists and bool(_ORDER[condition.op](value, wanted))
    except TypeError:
        shown = f"{json.dumps(value)[:40]} {condition.op} {json.dumps(wanted)[:40]}"
        raise BindError(f"when {condition}: cannot compare {shown}") from None


_ORDER = {
    Op.LT: lambda value, wanted: value < wanted,
    Op.LE: lambda value, wanted: value <= wanted,
    Op.GT: lambda value, wanted: value > wanted,
    Op.GE: lambda value, wanted: value >= wanted,
}


def _list_of_items(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise BindError(f"foreach needs a list, and this is {json.dumps(value)[:60]}")
    return value


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BindError(f"parallel needs a count, and this is {json.dumps(value)[:60]}")
    return value


def _expansion(items: list[Any] | None, width: int | None) -> Expand:
    total = (1 if items is None else len(items)) * (1 if width is None else width)
    if total > MOST_INSTANCES:
        raise BindError(f"{total:,} instances are more than the {MOST_INSTANCES:,} one task may have")
    if items is None:
        return Expand((None,) * total)
    texts = [json.dumps(item) for item in items]
    return Expand(tuple(texts) if width is None else tuple(text for text in texts for _ in range(width)), width)
