"""Looking at runs: shapes, exit codes, and what goes to stdout and what to stderr."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ork.cli.main import SECTIONS

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]

FLOW = """\
name: flow
tasks:
  make: {command: [sh, -c, 'echo noise; echo "{\\"n\\": [1, 2]}"']}
  shout: {command: [sh, -c, 'printf "\\033[2J\\rboom\\377" >&2; exit 3'], depends_on: [make], retries: 1, retry_delay: 100ms}
  after: {command: 'true', depends_on: [shout]}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("look")
    (folder / "flow.yaml").write_text(FLOW)
    return folder


@pytest.fixture
def ork(project: Path, ork_cli: OrkCli) -> OrkCli:
    """`ork` in a project where `flow` has run once and failed."""
    if not (project / ".ork").exists():
        assert ork_cli("run", "flow.yaml", cwd=project).returncode == 1

    def call(*args: str) -> subprocess.CompletedProcess[str]:
        return ork_cli(*args, cwd=project)

    return call


def test_runs_are_listed_with_short_ids_and_full_ones_in_json(ork: OrkCli) -> None:
    listed = ork("runs")
    page = json.loads(ork("runs", "--json").stdout)
    assert page["cursor"] is None
    (run,) = page["runs"]
    assert (run["workflow"], run["status"]) == ("flow", "failed")
    assert "tasks" not in run
    short = listed.stdout.splitlines()[1].split()[0]
    assert len(short) == 4
    assert run["id"].startswith(short)
    assert "✗ failed" in listed.stdout


def test_runs_can_be_filtered(ork: OrkCli) -> None:
    assert json.loads(ork("runs", "--json", "--status", "success").stdout)["runs"] == []
    assert len(json.loads(ork("runs", "--json", "--workflow", "flow", "--status", "failed").stdout)["runs"]) == 1
    assert ork("runs", "--status", "nonsense").returncode == 2


def test_show_makes_the_cause_plain(ork: OrkCli) -> None:
    text = ork("show", "@last").stdout
    assert "✗ shout        " in text
    assert "exit code 3   attempt 2 of 2" in text
    assert "| ␛[2J␍boom\ufffd" in text
    assert "⊘ after        skipped: shout failed" in text


def test_who_names_no_run_is_told_how_to_name_the_newest(ork: OrkCli) -> None:
    done = ork("show")
    assert (done.returncode, done.stdout) == (2, "")
    assert "`ork show @last`" in done.stderr


def test_show_as_json_tells_every_attempt(ork: OrkCli) -> None:
    run = json.loads(ork("show", "@last", "--json").stdout)
    make, shout, after = run["tasks"]
    assert (make["output"], make["depends_on"], make["index"]) == ({"n": [1, 2]}, [], None)
    assert [attempt["exit_code"] for attempt in shout["attempts"]] == [3, 3]
    assert (after["status"], after["reason"], after["attempts"]) == ("skipped", "shout failed", [])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", run["finished_at"])


def test_output_prints_what_a_task_returned(ork: OrkCli) -> None:
    assert json.loads(ork("output", "@last", "make").stdout) == {"n": [1, 2]}
    assert ork("output", "@last", "after").returncode == 4
    assert ork("output", "@last", "nobody").returncode == 3
    assert ork("output", "@last").returncode == 2


def test_logs_of_a_task_pass_through_byte_by_byte(
    ork: OrkCli, project: Path, plain_environment: dict[str, str]
) -> None:
    def logged(*args: str) -> bytes:
        command = [sys.executable, "-m", "ork", "logs", *args]
        return subprocess.run(command, cwd=project, env=plain_environment, capture_output=True, check=True).stdout

    assert ork("runs").returncode == 0
    assert logged("@last", "shout") == b"\x1b[2J\rboom\xff"
    assert logged("@last/shout", "--attempt", "1") == b"\x1b[2J\rboom\xff"


def test_logs_tell_about_earlier_attempts(ork: OrkCli) -> None:
    assert "--attempt 1" in ork("logs", "@last/shout").stderr
    assert ork("logs", "@last", "shout", "--attempt", "9").returncode == 3


def test_logs_of_what_never_started_are_empty_and_say_so(ork: OrkCli) -> None:
    done = ork("logs", "@last", "after")
    assert (done.returncode, done.stdout) == (0, "")
    assert "`after` has not started: skipped: shout failed" in done.stderr


def test_logs_of_a_run_have_each_line_behind_its_task(ork: OrkCli) -> None:
    lines = ork("logs", "@last").stdout.split("\n")
    assert lines[:2] == ["make  | noise", 'make  | {"n": [1, 2]}']
    assert lines[2].startswith("shout | ")


def test_why_answers_for_final_tasks(ork: OrkCli) -> None:
    assert "root cause is `shout`: exit code 3" in ork("why", "@last", "after").stdout
    assert "failed on attempt 2 of 2" in ork("why", "@last/shout").stdout
    assert "failed just now" in ork("why", "@last").stdout or " ago" in ork("why", "@last").stdout
    assert json.loads(ork("why", "@last", "--json").stdout)["why"]


def test_workflows_are_listed_with_their_last_run(ork: OrkCli) -> None:
    (workflow,) = json.loads(ork("workflows", "--json").stdout)["workflows"]
    assert set(workflow) >= {"name", "version", "schedule", "enabled", "origin", "last_run"}
    assert (workflow["name"], workflow["enabled"], workflow["last_run"]["status"]) == ("flow", True, "failed")
    assert "flow" in ork("workflows").stdout


def test_a_workflow_can_be_shown_disabled_and_enabled(ork: OrkCli) -> None:
    assert "after make" in ork("workflow", "show", "flow").stdout
    assert ork("workflow", "disable", "flow").returncode == 0
    assert json.loads(ork("workflows", "--json").stdout)["workflows"][0]["enabled"] is False
    assert ork("workflow", "enable", "flow").returncode == 0
    assert ork("workflow", "enable", "nobody").returncode == 3


@pytest.mark.parametrize(
    "args", [("show", "zzzz"), ("why", "zzzz"), ("logs", "zzzz"), ("cancel", "zzzz"), ("watch", "zzzz")]
)
def test_an_unknown_run_is_not_found(ork: OrkCli, args: tuple[str, ...]) -> None:
    done = ork(*args)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("error: no run `zzzz`")


def test_errors_for_programs_are_json_on_stdout(ork: OrkCli) -> None:
    done = ork("show", "zzzz", "--json")
    assert done.returncode == 3
    assert json.loads(done.stdout)["error"] == {
        "code": "ORK802",
        "message": "no run `zzzz`",
        "hint": "`ork runs` lists them",
    }
    assert json.loads(ork("runs", "--json", "--limit", "x").stdout)["error"]["code"] == "ORK801"


def test_a_final_run_cannot_be_cancelled_paused_or_resumed(ork: OrkCli) -> None:
    for verb in ("cancel", "pause", "resume"):
        done = ork(verb, "@last")
        assert (done.returncode, "it has already failed" in done.stderr) == (4, True)


def test_watching_a_finished_run_tells_how_it_went(ork: OrkCli) -> None:
    done = ork("watch", "@last")
    assert done.returncode == 1
    assert done.stdout.startswith("✗ failed in ")


def test_looking_leaves_no_traces(tmp_path: Path, ork_cli: OrkCli) -> None:
    for args in (("runs",), ("workflows",), ("status",), ("doctor",), ("show", "@last"), ("db", "status")):
        ork_cli(*args, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_validate_tells_all_mistakes_in_every_format(tmp_path: Path, ork_cli: OrkCli) -> None:
    (tmp_path / "bad.yaml").write_text("name: x\ntasks:\n  a: {command: 'true', retrys: 1, depends_on: [b]}\n")
    (tmp_path / "good.yaml").write_text("name: y\ntasks:\n  a: {command: 'true'}\n")
    full = ork_cli("validate", "bad.yaml", "good.yaml", cwd=tmp_path)
    assert full.returncode == 2
    assert full.stdout == "✓ good.yaml: workflow y, 1 task\n"
    assert full.stderr.endswith("2 errors.\n")
    shape = json.loads(ork_cli("validate", "bad.yaml", "good.yaml", "--json", cwd=tmp_path).stdout)
    assert (shape["ok"], shape["workflows"], len(shape["problems"])) == (False, [{"name": "y", "tasks": 1}], 2)
    assert set(shape["problems"][0]) == {"file", "line", "column", "code", "message", "hint"}
    concise = ork_cli("validate", "bad.yaml", "--format", "concise", cwd=tmp_path).stdout.splitlines()
    assert all(line.startswith("bad.yaml:3:") for line in concise)
    assert ork_cli("validate", "bad.yaml", "--format", "github", cwd=tmp_path).stdout.startswith(
        "::error file=bad.yaml"
    )
    assert ork_cli("validate", "good.yaml", cwd=tmp_path).returncode == 0
    assert ork_cli("validate", "missing.yaml", cwd=tmp_path).returncode == 3


def test_a_graph_is_drawn_as_text_mermaid_and_svg(ork: OrkCli) -> None:
    assert "make" in ork("graph", "flow.yaml").stdout
    assert ork("graph", "flow", "--format", "mermaid").stdout.startswith("flowchart")
    assert ork("graph", "flow.yaml", "--format", "svg").stdout.startswith("<svg")


def test_codes_are_explained(ork: OrkCli) -> None:
    assert "ORK201" in ork("explain", "ork201").stdout
    assert ork("explain", "ORK999").returncode == 3


def test_schemas_and_completion_scripts_are_printed(ork: OrkCli) -> None:
    assert "tasks" in json.loads(ork("schema").stdout)["properties"]
    assert "pools" in json.loads(ork("schema", "project").stdout)["properties"]
    for shell in ("bash", "zsh", "fish"):
        assert "_ORK_COMPLETE" in ork("completion", shell).stdout


def test_the_shell_completes_commands(project: Path, ork_cli: OrkCli) -> None:
    asked = {"_ORK_COMPLETE": "bash_complete", "COMP_WORDS": "ork ru", "COMP_CWORD": "1"}
    assert ork_cli(cwd=project, env=asked).stdout.splitlines() == ["plain,run", "plain,runs"]


def complete(project: Path, ork_cli: OrkCli, words: str) -> list[str]:
    asked = {"_ORK_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    return [line.partition(",")[2] for line in ork_cli(cwd=project, env=asked).stdout.splitlines() if line]


def test_the_shell_completes_runs_tasks_and_workflows(project: Path, ork: OrkCli, ork_cli: OrkCli) -> None:
    run = json.loads(ork_cli("runs", "--json", cwd=project).stdout)["runs"][0]
    tasks = [task["name"] for task in json.loads(ork_cli("show", "@last", "--json", cwd=project).stdout)["tasks"]]
    assert run["id"] in complete(project, ork_cli, "ork show ")
    assert "@last" in complete(project, ork_cli, "ork why @")
    assert complete(project, ork_cli, f"ork logs {run['id']} ") == tasks
    assert complete(project, ork_cli, f"ork trigger {run['workflow'][:2]}") == [run["workflow"]]


def test_completion_says_nothing_where_there_is_no_store(tmp_path: Path, ork_cli: OrkCli) -> None:
    assert complete(tmp_path, ork_cli, "ork show ") == []


def test_help_is_a_command_too(ork: OrkCli) -> None:
    assert ork("help", "run").stdout == ork("run", "--help").stdout
    assert ork("help").stdout == ork("--help").stdout
    assert ork("help", "runs", "diff").stdout == ork("runs", "diff", "--help").stdout
    assert ork("help", "nonsense").returncode == 2


def test_plan_and_deploy_take_the_workflow_of_this_folder(tmp_path: Path, ork_cli: OrkCli) -> None:
    assert ork_cli("deploy", cwd=tmp_path).returncode == 2
    (tmp_path / "workflow.yaml").write_text("name: here\ntasks: {a: {command: echo 1}}\n")
    assert "here" in ork_cli("plan", cwd=tmp_path).stdout
    assert "here" in ork_cli("deploy", cwd=tmp_path).stdout


def test_a_new_project_names_its_schema_for_editors(tmp_path: Path, ork_cli: OrkCli) -> None:
    ork_cli("init", "new", cwd=tmp_path)
    first = (tmp_path / "new/workflow.yaml").read_text().splitlines()[0]
    named = first.partition("$schema=")[2]
    assert "tasks" in json.loads((tmp_path / "new" / named).read_text())["properties"]
    assert ork_cli("run", cwd=tmp_path / "new").returncode == 0
    assert (tmp_path / "new/.ork/.gitignore").read_text() == "*\n"


@pytest.mark.parametrize("locale", [{"LANG": "C"}, {"LC_ALL": "POSIX"}, {"LANG": "en_US.UTF-8", "LC_ALL": "C"}])
def test_the_c_locale_gets_ascii(project: Path, ork: OrkCli, ork_cli: OrkCli, locale: dict[str, str]) -> None:
    shown = ork_cli("show", "@last", cwd=project, env=locale).stdout
    assert shown.isascii()
    assert "+ make" in shown


def test_the_doctor_finds_nothing_wrong_with_a_working_project(ork: OrkCli) -> None:
    assert ork("doctor").returncode == 0
    assert json.loads(ork("doctor", "--json").stdout)["ok"] is True


def test_the_doctor_tells_a_broken_store_with_exit_1(tmp_path: Path, ork_cli: OrkCli) -> None:
    (tmp_path / ".ork").mkdir()
    (tmp_path / ".ork/ork.db").write_bytes(b"this is no database" * 100)
    done = ork_cli("doctor", cwd=tmp_path)
    assert done.returncode == 1
    assert "✗ store" in done.stdout


def test_the_doctor_tells_of_alerts_that_would_reach_nobody(tmp_path: Path, ork_cli: OrkCli) -> None:
    def alerts(**env: str) -> list[dict[str, object]]:
        told = json.loads(ork_cli("doctor", "--json", cwd=tmp_path, env=env).stdout)["checks"]
        return [check for check in told if check["subject"] == "alerts"]

    assert alerts() == []
    (tmp_path / "ork.yaml").write_text("alerts: {ops: {webhook: {secret: HOOK}}, post: {mail: {to: a@b.example}}}\n")
    (missing,) = alerts()
    assert (missing["says"], missing["broken"]) == ("are sent to ops, post", False)
    assert "set the secret HOOK" in str(missing["fix"])
    assert [check["fix"] for check in alerts(HOOK="https://example.org")] == [None]
    (tmp_path / "ork.yaml").write_text("alerts: {ops: {webhok: https://example.org}}\n")
    assert [(check["broken"], "webhok" in str(check["says"])) for check in alerts()] == [(True, True)]


def test_a_broken_store_is_one_sentence_and_not_a_traceback(tmp_path: Path, ork_cli: OrkCli) -> None:
    (tmp_path / ".ork").mkdir()
    (tmp_path / ".ork/ork.db").write_bytes(b"this is no database" * 100)
    done = ork_cli("runs", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def test_the_schema_of_the_store_is_told(ork: OrkCli, tmp_path: Path, ork_cli: OrkCli) -> None:
    status = json.loads(ork("db", "status", "--json").stdout)
    assert status["schema"] == status["known"] > 0
    assert ork_cli("db", "migrate", cwd=tmp_path).returncode == 0
    assert json.loads(ork_cli("db", "status", "--json", cwd=tmp_path).stdout)["schema"] == status["known"]


def test_every_command_has_help_with_an_example(ork: OrkCli) -> None:
    text = ork("--help").stdout
    commands = re.findall(r"^  (\w[\w-]*)  +\S", text, re.M)
    assert commands == [name for section in SECTIONS.values() for name in section]
    for command in commands:
        shown = ork(command, "--help")
        assert shown.returncode == 0, command
        assert command in ("db", "workflow") or "Example:" in shown.stdout, command


def test_a_mistyped_command_is_answered_with_a_suggestion(ork: OrkCli) -> None:
    done = ork("rnus")
    assert done.returncode == 2
    assert "Did you mean `runs`?" in done.stderr


def test_an_internal_error_is_one_line_unless_asked_for_more(tmp_path: Path, ork_cli: OrkCli) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site/sitecustomize.py").write_text("import ork.settings\nork.settings.load_settings = None\n")
    broken = {"PYTHONPATH": str(tmp_path / "site")}
    done = ork_cli("runs", cwd=tmp_path, env=broken)
    assert done.returncode == 1
    assert done.stderr.startswith("error: internal error: ")
    assert "ORK_DEBUG=1" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Traceback" in ork_cli("runs", cwd=tmp_path, env={**broken, "ORK_DEBUG": "1"}).stderr
