"""Reads what the time machine needs from the store of a project, and writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice

from ork.core.cron import times_between
from ork.errors import NotFoundError, OrkError, UsageError
from ork.model.record import Record, replaced
from ork.model.workflow import CompiledWorkflow, Rate, SubWorkflow, TaskSpec, Version
from ork.objects.attempt_documents import AttemptDocuments
from ork.scheduler.options import SchedulerOptions
from ork.settings import Settings
from ork.state.records import ScheduleEntry
from ork.state.store import StateStore
from ork.time_machine.history import TaskHistory, read_history
from ork.time_machine.plan import SimulationPlan

MOST_RUNS = 100_000


class Rules(Record):
    """How the project's scheduler works: its options and its limits."""

    options: SchedulerOptions
    limits: Mapping[str, int]
    rates: Mapping[str, Rate]


def rules_of(settings: Settings) -> Rules:
    from ork.app.scheduler_options import limits_of, rates_of, scheduler_options

    return Rules(scheduler_options(settings, "scheduler"), limits_of(settings), rates_of(settings))


class ProjectCopy(Record):
    """A copy of a project. `workflows` are as their tasks are placed, without caches, by name."""

    rules: Rules
    schedules: Sequence[ScheduleEntry]
    versions: Mapping[str, Version]
    workflows: Mapping[str, CompiledWorkflow]
    tasks: Mapping[tuple[str, str], TaskSpec]  # by workflow and task, as the history
    history: Mapping[tuple[str, str], TaskHistory]
    notes: Sequence[str] = ()


async def copy_project(store: StateStore, objects: AttemptDocuments, rules: Rules, plan: SimulationPlan) -> ProjectCopy:
    """The schedules of the plan with their workflows, the sub-workflows of these, and their history."""
    schedules = _chosen(await store.list_schedules(), plan, [entry.name for entry in await store.list_workflows()])
    _check_number(schedules, plan)
    versions: dict[str, Version] = {}
    wanted = [entry.workflow for entry in schedules]
    while wanted:
        name = wanted.pop()
        version = None if name in versions else await _current_version(store, name)
        if version is not None:
            versions[name] = version
            wanted += [spec.action.name for spec in version.workflow.tasks if isinstance(spec.action, SubWorkflow)]
    workflows = {name: _as_run(version.workflow, rules.options.placed) for name, version in versions.items()}
    _check_durations(workflows, plan)
    tasks = {(name, spec.name): spec for name, workflow in workflows.items() for spec in workflow.tasks}
    history: dict[tuple[str, str], TaskHistory] = {}
    for workflow in workflows.values():
        history |= await read_history(store, objects, workflow)
    notes = [
        f"schedulers ({control.target}) are {control.mode} now; the simulation ignores that"
        for control in await store.list_controls()
    ]
    return ProjectCopy(rules, schedules, versions, workflows, tasks, history, notes)


def _chosen(found: Sequence[ScheduleEntry], plan: SimulationPlan, known: Sequence[str]) -> list[ScheduleEntry]:
    names = [entry.workflow for entry in found]
    for name in plan.workflows:
        if name in names:
            continue
        if name in known:
            raise UsageError(f"workflow `{name}` has no schedule", hint="give it a `schedule` and `ork deploy` it")
        close = get_close_matches(name, names, 1)
        raise NotFoundError(
            f"there is no workflow `{name}`",
            hint=f"did you mean `{close[0]}`?" if close else "`ork schedules` lists them",
        )
    chosen = [entry for entry in found if not plan.workflows or entry.workflow in plan.workflows]
    if not chosen:
        raise NotFoundError("there are no schedules to play", hint="give a workflow a `schedule` and `ork deploy` it")
    if broken := [entry for entry in chosen if entry.unreadable is not None]:
        raise UsageError(
            f"the schedule of `{broken[0].workflow}` is damaged: {broken[0].unreadable}", hint="deploy it again"
        )
    if not any(entry.enabled for entry in chosen):
        disabled = ", ".join(entry.workflow for entry in chosen)
        raise UsageError(f"no schedule is enabled ({disabled})", hint="`ork workflow enable NAME` enables one")
    return chosen


def _check_number(schedules: Sequence[ScheduleEntry], plan: SimulationPlan) -> None:
    left = MOST_RUNS
    for entry in schedules:
        if entry.enabled:
            times = times_between(entry.schedule, plan.start, plan.end)
            left -= sum(1 for _ in islice(times, left + 1))
        if left < 0:
            hint = "choose a shorter range, or name the workflows to play"
            raise UsageError(f"the schedules have more than {MOST_RUNS:,} times in this range", hint=hint)


def _check_durations(workflows: Mapping[str, CompiledWorkflow], plan: SimulationPlan) -> None:
    names = {spec.name for workflow in workflows.values() for spec in workflow.tasks}
    names |= {f"{workflow.name}.{spec.name}" for workflow in workflows.values() for spec in workflow.tasks}
    for name in plan.durations:
        if name not in names:
            close = get_close_matches(name, sorted(names), 1)
            raise UsageError(
                f"--duration {name}: there is no such task",
                hint=f"did you mean `{close[0]}`?" if close else "write TASK or WORKFLOW.TASK",
            )


async def _current_version(store: StateStore, name: str) -> Version | None:
    entry = await store.get_workflow(name)
    return None if entry is None else await store.get_version(entry.version)


def _as_run(
    workflow: CompiledWorkflow, placed: Callable[[CompiledWorkflow], CompiledWorkflow] | None
) -> CompiledWorkflow:
    """Without caches: outputs are repeated from the history, so that all work would look equal to earlier work."""
    try:
        workflow = workflow if placed is None else placed(workflow)
    except OrkError as problem:
        raise UsageError(f"workflow `{workflow.name}`: {problem.message}", hint=problem.hint) from None
    tasks = tuple(replaced(spec, cache=None) for spec in workflow.tasks)
    return replaced(workflow, tasks=tasks)
