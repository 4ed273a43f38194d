from __future__ import annotations

from pathlib import Path

import pytest

from ork.core.transitions import RUN_TABLE, TASK_TABLE, RunStep, TaskStep, draw, next_run_status, next_task_status
from ork.errors import IllegalTransitionError
from ork.model.run import RunStatus
from ork.model.task import TaskStatus


def test_every_status_has_a_row_in_the_table() -> None:
    assert set(TASK_TABLE) == set(TaskStatus)
    assert set(RUN_TABLE) == set(RunStatus)


def test_a_final_status_is_left_only_by_a_manual_retry() -> None:
    for status in TaskStatus:
        if status.is_final:
            assert set(TASK_TABLE[status]) == {TaskStep.REVIVE}
    for run_status in RunStatus:
        if run_status.is_final:
            assert set(RUN_TABLE[run_status]) == {RunStep.REVIVE}


def test_a_transition_that_is_not_in_the_table_raises() -> None:
    with pytest.raises(IllegalTransitionError, match="task t: start is not allowed in state success"):
        next_task_status("t", TaskStatus.SUCCESS, TaskStep.START)
    with pytest.raises(IllegalTransitionError):
        next_run_status("r", RunStatus.PENDING, RunStep.SUCCEED)


def test_the_diagrams_in_the_docs_are_drawn_from_the_tables(tree: Path) -> None:
    text = (tree / "docs/protocol.md").read_text()
    assert draw(TASK_TABLE) in text
    assert draw(RUN_TABLE) in text
