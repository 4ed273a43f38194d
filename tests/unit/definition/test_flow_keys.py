"""Fan-out, conditions, rates, approvals and sub-workflows: what people write, and what it comes to."""

from __future__ import annotations

import pytest

from ork.compile.content import from_document, to_document
from ork.compile.load import load_workflow
from ork.definition.problems import Problem
from ork.definition.project_file import load_project
from ork.model.workflow import Approval, CompiledWorkflow, Condition, Const, Op, Rate, Ref, SubWorkflow, TaskSpec

FILES = {"one.py": b"def main(item): ...\ndef two(item, up): ...\n"}


def load(tasks: str, head: str = "") -> tuple[CompiledWorkflow | None, tuple[Problem, ...]]:
    text = f"name: w\nparams: {{n: 3}}\n{head}\ntasks:\n  up: {{command: x}}\n{tasks}\n"
    loaded = load_workflow(text.encode(), "w.yaml", read=FILES.get)
    return loaded.workflow, loaded.problems


def task_of(body: str, head: str = "") -> TaskSpec:
    workflow, problems = load(f"  a: {body}", head)
    assert problems == ()
    assert workflow is not None
    assert from_document(to_document(workflow)) == workflow
    return workflow.tasks[1]


def codes(body: str) -> list[str]:
    return [problem.code for problem in load(f"  a: {body}")[1]]


UP = ("tasks", "up", "output")


@pytest.mark.parametrize(
    ("written", "parallel", "foreach", "depends_on"),
    [
        ("parallel: 4", 4, None, ()),
        ("parallel: up.count", Ref((*UP, "count")), None, ("up",)),
        ("parallel: {ref: params.n}", Ref(("params", "n")), None, ()),
        ("foreach: tasks.up.output.files", None, Ref((*UP, "files")), ("up",)),
        ("foreach: up.files", None, Ref((*UP, "files")), ("up",)),
        ("foreach: up", None, Ref(UP), ("up",)),
        ('foreach: {ref: "up.rows[0]"}', None, Ref((*UP, "rows", 0)), ("up",)),
        ("foreach: [a, 1, {x: null}]", None, Const(["a", 1, {"x": None}]), ()),
        ("foreach: []", None, Const([]), ()),
        ("foreach: {const: [{ref: x}]}", None, Const([{"ref": "x"}]), ()),
        ("foreach: up, parallel: 2", 2, Ref(UP), ("up",)),
    ],
)
def test_a_fan_out_is_a_number_a_list_or_a_path_and_a_path_is_a_dependency(
    written: str, parallel: object, foreach: object, depends_on: tuple[str, ...]
) -> None:
    spec = task_of(f"{{command: x, {written}}}")
    assert (spec.parallel, spec.foreach, spec.depends_on) == (parallel, foreach, depends_on)


def test_concurrency_belongs_to_a_fan_out() -> None:
    assert task_of("{command: x, foreach: [1], concurrency: 8}").concurrency == 8
    assert codes("{command: x, concurrency: 8}") == ["ORK120"]
    assert codes("{command: x, foreach: nobody, concurrency: 8}") == ["ORK205"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("{command: x, parallel: 0}", "ORK104"),
        ("{command: x, parallel: 100001}", "ORK104"),
        ("{command: x, parallel: -1}", "ORK104"),
        ('{command: x, parallel: "3"}', "ORK103"),
        ("{command: x, parallel: 1.5}", "ORK103"),
        ("{command: x, parallel: [1]}", "ORK103"),
        ("{command: x, parallel: {secret: n}}", "ORK103"),
        ("{command: x, parallel: true}", "ORK103"),
        ("{command: x, foreach: 7}", "ORK103"),
        ("{command: x, foreach: {a: 1}}", "ORK103"),
        ("{command: x, foreach: {secret: s}}", "ORK103"),
        ("{command: x, foreach: [{ref: up.x}]}", "ORK204"),
        ("{command: x, foreach: upp.files}", "ORK205"),
        ("{command: x, foreach: a.files}", "ORK202"),
        ("{command: x, foreach: params.m}", "ORK206"),
        ("{command: x, foreach: item}", "ORK209"),
        ("{command: [x, {ref: item}]}", "ORK209"),
        ("{command: x, parallel: 3, env: {X: {ref: item.x}}}", "ORK209"),
        ("{command: x, foreach: [1], when: {ref: item, gt: 0}}", "ORK209"),
        ("{command: x, when: {ref: up.n}}", "ORK119"),
        ("{command: x, when: {gt: 3}}", "ORK119"),
        ("{command: x, when: []}", "ORK119"),
        ("{command: x, when: up.n}", "ORK103"),
        ("{command: x, when: {ref: up.n, gt: true}}", "ORK103"),
        ("{command: x, when: {ref: up.n, gt: [1]}}", "ORK103"),
        ("{command: x, when: {ref: up.n, in: 5}}", "ORK103"),
        ("{command: x, when: {ref: up.n, exists: 1}}", "ORK103"),
        ("{command: x, when: {ref: up.n, equals: {ref: params.n}}}", "ORK119"),
        ("{command: x, when: {ref: up.n, equal: 5, gt: 3}}", "ORK101"),
        ("{command: x, when: {ref: nobody.n, gt: 3}}", "ORK205"),
        ("{command: x, when: {ref: tasks.up, gt: 3}}", "ORK204"),
        ("{command: x, rate: ten}", "ORK118"),
        ("{command: x, rate: 10}", "ORK118"),
        ("{command: x, rate: 0/s}", "ORK118"),
        ("{command: x, rate: 10/fortnight}", "ORK118"),
        ("{command: x, rate: 10/0s}", "ORK118"),
        ("{command: x, rate: {count: 3}}", "ORK118"),
        ("{command: x, rate: [1]}", "ORK118"),
        ("{command: x, rate: {count: 0, seconds: 1}}", "ORK104"),
        ("{command: x, cache: forever}", "ORK114"),
        ("{command: x, cache: 0}", "ORK114"),
        ("{approval: go?, command: x}", "ORK115"),
        ("{approval: go?, workflow: w}", "ORK115"),
        ("{approval: go?, retries: 2}", "ORK115"),
        ("{approval: go?, foreach: [1]}", "ORK115"),
        ("{approval: {message: go?, timeout: 1h}, timeout: 2h}", "ORK115"),
        ("{approval: ''}", "ORK102"),
        ("{approval: {timeout: 1h}}", "ORK102"),
        ("{approval: {message: go?, by: me}}", "ORK101"),
        ("{approval: [go]}", "ORK103"),
        ("{workflow: child, env: {A: 1}}", "ORK115"),
        ("{workflow: child, executor: python}", "ORK115"),
        ("{workflow: child, file: one.py}", "ORK115"),
        ("{workflow: 'no name'}", "ORK105"),
    ],
)
def test_a_mistake_has_its_code_and_is_told_once(body: str, code: str) -> None:
    assert codes(body) == [code]


def test_the_place_of_a_wrong_condition_is_that_of_its_path() -> None:
    _, problems = load(
        "  a:\n    command: x\n    when:\n      - {ref: up.n, gt: 1, lt: 5}\n      - {ref: upp.n, gt: 1}"
    )
    assert [(problem.code, problem.line, problem.column) for problem in problems] == [("ORK205", 10, 15)]


def test_conditions_are_comparisons_of_values_with_constants_and_imply_dependencies() -> None:
    spec = task_of("{command: x, when: [{ref: up.n, gt: 0, le: 2.5}, {ref: params.n, in: [1, a]}]}")
    assert spec.depends_on == ("up",)
    assert spec.when == (
        Condition(Ref((*UP, "n")), Op.GT, 0),
        Condition(Ref((*UP, "n")), Op.LE, 2.5),
        Condition(Ref(("params", "n")), Op.IN, [1, "a"]),
    )
    assert task_of("{command: x, when: {ref: up, equals: null}}").when == (Condition(Ref(UP), Op.EQUALS, None),)
    assert task_of("{command: x, when: {ref: up, exists: false}}").when == (Condition(Ref(UP), Op.EXISTS, False),)


@pytest.mark.parametrize(
    ("written", "rate"),
    [
        ("10/s", Rate(10, 1)),
        ("100/m", Rate(100, 60)),
        ("1000 / h", Rate(1000, 3600)),
        ("5/30s", Rate(5, 30)),
        ("1/500ms", Rate(1, 0.5)),
        ("{count: 5, seconds: 30}", Rate(5, 30)),
        ("{count: 5, seconds: 1m}", Rate(5, 60)),
    ],
)
def test_a_rate_is_a_number_per_time(written: str, rate: Rate) -> None:
    assert task_of(f"{{command: x, rate: {written}}}").rate == rate


def test_a_rate_as_it_is_shown_can_be_written() -> None:
    assert task_of(f"{{command: x, rate: {Rate(10, 60)}}}").rate == Rate(10, 60)


def test_a_cache_has_a_length() -> None:
    assert task_of("{command: x, cache: 24h}").cache == 86_400


def test_an_approval_asks_and_may_have_a_time_to_answer() -> None:
    spec = task_of("{approval: {message: Go on?, timeout: 1h}, depends_on: [up], when: {ref: up.n, gt: 3}}")
    assert (spec.executor, spec.action, spec.timeout) == ("approval", Approval("Go on?"), 3600)
    assert task_of("{approval: Go on?}").action == Approval("Go on?")
    assert task_of("{approval: Go on?, timeout: 5m}").timeout == 300


def test_the_default_timeout_does_not_apply_to_approvals() -> None:
    spec = task_of("{approval: Go on?}", "defaults: {timeout: 10, retries: 3, pool: api, env: {A: b}}")
    assert spec == TaskSpec("a", "approval", Approval("Go on?"))


def test_a_sub_workflow_takes_inputs_and_the_usual_options() -> None:
    spec = task_of("{workflow: child, inputs: {day: {ref: params.n}}, retries: 2, foreach: up.days}")
    assert (spec.executor, spec.action, spec.retries) == ("workflow", SubWorkflow("child"), 2)
    assert spec.inputs == (("day", Ref(("params", "n"))),)


def test_a_foreach_function_may_ask_for_the_item_and_another_one_may_not() -> None:
    assert task_of("{file: one.py, foreach: [1, 2]}").foreach == Const([1, 2])
    assert task_of("{file: one.py, function: two, foreach: up}").depends_on == ("up",)
    assert codes("{file: one.py}") == ["ORK504"]
    assert codes("{file: one.py, parallel: 3}") == ["ORK504"]


def test_item_is_a_path_with_fields_and_indexes() -> None:
    spec = task_of('{command: [x, {ref: "item.a[0]"}], foreach: [1], inputs: {whole: {ref: item}}}')
    assert spec.inputs == (("whole", Ref(("item",))),)
    assert Ref(("item", "a", 0)) in spec.action.argv  # type: ignore[union-attr]


def test_a_circle_through_a_fan_out_is_found() -> None:
    _, problems = load("  a: {command: x, foreach: b.list}\n  b: {command: x, when: {ref: a.n, gt: 0}}")
    assert [problem.code for problem in problems] == ["ORK203"]


def test_pools_have_slots_and_perhaps_a_rate() -> None:
    project, problems = load_project(b"pools: {api: {slots: 4, rate: 10/s}, db: 2}")
    assert problems == ()
    assert project.pools == {"api": 4, "db": 2}
    assert project.pool_rates == {"api": Rate(10, 1)}
    _, problems = load_project(b"pools: {api: {rate: 10/s}, db: {slots: 1, rate: soon}}")
    assert [problem.code for problem in problems] == ["ORK102", "ORK118"]


@pytest.mark.parametrize(
    ("body", "meant"),
    [
        ('{command: [echo, "{{ params.n }}"]}', "{ref: params.n}"),
        ('{command: [echo, "--day={{ ds }}"]}', "{ref: params.ds}"),
        ('{command: x, inputs: {day: "{{ up.output }}"}}', "{ref: tasks.up.output}"),
        ('{command: x, inputs: {days: ["{{ params.n }}"]}}', "{ref: params.n}"),
        ('{command: x, env: {KEY: "${{ secrets.KEY }}"}}', "{ref: secrets.KEY}"),
        ("{command: x, env: {DAY: {{ params.n }}}}", "{ref: params.n}"),
        ("{command: x, inputs: {day: {{ params.n }}}}", "{ref: params.n}"),
    ],
)
def test_a_template_of_another_tool_is_refused_and_the_ref_is_named(body: str, meant: str) -> None:
    (problem,) = load(f"  a: {body}")[1]
    assert problem.code == "ORK210"
    assert meant in str(problem.hint)


@pytest.mark.parametrize(
    "body",
    [
        '{command: [docker, ps, --format, "{{.Names}}"]}',
        '{command: [echo, {const: "{{ params.n }}"}]}',
        '{command: x, inputs: {template: {const: "{{ name }}"}}}',
    ],
)
def test_braces_that_are_meant_as_text_stay_text(body: str) -> None:
    assert codes(body) == []
