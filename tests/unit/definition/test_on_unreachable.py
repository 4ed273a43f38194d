from __future__ import annotations

import pytest
from tests.unit.definition.test_isolation import load

from ork.compile.content import content_hash, from_document, to_document
from ork.model.workflow import OnUnreachable


def ways(text: str) -> list[OnUnreachable]:
    return [task.on_unreachable for task in load(text).require().tasks]


def test_a_task_says_itself_or_leaves_it_to_the_defaults() -> None:
    tasks = "tasks:\n  a: {command: x, on_unreachable: wait}\n  b: {command: x}\n"
    assert ways("name: f\n" + tasks) == [OnUnreachable.WAIT, OnUnreachable.RETRY]
    assert ways("name: f\ndefaults: {on_unreachable: fail}\n" + tasks) == [OnUnreachable.WAIT, OnUnreachable.FAIL]


def test_the_version_of_workflows_without_the_key_is_unchanged() -> None:
    plain = load("name: f\ntasks: {a: {command: x}}\n").require()
    said = load("name: f\ntasks: {a: {command: x, on_unreachable: retry}}\n").require()
    waits = load("name: f\ntasks: {a: {command: x, on_unreachable: wait}}\n").require()
    assert content_hash(plain) == content_hash(said) != content_hash(waits)
    assert "on_unreachable" not in to_document(plain)["tasks"][0]
    assert from_document(to_document(waits)) == waits


@pytest.mark.parametrize("way", list(OnUnreachable))
def test_python_workflows_support_it_too(way: OnUnreachable) -> None:
    from ork import Workflow

    flow = Workflow("f")

    @flow.task(on_unreachable=str(way))
    def a() -> None: ...

    assert flow.document(None)["tasks"]["a"]["on_unreachable"] == way
