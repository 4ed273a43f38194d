"""Small things a demanding person notices: true sentences, fitting hints, the right exit code, JSON everywhere."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.waiting import wait_until

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]

CHAIN = "name: chain\ntasks:\n  a: {command: echo 1}\n  b: {command: echo 2, depends_on: [a]}\n"
NO_SCHEDULER = "no scheduler is running: `ork tick` or `ork scheduler` carries it out"


@pytest.fixture
def ork(tmp_path: Path, ork_cli: OrkCli) -> OrkCli:
    (tmp_path / "workflow.yaml").write_text(CHAIN)

    def call(*args: str, **options: Any) -> subprocess.CompletedProcess[str]:
        return ork_cli(*args, cwd=tmp_path, **options)

    return call


def shown(ork: OrkCli, run: str = "@last") -> dict[str, Any]:
    shape: dict[str, Any] = json.loads(ork("show", run, "--json").stdout)
    return shape


# ── retry ────────────────────────────────────────────────────────────────────────────────────────


def test_retrying_what_succeeded_is_refused_and_changes_nothing(ork: OrkCli) -> None:
    ork("run")
    before = shown(ork)
    refused = ork("retry", "@last")
    assert refused.returncode == 4
    assert "nothing failed" in refused.stderr
    assert "--all` runs everything again" in refused.stderr
    assert shown(ork) == before


def test_a_retry_nobody_carries_out_says_so_and_why_knows_of_it(ork: OrkCli) -> None:
    ork("run")
    asked = ork("retry", "@last", "--all", "--detach")
    assert asked.returncode == 0
    assert f"retry of everything requested; {NO_SCHEDULER}" in asked.stdout
    why = ork("why", "@last").stdout
    assert "`retry` of everything requested by" in why
    assert "no scheduler is running" in why
    ork("tick")
    assert "`retry`" not in ork("why", "@last").stdout


def test_one_task_run_again_is_shown_once(ork: OrkCli) -> None:
    ork("run")
    again = ork("retry", "@last", "--task", "b")
    assert "retrying b and everything downstream of it" in again.stdout
    assert again.stderr.count("✓ a") == 1
    assert again.stderr.count("✓ b") == 1
    everything = ork("retry", "@last", "--all")
    assert "retrying all tasks" in everything.stdout
    assert everything.stderr.count("✓ a") == 1


# ── signals ──────────────────────────────────────────────────────────────────────────────────────

STUBBORN = """\
name: stubborn
tasks:
  nap: {command: [sh, -c, "trap '' TERM; touch begun; sleep 60 & wait; sleep 60"]}
"""


def begin(folder: Path, environment: dict[str, str], grace_seconds: int) -> subprocess.Popen[str]:
    (folder / "workflow.yaml").write_text(STUBBORN)
    process = subprocess.Popen(
        [sys.executable, "-m", "ork", "run"],
        cwd=folder,
        env={**environment, "ORK_STOP_GRACE_SECONDS": str(grace_seconds)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: (folder / "begun").exists())
    return process


def test_leaving_a_cancelled_run_says_what_becomes_of_it(
    tmp_path: Path, ork: OrkCli, plain_environment: dict[str, str]
) -> None:
    process = begin(tmp_path, plain_environment, 8)
    process.send_signal(signal.SIGINT)
    wait_until(lambda: "cancel" in ork("why", "@last").stdout)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "is being cancelled; `ork tick` finishes it" in said
    assert "continues" not in said
    wait_until(lambda: ork("tick").returncode == 0 and shown(ork)["status"] == "cancelled")


def test_sigterm_is_not_called_ctrl_c(tmp_path: Path, ork: OrkCli, plain_environment: dict[str, str]) -> None:
    process = begin(tmp_path, plain_environment, 1)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Ctrl-C" not in said.splitlines()[-1]
    assert "cancelled by SIGTERM" in ork("why", "@last").stdout


# ── attempts ─────────────────────────────────────────────────────────────────────────────────────


def test_a_try_that_is_repeated_at_once_is_told_and_stays_visible(tmp_path: Path, ork: OrkCli) -> None:
    (tmp_path / "workflow.yaml").write_text(
        "name: flaky\ntasks:\n"
        "  f: {command: [sh, -c, 'test -e ok || { touch ok; exit 7; }'], retries: 2, retry_delay: 0}\n"
    )
    run = ork("run")
    told = [text for text in run.stderr.splitlines() if " f " in text]
    assert len(told) == 2, run.stderr
    assert "attempt 1 of 3" in told[0]
    assert "exit code 7" in told[0]
    assert told[1].startswith("  ✓ f")
    assert "2 attempts: exit code 7, then success" in ork("show", "@last").stdout


def test_a_timed_out_task_says_why_it_was_not_retried_and_how_long_stopping_took(tmp_path: Path, ork: OrkCli) -> None:
    (tmp_path / "workflow.yaml").write_text(
        "name: late\ntasks:\n  t: {command: [sh, -c, \"trap '' TERM; sleep 60\"], timeout: 200ms, retries: 2}\n"
    )
    run = ork("run", env={"ORK_STOP_GRACE_SECONDS": "2"})
    for text in (run.stderr, ork("show", "@last").stdout, ork("why", "@last", "t").stdout):
        assert "not retried: `retry_on` has no timeout" in text
        assert "stopping it took 2." in text
        assert "grace time" in text


# ── streams and files ────────────────────────────────────────────────────────────────────────────


def test_a_terminal_without_unicode_gets_ascii_instead_of_an_internal_error(ork: OrkCli) -> None:
    poor = {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    run = ork("run", env=poor)
    assert run.returncode == 0, run.stderr
    assert "+ a" in run.stderr
    assert run.stdout.isascii()
    assert ork("show", "@last", env=poor).stdout.startswith("chain - run ")


@pytest.mark.parametrize("file", ["pipe", "/dev/zero"])
def test_what_is_no_regular_file_is_not_read(tmp_path: Path, ork: OrkCli, file: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    refused = ork("validate", file, timeout=20)
    assert refused.returncode == 2
    assert "not a regular file" in refused.stderr


@pytest.mark.parametrize("args", [(), ("workflow",), ("db",)])
def test_a_bare_group_shows_its_help_and_calls_it_no_error(ork: OrkCli, args: tuple[str, ...]) -> None:
    bare = ork(*args)
    assert bare.returncode == 2
    assert bare.stderr.startswith("Usage: ork")
    assert "error:" not in bare.stderr
    assert "try `" not in bare.stderr


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────


def test_every_command_that_answers_something_answers_in_json(tmp_path: Path, ork: OrkCli) -> None:
    ork("run")

    def answer(*args: str) -> Any:
        done = ork(*args, "--json")
        assert done.returncode == 0, (args, done.stdout, done.stderr)
        return json.loads(done.stdout)

    assert answer("graph") == {
        "workflow": "chain",
        "tasks": [
            {"name": "a", "executor": "process", "depends_on": []},
            {"name": "b", "executor": "process", "depends_on": ["a"]},
        ],
    }
    assert answer("explain", "ork201")["code"] == "ORK201"
    assert answer("schema")["type"] == "object"
    assert "_ORK_COMPLETE" in answer("completion", "bash")["script"]
    assert answer("workflow", "disable", "chain") == {"name": "chain", "enabled": False}
    assert answer("workflow", "enable", "chain") == {"name": "chain", "enabled": True}
    assert answer("init", "new")["files"] == ["workflow.yaml", "tasks.py", "test_tasks.py"]
    lines = [json.loads(text) for text in ork("logs", "@last", "--json").stdout.splitlines()]
    assert lines == [
        {"task": "a", "index": None, "attempt": 1, "line": "1"},
        {"task": "b", "index": None, "attempt": 1, "line": "2"},
    ]


@pytest.mark.parametrize("command", ["run", "deploy", "graph"])
def test_the_mistakes_of_a_file_are_data_for_programs(tmp_path: Path, ork: OrkCli, command: str) -> None:
    (tmp_path / "bad.yaml").write_text("name: x\ntasks:\n  a: {command: echo, run_iff: 1}\n  b: {comand: echo}\n")
    refused = ork(command, "bad.yaml", "--json")
    assert refused.returncode == 2
    shape = json.loads(refused.stdout)
    assert shape["error"]["code"] == "ORK100"
    assert (shape["problems"][0]["line"], shape["problems"][0]["code"]) == (3, "ORK101")
    assert len(shape["problems"]) > 1


@pytest.mark.parametrize(
    "args",
    [("retry", "@last"), ("logs", "@last", "zzz"), ("explain", "ORK999"), ("init", "."), ("runs", "--limit", "x")],
)
def test_refusals_for_programs_are_json_too(ork: OrkCli, args: tuple[str, ...]) -> None:
    ork("run")
    refused = ork(*args, "--json")
    assert refused.returncode > 1
    assert set(json.loads(refused.stdout)) == {"error"}


# ── words ────────────────────────────────────────────────────────────────────────────────────────


def test_why_about_a_task_of_a_run_that_has_not_begun_is_about_the_task(ork: OrkCli) -> None:
    ork("deploy", "workflow.yaml")
    triggered = ork("trigger", "chain")
    assert NO_SCHEDULER in triggered.stderr
    why = ork("why", "@last", "b").stdout
    assert why.startswith(triggered.stdout[:4] + "/b: ")
    assert "has not started" in why
    assert "no scheduler is running" in why
    assert ork("why", "@last", "zzz").returncode == 3
    logs = ork("logs", "@last", "b")
    assert "`b` has not started" in logs.stderr
    assert "no scheduler is running" in logs.stderr


def test_refusals_tell_the_state_in_words_with_a_hint_that_fits(ork: OrkCli) -> None:
    ork("deploy", "workflow.yaml")
    ork("trigger", "chain")
    assert f"pause requested; {NO_SCHEDULER}" in ork("pause", "@last").stdout
    ork("tick")
    again = ork("pause", "@last")
    assert again.returncode == 4
    assert "it is paused already" in again.stderr
    assert "ork resume " in again.stderr
    ork("cancel", "@last")
    cancelled = ork("cancel", "@last")
    assert cancelled.returncode == 4
    assert "it has already been cancelled" in cancelled.stderr
    ork("run")
    late = ork("cancel", "@last")
    assert "it has already succeeded" in late.stderr
    assert "ork retry" not in late.stderr


def test_wrong_use_always_names_a_next_step(ork: OrkCli) -> None:
    ork("deploy", "workflow.yaml")
    for args in (("run", "-p", "x"), ("runs", "--limit", "x"), ("logs", "@last", "-f", "--attempt", "1")):
        refused = ork(*args)
        assert refused.returncode == 2, args
        assert len(refused.stderr.splitlines()) >= 2, (args, refused.stderr)


def test_logs_of_a_task_that_never_started_say_why(tmp_path: Path, ork: OrkCli) -> None:
    (tmp_path / "workflow.yaml").write_text(
        "name: broken\ntasks:\n  a: {command: 'false'}\n  b: {command: echo 2, depends_on: [a]}\n"
    )
    ork("run")
    logs = ork("logs", "@last", "b")
    assert "`b` has not started: skipped: a failed" in logs.stderr


def test_missing_objects_are_told(tmp_path: Path, ork: OrkCli) -> None:
    ork("run")
    (tmp_path / ".ork/objects").rename(tmp_path / "elsewhere")
    assert f"{tmp_path}/.ork/objects is missing" in ork("logs", "@last", "a").stderr
    assert f"{tmp_path}/.ork/objects is missing" in ork("doctor").stdout


def test_a_disabled_workflow_can_be_run_by_hand_with_a_note(ork: OrkCli) -> None:
    ork("run")
    ork("workflow", "disable", "chain")
    for args in (("run", "chain"), ("run", "workflow.yaml"), ("trigger", "chain")):
        done = ork(*args)
        assert done.returncode == 0
        assert "workflow chain is disabled" in done.stderr, args
    assert json.loads(ork("workflow", "show", "chain", "--json").stdout)["enabled"] is False


def test_many_mistakes_are_capped_with_the_way_to_see_all(tmp_path: Path, ork: OrkCli) -> None:
    (tmp_path / "bad.yaml").write_text("name: x\ntasks:\n" + "".join(f"  t{n}: {{comand: x}}\n" for n in range(300)))
    refused = ork("validate", "bad.yaml")
    errors = int(refused.stderr.splitlines()[-1].split()[0].replace(",", ""))
    assert refused.stderr.count("error[") == 50
    assert f"… {errors - 50:,} more (`ork validate --format concise` shows all)" in refused.stderr


def test_a_wrong_choice_is_listed_once(tmp_path: Path, ork: OrkCli) -> None:
    (tmp_path / "bad.yaml").write_text("name: x\ntasks:\n  a: {command: echo, run_if: foo}\n")
    assert ork("validate", "bad.yaml").stderr.count("any_success") == 1


def test_a_broken_store_is_found_once(tmp_path: Path, ork: OrkCli) -> None:
    ork("run")
    (tmp_path / ".ork/ork.db").write_bytes(b"nonsense" * 1000)
    for extra in (".ork/ork.db-wal", ".ork/ork.db-shm"):
        (tmp_path / extra).unlink(missing_ok=True)
    findings = json.loads(ork("doctor", "--json").stdout)["checks"]
    assert len([each for each in findings if each["broken"]]) == 1


# ── secrets and variables ────────────────────────────────────────────────────────────────────────


def test_a_secret_as_an_argument_is_refused_with_its_place(tmp_path: Path, ork: OrkCli) -> None:
    (tmp_path / "bad.yaml").write_text("name: x\ntasks:\n  a:\n    command: [curl, {secret: KEY}]\n")
    refused = ork("validate", "bad.yaml")
    assert refused.returncode == 2
    assert "bad.yaml:4:21" in refused.stderr
    assert "use `env`" in refused.stderr


def test_a_variable_that_is_no_text_is_refused_with_a_way_to_write_it(tmp_path: Path, ork: OrkCli) -> None:
    (tmp_path / "bad.yaml").write_text("name: x\ntasks:\n  a: {command: echo, env: {A: [1, 2], B: null}}\n")
    refused = ork("validate", "bad.yaml")
    assert refused.returncode == 2
    assert "write the JSON as text: '[1, 2]'" in refused.stderr
    assert "write '' for an empty variable" in refused.stderr
