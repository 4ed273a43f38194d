"""The example `dbt` with the real dbt, which Ork installs from the example's requirements. A loud skip where that is impossible."""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

OrkCli = Callable[..., CompletedProcess[str]]
EXAMPLE = Path(__file__).parents[2] / "examples/dbt"
MOST = 1.6  # times the duration of `dbt build`


class Library:
    """A copy of the example. What Ork installs stays there, in pytest's cache: programs of an environment contain its path."""

    def __init__(self, folder: Path, ork: OrkCli) -> None:
        kept = {folder / ".ork", folder / ".ork/environments"}
        for path in {*folder.glob("*"), *folder.glob(".ork/*")} - kept:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        shutil.copytree(
            EXAMPLE, folder, ignore=shutil.ignore_patterns(".ork", ".venv", "target", "*.duckdb"), dirs_exist_ok=True
        )
        self.folder, self.ork = folder, ork
        done = ork("validate", "workflow.yaml", cwd=folder, timeout=900)
        printed = done.stdout + done.stderr
        if done.returncode != 0 and "the environment could not be built" in printed:
            pytest.skip(f"dbt cannot be installed here: {printed[-500:]}")
        assert done.returncode == 0, printed

    def run(self) -> dict[str, Any]:
        done = self.ork("run", "workflow.yaml", "--json", cwd=self.folder, timeout=600)
        assert done.stdout.strip(), done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def log(self, *task: str) -> str:
        return self.ork("logs", "@last", *task, cwd=self.folder).stdout

    def build(self) -> None:
        """`dbt build`, as a person runs it."""
        (dbt,) = self.folder.glob(".ork/environments/*/bin/dbt")
        words = [str(dbt), "build", "--project-dir", "library", "--profiles-dir", "library"]
        subprocess.run(words, cwd=self.folder, check=True, capture_output=True)


@pytest.fixture
def library(ork_cli: OrkCli, request: pytest.FixtureRequest) -> Library:
    assert request.config.cache is not None
    return Library(request.config.cache.mkdir("ork_dbt_example"), ork_cli)


def statuses(run: dict[str, Any]) -> dict[str, str]:
    return {task["name"]: task["status"] for task in run["tasks"]}


@pytest.mark.slow
def test_models_are_tasks_in_dbts_own_order_and_share_one_dbt(library: Library, tmp_path: Path) -> None:
    run = library.run()
    assert set(statuses(run).values()) == {"success"}, run
    tasks = {task["name"]: task for task in run["tasks"]}
    assert len(tasks) == 10  # eight nodes, a test of two of them, and the report
    assert tasks["stg_books"]["depends_on"] == ["raw_books"]
    assert sorted(tasks["loans"]["depends_on"]) == ["stg_books", "stg_loans"]
    assert tasks["report"]["output"] == {"Ada": 832, "Cyd": 306, "Eve": 320, "Gus": 0}
    log = library.log("stg_loans")
    assert "PASS unique_stg_loans_loan_id" in log
    assert "Done. PASS=3" in log, "a model with its two tests, and nothing else"
    assert "starts anew" not in library.log()
    check_template(library, tmp_path)
    # A model that breaks its test fails with it, and what depends on it is skipped.
    (library.folder / "library/models/staging/stg_books.sql").write_text(
        "select 10 as book_id, title, pages from {{ ref('raw_books') }}"
    )
    after = statuses(library.run())
    assert after["stg_books"] == "failed"
    assert {name for name, status in after.items() if status == "skipped"} >= {"loans", "members", "report"}
    assert [after[name] for name in ("stg_members", "stg_loans")] == ["success", "success"]
    assert "FAIL 1 unique_stg_books_book_id" in library.log("stg_books")


def check_template(library: Library, folder: Path) -> None:
    """The project of `ork init --template dbt` runs, with the dbt that is installed already."""
    assert library.ork("init", "--template", "dbt", "new", cwd=folder).returncode == 0
    (folder / "new/.ork").mkdir(exist_ok=True)
    (folder / "new/.ork/environments").symlink_to(library.folder / ".ork/environments")
    done = library.ork("run", "--json", cwd=folder / "new", timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    outputs = {task["name"]: task["output"] for task in json.loads(done.stdout)["tasks"]}
    assert {"raw_orders", "stg_orders", "customers"} < set(outputs)
    assert outputs["report"] == {"customers": 2, "path": "out/customers.md"}
    assert len([*library.folder.glob(".ork/environments/*/bin/dbt")]) == 1, "it has the example's environment"


@pytest.mark.soak
def test_a_run_takes_little_longer_than_dbt_build(library: Library) -> None:
    def seconds(call: Callable[[], object]) -> float:
        begun = time.monotonic()
        call()
        return time.monotonic() - begun

    library.build()
    library.run()
    pairs = [(seconds(library.build), seconds(library.run)) for _ in range(3)]
    built, ran = (statistics.median(each) for each in zip(*pairs, strict=True))
    print(f"dbt build {built:.2f} s, as tasks {ran:.2f} s: {ran / built:.2f} times")
    assert ran <= MOST * built, pairs
