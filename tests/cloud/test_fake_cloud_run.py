"""The fake Cloud Run, asked by Google's own client: it behaves as the documentation of the service says."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("google.cloud.run_v2", reason="the extra `gcp` is not installed")

from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import run_v2
from requests.exceptions import ConnectionError as LostConnectionError

from tests.cloud.cloud_run import FakeCloudRun, fake_cloud_run
from tests.cloud.runners import ProcessRunner

PARENT = "projects/acme/locations/europe-west1"


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[FakeCloudRun]:
    with fake_cloud_run(ProcessRunner({"image": tmp_path})) as made:
        yield made


class Client:
    def __init__(self, cloud: FakeCloudRun) -> None:
        how: Any = {
            "transport": "rest",
            "credentials": AnonymousCredentials(),
            "client_options": {"api_endpoint": cloud.url},
        }
        self.jobs, self.executions, self.tasks = (
            run_v2.JobsClient(**how), run_v2.ExecutionsClient(**how), run_v2.TasksClient(**how),
        )  # fmt: skip

    def create(self, name: str = "hello", script: str = "exit 0", **task: Any) -> None:
        container = {"image": "image", "command": ["sh", "-c", script], **task.pop("container", {})}
        template = {"containers": [container], "max_retries": 0, "timeout": {"seconds": 60}, **task}
        job = run_v2.Job({"template": {"task_count": 1, "template": template}})
        self.jobs.create_job(parent=PARENT, job=job, job_id=name)

    def run(self, name: str = "hello", **overrides: Any) -> str:
        operation = self.jobs.run_job(request=run_v2.RunJobRequest(name=f"{PARENT}/jobs/{name}", overrides=overrides))
        return str(operation.metadata.name)

    def ended(self, execution: str) -> run_v2.Execution:
        eventually(lambda: self.executions.get_execution(name=execution).completion_time is not None)
        return self.executions.get_execution(name=execution)


def eventually(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture
def client(cloud: FakeCloudRun) -> Client:
    return Client(cloud)


def test_an_execution_runs_its_job_with_its_own_variables_and_its_conditions_say_how_it_ended(
    cloud: FakeCloudRun, client: Client
) -> None:
    client.create(script='echo "$WHO $CLOUD_RUN_TASK_INDEX"; exit 3')
    name = client.run(container_overrides=[{"env": [{"name": "WHO", "value": "me"}]}])
    ended = client.ended(name)
    assert ended.conditions[0].state.name == "CONDITION_FAILED"
    assert "exit code 3" in ended.conditions[0].message
    assert [task.last_attempt_result.exit_code for task in client.tasks.list_tasks(parent=name)] == [3]
    assert cloud.logs[f"{name}/0"] == b"me 0\n"
    assert [variable.name for variable in ended.template.containers[0].env] == ["WHO"]


def test_several_tasks_have_an_index_each(cloud: FakeCloudRun, client: Client) -> None:
    client.create(script="echo $CLOUD_RUN_TASK_INDEX of $CLOUD_RUN_TASK_COUNT")
    name = client.run(task_count=3)
    assert client.ended(name).succeeded_count == 3
    assert sorted(cloud.logs.values()) == [b"0 of 3\n", b"1 of 3\n", b"2 of 3\n"]


def test_a_cancelled_execution_ends_and_says_so(client: Client) -> None:
    client.create(script="exec sleep 600")
    name = client.run()
    eventually(lambda: client.executions.get_execution(name=name).running_count == 1)
    client.executions.cancel_execution(name=name)
    ended = client.ended(name)
    assert ended.conditions[0].execution_reason.name == "CANCELLED"
    with pytest.raises(exceptions.BadRequest):
        client.executions.cancel_execution(name=name)


def test_the_timeout_ends_an_execution(client: Client) -> None:
    client.create(script="exec sleep 600")
    ended = client.ended(client.run(timeout={"seconds": 1}))
    assert "timeout" in ended.conditions[0].message


@pytest.mark.parametrize(
    ("name", "task", "words"),
    [
        ("Upper", {}, "lower case"),
        ("a" * 50, {}, "at most 49"),
        ("ok", {"timeout": {"seconds": 10**6}}, "168h"),
        ("ok", {"service_account": "nobody"}, "e-mail"),
        ("ok", {"vpc_access": {"connector": "external"}}, "connector"),
        ("ok", {"container": {"resources": {"limits": {"cpu": "1", "memory": "8192Mi"}}}}, "memory"),
        ("ok", {"container": {"env": [{"name": "CLOUD_RUN_JOB", "value": "x"}]}}, "reserved"),
        ("ok", {"container": {"volume_mounts": [{"name": "none", "mount_path": "/data"}]}}, "no volume"),
    ],
)
def test_what_the_service_would_refuse_is_refused(client: Client, name: str, task: dict[str, Any], words: str) -> None:
    with pytest.raises(exceptions.BadRequest, match=words):
        client.create(name, **task)


def test_a_job_exists_once_and_unknown_ones_are_not_found(client: Client) -> None:
    client.create()
    with pytest.raises(exceptions.Conflict):
        client.create()
    with pytest.raises(exceptions.NotFound):
        client.run("other")
    client.jobs.delete_job(name=f"{PARENT}/jobs/hello")
    with pytest.raises(exceptions.NotFound):
        client.jobs.get_job(name=f"{PARENT}/jobs/hello")


def test_another_project_is_forbidden_and_quotas_are_enforced(cloud: FakeCloudRun, client: Client) -> None:
    with pytest.raises(exceptions.Forbidden, match=r"run\.jobs\.get"):
        client.jobs.get_job(name="projects/other/locations/europe-west1/jobs/x")
    client.create()
    cloud.most_running = 0
    with pytest.raises(exceptions.TooManyRequests, match="Quota"):
        client.run()


def test_a_missing_image_makes_a_job_that_cannot_be_run(client: Client) -> None:
    client.create(container={"image": "nowhere"})
    assert "not found" in client.jobs.get_job(name=f"{PARENT}/jobs/hello").terminal_condition.message
    with pytest.raises(exceptions.BadRequest, match="not ready"):
        client.run()


def test_a_lost_answer_is_lost_after_the_execution(cloud: FakeCloudRun, client: Client) -> None:
    client.create()
    cloud.faults.lost_answers = 1.0
    with pytest.raises(LostConnectionError):
        client.run()
    cloud.faults.lost_answers = 0.0
    assert len(list(client.executions.list_executions(parent=f"{PARENT}/jobs/hello"))) == 1


def test_listings_can_be_late_and_gets_are_not(cloud: FakeCloudRun, client: Client) -> None:
    client.create()
    cloud.faults.late_listings = 600.0
    name = client.run()
    assert list(client.executions.list_executions(parent=f"{PARENT}/jobs/-")) == []
    assert client.executions.get_execution(name=name).name == name


def test_ended_executions_can_be_forgotten(cloud: FakeCloudRun, client: Client) -> None:
    client.create()
    name = client.run()
    client.ended(name)
    cloud.faults.forgets_ended = True
    with pytest.raises(exceptions.NotFound):
        client.executions.get_execution(name=name)


def test_an_execution_can_be_found_late_by_its_name(cloud: FakeCloudRun, client: Client) -> None:
    client.create()
    cloud.faults.late_names = 600.0
    name = client.run()
    with pytest.raises(exceptions.NotFound):
        client.executions.get_execution(name=name)


def test_a_job_can_be_deleted_late_with_its_executions(cloud: FakeCloudRun, client: Client) -> None:
    client.create(script="sleep 600")
    client.run()
    cloud.faults.slow_deletes = 1.0
    client.jobs.delete_job(name=f"{PARENT}/jobs/hello")
    assert client.jobs.get_job(name=f"{PARENT}/jobs/hello")
    eventually(lambda: not cloud.jobs and not cloud.executions)


def test_a_platform_can_start_a_task_twice(cloud: FakeCloudRun, client: Client) -> None:
    cloud.faults.starts_twice = True
    client.create(script="echo started")
    name = client.run()
    client.ended(name)
    assert cloud.logs[f"{name}/0"] == b"started\nstarted\n"
