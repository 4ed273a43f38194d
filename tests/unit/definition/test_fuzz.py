"""Whatever stands in a file, reading it gives a workflow or problems; it never raises."""

from __future__ import annotations

import json

from hypothesis import example, given
from hypothesis import strategies as st

from ork.compile.content import from_document, to_document
from ork.compile.load import load_workflow
from ork.definition.problems import render_concise, render_full, render_github, to_json
from ork.definition.project_file import load_project

VALID = b"""\
name: my_etl
schedule: {cron: "0 2 * * *", timezone: Europe/Prague, catchup: last}
params:
  day: {type: date, default: 2026-01-01}
defaults: {retries: 2, timeout: 600}
alerts: [ops]
tasks:
  extract:
    file: tasks/etl.py
    inputs: {day: {ref: params.day}, n: 0x1F, s: {secret: key}}
  load:
    command: ["load", {ref: "tasks.extract.output.rows[0]"}]
    depends_on: [extract]
    run_if: all_done
    retry_on: [exit, timeout]
"""
PYTHON = b"def main(day, n=1, **rest):\n    return n\n"


def judge(data: bytes, python: bytes = PYTHON) -> None:
    loaded = load_workflow(data, "w.yaml", read=lambda path: python if path.endswith(".py") else None)
    assert (loaded.workflow is None) == bool(loaded.problems)
    for problem in loaded.problems:
        assert render_full(problem)
        assert render_concise(problem)
        assert render_github(problem)
        assert json.dumps(to_json(problem))
    if loaded.workflow is not None:
        assert all(task.executor for task in loaded.workflow.tasks)
        assert from_document(to_document(loaded.workflow)) == loaded.workflow


def test_the_seed_of_the_mutations_is_valid() -> None:
    assert load_workflow(VALID, "w.yaml", read=lambda path: PYTHON).problems == ()


@given(st.binary(max_size=400))
@example(b"? \n: \n")
@example(b"!!binary x: y")
@example(b"\xef\xbb\xbf")
@example(b"a: |\n  x\x85y")
def test_arbitrary_bytes_never_raise(data: bytes) -> None:
    judge(data)
    load_project(data)


@given(st.text(alphabet="abt:-?[]{}&*!|>'\"%@`#,. \n\t~<0x9", max_size=120))
def test_arbitrary_yaml_punctuation_never_raises(text: str) -> None:
    judge(text.encode())
    judge(b"name: w\ntasks:\n  a:\n    command: x\n    inputs: " + text.encode())


@given(st.data())
def test_mutated_workflows_never_raise(data: st.DataObject) -> None:
    text = VALID
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 12)))
        text = text[:start] + data.draw(st.binary(max_size=6) | st.sampled_from(TOKENS)) + text[end:]
    judge(text)


TOKENS = [
    b"~",
    b"{}",
    b"[]",
    b"- ",
    b": ",
    b"\n",
    b"  ",
    b"1",
    b"-1",
    b"1e999",
    b".nan",
    b"&a ",
    b"*a",
    b"!!int ",
    b"<<",
    b"'",
    b'"',
]


@given(st.binary(max_size=200))
@example(b"(" * 5000)
@example(b"\0")
@example(b"# coding: nonsense\n")
def test_arbitrary_python_files_never_raise(python: bytes) -> None:
    judge(VALID, python)
