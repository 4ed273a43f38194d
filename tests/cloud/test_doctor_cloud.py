"""`ork doctor --cloud` in the box: everything works, and each thing that can be missing is named with what mends it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from ork.cli import cloud_checks
from ork.cli.damage_checks import Finding
from ork.settings import Settings, load_settings
from tests.cloud.cloud_run import FakeCloudRun
from tests.cloud.cloud_tasks import FakeCloudTasks, QuietServer
from tests.cloud.fake_gcs import FakeGcs
from tests.cloud.runners import ProcessRunner
from tests.firestore import emulator_or_skip

TASKS = "ork-task@acme.iam.gserviceaccount.com"
WAKE = "ork-wake@acme.iam.gserviceaccount.com"
MODULE = Path(__file__).resolve().parents[2] / "deploy/terraform/gcp"


class Service:
    """The address of the service: it answers what a test says."""

    def __init__(self) -> None:
        self.status, self.body = 200, b'{"ok": true}'
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(service.status)
                self.send_header("Content-Length", str(len(service.body)))
                self.end_headers()
                self.wfile.write(service.body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = QuietServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class Installation:
    """All services of an installation, and its settings as `deploy/terraform/gcp` makes them, with endpoints here."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        from tests.firestore_proxy import Proxy

        emulator = emulator_or_skip()
        self.folder = folder
        self.store = Proxy(emulator)
        self.gcs = FakeGcs()
        self.queue = FakeCloudTasks(lambda: datetime.now(UTC), lambda *_: 401)
        self.run = FakeCloudRun(ProcessRunner({}))
        self.service = Service()
        for each in (self.store, self.gcs, self.queue, self.run, self.service):
            stack.callback(each.close)
        (folder / "ork.yaml").write_text("default_where: cloudrun\ngcp: {project: acme, region: europe-west1}\n")
        (folder / "workers.yaml").write_text(f"workers:\n  default: {{image: flows, service_account: {TASKS}}}\n")
        self.environ = {
            "ORK_STORE": emulator.new_database(),
            "ORK_OBJECTS": self.gcs.url("documents"),
            "ORK_ALARM": "cloud_tasks",
            "ORK_ALARM_QUEUE": self.queue.queue,
            "ORK_ALARM_URL": self.service.url,
            "ORK_ALARM_SERVICE_ACCOUNT": WAKE,
            "ORK_WAKE_URL": f"{self.service.url}/api/v1/wake",
            "ORK_ALARM_ENDPOINT": self.queue.url,
            "ORK_CLOUD_RUN_ENDPOINT": self.run.url,
            "FIRESTORE_EMULATOR_HOST": self.store.host,
        }

    def settings(self, **changed: str | None) -> Settings:
        environ = {name: value for name, value in {**self.environ, **changed}.items() if value is not None}
        return load_settings(folder=str(self.folder), environ=environ)

    def found(self, check: str, **changed: str | None) -> list[Finding]:
        return list(getattr(cloud_checks, f"cloud_{check}")(self.settings(**changed)))

    def broken(self, check: str, **changed: str | None) -> Finding:
        """The one thing that is broken."""
        findings = [finding for finding in self.found(check, **changed) if finding.broken]
        assert len(findings) == 1, findings
        return findings[0]


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Installation]:
    with ExitStack() as stack:
        yield Installation(tmp_path, stack)


def test_a_whole_installation_has_nothing_to_mend_and_is_left_as_it_was(box: Installation) -> None:
    environ = {"PATH": "/usr/bin:/bin", **box.environ}
    done = subprocess.run(
        [sys.executable, "-m", "ork", "doctor", "--cloud", "--json"], cwd=box.folder, env=environ, capture_output=True
    )
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["ok"]) == (0, True), answer
    subjects = {check["subject"] for check in answer["checks"]}
    assert {"identity", "database", "bucket", "queue", "alarm", "jobs", "service"} <= subjects
    assert not [check for check in answer["checks"] if check["fix"]]
    assert not [key for key in box.gcs.keys() if "doctor" in key]  # noqa: SIM118 (a method of the fake)
    assert not box.queue.names()
    assert not box.run.jobs
    assert box.queue.calls["tasks.create"] == box.queue.calls["tasks.delete"] == 1


@pytest.mark.parametrize(
    ("changed", "fix"),
    [
        ({"ORK_STORE": None}, "ORK_STORE=firestore://"),
        ({"ORK_OBJECTS": None}, "ORK_OBJECTS=gs://"),
        ({"ORK_ALARM": "none"}, "ORK_ALARM=cloud_tasks"),
        ({"ORK_WAKE_URL": None}, "ORK_WAKE_URL=http"),
        ({"ORK_WAKE_URL": "https://other.example.com/api/v1/wake"}, "the same host"),
    ],
)
def test_settings_that_do_not_fit_are_named(box: Installation, changed: dict[str, str | None], fix: str) -> None:
    assert fix in str(box.broken("settings", **changed).fix)


def test_tasks_that_would_run_in_the_control_plane_are_named(box: Installation) -> None:
    (box.folder / "ork.yaml").write_text("")
    assert "default_where: cloudrun" in str(box.broken("settings").fix)


def test_a_worker_config_without_an_account_is_named_but_works(box: Installation) -> None:
    (box.folder / "workers.yaml").write_text("workers:\n  default: {image: flows}\n")
    (finding,) = box.found("settings")
    assert "default account" in finding.says
    assert not finding.broken


@pytest.mark.parametrize(
    ("fault", "method", "says"),
    [
        ("denied", "BatchGetDocuments", "datastore.entities.get"),
        ("denied", "Commit", "datastore.entities.create"),
        ("no database", "BatchGetDocuments", "gcloud firestore databases create"),
    ],
)
def test_what_the_database_lacks_is_named(box: Installation, fault: str, method: str, says: str) -> None:
    box.store.fault = lambda name, _: fault if name == method else None
    assert says in str(box.broken("store").fix)


def test_each_missing_index_is_named(box: Installation) -> None:
    box.store.fault = lambda name, number: "no index" if name == "RunQuery" and number == 4 else None
    finding = box.broken("store")
    assert "versions (workflow, -saved)" in finding.says
    assert "google_firestore_index.composite" in str(finding.fix)


def test_the_queries_of_the_check_need_exactly_the_shipped_indexes(box: Installation) -> None:
    """A query that some index serves in another way would not notice that its own is missing."""
    from ork.testing.firestore.indexes import needs_index

    box.found("store")
    assert not box.store.missing_indexes()
    shapes = [shape for shape in box.store.queries.values() if needs_index(shape)]
    assert len(shapes) == 4


@pytest.mark.parametrize(
    ("kind", "permission"),
    [("write", "storage.objects.create"), ("read", "storage.objects.get"), ("list", "storage.objects.list"), ("delete", "storage.objects.delete")],
)  # fmt: skip
def test_each_permission_that_is_missing_in_the_bucket_is_named(box: Installation, kind: str, permission: str) -> None:
    box.gcs.refuses = lambda found, _key: 403 if found == kind else None
    assert permission in str(box.broken("bucket").fix)


@pytest.mark.parametrize(
    ("permission", "says"),
    [
        ("cloudtasks.tasks.create", "google_cloud_tasks_queue_iam_member.control"),
        ("cloudtasks.tasks.delete", "google_cloud_tasks_queue_iam_member.control"),
        ("iam.serviceAccounts.actAs", "google_service_account_iam_member.act_as_wake"),
    ],
)
def test_each_permission_that_is_missing_for_the_queue_is_named(box: Installation, permission: str, says: str) -> None:
    box.queue.denied = {permission}
    fix = str(box.broken("queue").fix)
    assert permission in fix
    assert says in fix


def test_a_queue_that_does_not_exist_is_named(box: Installation) -> None:
    finding = box.broken("queue", ORK_ALARM_QUEUE="projects/acme/locations/eu/queues/other")
    assert "gcloud tasks queues create other" in str(finding.fix)


def test_what_failed_calls_were_answered_is_shown(box: Installation) -> None:
    from ork.app.alarms import open_alarm, read_alarm_state

    alarm = open_alarm(box.settings())
    box.queue._now = lambda: datetime(2100, 1, 1, tzinfo=UTC)
    alarm.set()
    box.queue.deliver_due()
    with box.queue.changed:
        assert box.queue.changed.wait_for(lambda: not any(box.queue._flying.values()), 60)
    state = read_alarm_state(box.settings())
    assert state is not None
    assert (state.failing, state.last_answer) == (1, "HTTP status code 401")


@pytest.mark.parametrize("permission", ["run.jobs.create", "run.jobs.runWithOverrides", "run.tasks.list"])
def test_each_permission_that_is_missing_for_jobs_is_named(box: Installation, permission: str) -> None:
    box.run.denied = {permission}
    fix = str(box.broken("jobs").fix)
    assert permission in fix
    assert "google_project_iam_member.jobs" in fix


def test_an_account_that_tasks_cannot_be_started_as_is_named(box: Installation) -> None:
    box.run.denied = {"iam.serviceAccounts.actAs"}
    finding = box.broken("jobs")
    assert TASKS in finding.says
    assert "google_service_account_iam_member.act_as_task" in str(finding.fix)


def test_logs_that_cannot_be_read_are_named(box: Installation) -> None:
    box.run.denied = {"logging.logEntries.list"}
    (finding,) = [each for each in box.found("jobs") if each.fix]
    assert "logging.logEntries.list" in str(finding.fix)
    assert not finding.broken


def test_a_service_that_is_not_enabled_is_named(box: Installation) -> None:
    words = "Cloud Run Admin API has not been used in project 1 before or it is disabled. Enable it by visiting https://console.developers.google.com/apis/api/run.googleapis.com/overview"
    box.run.faults.errors = [("jobs.testIamPermissions", 403, words)]
    assert "gcloud services enable run.googleapis.com --project=acme" in str(box.broken("jobs").fix)


@pytest.mark.parametrize(
    ("status", "body", "fix"),
    [
        (403, b"<html>Your client does not have permission", "--no-invoker-iam-check"),
        (404, b"<html>The requested URL was not found", "ORK_ALARM_URL"),
        (503, b"Service Unavailable", "logs read"),
    ],
)
def test_a_service_that_does_not_let_calls_through_is_named(
    box: Installation, status: int, body: bytes, fix: str
) -> None:
    box.service.status, box.service.body = status, body
    assert fix in str(box.broken("service").fix)


def test_a_service_that_does_not_answer_is_named(box: Installation) -> None:
    box.service.close()
    assert "google_cloud_run_v2_service.control" in str(box.broken("service").fix)


def test_it_says_that_it_does_not_work_through_a_server(box: Installation) -> None:
    environ = {"PATH": "/usr/bin:/bin", "ORK_SERVER": "https://ork.example.com"}
    done = subprocess.run(
        [sys.executable, "-m", "ork", "doctor", "--cloud"], cwd=box.folder, env=environ, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "gcloud run jobs execute" in done.stderr


def service_arguments(port: int) -> list[str]:
    """The command line of the service in the module, on another port."""
    import re

    found = re.search(r'args = (\["serve"[^\]]+\])', (MODULE / "service.tf").read_text())
    assert found is not None
    return [str(port) if word == "8080" else word for word in json.loads(found[1])]


def test_the_service_of_the_module_starts_once_there_is_a_token(box: Installation) -> None:
    """As docs/gcp.md has it: without a token it refuses, and says what to do; with one it answers on all addresses."""
    from urllib.request import urlopen

    from tests.postgres import free_port

    port = free_port()
    url = f"http://127.0.0.1:{port}"
    environ = {"PATH": "/usr/bin:/bin", **box.environ, "ORK_ALARM_URL": url, "ORK_WAKE_URL": f"{url}/api/v1/wake"}
    command = [sys.executable, "-m", "ork"]
    options: Any = {
        "cwd": box.folder,
        "env": environ,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "text": True,
    }
    refused = subprocess.run([*command, *service_arguments(port)], **options, timeout=60)
    assert refused.returncode == 4
    assert "ork token create" in refused.stderr
    made = subprocess.run([*command, "token", "create", "--role", "admin", "--name", "me"], **options, timeout=60)
    assert made.returncode == 0, made.stderr
    service = subprocess.Popen([*command, *service_arguments(port)], **options)
    try:
        assert service.stdout is not None
        assert "ready" in service.stdout.readline()
        with urlopen(f"{url}/healthz", timeout=60) as answer:
            assert answer.status == 200
        assert not [each for each in box.found("service", ORK_ALARM_URL=url) if each.broken]
    finally:
        service.terminate()
        service.communicate(timeout=60)


def test_every_line_of_terraform_that_a_fix_names_exists() -> None:
    import re

    text = "".join(path.read_text() for path in sorted(MODULE.glob("*.tf")))
    named = re.findall(r"\b(google_\w+)\.(\w+)", Path(cloud_checks.__file__).read_text())
    assert len(named) > 8
    for kind, name in named:
        assert f'resource "{kind}" "{name}"' in text, f"{kind}.{name}"
    assert "invoker_iam_disabled = true" in text
