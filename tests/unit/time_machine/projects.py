"""Projects for tests of the time machine, from YAML and a made-up history."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from textwrap import dedent
from typing import Any

from ork.compile.content import make_version
from ork.compile.load import load_workflow
from ork.model.workflow import CompiledWorkflow
from ork.scheduler.options import SchedulerOptions
from ork.state.records import ScheduleEntry
from ork.time_machine.history import TaskHistory
from ork.time_machine.plan import SimulationPlan
from ork.time_machine.play import play
from ork.time_machine.project import ProjectCopy, Rules
from ork.time_machine.report import Report, make_report

START = datetime(2026, 3, 2, tzinfo=UTC)  # a Monday


def workflow(text: str) -> CompiledWorkflow:
    loaded = load_workflow(dedent(text).encode(), "w.yaml", read=None)
    assert loaded.problems == ()
    return loaded.require()


def project(
    *texts: str, limits: Mapping[str, int] | None = None, history: Mapping[tuple[str, str], TaskHistory] | None = None
) -> ProjectCopy:
    """The project of these workflows; those with a schedule are played."""
    found = {each.name: each for each in map(workflow, texts)}
    versions = {name: make_version(each, "/project") for name, each in found.items()}
    schedules = [
        ScheduleEntry(name, versions[name].id, each.schedule, each.schedule.enabled, None)
        for name, each in found.items()
        if each.schedule is not None
    ]
    tasks = {(name, spec.name): spec for name, each in found.items() for spec in each.tasks}
    rules = Rules(SchedulerOptions(), {"*": 100, **(limits or {})}, {})
    return ProjectCopy(rules, schedules, versions, found, tasks, history or {})


def played(project: ProjectCopy, end: datetime, **options: Any) -> Report:
    plan = SimulationPlan(START, end, **options)
    return make_report(project, plan, play(project, plan))


def at(hour: int, minute: int = 0, second: int = 0, *, day: int = 2) -> datetime:
    return datetime(2026, 3, day, hour, minute, second, tzinfo=UTC)
