"""Differences between two runs, and between two versions of a workflow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ork.compile.content import to_document
from ork.model.code import Code, CodeDifference, code_difference
from ork.model.ids import TaskKey
from ork.model.json_fields import to_json
from ork.model.run import Run
from ork.model.secret import redacted_params
from ork.model.task import InlineOutput, Output, StoredOutput, Task
from ork.model.workflow import CompiledWorkflow
from ork.status.secret_masking import mask_text
from ork.status.shapes import run_json

Difference = dict[str, Any]
ReadOutput = Callable[[StoredOutput], bytes | None]
_FIELDS = ("workflow", "version", "status", "trigger", "scheduled_for", "error")


def diff_runs(a: Run, a_tasks: Iterable[Task], b: Run, b_tasks: Iterable[Task], read: ReadOutput) -> Difference:
    """Only fields that differ, each as `{"a": …, "b": …}`; durations are always included."""
    shown = {"a": run_json(a), "b": run_json(b)}
    fields = {name: pair for name in _FIELDS if (pair := _pair(shown["a"][name], shown["b"][name]))}
    return {
        "a": a.id,
        "b": b.id,
        **fields,
        "params": _shown_pairs(_diff_maps(a.params, b.params)),
        "seconds": {"a": _seconds(a), "b": _seconds(b)},
        "tasks": _diff_tasks({t.key: t for t in a_tasks}, {t.key: t for t in b_tasks}, read),
    }


def diff_workflows(old: CompiledWorkflow | None, new: CompiledWorkflow) -> Difference:
    """Names of added and removed tasks, changed tasks with the changed keys, and changed keys of the workflow."""
    before = {} if old is None else to_document(old)
    after = to_document(new)
    old_tasks = {task["name"]: task for task in before.pop("tasks", ())}
    new_tasks = {task["name"]: task for task in after.pop("tasks")}
    changed = {name: _changed_keys(old_tasks[name], task) for name, task in new_tasks.items() if name in old_tasks}
    return {
        "added": [name for name in new_tasks if name not in old_tasks],
        "removed": [name for name in old_tasks if name not in new_tasks],
        "changed": {name: keys for name, keys in changed.items() if keys},
        "keys": [] if old is None else _changed_keys(before, after),
    }


def diff_code(old: Code | None, new: Code | None) -> Difference | None:
    """Both codes without names, and the names of files that differ, null if unknown; None if the code is the same."""
    if (old and old.hash) == (new and new.hash):
        return None
    found = code_difference(old, new) or CodeDifference(None, None, None)
    sides = {side: None if code is None else to_json(code, skip=("files",)) for side, code in (("a", old), ("b", new))}
    return {**sides, **to_json(found)}


def _diff_tasks(a: Mapping[TaskKey, Task], b: Mapping[TaskKey, Task], read: ReadOutput) -> list[Difference]:
    found = []
    for key in [*a, *(key for key in b if key not in a)]:
        one, other = a.get(key), b.get(key)
        what: Difference = {
            "status": _pair(one and one.status.value, other and other.status.value),
            "attempts": _pair(one and one.attempt, other and other.attempt),
            "error": _pair(_error(one), _error(other)),
            "output": _pair(_text(one, read), _text(other, read)),
        }
        what = {name: pair for name, pair in what.items() if pair is not None}
        seconds = {"a": _seconds(one), "b": _seconds(other)}
        found.append({"name": key.name, "index": key.index, "seconds": seconds, **what})
    return found


def _pair(a: Any, b: Any) -> Difference | None:
    return None if a == b else {"a": a, "b": b}


def _diff_maps(a: Mapping[str, Any], b: Mapping[str, Any]) -> Difference:
    return {name: pair for name in sorted({*a, *b}) if (pair := _pair(a.get(name), b.get(name)))}


def _changed_keys(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    return sorted(name for name in {*a, *b} if a.get(name) != b.get(name))


def _seconds(thing: Run | Task | None) -> float | None:
    if thing is None or thing.started_at is None or thing.finished_at is None:
        return None
    return (thing.finished_at - thing.started_at).total_seconds()


def _error(task: Task | None) -> str | None:
    return None if task is None or task.failure is None else task.failure.message


def _text(task: Task | None, read: ReadOutput) -> str | None:
    output: Output | None = None if task is None else task.output
    if output is None:
        return None
    if isinstance(output, InlineOutput):
        return mask_text(output.json)
    data = read(output)
    return None if data is None else mask_text(data.decode("utf-8", "replace"))


def _shown_pairs(params: Difference) -> Difference:
    """Shows that sensitive params differ, without their values."""
    return {name: redacted_params(pair) for name, pair in params.items()}
