"""Alert targets as a person sets them up: wrong names, a test message, and what could not be sent."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.loopback import loopback

OrkCli = Callable[..., "subprocess.CompletedProcess[str]"]

FLOW = 'name: nightly\nschedule: "0 2 * * *"\n{alerts}tasks:\n  a: {{command: [sh, -c, exit 3]}}\n'


def write(folder: Path, alerts: str = "", project: str | None = None) -> None:
    (folder / "workflow.yaml").write_text(FLOW.format(alerts=alerts))
    if project is not None:
        (folder / "ork.yaml").write_text(project)


@pytest.mark.parametrize("project", [None, "", "alerts: {ops: https://example.org}\n"])
@pytest.mark.parametrize("command", ["validate", "deploy", "run"])
def test_an_alert_that_is_not_defined_is_an_error(
    tmp_path: Path, ork_cli: OrkCli, command: str, project: str | None
) -> None:
    write(tmp_path, "alerts: [opz]\n", project)
    done = ork_cli(command, "workflow.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "ORK208" in done.stderr
    assert ("did you mean `ops`?" if project else "define it in ork.yaml: `alerts: {opz:") in done.stderr


def test_deploy_notes_a_schedule_whose_failures_nobody_is_told_about(tmp_path: Path, ork_cli: OrkCli) -> None:
    write(tmp_path)
    done = ork_cli("deploy", "workflow.yaml", cwd=tmp_path)
    assert (done.returncode, "nightly has a schedule and no alert target" in done.stderr) == (0, True)
    for project in ("alerts: {ops: https://example.org}\n", "alerts: {all: {slack: x, every_workflow: true}}\n"):
        write(tmp_path, "alerts: [ops]\n" if "ops" in project else "", project)
        assert "no alert target" not in ork_cli("deploy", "workflow.yaml", cwd=tmp_path).stderr
    notes = json.loads(ork_cli("deploy", "workflow.yaml", "--json", cwd=tmp_path).stdout)["notes"]
    assert not any("alert" in note for note in notes)


def test_a_test_message_arrives_and_tells_why_if_it_does_not(tmp_path: Path, ork_cli: OrkCli) -> None:
    with loopback() as site:
        site.answers["/hook"] = (200, {})
        project = f"alerts: {{ops: {site.url}/hook, shut: http://127.0.0.1:1/}}\noutbound: {{allow: [127.0.0.1]}}\n"
        write(tmp_path, project=project)
        done = ork_cli("alerts", "test", "ops", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, "✓ ops: a test message was sent by webhook\n")
        (told,) = [json.loads(request.body) for request in site.asked]
    assert (told["kind"], told["text"].splitlines()[0]) == ("test", "ork: a test message")
    done = ork_cli("alerts", "test", "shut", cwd=tmp_path)
    assert (done.returncode, "no response from 127.0.0.1" in done.stderr) == (1, True)
    done = ork_cli("alerts", "test", "nobody", cwd=tmp_path)
    assert (done.returncode, "it has: ops, shut" in done.stderr) == (3, True)


def test_targets_are_listed_with_what_could_not_be_sent(tmp_path: Path, ork_cli: OrkCli) -> None:
    project = "alerts: {ops: 'http://127.0.0.1:1/', idle: {slack: https://example.org, on: run}}\n"
    write(tmp_path, "alerts: [ops]\n", project)
    assert ork_cli("run", cwd=tmp_path).returncode == 1
    shown = ork_cli("alerts", cwd=tmp_path).stdout
    assert [line.split() for line in shown.splitlines()[:3]] == [
        ["target", "sent", "by", "on", "workflows"],
        ["idle", "slack", "run", "none"],
        ["ops", "webhook", "everything", "nightly"],
    ]
    assert "✗ not sent nightly: task a failed" in shown
    assert "not a public address" in shown
    shape = json.loads(ork_cli("alerts", "--json", cwd=tmp_path).stdout)
    assert [target["name"] for target in shape["targets"]] == ["idle", "ops"]
    assert {each["kind"] for each in shape["unsent"]} == {"task", "run"}


def test_a_project_without_alerts_says_so(tmp_path: Path, ork_cli: OrkCli) -> None:
    write(tmp_path)
    assert "`alerts` in ork.yaml defines them" in ork_cli("alerts", cwd=tmp_path).stderr


def test_doctor_names_targets_that_were_removed_after_a_deploy(tmp_path: Path, ork_cli: OrkCli) -> None:
    def findings() -> list[tuple[str, str | None, bool]]:
        done = ork_cli("doctor", "--json", cwd=tmp_path)
        checks = json.loads(done.stdout)["checks"]
        return [(each["says"], each["fix"], each["broken"]) for each in checks if each["subject"] == "alerts"]

    both = "alerts: {ops: https://example.org, dev: https://example.org}\n"
    write(tmp_path, "alerts: [ops, dev]\n", both)
    assert ork_cli("deploy", "workflow.yaml", cwd=tmp_path).returncode == 0
    assert findings() == [("are sent to dev, ops", None, False)]
    removed = (
        "ork.yaml does not define `ops`, which is used by nightly: nothing is sent to it",
        "define `ops` below `alerts` in ork.yaml, or remove it from the workflow and deploy that again",
        False,
    )
    (tmp_path / "ork.yaml").write_text("alerts: {dev: https://example.org}\n")
    assert findings() == [("are sent to dev", None, False), removed]
    (tmp_path / "ork.yaml").write_text("")
    assert removed in findings()
    write(tmp_path, "", "alerts: {dev: https://example.org}\n")
    assert ork_cli("deploy", "workflow.yaml", cwd=tmp_path).returncode == 0
    assert findings() == [("are sent to dev", None, False)]
