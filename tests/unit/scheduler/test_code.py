"""The hash of a task's code changes with every file that the task may import, and with no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from ork.model.ids import VersionId
from ork.model.workflow import Command, CompiledWorkflow, Const, PythonCall, TaskSpec, Version
from ork.scheduler.code import code_hash

FUNCTION = TaskSpec("a", "python", PythonCall("tasks.py", None, "main"))
SCRIPT = TaskSpec("b", "process", Command((Const("./tidy.sh"),)))


@pytest.mark.parametrize(
    ("spec", "file", "changes"),
    [
        (FUNCTION, "flows/tasks.py", True),
        (FUNCTION, "flows/helper.py", True),
        (FUNCTION, "common.py", True),
        (FUNCTION, "src/shop.py", True),
        (FUNCTION, "flows/notes.txt", False),
        (FUNCTION, "flows/.venv/package.py", False),
        (SCRIPT, "flows/tidy.sh", True),
        (SCRIPT, "flows/tasks.py", False),
    ],
    ids=lambda value: value.name if isinstance(value, TaskSpec) else str(value),
)
def test_a_changed_file_changes_the_hash_if_the_task_may_use_it(
    tmp_path: Path, spec: TaskSpec, file: str, changes: bool
) -> None:
    root = tmp_path / "flows"
    workflow = CompiledWorkflow("flow", (spec,), project=str(tmp_path), pythonpath=("src",))
    version = Version(VersionId("v"), workflow, str(root))
    for name in ("flows/tasks.py", "flows/helper.py", "flows/tidy.sh", "common.py", "src/shop.py", file):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("one")
    before = code_hash(version, spec)
    assert code_hash(version, spec) == before
    (tmp_path / file).write_text("two")
    assert (code_hash(version, spec) != before) is changes
