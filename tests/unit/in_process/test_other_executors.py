"""`etl.run()` with tasks that are no plain functions: executors by name, jobs outside, and what cannot run here."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import ork
from ork import TaskError, Workflow, ref, secret
from ork.errors import UsageError
from tests.loopback import loopback


@pytest.fixture
def etl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workflow:
    """A workflow whose folder is a project of its own."""
    monkeypatch.chdir(tmp_path)
    workflow = Workflow("etl")
    workflow.file = str(tmp_path / "etl.py")
    (tmp_path / "etl.py").write_text("")
    return workflow


def test_requests_and_queries_run_here(etl: Workflow, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "data.db") as base:
        base.execute("CREATE TABLE orders (id, total)")
        base.execute("INSERT INTO orders VALUES (1, 30), (2, 12)")
    with loopback() as site:
        site.answers["/limit"] = (200, {"least": 20})
        etl.add("ask", executor="http", config={"url": f"{site.url}/limit"})
        etl.add(
            "large",
            executor="sql",
            config={"url": f"sqlite:///{tmp_path}/data.db", "query": "SELECT id FROM orders WHERE total > :least"},
            inputs={"least": ref("tasks.ask.output.least")},
        )
        result = etl.run()
    assert result["ask"] == {"least": 20}
    assert result["large"] == [{"id": 1}]


def test_an_executor_of_the_project_gets_its_configs_inputs_and_secrets(
    etl: Workflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(
        "class Mine:\n"
        "    def __init__(self, config):\n        self.config = config\n"
        "    def run(self, context, config, inputs):\n"
        "        return [self.config['where'], config['what'], config['key'], inputs['n'], context.task_name]\n"
        "    def stop(self, context):\n        raise AssertionError('nobody asked')\n"
    )
    (tmp_path / "ork.yaml").write_text(
        "executors:\n  mine: {class: 'mine:Mine', config: {where: here}}\nsecrets: {API_KEY: {from: env}}\n"
    )
    monkeypatch.setenv("API_KEY", "hush")
    monkeypatch.syspath_prepend(str(tmp_path))
    etl.add("work", executor="mine", config={"what": "it", "key": secret("API_KEY")}, inputs={"n": 3})
    assert etl.run()["work"] == ["here", "it", "hush", 3, "work"]


def test_jobs_outside_are_waited_for(etl: Workflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "asking.py").write_text(
        "seen = []\ndef ask(n):\n    seen.append(n)\n    return n if len(seen) > 2 else None\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with loopback() as site:
        site.answers["/job"] = [(202, {}), (200, {"rows": 7})]

        @etl.task
        def wait() -> object:
            return ork.defer(
                ork.call_job("asking:ask", {"n": 5}, every=0.05), ork.http_job(f"{site.url}/job", every=0.05)
            )

        assert etl.run()["wait"] == [5, {"rows": 7}]
        assert site.count("GET", "/job") == 2


def test_a_job_that_fails_fails_its_task_with_what_it_said(etl: Workflow) -> None:
    with loopback() as site:

        @etl.task
        def wait() -> object:
            return ork.defer(ork.http_job(f"{site.url}/gone", every=0.05))

        with pytest.raises(TaskError, match="answered 404"):
            etl.run()


def test_a_function_of_another_file_runs_here(etl: Workflow, tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("def double(n):\n    return 2 * n\n")
    etl.add("twice", file="other.py", function="double", inputs={"n": 4})
    assert etl.run()["twice"] == 8


def test_unsupported_executors_are_rejected_before_anything_runs(etl: Workflow) -> None:
    ran: list[str] = []

    @etl.task
    def first() -> None:
        ran.append("first")

    etl.add("fast", executor="rust", file="fast.rs", depends_on=["first"])
    with pytest.raises(UsageError, match="task `fast` needs the executor `rust`"):
        etl.run()
    assert ran == []
