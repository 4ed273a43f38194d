"""docs/language.md and the tables that read the files speak of the same keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from ork.compile.load import load_workflow
from ork.definition.keys import KeyTable
from ork.definition.project_file import PROJECT_TABLE
from ork.definition.schedule import SCHEDULE_TABLE
from ork.definition.tasks import TASK_TABLE
from ork.definition.workflow_file import WORKFLOW_TABLE


@pytest.mark.parametrize(
    "table", [WORKFLOW_TABLE, TASK_TABLE, SCHEDULE_TABLE, PROJECT_TABLE], ids=lambda table: table.what
)
def test_every_key_is_documented(tree: Path, table: KeyTable) -> None:
    text = (tree / "docs" / "language.md").read_text()
    rows = "\n".join(line.split("|")[1] for line in text.splitlines() if line.startswith("| `"))
    assert [key.name for key in table.keys if f"`{key.name}`" not in rows] == []


def test_the_example_of_the_page_is_a_valid_workflow(tree: Path) -> None:
    text = (tree / "docs" / "language.md").read_text()
    example = text.split("```yaml\n")[1].split("```")[0]
    files = {"tasks/etl.py": b"def extract(day, url): ...", "load.sh": b"", "tidy.sh": b""}
    assert load_workflow(example.encode(), "w.yaml", read=files.get).problems == ()
