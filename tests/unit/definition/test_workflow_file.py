"""What people write, and what it comes to."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest

from ork.compile.load import load_workflow
from ork.model.workflow import (
    Budget,
    Catchup,
    Command,
    CompiledWorkflow,
    Const,
    OnExceed,
    Param,
    ParamType,
    PythonCall,
    Ref,
    RetryOn,
    RunIf,
    Schedule,
    Secret,
    TaskSpec,
)

FILES = {
    "tasks/etl.py": b"def extract(day, url): ...\ndef main(**inputs): ...\n",
    "run.sh": b"",
    "x.py": b"def main(): ...",
}


def compiled(text: str, **options: Any) -> CompiledWorkflow:
    loaded = load_workflow(dedent(text).encode(), "w.yaml", read=FILES.get, **options)
    assert loaded.problems == ()
    return loaded.require()


def task_of(body: str) -> TaskSpec:
    return compiled(f"name: w\nparams: {{p: 1}}\ntasks:\n  up: {{command: x}}\n  a: {body}\n").tasks[1]


def test_a_full_workflow_means_what_it_says() -> None:
    workflow = compiled(
        """
        name: my_etl
        description: Loads yesterday's orders
        schedule: {cron: "0  2 * * *", timezone: Europe/Prague, catchup: last, enabled: false}
        params:
          day: {type: date, default: 2026-01-01, description: which day}
        max_active_runs: 1
        fail_fast: true
        alerts: [ops]
        budget: {usd: 2.5, on_exceed: cancel}
        tasks:
          extract:
            executor: python
            file: tasks/etl.py
            function: extract
            inputs:
              day: {ref: params.day}
              url: https://example.org
            env: {TOKEN: {secret: api-token}, LEVEL: 1.10}
            retries: 2
            retry_delay: 1m30s
            retry_on: [timeout]
            timeout: 2h
            pool: api
            priority: 5
          tidy:
            command: ./run.sh "two words" --fast
            depends_on: extract
            run_if: all_done
        """
    )
    assert workflow == CompiledWorkflow(
        name="my_etl",
        description="Loads yesterday's orders",
        schedule=Schedule("0 2 * * *", "Europe/Prague", Catchup.LAST, enabled=False),
        params=(Param("day", ParamType.DATE, required=False, default="2026-01-01", description="which day"),),
        max_active_runs=1,
        fail_fast=True,
        alerts=("ops",),
        budget=Budget(2.5, OnExceed.CANCEL),
        tasks=(
            TaskSpec(
                "extract",
                "python",
                PythonCall("tasks/etl.py", None, "extract"),
                inputs=(("day", Ref(("params", "day"))), ("url", Const("https://example.org"))),
                env=(("TOKEN", Secret("api-token")), ("LEVEL", Const("1.10"))),
                retries=2,
                retry_delay=90.0,
                retry_on=frozenset({RetryOn.TIMEOUT}),
                timeout=7200.0,
                pool="api",
                priority=5,
            ),
            TaskSpec(
                "tidy",
                "process",
                Command((Const("./run.sh"), Const("two words"), Const("--fast"))),
                depends_on=("extract",),
                run_if=RunIf.ALL_DONE,
            ),
        ),
    )


@pytest.mark.parametrize(
    ("body", "executor", "action"),
    [
        ("{file: x.py}", "python", PythonCall("x.py", None)),
        ("{module: pkg.mod, function: go}", "python", PythonCall(None, "pkg.mod", "go")),
        ("{command: echo hi}", "process", Command((Const("echo"), Const("hi")))),
        ("{command: [echo, 1.10, true]}", "process", Command((Const("echo"), Const("1.10"), Const("true")))),
        ("{command: [echo, {ref: params.p}]}", "process", Command((Const("echo"), Ref(("params", "p"))))),
        ("{executor: shell, command: echo '|'}", "process", Command((Const("echo"), Const("|")))),
        ("{command: 'psql -c=\"a; b > c\"'}", "process", Command((Const("psql"), Const("-c=a; b > c")))),
        (
            "{command: 'find -exec ls \\;'}",
            "process",
            Command((Const("find"), Const("-exec"), Const("ls"), Const(";"))),
        ),
        ("{command: curl x?a=1&b=2;c=3}", "process", Command((Const("curl"), Const("x?a=1&b=2;c=3")))),
        ("{file: run.sh}", "process", Command((Const("./run.sh"),))),
        ("{executor: process, file: run.sh}", "process", Command((Const("./run.sh"),))),
    ],
)
def test_the_executor_follows_from_what_is_run(body: str, executor: str, action: object) -> None:
    task = task_of(body)
    assert (task.executor, task.action) == (executor, action)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("1", Const(1)),
        ("text", Const("text")),
        ("2026-01-01", Const("2026-01-01")),
        ("null", Const(None)),
        ("[1, {a: b}]", Const([1, {"a": "b"}])),
        ("{const: {ref: literally}}", Const({"ref": "literally"})),
        ("{ref: main, repo: x}", Const({"ref": "main", "repo": "x"})),
        ("{secret: token}", Secret("token")),
        ("{ref: params.p.deep}", Ref(("params", "p", "deep"))),
        ("{ref: run.scheduled_for}", Ref(("run", "scheduled_for"))),
        ("{ref: tasks.up.output}", Ref(("tasks", "up", "output"))),
        ('{ref: "tasks.up.output.rows[0].id"}', Ref(("tasks", "up", "output", "rows", 0, "id"))),
        ("{ref: up}", Ref(("tasks", "up", "output"))),
        ("{ref: up.files}", Ref(("tasks", "up", "output", "files"))),
        ("{ref: up.output.files}", Ref(("tasks", "up", "output", "files"))),
    ],
)
def test_an_input_is_a_constant_unless_it_is_one_of_the_three_pointers(written: str, meant: object) -> None:
    task = task_of(f"{{command: x, inputs: {{v: {written}}}}}")
    assert task.inputs == (("v", meant),)


def test_a_name_with_dots_is_found_in_a_path() -> None:
    workflow = compiled(
        """
        name: w
        tasks:
          a.output.b: {command: x}
          c: {command: x, inputs: {p: {ref: tasks.a.output.b.output.f}, q: {ref: a.output.b.g}}}
        """
    )
    task = workflow.tasks[1]
    assert task.depends_on == ("a.output.b",)
    assert dict(task.inputs) == {
        "p": Ref(("tasks", "a.output.b", "output", "f")),
        "q": Ref(("tasks", "a.output.b", "output", "g")),
    }


def test_a_ref_adds_the_dependency_it_implies_once() -> None:
    assert task_of("{command: [x, {ref: up}], env: {A: {ref: up.a}}}").depends_on == ("up",)
    assert task_of("{command: x, depends_on: [up, up], inputs: {v: {ref: up}}}").depends_on == ("up",)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("90", 90.0),
        ("1.5", 1.5),
        ("90s", 90.0),
        ("10m", 600.0),
        ("2h", 7200.0),
        ("1d", 86400.0),
        ("500ms", 0.5),
        ("1h30m", 5400.0),
    ],
)
def test_durations_are_seconds_or_numbers_with_units(written: str, seconds: float) -> None:
    assert task_of(f"{{command: x, timeout: {written}}}").timeout == seconds


def test_defaults_hold_for_tasks_that_say_nothing_wherever_they_stand_in_the_file() -> None:
    workflow = compiled(
        """
        name: w
        tasks:
          a: {command: x}
          b: {command: x, retries: 0, env: {B: own}}
          c: {file: x.py}
        defaults: {retries: 2, timeout: 10m, pool: p, executor: process, env: {A: one, B: two}}
        """
    )
    a, b, c = workflow.tasks
    assert (a.retries, a.timeout, a.pool, a.env) == (2, 600.0, "p", (("A", Const("one")), ("B", Const("two"))))
    assert (b.retries, b.env) == (0, (("A", Const("one")), ("B", Const("own"))))
    assert c.executor == "python"


@pytest.mark.parametrize(
    ("written", "cron"),
    [
        ('"@daily"', "0 0 * * *"),
        ("0 2 * * 1-5", "0 2 * * 1-5"),
        ('"*/10 * * * * *"', "*/10 * * * * *"),
        ('"@Hourly"', "0 * * * *"),
    ],
)
def test_a_schedule_may_be_an_expression_alone(written: str, cron: str) -> None:
    assert compiled(f"name: w\nschedule: {written}\ntasks: {{a: {{command: x}}}}").schedule == Schedule(cron)


def test_params_may_be_written_short() -> None:
    workflow = compiled("name: w\nparams: {a: , b: date, c: 5, d: [1]}\ntasks: {t: {command: x}}")
    assert workflow.params == (
        Param("a"),
        Param("b", ParamType.DATE),
        Param("c", required=False, default=5),
        Param("d", required=False, default=[1]),
    )


def test_a_param_may_default_to_nothing() -> None:
    workflow = compiled("name: w\nparams: {a: {type: int, default: null}}\ntasks: {t: {command: x}}")
    assert workflow.params == (Param("a", ParamType.INT, required=False, default=None),)


def test_keys_without_a_value_are_as_good_as_left_out() -> None:
    assert task_of("{command: x, file: , executor: , depends_on: , inputs: , timeout: }") == task_of("{command: x}")


def test_json_is_a_way_to_write_a_workflow() -> None:
    assert compiled('{"name": "w", "tasks": {"a": {"command": ["x"]}}}').tasks[0].action == Command((Const("x"),))


def test_other_executors_may_be_known() -> None:
    workflow = compiled(
        "name: w\ntasks: {a: {executor: moon, command: x}, b: {executor: moon, module: m}}",
        known_executors={"process", "python", "moon"},
    )
    assert [(task.executor, type(task.action)) for task in workflow.tasks] == [("moon", Command), ("moon", PythonCall)]
