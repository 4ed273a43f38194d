"""Every example runs as it stands, through the real command line, and does what its first comment says."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess, run
from typing import Any

import pytest

from tests.loopback import loopback

Finished = tuple[int, dict[str, Any], Path]
RunExample = Callable[..., Finished]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def run_example(tmp_path: Path, ork_cli: Callable[..., CompletedProcess[str]]) -> RunExample:
    def run(name: str, *args: str) -> Finished:
        folder = tmp_path / name
        if not folder.exists():
            shutil.copytree(EXAMPLES / name, folder, ignore=shutil.ignore_patterns(".ork", "out", "__pycache__"))
        done = ork_cli("run", "workflow.yaml", "--json", *args, cwd=folder)
        assert done.stdout.strip(), done.stderr
        return done.returncode, json.loads(done.stdout), folder

    return run


def statuses(run: dict[str, Any]) -> dict[str, str]:
    return {task["name"]: task["status"] for task in run["tasks"]}


def task_of(run: dict[str, Any], name: str) -> dict[str, Any]:
    return next(task for task in run["tasks"] if task["name"] == name)


def test_every_example_validates(ork_cli: Callable[..., CompletedProcess[str]]) -> None:
    for folder in (path for path in EXAMPLES.iterdir() if path.is_dir()):
        if folder.name == "dbt":
            continue  # its models are only known to dbt, in an environment of its own; it has a test of its own
        files = [str(file) for file in folder.glob("flows/*.yaml")]
        done = ork_cli("validate", *files, "--json", cwd=folder)
        assert done.returncode == 0, folder.name + done.stdout + done.stderr
        assert json.loads(done.stdout)["workflows"]


def test_measured_runs_within_its_worker_configs_and_keeps_its_numbers(run_example: RunExample) -> None:
    code, run, _ = run_example("measured")
    assert (code, task_of(run, "total")["output"]) == (0, 4950)


def test_a_run_over_its_budget_is_cancelled(
    run_example: RunExample, ork_cli: Callable[..., CompletedProcess[str]]
) -> None:
    code, run, folder = run_example("budget")
    assert (code, run["status"]) == (1, "cancelled")
    assert statuses(run) == {"sample": "success", "train": "cancelled", "publish": "cancelled"}
    assert run["note"] == "cancelled by its budget of $1.00 (by estimate)"
    why = ork_cli("why", "@last", cwd=folder).stdout
    assert "cancelled by its budget of $1.00" in why
    cost = json.loads(ork_cli("cost", "@last", "--json", cwd=folder).stdout)
    assert (cost["estimate"], cost["is_complete"], cost["budget_usd"], cost["on_exceed"]) == (True, True, 1, "cancel")
    assert cost["over_budget_at"] is not None
    assert 1 <= cost["usd"] < 20  # an attempt is stopped soon after
    assert {task["name"] for task in cost["tasks"]} == {"sample", "train"}


def test_hello_greets_whoever_is_named(run_example: RunExample) -> None:
    code, run, _ = run_example("hello")
    assert (code, run["status"], task_of(run, "greet")["output"]) == (0, "success", "hello, world")
    code, run, _ = run_example("hello", "-p", "name=Ada")
    assert (code, task_of(run, "greet")["output"]) == (0, "hello, Ada")


@pytest.mark.parametrize(
    ("file", "task", "output"), [("orders.yaml", "report", "99.75 EUR"), ("stock.py", "value", 8000)]
)
def test_a_projects_workflows_share_code(
    tmp_path: Path, ork_cli: Callable[..., CompletedProcess[str]], file: str, task: str, output: object
) -> None:
    folder = shutil.copytree(EXAMPLES / "project", tmp_path / "project")
    done = ork_cli("run", str(folder / "flows" / file), "--json", cwd=tmp_path)
    assert (done.returncode, task_of(json.loads(done.stdout), task)["output"]) == (0, output), done.stderr


def test_etl_runs_in_order_and_writes_its_file(run_example: RunExample) -> None:
    code, run, folder = run_example("etl")
    assert code == 0
    assert run["workflow"] == "my_etl"
    assert statuses(run) == {"extract": "success", "transform": "success", "load": "success"}
    extract, transform, load = (task_of(run, name) for name in ("extract", "transform", "load"))
    assert extract["finished_at"] <= transform["started_at"] <= transform["finished_at"] <= load["started_at"]
    assert load["output"] == {"path": "out/totals.json", "customers": 2}
    assert json.loads((folder / "out/totals.json").read_text()) == {"ada": 165, "cyd": 200}


@pytest.mark.linux
def test_small_tasks_share_a_few_processes(run_example: RunExample) -> None:
    code, run, _ = run_example("small_tasks")
    total = task_of(run, "total")["output"]
    assert (code, total["sum"]) == (0, 16434)
    assert total["processes"] < 100


def test_diamond_joins_what_both_branches_returned(run_example: RunExample) -> None:
    code, run, _ = run_example("diamond")
    assert code == 0
    assert task_of(run, "evens")["depends_on"] == ["split"]
    assert task_of(run, "join")["output"] == {"evens": 30, "odds": 25, "total": 55}


def test_retries_takes_exactly_three_executions_every_time(run_example: RunExample) -> None:
    for _ in range(2):
        code, run, _ = run_example("retries")
        fetch = task_of(run, "fetch")
        assert (code, fetch["attempt"]) == (0, 3)
        assert [one["status"] for one in fetch["attempts"]] == ["failed", "failed", "success"]
        assert [one["exit_code"] for one in fetch["attempts"]] == [1, 1, 0]
        assert task_of(run, "parse")["output"] == "answered at attempt 3"


def test_failure_and_cleanup_fails_skips_goes_on_and_cleans_up(run_example: RunExample) -> None:
    code, run, folder = run_example("failure_and_cleanup")
    assert (code, run["status"]) == (1, "failed")
    assert statuses(run) == {
        "prepare": "success",
        "check": "failed",
        "publish": "skipped",
        "archive": "success",
        "cleanup": "success",
    }
    assert "ZeroDivisionError" in json.dumps(task_of(run, "check")["error"])
    assert "check" in task_of(run, "publish")["reason"]
    assert sorted(path.name for path in (folder / "out").iterdir()) == ["archive"]


def test_typed_functions_receive_and_return_their_types(run_example: RunExample) -> None:
    code, run, _ = run_example("typed_functions", "-p", "day=2026-03-01")
    assert code == 0
    summary = task_of(run, "summarise")["output"]
    assert summary["cents_by_status"] == {"paid": 4000, "open": 2000}
    assert summary["oldest_open"]["placed_on"] == "2026-02-28"
    assert task_of(run, "render")["output"] == "01.03.2026; paid: 40.00 EUR; open: 20.00 EUR; oldest open: 2026-02-28"


def test_typed_pipeline_has_a_type_everywhere_and_runs(
    run_example: RunExample, ork_cli: Callable[..., CompletedProcess[str]]
) -> None:
    code, run, folder = run_example("typed_pipeline")
    assert code == 0
    assert task_of(run, "report")["output"]["hottest"] == {"sensor": "cellar", "celsius": 9.1, "note": ""}
    assert ork_cli("validate", "--strict", cwd=folder).returncode == 0


def test_three_mistakes_of_types_arguments_and_functions_are_told_at_once_and_nothing_is_run(
    tmp_path: Path, ork_cli: Callable[..., CompletedProcess[str]]
) -> None:
    folder = tmp_path / "typed_pipeline"
    shutil.copytree(EXAMPLES / "typed_pipeline", folder, ignore=shutil.ignore_patterns(".ork", "__pycache__"))
    done = ork_cli("validate", "--json", "wrong.yaml", cwd=folder)
    problems = json.loads(done.stdout)["problems"]
    assert done.returncode == 2
    assert [(each["code"], each["line"]) for each in problems] == [("ORK405", 15), ("ORK504", 18), ("ORK503", 22)]
    assert ork_cli("run", "wrong.yaml", cwd=folder).returncode == 2
    assert not (folder / ".ork").exists()


@pytest.mark.skipif(shutil.which("perl") is None, reason="no perl on this machine")
def test_scripts_in_two_languages_pass_data_on(run_example: RunExample) -> None:
    code, run, _ = run_example("scripts")
    assert code == 0
    assert task_of(run, "collect")["output"] == {"path": "out/text"}
    counted = {"word": "the", "times": 4}
    assert task_of(run, "count")["output"] == counted
    assert task_of(run, "report")["output"] == {"report": counted, "same_in_file": counted}


def test_long_logs_are_kept_whole_and_tricks_stay_bytes(
    run_example: RunExample, ork_cli: Callable[..., CompletedProcess[str]]
) -> None:
    code, run, folder = run_example("long_logs")
    assert code == 0
    assert task_of(run, "chatter")["output"] == {"lines": 250_000}
    chatter = ork_cli("logs", "@last", "chatter", cwd=folder).stdout
    assert len(chatter) > 20_000_000
    assert chatter.count("\n") == 250_001
    tricks = ork_cli("logs", "@last", "tricks", cwd=folder).stdout
    assert "\x1b[2J" in tricks
    assert "\udcff\udcfe" in tricks
    assert tricks.endswith("no newline at the end")


def outputs(run: dict[str, Any], name: str) -> list[Any]:
    """Of each instance, in the order of their indexes."""
    instances = [task for task in run["tasks"] if task["name"] == name]
    assert [task["index"] for task in instances] == list(range(len(instances)))
    return [task["output"] for task in instances]


def test_params_reach_functions_and_commands_in_their_types(
    run_example: RunExample, ork_cli: Callable[..., CompletedProcess[str]]
) -> None:
    given = ["-p", "day=2026-03-01", "-p", 'regions=["north", "south"]', "-p", "dry_run=true"]
    code, run, folder = run_example("params", *given)
    assert code == 0
    assert task_of(run, "report")["output"] == {
        "title": "Sunday 01.03.2026",
        "regions": ["north", "south"],
        "written": False,
    }
    assert ork_cli("logs", "@last", "announce", cwd=folder).stdout == "report of 2026-03-01 for north\n"
    refused = ork_cli("run", "workflow.yaml", "-p", "limit=many", "-p", "dya=2026-03-01", cwd=folder)
    assert refused.returncode == 2
    assert all(name in refused.stderr for name in ("`limit`", "`dya`", "`day` is missing"))
    assert len(json.loads(ork_cli("runs", "--json", cwd=folder).stdout)["runs"]) == 1


def test_foreach_retries_one_item_and_keeps_the_order(run_example: RunExample) -> None:
    code, run, _ = run_example("foreach")
    assert code == 0
    assert outputs(run, "measure") == [10 * number for number in range(12)]
    assert [task["attempt"] for task in run["tasks"] if task["name"] == "measure"] == [1] * 7 + [3] + [1] * 4
    assert task_of(run, "total")["output"]["sum"] == 660


def test_partitions_share_the_work(run_example: RunExample) -> None:
    code, run, _ = run_example("partitions", "-p", "workers=3")
    assert code == 0
    assert len(outputs(run, "sum_up")) == 3
    assert task_of(run, "check")["output"] == sum(range(1000))


@pytest.mark.parametrize(("rows", "taken", "skipped"), [(6, "split", "simple"), (3, "simple", "split")])
def test_branching_runs_one_branch_and_joins(run_example: RunExample, rows: int, taken: str, skipped: str) -> None:
    code, run, _ = run_example("branching", "-p", f"rows={rows}")
    assert code == 0
    assert task_of(run, skipped)["status"] == "skipped"
    assert task_of(run, skipped)["index"] is None
    assert task_of(run, "join")["output"] == {"taken": taken, "rows": list(range(rows))}


def test_cleanup_sees_what_failed(run_example: RunExample) -> None:
    code, run, _ = run_example("cleanup")
    assert (code, run["status"]) == (1, "failed")
    release = task_of(run, "release")["output"]
    assert (release["released"], release["result"]) == ("machine-7", None)
    assert release["states"] == {"reserve": "success", "work": "failed", "publish": "skipped"}
    assert "work" in release["failed"]
    assert "reserve" not in release["failed"]


def test_cache_is_asked_first_and_can_be_bypassed(run_example: RunExample) -> None:
    _, first, folder = run_example("cache")
    _, second, _ = run_example("cache")
    calls = folder / "out" / "calls"
    assert calls.read_text() == "Brno\n"
    assert first["id"] in task_of(second, "look_up")["reason"]
    assert (task_of(second, "look_up")["attempt"], task_of(second, "look_up")["output"]["temperature"]) == (0, 14)
    run_example("cache", "--no-cache")
    run_example("cache", "-p", "city=Praha")
    assert calls.read_text() == "Brno\nBrno\nPraha\n"
    with (folder / "weather.py").open("a") as code:
        code.write("# changed\n")
    run_example("cache")
    assert calls.read_text() == "Brno\nBrno\nPraha\nBrno\n", "changed code is not run from the cache"


def test_approval_waits_for_a_person_who_is_remembered(
    tmp_path: Path, ork_cli: Callable[..., CompletedProcess[str]]
) -> None:
    folder = tmp_path / "approval"
    shutil.copytree(EXAMPLES / "approval", folder, ignore=shutil.ignore_patterns(".ork", "__pycache__"))

    def ork(*args: str) -> CompletedProcess[str]:
        return ork_cli(*args, cwd=folder)

    asked = ork("run")
    assert (asked.returncode, "release: Publish version 1.4?" in asked.stdout) == (5, True)
    assert ork("approve", "@last", "build").returncode == 4
    assert ork("approve", "@last", "--comment", "looks right").returncode == 0
    run = json.loads(ork("show", "@last", "--json").stdout)
    assert run["status"] == "success"
    release = task_of(run, "release")
    assert release["output"]["approved"] is True
    assert release["reason"].endswith(": looks right")
    assert task_of(run, "publish")["output"].endswith("looks right")
    assert "approved by" in ork("show", "@last").stdout
    assert ork("reject", "@last", "release").returncode == 4


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cargo") is None, reason="no cargo and rustc on this machine")
def test_rust_programs_are_compiled_once_and_pass_data_on(
    run_example: RunExample, ork_cli: Callable[..., CompletedProcess[str]]
) -> None:
    for text, counted in (("a b a", {"A": 1, "B": 1, "A!": 1}), ('x "\u00e9"', {"X": 1, '"\u00c9"!': 1})):
        code, run, folder = run_example("rust", "-p", f"text={text}")
        assert code == 0, run
        assert task_of(run, "count")["output"] == counted
    assert "building" not in ork_cli("logs", "@last", "count", cwd=folder).stdout
    assert ork_cli("prune", "--days", "0", cwd=folder).stdout.strip().endswith("3 removed.")


@pytest.mark.slow
def test_environments_hold_three_versions_of_one_package(
    run_example: RunExample, ork_cli: Callable[..., CompletedProcess[str]]
) -> None:
    code, run, folder = run_example("environments")
    if code != 0 and "packag" in str(task_of(run, "listed")["error"]):
        pytest.skip("no package index within reach: " + str(task_of(run, "listed")["error"]["message"]))
    assert code == 0, run
    assert task_of(run, "compare")["output"] == ["23.2", "24.0", "24.1"]
    code, run, folder = run_example("environments")
    assert code == 0
    assert "building" not in "".join(ork_cli("logs", "@last", name, cwd=folder).stdout for name in statuses(run))


def test_custom_executor_uses_the_projects_own_class(run_example: RunExample) -> None:
    code, run, _ = run_example("custom_executor", "-p", "word=ahoy")
    assert code == 0
    assert task_of(run, "title")["output"] == {"text": "AHOY AHOY"}
    assert task_of(run, "banner")["output"] == {"text": "AHOY AHOY * AHOY AHOY * AHOY AHOY"}


def test_sql_binds_values_and_gives_rows(run_example: RunExample) -> None:
    code, run, _ = run_example("sql", "-p", "least=200")
    assert code == 0
    assert task_of(run, "prepare")["output"] == {"changed": 4}
    assert task_of(run, "large")["output"] == [{"customer": "cyd; DROP TABLE orders", "cents": 200}]
    assert task_of(run, "report")["output"].endswith("the first order of cyd; DROP TABLE orders was 200")


def test_deferrable_waits_for_its_jobs_and_gets_their_results(run_example: RunExample) -> None:
    code, run, _ = run_example("deferrable")
    assert code == 0
    assert [result["model"] for result in task_of(run, "train")["output"]] == ["small", "large"]
    assert task_of(run, "report")["output"] == "small of 2"


def test_secrets_are_given_and_not_shown(
    run_example: RunExample, ork_cli: Callable[..., CompletedProcess[str]]
) -> None:
    code, run, folder = run_example("secrets", "-p", "pin=correct-horse-battery")
    assert (code, run["params"]) == (0, {"pin": "•••"})
    assert len(task_of(run, "sign")["output"]) == 64
    logs = [ork_cli("logs", "@last", task, cwd=folder).stdout for task in ("sign", "careless")]
    assert logs[0] == "signing with *** and ***\n"
    assert logs[1].startswith("the key is ***\nin base64: ")
    assert "4711" not in logs[1]


def test_subworkflow_runs_another_workflow_twice(run_example: RunExample) -> None:
    code, run, _ = run_example("subworkflow")
    assert code == 0
    assert task_of(run, "north")["output"] == {"name": "north", "sum": 6}
    assert task_of(run, "total")["output"] == 36


def test_scheduled_is_for_its_time_and_tells_of_failure_and_recovery(
    tmp_path: Path, ork_cli: Callable[..., CompletedProcess[str]]
) -> None:
    folder = tmp_path / "scheduled"
    shutil.copytree(EXAMPLES / "scheduled", folder, ignore=shutil.ignore_patterns(".ork", "__pycache__"))
    with loopback() as site, (folder / "ork.yaml").open("a") as settings:
        site.answers["/hook"] = (200, {})
        settings.write("outbound: {allow: [127.0.0.1]}\n")
        settings.flush()

        def ork(*args: str) -> Any:
            env = {"OPS_WEBHOOK": f"{site.url}/hook"}
            return json.loads(ork_cli(*args, "--json", cwd=folder, env=env).stdout)

        assert ork("run", "-p", "fail=true")["status"] == "failed"
        assert ork("run")["status"] == "success"
        texts = [json.loads(asked.body)["text"] for asked in site.asked]
        assert ["failed" in texts[0], "on fire" in texts[0], "succeeded again" in texts[1]] == [True] * 3
        ork("backfill", "morning_report", "--from", "2026-03-29", "--to", "2026-03-29")
        while any(run["status"] != "success" for run in ork("runs", "--limit", "1")["runs"]):
            ork("tick")
        newest = ork("show", ork("runs")["runs"][0]["id"])
    assert newest["scheduled_for"] == "2026-03-29T04:30:00.000000Z"  # summer time begins on that day
    assert task_of(newest, "publish")["output"] == "42 sold on 2026-03-28"


def test_location_finds_its_workflows_and_keeps_them(
    tmp_path: Path, ork_cli: Callable[..., CompletedProcess[str]]
) -> None:
    folder = tmp_path / "location"
    shutil.copytree(EXAMPLES / "location", folder, ignore=shutil.ignore_patterns(".ork", "__pycache__"))
    found = ork_cli("locations", "refresh", "reports", "--json", cwd=folder)
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["locations"][0]["workflows"] == ["cleanup", "daily_report"]
    run = json.loads(ork_cli("run", "daily_report", "--json", cwd=folder).stdout)
    assert task_of(run, "line")["output"] == "3 orders, 400 in all"
    assert ork_cli("deploy", "workflow.yaml", cwd=folder).returncode == 4


@pytest.mark.slow
def test_etl_runs_through_a_server_that_keeps_its_documents() -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ORK_")} | {"PATH": path}
    script = EXAMPLES / "etl" / "through_server.sh"
    done = run(["sh", str(script)], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert '{"ada":165,"cyd":200}' in done.stdout
    assert "the documents are on the server" in done.stdout


def test_files_go_between_functions_and_commands(run_example: RunExample) -> None:
    code, run, _ = run_example("files")
    assert (code, statuses(run)["count"]) == (0, "success")
    assert task_of(run, "check")["output"] == ["one.txt,5", "three.txt,2", "two.txt,6"]
    assert task_of(run, "pack")["output"]["$ork"]["media_type"] == "application/gzip"


def test_dataframes_go_between_libraries_and_are_split(run_example: RunExample) -> None:
    """Its packages are installed by its `environment`, or it is skipped where that is impossible."""
    code, run, _ = run_example("dataframes")
    if code and "pip" in json.dumps(run):
        pytest.skip(f"pandas, polars and pyarrow cannot be installed here: {run['tasks'][0]['failure']}")
    assert (code, task_of(run, "report")["output"]) == (0, {"Bonn": 6250.0, "Kiel": 6250.0, "Ulm": 6250.0})
    description = task_of(run, "clean")["output"]["$ork"]
    assert (description["type"], description["rows"]) == ("polars.DataFrame", 7500)
    assert [column["name"] for column in description["columns"]] == ["id", "city", "amount"]
    assert len([task for task in run["tasks"] if task["name"] == "add_up" and task["index"] is not None]) == 4


@pytest.mark.slow
def test_the_notebook_gives_a_number_to_the_next_task(
    run_example: RunExample, ork_cli: Callable[..., CompletedProcess[str]]
) -> None:
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    code, run, folder = run_example("notebook")
    assert code == 0, run
    assert task_of(run, "report")["output"]["result"] == {"day": "2026-11-01", "total": 22.75}
    assert ork_cli("logs", "@last", "mail", cwd=folder).stdout == "total: 22.75\n"
