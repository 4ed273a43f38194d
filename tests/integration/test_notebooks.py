"""Notebooks as tasks: parameters, log, output, failures, and what is missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

pytestmark = pytest.mark.slow


def cell(source: str, *tags: str) -> dict[str, Any]:
    return {
        "cell_type": "code", "execution_count": None, "id": f"c{len(source)}", "metadata": {"tags": list(tags)}, "outputs": [],
        "source": source,
    }  # fmt: skip


def write_notebook(file: Path, *cells: dict[str, Any]) -> None:
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    file.write_text(json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}))


def ork(folder: Path, *args: str, code: int = 0) -> str:
    done = subprocess.run([sys.executable, "-m", "ork", *args], cwd=folder, capture_output=True, text=True)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def flow(folder: Path, **task: Any) -> None:
    (folder / "workflow.yaml").write_text(json.dumps({"name": "flow", "tasks": {"note": task}}))


def test_inputs_replace_the_defaults_and_the_executed_copy_is_the_output(tmp_path: Path) -> None:
    write_notebook(
        tmp_path / "note.ipynb",
        cell("day, number = 'none', 1", "parameters"),
        cell("print('for', day, number)"),
        cell("output = {'twice': 2 * number}"),
    )
    flow(tmp_path, notebook="note.ipynb", inputs={"day": "monday", "number": 21})
    ork(tmp_path, "run")
    assert ork(tmp_path, "logs", "@last", "note") == "for monday 21\n"
    for part in ("notebook", "html"):
        ork(tmp_path, "output", "@last", "note", "--path", part, "--to", f"note.{part}")
    executed = json.loads((tmp_path / "note.notebook").read_text())
    assert "".join(executed["cells"][1]["source"]) == "# Parameters of this run\nday = 'monday'\nnumber = 21"
    assert "".join(executed["cells"][2]["outputs"][0]["text"]) == "for monday 21\n"
    assert len(executed["cells"]) == 4, "the cell that reads the result is not part of the copy"
    assert "for monday 21" in (tmp_path / "note.html").read_text()
    assert '"twice": 42' in ork(tmp_path, "show", "@last", "--json")


def test_the_error_of_a_cell_is_the_failure_of_the_task(tmp_path: Path) -> None:
    write_notebook(tmp_path / "note.ipynb", cell("a = 1"), cell("def f():\n    return a / 0\nf()"))
    flow(tmp_path, notebook="note.ipynb")
    said = ork(tmp_path, "run", code=1)
    assert "ZeroDivisionError: division by zero (cell 2)" in said
    assert "return a / 0" in ork(tmp_path, "logs", "@last", "note")


def test_a_missing_notebook_is_found_before_the_run(tmp_path: Path) -> None:
    flow(tmp_path, notebook="not.ipynb")
    assert "there is no file `not.ipynb`" in ork(tmp_path, "validate", code=2)
    flow(tmp_path, notebook="not.ipynb", command=["echo"])
    assert "has both" in ork(tmp_path, "validate", code=2)


def test_a_cancelled_notebook_leaves_no_kernel(tmp_path: Path) -> None:
    write_notebook(
        tmp_path / "note.ipynb", cell("import os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(600)")
    )
    flow(tmp_path, notebook="note.ipynb", timeout=15)
    assert "timed out" in ork(tmp_path, "run", code=1)
    kernel = int((tmp_path / "pid").read_text())
    assert not os.path.exists(f"/proc/{kernel}"), "the kernel has outlived its task"
