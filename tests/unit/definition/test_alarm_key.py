"""`alarm` in ork.yaml and in the environment: checked in form, with a code and a position."""

from __future__ import annotations

from pathlib import Path

import pytest

from ork.definition.project_file import load_project
from ork.errors import UsageError
from ork.model.alarm import AlarmConfig, AlarmKind
from ork.settings import load_settings

QUEUE = "projects/acme/locations/europe-west1/queues/ork"
URL, ACCOUNT = "https://ork-abc.a.run.app", "ork-wake@acme.iam.gserviceaccount.com"
FULL = f"alarm: {{cloud_tasks: {{queue: {QUEUE}, url: {URL!r}, service_account: {ACCOUNT}}}}}\n"
CLOUD = AlarmConfig(AlarmKind.CLOUD_TASKS, QUEUE, URL, ACCOUNT)


@pytest.mark.parametrize(
    ("text", "alarm"),
    [
        ("alarm: none\n", AlarmConfig()),
        ("alarm: systemd\n", AlarmConfig(AlarmKind.SYSTEMD)),
        (FULL, CLOUD),
        ("", None),
    ],
)
def test_each_kind_is_read(text: str, alarm: AlarmConfig | None) -> None:
    project, problems = load_project(text.encode())
    assert problems == ()
    assert project.alarm == alarm


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("alarm: cron\n", "ORK851"),
        ("alarm: {}\n", "ORK851"),
        ("alarm: [systemd]\n", "ORK103"),
        ("alarm: {cloud_task: {}}\n", "ORK101"),
        ("alarm: {cloud_tasks: yes}\n", "ORK103"),
        (FULL.replace(QUEUE, "ork"), "ORK851"),
        (FULL.replace("https:", "http:"), "ORK851"),
        (FULL.replace("run.app", "run.app/tick"), "ORK851"),
        (FULL.replace(ACCOUNT, "ork-wake"), "ORK851"),
        (FULL.replace(f", service_account: {ACCOUNT}", ""), "ORK102"),
        (FULL.replace("queue:", "que:"), "ORK101"),
    ],
)
def test_a_mistake_has_its_code(text: str, code: str) -> None:
    project, problems = load_project(text.encode())
    assert [problem.code for problem in problems] == [code]
    assert problems[0].hint or code == "ORK103"
    assert project.alarm is None


def test_the_environment_replaces_the_file(tmp_path: Path) -> None:
    (tmp_path / "ork.yaml").write_text(FULL)
    folder = str(tmp_path)
    assert load_settings(folder=folder, environ={}).alarm == CLOUD
    assert load_settings(folder=folder, environ={"ORK_ALARM": "none"}).alarm is None
    changed = load_settings(folder=folder, environ={"ORK_ALARM_URL": "https://other.example"}).alarm
    assert changed == AlarmConfig(AlarmKind.CLOUD_TASKS, QUEUE, "https://other.example", ACCOUNT)
    systemd = load_settings(folder=folder, environ={"ORK_ALARM": "systemd"}).alarm
    assert systemd == AlarmConfig(AlarmKind.SYSTEMD)


@pytest.mark.parametrize(
    "environ",
    [{"ORK_ALARM": "at"}, {"ORK_ALARM": "cloud_tasks"}, {"ORK_ALARM_QUEUE": "ork"}],
)
def test_a_mistake_in_the_environment_is_named(tmp_path: Path, environ: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="ORK_ALARM") as caught:
        load_settings(folder=str(tmp_path), environ=environ)
    assert caught.value.code == "ORK851"
