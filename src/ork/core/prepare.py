"""What happens between "run_if holds" and "it starts": conditions, and the number of instances.

Values too large for the state store have to be fetched first. The machine does no I/O, so it asks questions instead.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from ork.core.bind import BindError, Bound, Scope
from ork.model.ids import TaskKey
from ork.model.record import Record
from ork.model.value_reference import description_in, parts_of
from ork.model.workflow import Condition, Const, Op, TaskSpec, Value

MAX_INSTANCES = 100_000

CACHE = "cache"


class Question(NamedTuple):
    """What the machine has to know before a task can continue: the value of `bound`, or, for CACHE, whether equal work
    was done before."""

    key: TaskKey
    about: str
    bound: Bound | None = None


class Unanswerable(NamedTuple):
    """There is no answer: the task fails with this reason."""

    why: str


class NoSuchPath(Record):
    """The value exists, but has nothing at the path. Treated like a missing path in an inline value."""

    why: str


class Skip(NamedTuple):
    reason: str


class Expand(NamedTuple):
    """One instance for each item; with `width`, that many for each item."""

    items: tuple[str | None, ...]  # JSON
    width: int | None = None


class Start(Record):
    """The task starts as a single instance."""


Preparation: TypeAlias = Question | Skip | Expand | Start


def prepare(spec: TaskSpec, scope: Scope, known: Mapping[str, Any]) -> Preparation:
    """The next step for a task whose `run_if` holds. `known` holds the answers to earlier questions about it.

    Raises BindError if the task can never start.
    """
    key = TaskKey(spec.name)
    for number, condition in enumerate(spec.when):
        answer = _look_up(key, f"when {number}", condition.ref, scope, known)
        if isinstance(answer, Question):
            return answer
        if not holds(condition, answer.value, answer.exists):
            shown = json.dumps(answer.value)[:80] if answer.exists else "nothing"
            return Skip(f"when {condition}: it is {shown}")
    if not spec.fans_out:
        return Start()
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
    if isinstance(found, NoSuchPath):
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
    if "as_file" in bound:
        raise BindError(f"{about}: a file has no value to look at, remove `as: file`")
    return _Answer(None, exists=False) if "missing" in bound else Question(key, about, bound)


def holds(condition: Condition, value: Any, exists: bool) -> bool:
    """A missing value satisfies only "exists: false" and "not_equals"."""
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
    reference = description_in(value)
    if reference is not None:
        try:
            return parts_of(reference)
        except ValueError as problem:
            raise BindError(f"foreach needs a list, a table or a folder: {problem}") from None
    if not isinstance(value, list):
        raise BindError(f"foreach needs a list, got {json.dumps(value)[:60]}")
    return value


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BindError(f"parallel needs a non-negative integer, got {json.dumps(value)[:60]}")
    return value


def _expansion(items: list[Any] | None, width: int | None) -> Expand:
    total = (1 if items is None else len(items)) * (1 if width is None else width)
    if total > MAX_INSTANCES:
        raise BindError(f"{total:,} instances exceed the limit of {MAX_INSTANCES:,} per task")
    if items is None:
        return Expand((None,) * total)
    texts = [json.dumps(item) for item in items]
    return Expand(tuple(texts) if width is None else tuple(text for text in texts for _ in range(width)), width)
