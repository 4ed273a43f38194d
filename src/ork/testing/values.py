"""Resolves references independently of the scheduler: from committed rows and the content of the object store."""

from __future__ import annotations

import json
from typing import Any

from ork.model.ids import TaskKey
from ork.model.task import InlineOutput, Output, StoredOutput
from ork.model.workflow import Condition, Const, Op, Ref, TaskSpec
from ork.objects.attempt_documents import AttemptDocuments
from ork.testing.ledger import RunRecord


class _Missing:
    def __repr__(self) -> str:
        return "nothing"


MISSING = _Missing()


class Values:
    def __init__(self, objects: AttemptDocuments) -> None:
        self._objects = objects

    def text(self, output: Output | None) -> str | None:
        match output:
            case None:
                return None
            case InlineOutput(text):
                return text
            case StoredOutput(key, _size):
                (data,) = self._objects.read_values([key], None)
                return data.decode() if isinstance(data, bytes) else None

    def output(self, record: RunRecord, key: TaskKey) -> Any:
        """The value of a task or an instance; for a fan-out a list, nested if it has two dimensions."""
        task = record.tasks[key]
        if not task.instances or key.index is not None:
            text = self.text(task.output)
            return MISSING if text is None else json.loads(text)
        parts = [self.output(record, TaskKey(key.name, index)) for index in range(task.instances)]
        values = [None if part is MISSING else part for part in parts]
        if task.item is None:
            return values
        width = int(task.item)
        return [values[start : start + width] for start in range(0, len(values), width)]

    def follow(self, record: RunRecord, ref: Ref) -> Any:
        match ref.path:
            case ("tasks", str(name), "output", *rest):
                value = self.output(record, TaskKey(name))
            case ("params", *rest):
                value = record.run.params
            case _:
                return MISSING
        for step in rest:
            try:
                value = value[step]
            except (KeyError, IndexError, TypeError):
                return MISSING
        return value

    def holds(self, record: RunRecord, condition: Condition) -> bool:
        value, wanted = self.follow(record, condition.ref), condition.value
        is_there = value is not MISSING
        match condition.op:
            case Op.EXISTS:
                return is_there is bool(wanted)
            case Op.NOT_EQUALS:
                return not is_there or value != wanted
            case Op.EQUALS:
                return is_there and bool(value == wanted)
            case Op.IN:
                return is_there and bool(value in wanted)
            case Op.LT:
                return is_there and bool(value < wanted)
            case Op.LE:
                return is_there and bool(value <= wanted)
            case Op.GT:
                return is_there and bool(value > wanted)
            case Op.GE:
                return is_there and bool(value >= wanted)

    def items(self, record: RunRecord, spec: TaskSpec) -> list[str | None] | None:
        """The item of each instance as JSON; None if there is no list to fan out over."""
        width = self._width(record, spec)
        if spec.foreach is None:
            return [None] * width
        foreach = spec.foreach.value if isinstance(spec.foreach, Const) else self.follow(record, spec.foreach)
        if not isinstance(foreach, list):
            return None
        return [json.dumps(item) for item in foreach for _ in range(width)]

    def _width(self, record: RunRecord, spec: TaskSpec) -> int:
        if isinstance(spec.parallel, Ref):
            return int(self.follow(record, spec.parallel))
        return 1 if spec.parallel is None else spec.parallel
