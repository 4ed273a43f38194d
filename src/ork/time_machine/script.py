"""How an attempt goes: as in the history of its task, as the plan says, or as assumed."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from ork.model.ids import AttemptKey
from ork.model.record import Record
from ork.model.task import Failure, FailureKind
from ork.model.workflow import Ref, TaskSpec
from ork.time_machine.history import PastAttempt, TaskHistory, outputs_used
from ork.time_machine.plan import SimulationPlan
from ork.time_machine.project import ProjectCopy

SCRIPTED = "as its script says"  # the message of failures
_NOTHING = TaskHistory()


class AttemptScript(Record):
    start_seconds: float
    seconds: float
    failure: Failure | None
    output: str | None
    waited: bool = False  # it hands over to an external job at once


class _TaskScript(Record):
    """What all attempts of a task have in common."""

    typical: PastAttempt
    samples: tuple[PastAttempt, ...]
    output: str | None
    timeout: float | None


class Scripts:
    """The same attempt always gets the same script, whatever else happens."""

    def __init__(self, project: ProjectCopy, plan: SimulationPlan) -> None:
        self._project = project
        self._plan = plan
        self._tasks: dict[tuple[str, str], _TaskScript] = {}
        self.assumed: dict[tuple[str, str], None] = {}  # tasks without history, in the order in which they were needed

    def of(self, workflow: str, attempt: AttemptKey) -> AttemptScript:
        task, plan = self._task(workflow, attempt.task.name), self._plan
        if plan.seed is None and plan.fail_rate is None:
            return _script(task, task.typical, task.typical.failure)
        random = Random(f"{plan.seed or 0} {attempt}")
        chosen = task.typical if plan.seed is None or not task.samples else random.choice(task.samples)
        failure = chosen.failure
        if plan.fail_rate is not None:
            failure = FailureKind.EXIT if random.random() < plan.fail_rate else None
        return _script(task, chosen, failure)

    def _task(self, workflow: str, name: str) -> _TaskScript:
        key = workflow, name
        if key not in self._tasks:
            self._tasks[key] = self._write(workflow, self._project.tasks[key])
        return self._tasks[key]

    def _write(self, workflow: str, spec: TaskSpec) -> _TaskScript:
        history = self._project.history.get((workflow, spec.name), _NOTHING)
        given = self._plan.durations.get(f"{workflow}.{spec.name}", self._plan.durations.get(spec.name))
        typical, samples = history.typical(), history.samples
        if given is not None:
            samples = ()
            typical = PastAttempt(0.0 if typical is None else typical.start_seconds, given)
        elif typical is None:
            self.assumed[workflow, spec.name] = None
            typical = PastAttempt(0.0, self._plan.default_seconds)
        output = history.output
        if output is None and (refs := outputs_used(self._project.workflows[workflow]).get(spec.name)):
            output = json.dumps(_made_up(refs))
        return _TaskScript(typical, samples, output, self._timeout(spec))

    def _timeout(self, spec: TaskSpec) -> float | None:
        config = self._project.rules.options.worker_for(spec)
        limits = [each for each in (spec.timeout, None if config is None else config.timeout) if each is not None]
        return min(limits, default=None)


def _script(task: _TaskScript, chosen: PastAttempt, kind: FailureKind | None) -> AttemptScript:
    seconds, failure = chosen.seconds, None if kind is None else Failure(kind, SCRIPTED)
    if task.timeout is not None and seconds > task.timeout:
        seconds, failure = task.timeout, Failure(FailureKind.TIMEOUT, SCRIPTED)
    return AttemptScript(chosen.start_seconds, seconds, failure, None if failure else task.output, chosen.waited)


def _made_up(refs: list[tuple[Ref, bool]]) -> Any:
    """An output that has what is referred to: lists of one item, otherwise nulls."""
    made: Any = None
    for ref, is_list in refs:
        made = _with(made, ref.path[3:], [None] if is_list else None)
    return made


def _with(value: Any, path: tuple[str | int, ...], leaf: Any) -> Any:
    if not path:
        return leaf if value is None else value
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        items = value if isinstance(value, list) else []
        items += [None] * (step + 1 - len(items))
        items[step] = _with(items[step], rest, leaf)
        return items
    fields = value if isinstance(value, dict) else {}
    fields[step] = _with(fields.get(step), rest, leaf)
    return fields
