"""ork.yaml is as strict as a workflow, and may be left out or empty."""

from __future__ import annotations

import pytest

from ork.definition.project_file import Durability, Project, load_project


def test_every_key_arrives() -> None:
    project, problems = load_project(
        b"""
script_dir: scripts
env_file: .secrets
pools: {api: 4, db: {slots: 2}}
max_workers: 8
executors: {process: {max_workers: 3}}
durability: full
store: sqlite:///x.db
objects: file:///x
alerts: {ops: {webhook: "https://example.org"}}
"""
    )
    assert problems == ()
    assert project == Project(
        script_dir="scripts",
        env_file=".secrets",
        pools={"api": 4, "db": 2},
        max_workers=8,
        executor_limits={"process": 3},
        durability=Durability.FULL,
        store="sqlite:///x.db",
        objects="file:///x",
        alerts={"ops": {"webhook": "https://example.org"}},
    )


@pytest.mark.parametrize("data", [b"", b"\n", b"# nothing yet\n", b"---\n"])
def test_an_empty_file_sets_nothing(data: bytes) -> None:
    project, _ = load_project(data)
    assert project == Project(alerts={})


@pytest.mark.parametrize(
    ("data", "code", "line", "column"),
    [
        (b"script-dir: x\n", "ORK101", 1, 1),
        (b"pools: {api: 0}\n", "ORK104", 1, 14),
        (b"pools: {api: {slot: 1}}\n", "ORK101", 1, 15),
        (b"pools: {api: {rate: 5/min}}\n", "ORK102", 1, 14),
        (b"durability: maximal\n", "ORK104", 1, 13),
        (b"- a\n", "ORK103", 1, 1),
        (b"max_workers: many\n", "ORK103", 1, 14),
        (b"alerts: {ops: [a]}\n", "ORK103", 1, 15),
    ],
)
def test_a_mistake_has_its_code_and_its_place(data: bytes, code: str, line: int, column: int) -> None:
    _, problems = load_project(data)
    assert (problems[0].code, problems[0].line, problems[0].column, problems[0].file) == (
        code,
        line,
        column,
        "ork.yaml",
    )


def test_a_comment_alone_is_no_mistake() -> None:
    assert load_project(b"# nothing yet\n") == (Project(alerts={}), ())


@pytest.mark.parametrize("gcp", ["{project: a/b, region: europe-west1}", "{project: my-project, region: no where}"])
def test_a_project_or_region_that_cannot_be_one_is_refused(gcp: str) -> None:
    _, problems = load_project(f"gcp: {gcp}".encode(), "ork.yaml")
    assert [problem.code for problem in problems] == ["ORK105"]
