"""Every command that makes work sets the alarm; `ork status` and `ork doctor` show it; ticks hand over in time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ork.app.installation import open_installation
from ork.settings import load_settings
from tests.cloud.cloud_tasks import FakeCloudTasks
from tests.conftest import OrkCli
from tests.serving import serving

pytestmark = pytest.mark.slow

ACCOUNT = "ork-wake@acme.iam.gserviceaccount.com"
FLOW = 'name: flow\nschedule: {cron: "0 0 1 1 *"}\ntasks:\n  a: {command: "true"}\n  ok: {approval: {message: go}}\n'
PLAIN = 'name: plain\ntasks:\n  a: {command: "true"}\n'


@pytest.fixture
def queue() -> Iterator[FakeCloudTasks]:
    fake = FakeCloudTasks(lambda: datetime.now(UTC), lambda *_call: 200)
    yield fake
    fake.close()


@pytest.fixture
def environment(queue: FakeCloudTasks) -> dict[str, str]:
    return {
        "ORK_ALARM": "cloud_tasks",
        "ORK_ALARM_QUEUE": queue.queue,
        "ORK_ALARM_URL": "https://ork.example",
        "ORK_ALARM_SERVICE_ACCOUNT": ACCOUNT,
        "ORK_ALARM_ENDPOINT": queue.url,
        "ORK_ALARM_KEYS_URL": queue.keys_url,
    }


class Project:
    def __init__(self, folder: Path, environment: dict[str, str], queue: FakeCloudTasks, ork_cli: OrkCli) -> None:
        self.folder, self.environment, self.queue, self._ork_cli = folder, environment, queue, ork_cli

    def ork(self, *args: str, code: int = 0) -> Any:
        done = self._ork_cli(*args, "--json", cwd=self.folder, env=self.environment)
        assert done.returncode == code, done.stdout + done.stderr
        assert "no tick was called" not in done.stderr
        return json.loads(done.stdout)

    def wakes(self) -> int:
        """How many wakes have been set; nobody calls them."""
        return sum("-wake-" in name for name in self.queue.names())


@pytest.fixture
def project(tmp_path: Path, environment: dict[str, str], queue: FakeCloudTasks, ork_cli: OrkCli) -> Project:
    (tmp_path / "flow.yaml").write_text(FLOW)
    (tmp_path / "plain.yaml").write_text(PLAIN)
    return Project(tmp_path, environment, queue, ork_cli)


def test_every_command_that_makes_work_sets_the_alarm_and_others_do_not(project: Project) -> None:
    def sets(*command: str, code: int = 0) -> bool:
        before = project.queue.calls["tasks.create"]
        project.ork(*command, code=code)
        return project.queue.calls["tasks.create"] > before

    assert not sets("deploy", "plain.yaml"), "a workflow without a schedule is nothing to wake for"
    assert sets("deploy", "flow.yaml")
    run = project.ork("trigger", "flow")["id"]
    assert project.wakes() >= 1
    while not project.ork("approvals")["approvals"]:
        project.ork("tick")
    assert sets("approve", run, "ok")
    assert sets("run", "plain")
    assert sets("rerun", "@last")
    cancelled = project.ork("trigger", "flow")["id"]
    assert sets("cancel", cancelled)
    assert sets("retry", cancelled, code=5), "it waits for approval again"
    assert not sets("workflow", "disable", "flow")
    assert sets("workflow", "enable", "flow")
    assert sets("backfill", "flow", "--from", "2020-01-01", "--to", "2021-01-02")
    assert not sets("scheduler", "pause", "--all")
    assert sets("scheduler", "resume", "--all")
    for reading in ("runs", "workflows", "schedules", "approvals"):
        assert not sets(reading)


def test_requests_of_the_api_set_the_alarm_and_on_request_a_wake_does_nothing_else(
    project: Project, plain_environment: dict[str, str]
) -> None:
    project.ork("deploy", "flow.yaml")
    with serving(project.folder, {**plain_environment, **project.environment}, "--on-request") as served:
        before = project.wakes()
        status, run = served.ask("POST", "/workflows/plain/runs", {})
        assert status == 404, "it is not deployed"
        status, run = served.ask("POST", "/workflows/flow/runs", {})
        assert (status, project.wakes()) == (201, before + 1)
        status, woken = served.ask("POST", "/wake")
        assert (status, woken) == (202, {"woken": "alarm"})
        assert served.ask("GET", f"/runs/{run['id']}")[1]["status"] == "pending", "nothing works behind a request"
        calls = sum(project.queue.calls.values())
        for _ in range(20):
            served.ask("POST", "/wake")
        assert sum(project.queue.calls.values()) - calls <= 2 * 6, "wakes of one second share a call"
        status, report = served.ask("POST", "/tick")
        assert (status, report["launched"]) == (200, 1)
        assert served.ask("GET", "/schedulers")[1] == {"schedulers": []}, "nothing is held after a request"
        assert len([name for name in project.queue.names() if "-due-" in name]) == 1
        assert not [name for name in project.queue.names() if "-guard-" in name]


def test_status_and_doctor_show_the_alarm(project: Project, ork_cli: OrkCli) -> None:
    project.ork("deploy", "flow.yaml")
    project.ork("tick")
    year = datetime.now(UTC) + timedelta(days=31)
    alarm = project.ork("status")["alarm"]
    assert alarm["alarm"] == f"Cloud Tasks queue {project.queue.queue}"
    assert datetime.now(UTC) - timedelta(minutes=1) < datetime.fromisoformat(alarm["next_call"]) < year
    assert alarm["problem"] is None
    checks = {each["subject"]: each for each in project.ork("doctor")["checks"]}
    assert "calls" in checks["alarm"]["says"]
    project.queue.paused = True
    broken = {each["subject"]: each for each in project.ork("doctor", code=1)["checks"]}["alarm"]
    assert broken["broken"]
    assert "paused" in broken["says"]
    assert "gcloud tasks queues resume" in broken["fix"]
    systemd = ork_cli("doctor", "--json", cwd=project.folder, env={"ORK_ALARM": "systemd", "PATH": "/nonexistent"})
    found = {each["subject"]: each for each in json.loads(systemd.stdout)["checks"]}["alarm"]
    assert (systemd.returncode, found["broken"]) == (1, True)
    assert "not installed" in found["says"] or "does not run" in found["says"]


def test_a_write_succeeds_and_says_so_if_the_alarm_cannot_be_set(project: Project, ork_cli: OrkCli) -> None:
    environment = {**project.environment, "ORK_ALARM_ENDPOINT": "http://127.0.0.1:9"}
    done = ork_cli("deploy", "flow.yaml", cwd=project.folder, env=environment)
    assert done.returncode == 0
    assert "it is stored, but no tick was called" in done.stderr
    assert [each["name"] for each in project.ork("workflows")["workflows"]] == ["flow"]


def test_on_request_needs_an_alarm(project: Project, ork_cli: OrkCli) -> None:
    done = ork_cli("serve", "--on-request", cwd=project.folder, env={"ORK_ALARM": "none"})
    assert done.returncode == 2
    assert "needs an alarm" in done.stderr


def test_a_tick_that_runs_out_of_time_hands_over_and_releases_everything(
    project: Project, plain_environment: dict[str, str]
) -> None:
    project.ork("deploy", "plain.yaml")
    for _ in range(3):
        project.ork("trigger", "plain")

    async def tick() -> tuple[Any, Any]:
        environ = {**plain_environment, **project.environment}
        installation = await open_installation(load_settings(folder=str(project.folder), environ=environ))
        try:
            # The end is before the beginning, and tasks that end at once make a next step due soon.
            report = await installation.tick(seconds=-1.0)
            return report, await installation.store.list_schedulers()
        finally:
            await installation.close()

    reports = [asyncio.run(tick()) for _ in range(8)]
    assert all(schedulers == () for _, schedulers in reports)
    assert all(report.next_wake is not None for report, _ in reports[:1])
    finished = sum(report.finished for report, _ in reports)
    project.ork("tick")
    statuses = {run["status"] for run in project.ork("runs")["runs"]}
    assert finished <= 3
    assert statuses <= {"success", "running"}


def test_a_scheduler_that_stops_leaves_its_work_to_ticks(project: Project, plain_environment: dict[str, str]) -> None:
    project.ork("deploy", "plain.yaml")
    with serving(project.folder, {**plain_environment, **project.environment}) as served:
        assert served.ask("POST", "/workflows/plain/runs", {})[0] == 201
        assert project.queue.names() == [], "a scheduler that runs needs no alarm"
        served.stop()
    assert project.wakes() == 1
