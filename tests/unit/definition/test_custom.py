"""Executors of a project's own in ork.yaml, and the tasks that use them."""

from __future__ import annotations

import pytest

from ork.compile.content import from_document, to_document
from ork.compile.load import load_workflow
from ork.definition.custom import CustomExecutor
from ork.definition.project import Project
from ork.definition.project_file import load_project
from ork.model.workflow import Custom

PROJECT = Project(executors={"spark": CustomExecutor("jobs.spark:Spark", {"const": {"master": "local"}})})


def problems(tasks: str, **files: bytes) -> list[tuple[str, str]]:
    text = f"name: w\ntasks:\n{tasks}"
    loaded = load_workflow(text.encode(), "w.yaml", read=files.get, project=PROJECT)
    return [(problem.code, problem.message) for problem in loaded.problems]


def action(tasks: str, **files: bytes) -> Custom:
    text = f"name: w\nparams: {{day: date}}\ntasks:\n{tasks}"
    workflow = load_workflow(text.encode(), "w.yaml", read=files.get, project=PROJECT).require()
    assert from_document(to_document(workflow)) == workflow
    found = workflow.tasks[-1].action
    assert isinstance(found, Custom)
    return found


def test_a_task_carries_the_class_its_config_and_its_own() -> None:
    found = action("  a: {executor: spark, config: {job: x, day: {ref: params.day}, key: {secret: KEY}}}")
    assert (found.target, found.config) == ("jobs.spark:Spark", {"const": {"master": "local"}})
    assert found.task == {"map": {"job": {"const": "x"}, "day": {"ref": ["params", "day"]}, "key": {"secret": "KEY"}}}


def test_a_ref_in_a_config_is_a_dependency() -> None:
    text = b"name: w\ntasks:\n  b: {executor: spark, config: {x: [{ref: a.rows}]}}\n  a: {executor: spark}"
    workflow = load_workflow(text, "w.yaml", read={}.get, project=PROJECT).require()
    assert workflow.tasks[0].depends_on == ("a",)


def test_a_config_file_is_part_of_the_task_and_config_is_laid_over_it() -> None:
    files = {"job.yaml": b"job: from file\ntimes: 3", "job.json": b'{"job": "json"}'}
    found = action("  a: {executor: spark, config_file: job.yaml, config: {job: own}}", **files)
    assert found.task == {"const": {"job": "own", "times": 3}}
    assert action("  a: {executor: spark, config_file: ./job.json}", **files).task == {"const": {"job": "json"}}


def test_what_looks_like_a_pointer_can_be_meant_literally() -> None:
    assert action("  a: {executor: spark, config: {x: {const: {ref: y}}}}").task == {"const": {"x": {"ref": "y"}}}


def test_a_default_executor_gives_way_to_what_the_task_says() -> None:
    text = b"name: w\ndefaults: {executor: spark}\ntasks:\n  a: {config: {x: 1}}\n  b: {command: echo}"
    workflow = load_workflow(text, "w.yaml", read={}.get, project=PROJECT).require()
    assert [task.executor for task in workflow.tasks] == ["spark", "process"]


@pytest.mark.parametrize(
    ("task", "code", "message"),
    [
        ("{executor: sprk, config: {}}", "ORK601", "there is no executor `sprk`"),
        ("{executor: spark, command: echo}", "ORK603", "`command` cannot be used with the executor `spark`"),
        ("{command: echo, config: {}}", "ORK603", "`config` cannot be used with a task without a custom executor"),
        ("{executor: process, command: echo, config_file: x}", "ORK603", "`config_file` cannot be used"),
        ("{executor: spark, config: [1]}", "ORK103", "expected a map of keys"),
        ("{executor: spark, config: {ref: params.x}}", "ORK103", "expected a map of keys"),
        ("{executor: spark, config: {x: {ref: nowhere.rows}}}", "ORK205", "points at `nowhere`"),
        ("{executor: spark, config: {x: {ref: params.y}}}", "ORK206", "no param `y`"),
        ("{executor: spark, config: {x: .inf}}", "ORK113", "not a number JSON can carry"),
        ("{executor: spark, config_file: nowhere.yaml}", "ORK501", "there is no file `nowhere.yaml`"),
        ("{executor: spark, config_file: list.yaml}", "ORK103", "expected a map of keys"),
        ("{executor: spark, config_file: ref.yaml}", "ORK603", "a config file cannot contain a `ref`"),
        ("{executor: spark, config_file: broken.yaml}", "ORK107", ""),
        ("{executor: sql, config: {querry: SELECT 1}}", "ORK101", "`querry` is not a key of the executor `sql`"),
        ("{executor: http, config: {url: x, heders: {}}}", "ORK101", "`heders` is not a key of the executor `http`"),
        ("{executor: sql, config: {query: {ref: run.id}}}", "ORK603", "`query` of a query cannot be a ref"),
    ],
)
def test_an_invalid_task_is_one_problem(task: str, code: str, message: str) -> None:
    files = {"list.yaml": b"- 1", "ref.yaml": b"a: {ref: run.id}", "broken.yaml": b"a: 'x"}
    found = problems(f"  a: {task}", **files)
    assert [each for each, _ in found] == [code]
    assert message in found[0][1]


def test_ork_yaml_names_classes_configs_and_limits() -> None:
    project, found = load_project(
        b"executors:\n"
        b"  process: {max_workers: 3}\n"
        b'  spark: {class: "jobs.spark:Spark", config: {key: {secret: KEY}}, max_workers: 2}\n'
        b"  warehouse: {class: sql, config: {url: x}}\n"
        b"  http: {config: {base_url: x}}\n"
    )
    assert found == ()
    assert project.executor_limits == {"process": 3, "spark": 2}
    assert project.executors == {
        "spark": CustomExecutor("jobs.spark:Spark", {"map": {"key": {"secret": "KEY"}}}),
        "warehouse": CustomExecutor("ork.sdk.sql:SqlExecutor", {"const": {"url": "x"}}),
        "http": CustomExecutor("ork.sdk.http:HttpExecutor", {"const": {"base_url": "x"}}),
    }


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("python: {class: a:B}", "`python` is a built-in executor"),
        ("own: {config: {}}", "has `config` and no `class`"),
        ("own: {}", "executor `own` has no settings"),
        ("own: {class: a.b.C}", "`a.b.C` cannot be a class"),
        ("own: {class: a:B, config: {x: {ref: run.id}}}", "a ref is not allowed here"),
    ],
)
def test_an_invalid_executor_is_reported_with_its_position(entry: str, message: str) -> None:
    _, found = load_project(f"executors:\n  {entry}\n".encode())
    assert [(each.code, each.line) for each in found] == [("ORK604", 2)]
    assert message in found[0].message
