"""Stand-ins have the shape of the tasks that they stand for, and nothing of their work."""

from __future__ import annotations

from pathlib import Path

from ork.chaos.shape import StandIns, changes, with_stand_ins
from ork.model.workflow import (
    Approval,
    Command,
    CompiledWorkflow,
    Condition,
    Const,
    Container,
    Isolation,
    Op,
    PythonCall,
    Rate,
    Ref,
    RetryOn,
    RunIf,
    Schedule,
    Secret,
    SubWorkflow,
    TaskSpec,
)

HOW = StandIns(Path("/sandbox/project"), Path("/sandbox/ledger"), 7)
OUTPUT = Ref(("tasks", "a", "output"))
FLOW = CompiledWorkflow(
    "flow",
    (
        TaskSpec("a", "python", PythonCall("a.py", None), retries=3, retry_delay=600, isolation=Isolation.SHARED),
        TaskSpec(
            "b", "process", Command((Const("rm"), Const("-rf"), Secret("PASSWORD"))), ("a",), (("x", OUTPUT),),
            (("TOKEN", Secret("TOKEN")),), timeout=1, pool="db", priority=5, run_if=RunIf.ALL_DONE,
            when=(Condition(OUTPUT, Op.EXISTS, True),), cache=60, rate=Rate(1, 60),
        ),
        TaskSpec("c", "python", PythonCall("c.py", None), foreach=OUTPUT, concurrency=2, retry_on=frozenset({RetryOn.LOST})),
        TaskSpec("d", "process", Command((Const("x"),)), parallel=4),
        TaskSpec("e", "approval", Approval("really?")),
        TaskSpec("f", "workflow", SubWorkflow("child"), inputs=(("x", OUTPUT),)),
        TaskSpec("g", "workflow", SubWorkflow("elsewhere")),
        TaskSpec("h", "container", Container((Const("x"),)), image="mine"),
    ),
    schedule=Schedule("* * * * *"),
    alerts=("people",),
    fail_fast=True,
    max_active_runs=2,
)  # fmt: skip


def made(how: StandIns = HOW) -> dict[str, TaskSpec]:
    return {task.name: task for task in with_stand_ins(FLOW, {"child": None}, how).tasks}


def test_the_shape_stays_and_waits_are_short() -> None:
    workflow, tasks = with_stand_ins(FLOW, {}, HOW), made()
    assert (workflow.fail_fast, workflow.max_active_runs) == (True, 2)
    assert (workflow.schedule, workflow.alerts) == (None, ())
    assert (tasks["a"].retries, tasks["a"].retry_delay, tasks["a"].isolation) == (3, 0.5, Isolation.SHARED)
    b = tasks["b"]
    assert (b.depends_on, b.pool, b.priority, b.run_if, b.timeout) == (("a",), "db", 5, RunIf.ALL_DONE, 120)
    assert (tasks["c"].foreach, tasks["c"].concurrency) == (Const([0, 1, 2]), 2)
    assert tasks["c"].retry_on == {RetryOn.LOST}
    assert tasks["d"].parallel == 4


def test_nothing_of_the_tasks_own_work_is_left() -> None:
    ours = {"a": "python", "b": "process", "c": "python", "d": "process", "e": "python", "g": "process", "h": "process"}
    tasks = made()
    assert {name: task.executor for name, task in tasks.items() if name != "f"} == ours
    for name, task in tasks.items():
        assert (task.inputs, task.when, task.cache, task.rate, task.image, task.worker) == (
            (),
            (),
            None,
            None,
            None,
            None,
        )
        if isinstance(task.action, Command):
            assert task.action.argv[0] == Const("/sandbox/project/recorded.py")
            assert task.env == ()
        elif name != "f":
            assert task.action == PythonCall("recorded.py", None)
            assert {variable for variable, _ in task.env} == {"CHAOS_SECONDS", "CHAOS_FAILURES", "CHAOS_LEDGER"}
    assert tasks["f"].action == SubWorkflow("child")


def test_in_containers_every_task_but_a_sub_workflow_runs_in_the_image() -> None:
    tasks = made(StandIns(HOW.project, HOW.ledger, 7, "busybox"))
    assert {task.image for name, task in tasks.items() if name != "f"} == {"busybox"}
    assert {task.executor for name, task in tasks.items() if name != "f"} == {"container"}
    assert tasks["f"].image is None


def test_the_same_seed_makes_the_same_stand_ins() -> None:
    assert made() == made()
    assert made() != made(StandIns(HOW.project, HOW.ledger, 8))


def test_what_is_left_out_is_said() -> None:
    said = " ".join(changes([FLOW], in_containers=False))
    for word in ("when", "approvals", "cache", "fan-outs", "rates", "images"):
        assert word in said
    assert changes([CompiledWorkflow("plain", FLOW.tasks[:1])], in_containers=False) == []
