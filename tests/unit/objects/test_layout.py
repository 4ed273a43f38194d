"""The keys of an attempt's documents, there and back."""

from __future__ import annotations

import pytest

from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.objects.layout import attempt_stem, log_key, parts_of, run_folder


@pytest.mark.parametrize(("task", "index", "number"), [("a", None, 1), ("a.b-1.2", 17, 3), ("_x.0.1", 0, 12)])
def test_a_key_tells_what_it_was_made_of(task: str, index: int | None, number: int) -> None:
    key = log_key(attempt_stem(AttemptKey(RunId("run1"), TaskKey(task, index), number)))
    assert parts_of(key) == ("run1", task, str(index or 0), str(number), "log")


@pytest.mark.parametrize(
    "key", ["", "log", run_folder(RunId("a")), "runs/a/b.log", "runs/a/b.0.x.log", "other/a/b.0.1.log"]
)
def test_what_is_no_key_of_an_attempt_is_none(key: str) -> None:
    assert parts_of(key) is None
