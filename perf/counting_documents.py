"""What a scheduler does for the two documents of an attempt that it is at one end of."""

from __future__ import annotations

from tests.unit.scheduler.bench_top import HandExecutor

from ork.bench.drive.runs import utc_now
from ork.compile.content import make_version
from ork.core.events import Created
from ork.core.machine import RunMachine
from ork.model.ids import RunId
from ork.model.run import Run, RunStatus, Trigger
from ork.model.workflow import CompiledWorkflow, PythonCall, TaskSpec
from ork.objects.documents import sign
from ork.scheduler import statuses
from ork.scheduler.launch import Launcher
from ork.scheduler.options import SchedulerOptions
from ork.scheduler.specs import LaunchJob
from ork.testing.objects import MemoryObjects
from perf.calls import counted_calls

AT = "2026-11-16T02:10:21.491464Z"
SUCCESS = {"seq": 1, "state": "success", "at": AT, "started_at": AT, "finished_at": AT}
ALL_IS_WELL = {"exit_code": 0, "failure": None, "output": {"inline": "1"}, "metrics": None}


def calls_for_documents() -> tuple[int, int]:
    """To put together the spec of a plain call after one like it, and to read the last word of an attempt."""
    now, executor = utc_now(), HandExecutor()
    tasks = tuple(TaskSpec(name, "process", PythonCall("light.py", None)) for name in ("a", "b"))
    version = make_version(CompiledWorkflow("flow", tasks), "/")
    run = Run(RunId("r"), "flow", version.id, RunStatus.PENDING, Trigger.MANUAL, {}, now)
    machine = RunMachine(version.workflow, run)
    machine.handle(Created(), now)
    launcher = Launcher(MemoryObjects(), {"process": executor}, SchedulerOptions(), lambda *_: None)
    first, second = (LaunchJob(request.attempt, machine, version) for request in machine.offer(2, launcher.name, now))
    launcher._prepare(first)
    with counted_calls() as told:
        launcher._prepare(second)
    status = {"v": 1, "attempt": str(second.attempt.key), **SUCCESS, **ALL_IS_WELL}
    data = sign(status, second.attempt.token_hash)
    statuses.expect_many()
    statuses.checked_status(data, second.attempt)
    with counted_calls() as heard:
        statuses.checked_status(data, second.attempt)
    return told.number, heard.number
