"""Workflows for the sandbox: of the same shape with stand-ins for the tasks, or with the real tasks, recorded."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from ork.chaos.ledger import RECORDED
from ork.model.record import Record, replaced
from ork.model.workflow import (
    Approval,
    Command,
    CompiledWorkflow,
    Const,
    Container,
    Custom,
    PythonCall,
    Rate,
    RetryOn,
    SubWorkflow,
    TaskSpec,
    Value,
    Version,
)

WORKER = "chaos"  # the worker config of stand-ins in containers
_FUNCTIONS = PythonCall | Custom | Approval
_ITEMS = 3  # of a fan-out whose size is known only at run time
_MOST_ITEMS = 20
_LONGEST_DELAY = 0.5
_SHORTEST_TIMEOUT = 120.0  # on a busy machine a stand-in may start late
_LEAST_STARTS_A_SECOND = 5.0
_SECONDS = (0.05, 0.8)
_FAILING = 0.25  # the share of tasks with retries whose first attempt fails


class StandIns(Record):
    """How stand-ins are made. `image`: they run in containers of it."""

    project: Path
    ledger: Path
    seed: int
    image: str | None = None


def with_stand_ins(workflow: CompiledWorkflow, known: Mapping[str, object], how: StandIns) -> CompiledWorkflow:
    """The same graph, rules, retries, limits and fan-outs, with tasks that only sleep. `known`: the workflows by name that
    are in the sandbox as well."""
    return replaced(
        CompiledWorkflow(workflow.name, tuple(_stand_in(task, workflow.name, known, how) for task in workflow.tasks)),
        max_active_runs=workflow.max_active_runs,
        fail_fast=workflow.fail_fast,
    )


def _stand_in(task: TaskSpec, workflow: str, known: Mapping[str, object], how: StandIns) -> TaskSpec:
    dice = Random(f"{how.seed} {workflow} {task.name}")
    seconds, may_fail = dice.uniform(*_SECONDS), dice.random() < _FAILING
    made = replaced(
        TaskSpec(task.name, "", task.action),
        depends_on=task.depends_on,
        retries=task.retries,
        retry_delay=_LONGEST_DELAY if task.retry_delay is None else min(task.retry_delay, _LONGEST_DELAY),
        retry_on=task.retry_on,
        timeout=None if task.timeout is None else max(task.timeout, _SHORTEST_TIMEOUT),
        pool=task.pool,
        priority=task.priority,
        run_if=task.run_if,
        parallel=task.parallel if task.parallel is None or isinstance(task.parallel, int) else _ITEMS,
        foreach=None if task.foreach is None else _items(task.foreach),
        concurrency=task.concurrency,
        rate=task.rate if _is_fast(task.rate) else None,
        isolation=task.isolation,
        on_unreachable=task.on_unreachable,
    )
    if isinstance(task.action, SubWorkflow) and task.action.name in known:
        return replaced(made, executor=task.executor)
    failures = 1 if may_fail and task.retries and RetryOn.EXIT in task.retry_on else 0
    return replaced(made, **_action(task, f"{seconds:.2f}", str(failures), how))


def _action(task: TaskSpec, seconds: str, failures: str, how: StandIns) -> dict[str, Any]:
    variables = {"CHAOS_SECONDS": seconds, "CHAOS_FAILURES": failures}
    if how.image is not None:
        words = _constants("sh", "/ledger/stand_in.sh")
        action = Container(words)
        return {
            "action": action, "executor": "container", "image": how.image, "worker": WORKER, "isolation": None,
            "env": tuple((name, Const(value)) for name, value in variables.items()),
        }  # fmt: skip
    if isinstance(task.action, _FUNCTIONS):
        variables["CHAOS_LEDGER"] = str(how.ledger)
        return {
            "action": PythonCall(RECORDED, None), "executor": "python",
            "env": tuple((name, Const(value)) for name, value in variables.items()),
        }  # fmt: skip
    words = _constants(str(how.project / RECORDED), "stand-in", str(how.ledger), seconds, failures)
    return {"action": Command(words), "executor": "process"}


def _constants(*words: str) -> tuple[Value, ...]:
    return tuple(map(Const, words))


def _items(foreach: Any) -> Const:
    if isinstance(foreach, Const) and isinstance(foreach.value, list):
        return Const(list(range(min(len(foreach.value), _MOST_ITEMS))))
    return Const(list(range(_ITEMS)))


def _is_fast(rate: Rate | None) -> bool:
    return rate is not None and rate.count / rate.seconds >= _LEAST_STARTS_A_SECOND


def changes(workflows: Sequence[CompiledWorkflow], *, in_containers: bool) -> list[str]:
    """What stand-ins leave out of these workflows, as sentences."""
    tasks = [task for workflow in workflows for task in workflow.tasks]
    told = {
        "conditions (`when`) are ignored: there are no outputs to compare": lambda task: bool(task.when),
        "approvals are given at once": lambda task: isinstance(task.action, Approval),
        "the cache is off: a cached task would not run": lambda task: task.cache is not None,
        f"fan-outs over outputs and params have {_ITEMS} instances": lambda task: (
            isinstance(task.foreach, Const) is False and task.fans_out and not isinstance(task.parallel, int)
        ),
        f"rates below {_LEAST_STARTS_A_SECOND:g} starts a second are left out": lambda task: (
            task.rate is not None and not _is_fast(task.rate)
        ),
        "tasks in images and on platforms run as processes of this machine": lambda task: (
            not in_containers and (task.image is not None or task.worker is not None)
        ),
    }
    return [f"{_number(tasks, test)}: {text}" for text, test in told.items() if any(map(test, tasks))]


def _number(tasks: Sequence[TaskSpec], test: Callable[[TaskSpec], bool]) -> str:
    number = sum(map(test, tasks))
    return f"{number:,} task{'' if number == 1 else 's'}"


# ── the real tasks ───────────────────────────────────────────────────────────────────────────────


class RealTasks:
    """Puts a recorder around the functions and commands of versions in a copy of their project. `unrecorded` are tasks
    that write no ledger; those of them that have work of their own, which nobody can judge, are `unjudged`."""

    def __init__(self, source: str, project: Path, ledger: Path, script_dir: str | None) -> None:
        self._source, self._project, self._ledger = source, project, ledger
        self._script_dir = script_dir
        self._functions: list[tuple[str, str | None, str | None, str, list[str]]] = []
        self.unrecorded: set[tuple[str, str]] = set()
        self.unjudged: set[tuple[str, str]] = set()

    def version_root(self, version: Version) -> str:
        """The folder in the copy that stands for the version's own."""
        return str(self._project / os.path.relpath(version.root, self._source))

    def workflow(self, version: Version) -> CompiledWorkflow:
        """The workflow as it is, without schedule, alerts and budget, and with recorded tasks."""
        workflow, root = version.workflow, self.version_root(version)
        base = os.path.normpath(os.path.join(root, workflow.project or "."))
        paths = [base, *(os.path.normpath(os.path.join(base, path)) for path in workflow.pythonpath)]
        tasks = tuple(self._task(task, workflow.name, root, paths) for task in workflow.tasks)
        return replaced(workflow, tasks=tasks, schedule=None, alerts=(), budget=None)

    def write(self) -> None:
        """Writes the list of recorded functions next to the recorder. To be called after the last workflow."""
        known = {"ledger": str(self._ledger), "functions": self._functions}
        (self._project / "functions.json").write_text(json.dumps(known))

    def _task(self, task: TaskSpec, workflow: str, root: str, paths: list[str]) -> TaskSpec:
        action, recorder = task.action, str(self._project / RECORDED)
        if task.image is None and isinstance(action, PythonCall):
            name = f"task_{len(self._functions)}"
            self._functions.append((root, action.file, action.module, action.function, paths))
            return replaced(task, action=PythonCall(os.path.relpath(recorder, root), None, name), cache=None)
        if task.image is None and isinstance(action, Command) and isinstance(action.argv[0], Const):
            first = Const(self._program(str(action.argv[0].value), root))
            words = (*_constants(recorder, "run", str(self._ledger)), first, *action.argv[1:])
            return replaced(task, action=replaced(action, argv=words), cache=None)
        if isinstance(action, Approval):  # nobody is there to approve
            env = {"CHAOS_LEDGER": str(self._ledger), "CHAOS_SECONDS": "0"}
            variables = tuple((name, Const(value)) for name, value in env.items())
            called = PythonCall(os.path.relpath(recorder, root), None)
            return replaced(task, action=called, executor="python", env=variables, inputs=())
        self.unrecorded.add((workflow, task.name))
        if not isinstance(action, SubWorkflow):  # it has no work of its own
            self.unjudged.add((workflow, task.name))
        return task

    def _program(self, word: str, root: str) -> str:
        """The program as Ork's worker finds it: a file of the workflow's folder, one in the folder of scripts, or on PATH."""
        if "/" in word:
            return os.path.normpath(os.path.join(root, word))
        script = os.path.join(self._script_dir, word) if self._script_dir is not None else None
        return script if script is not None and os.path.isfile(script) else word
