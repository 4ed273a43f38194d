"""A dbt project's nodes become tasks with dbt's own dependencies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ork.compile.dbt import DbtNode, ImportFailedError, nodes_of_manifest
from ork.compile.load import Loaded, load_workflow
from ork.definition.workflow_file import ParsedImport
from ork.model.workflow import Command, Const, Environment, TaskSpec


def node(kind: str, name: str, *depends_on: str, package: str = "shop", is_built: bool = True) -> DbtNode:
    return DbtNode(f"{kind}.{package}.{name}", kind, name, package, (package, name), depends_on, is_built)


SHOP = (
    node("seed", "raw"),
    node("model", "stg", "seed.shop.raw"),
    node("model", "hidden", "model.shop.stg", is_built=False),
    node("model", "mart", "model.shop.hidden", "source.shop.web"),
    node("test", "unique_stg", "model.shop.stg"),
    node("test", "stg_and_mart", "model.shop.stg", "model.shop.mart"),
    node("analysis", "look", "model.shop.mart"),
)


def load(
    entry: str = "dbt: shop",
    nodes: Sequence[DbtNode] = SHOP,
    rest: str = "",
    files: frozenset[str] = frozenset(),
) -> Loaded:
    text = f"name: w\nimport: [{{{entry}}}]\n{rest}"
    return load_workflow(
        text.encode(), "w.yaml", read=lambda _: None, exists=files.__contains__, imports=lambda _: nodes
    )


def tasks(*args: Any, **options: Any) -> dict[str, TaskSpec]:
    return {task.name: task for task in load(*args, **options).require().tasks}


def words(task: TaskSpec) -> list[str]:
    assert isinstance(task.action, Command)
    return [word.value for word in task.action.argv if isinstance(word, Const)]


def test_what_dbt_builds_becomes_a_task_with_its_dependencies() -> None:
    assert {name: task.depends_on for name, task in tasks().items()} == {
        "raw": (),
        "stg": ("raw",),
        "mart": ("stg",),  # through what is not built by itself
        "stg_and_mart": ("stg", "mart"),
    }


def test_a_node_runs_with_its_own_tests_and_others_are_tasks() -> None:
    found = tasks()
    assert words(found["stg"])[4:9] == ["build", "--select", "fqn:shop.stg", "--indirect-selection", "cautious"]
    assert [words(found[name])[4] for name in ("raw", "mart", "stg_and_mart")] == ["seed", "run", "test"]


def test_profile_target_and_project_reach_dbt() -> None:
    found = words(tasks("dbt: shop, target: prod, profiles_dir: conf")["mart"])
    assert found[found.index("--project-dir") + 1] == "shop"
    assert found[found.index("--profiles-dir") + 1] == "conf"
    assert found[found.index("--target") + 1] == "prod"


def test_profiles_in_the_project_are_found() -> None:
    found = words(tasks(files=frozenset({"shop/profiles.yml"}))["mart"])
    assert found[found.index("--profiles-dir") + 1] == "shop"
    assert "--profiles-dir" not in words(tasks()["mart"])


def test_the_import_has_its_own_options_and_those_of_defaults() -> None:
    rest = "defaults: {retries: 2, timeout: 10}\n"
    task = tasks("dbt: shop, timeout: 5m, pool: duckdb, env: {DAY: today}", rest=rest)["mart"]
    assert (task.retries, task.timeout, task.pool) == (2, 300.0, "duckdb")
    assert dict(task.env)["DAY"] == Const("today")


def test_dbt_writes_and_sends_nothing_for_each_model_unless_it_is_asked_to() -> None:
    names = ("DBT_SEND_ANONYMOUS_USAGE_STATS", "DBT_WRITE_JSON")
    assert [dict(tasks()["mart"].env)[name] for name in names] == [Const("False")] * 2
    asked = dict(tasks("dbt: shop, env: {DBT_WRITE_JSON: 'True'}")["mart"].env)
    assert [asked[name] for name in names] == [Const("False"), Const("True")]


def test_dbt_of_the_projects_environment_is_used_where_nothing_else_is_said() -> None:
    files = frozenset({".venv/bin/dbt", ".venv/bin/python", "other/bin/python"})
    assert tasks(files=files)["raw"].environment == Environment(path=".venv")
    assert tasks("dbt: shop, environment: other", files=files)["raw"].environment == Environment(path="other")
    assert tasks()["raw"].environment is None


def test_tasks_of_the_file_depend_on_imported_ones_by_name() -> None:
    rest = "tasks: {report: {command: x, depends_on: [d_mart]}}\n"
    found = tasks("dbt: shop, prefix: d_", rest=rest)
    assert found["report"].depends_on == ("d_mart",)
    assert found["d_mart"].depends_on == ("d_stg",)


def test_equal_names_of_two_packages_are_told_apart() -> None:
    nodes = (node("model", "a"), node("model", "a", "model.shop.a", package="other"))
    assert {name: task.depends_on for name, task in tasks(nodes=nodes).items()} == {"a": (), "other.a": ("a",)}


def test_invalid_names_are_shortened_and_stay_unique() -> None:
    nodes = [node("model", "x" * 200 + end) for end in ("1", "2")] + [node("model", "a b")]
    names = list(tasks(nodes=nodes))
    assert len(set(names)) == 3
    assert "a_b" in names
    assert max(map(len, names)) <= 128


def test_a_name_that_the_file_has_too_is_refused_with_a_hint() -> None:
    (problem,) = load(rest="tasks: {mart: {command: x}}\n").problems
    assert (problem.code, problem.line) == ("ORK508", 2)
    assert "prefix" in str(problem.hint)


def test_a_project_that_cannot_be_read_is_the_only_problem() -> None:
    def fail(_: ParsedImport) -> Sequence[DbtNode]:
        raise ImportFailedError("no such project", "look elsewhere")

    text = b"name: w\nimport: [{dbt: shop}]\ntasks: {a: {command: x, depends_on: [mart]}}\n"
    loaded = load_workflow(text, "w.yaml", read=lambda _: None, imports=fail)
    assert [(problem.code, problem.line, problem.hint) for problem in loaded.problems] == [
        ("ORK508", 2, "look elsewhere")
    ]


def test_an_import_without_a_reader_is_rejected() -> None:
    loaded = load_workflow(b"name: w\nimport: [{dbt: shop}]\n", "w.yaml", read=lambda _: None)
    assert [problem.code for problem in loaded.problems] == ["ORK508"]


@pytest.mark.parametrize(
    ("entry", "code"),
    [("select: x", "ORK102"), ("dbt: shop, selct: x", "ORK101"), ("dbt: shop, prefix: 'a b'", "ORK105")],
)
def test_a_mistake_in_an_import_has_its_code(entry: str, code: str) -> None:
    assert [problem.code for problem in load(entry).problems] == [code]


def test_a_manifest_is_read_whatever_else_it_holds() -> None:
    common = {"package_name": "shop", "config": {}, "extra": 1}
    manifest = {
        "nodes": {
            "model.shop.b": {
                **common,
                "unique_id": "model.shop.b",
                "resource_type": "model",
                "name": "b",
                "fqn": ["shop", "b", "v2"],
                "version": 2,
                "depends_on": {"nodes": ["model.shop.a"], "macros": []},
            },
            "model.shop.a": {
                **common,
                "unique_id": "model.shop.a",
                "resource_type": "model",
                "name": "a",
                "fqn": ["shop", "a"],
                "config": {"materialized": "ephemeral"},
                "depends_on": {"nodes": []},
            },
        }
    }
    first, second = nodes_of_manifest(manifest)
    assert (first.name, first.is_built) == ("a", False)
    assert (second.name, second.is_built, second.depends_on) == ("b.v2", True, ("model.shop.a",))
    assert [each.is_built for each in nodes_of_manifest(manifest, {"model.shop.a"})] == [False, False]


@pytest.mark.parametrize("manifest", [{}, {"nodes": []}, {"nodes": {"a": {}}}, {"nodes": {"a": {"fqn": 3}}}])
def test_an_invalid_manifest_is_an_import_error(manifest: dict[str, Any]) -> None:
    with pytest.raises(ImportFailedError):
        nodes_of_manifest(manifest)
