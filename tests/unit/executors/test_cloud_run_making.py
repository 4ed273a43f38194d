"""Jobs and executions as requests to Cloud Run, and what executions say."""

from __future__ import annotations

import re
from typing import Any

import pytest

from ork.errors import DocumentError
from ork.executors.cloud_run.executions import ExecutionState, Seen
from ork.executors.cloud_run.making import (
    BucketVolume,
    attempt_files,
    execution_timeout,
    overrides,
    plain_file_key,
    plain_folders,
    plain_job,
    plain_job_name,
    worker_job,
    worker_variables,
)
from ork.executors.cloud_run.settling import worker_ending
from ork.model.cloud_run import MI, Place, executor_name, is_on_cloud_run, size_for, size_problem
from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.record import replaced
from tests.cloud.documents import container_document

BUCKET = BucketVolume("docs", "team/")


def spec(**changes: Any) -> dict[str, Any]:
    made = {
        "attempt": "7f3k/load/0/1", "kind": "python", "timeout": None, "stop_grace_seconds": 10, "argv": [],
        "container": container_document("image@sha256:1"),
    }  # fmt: skip
    return {**made, **changes}


def with_own(**changes: Any) -> dict[str, Any]:
    return spec(container=container_document("image@sha256:1", **changes))


def task_of(plan: Any) -> Any:
    return plan.content["template"]["template"]


def test_the_name_of_a_job_is_the_hash_of_its_content_and_no_attempts() -> None:
    one = worker_job(spec(), "image@sha256:1", "here", None)
    assert re.fullmatch(r"[a-z][a-z0-9-]{0,48}", one.name)
    assert worker_job(spec(attempt="other/task/0/2"), "image@sha256:1", "here", None) == one
    others = [
        worker_job(spec(), "image@sha256:2", "here", None),
        worker_job(spec(), "image@sha256:1", "there", None),
        worker_job(spec(), "image@sha256:1", "here", None, parallelism=7),
        worker_job(with_own(service_account="a@b.iam"), "image@sha256:1", "here", None),
        worker_job(
            with_own(secrets={"ORK_SECRET_A": "projects/p/secrets/a/versions/1"}), "image@sha256:1", "here", None
        ),
    ]
    assert len({one.name, *(each.name for each in others)}) == 6


def test_a_job_is_never_retried_by_the_platform_and_has_a_timeout_of_ours() -> None:
    task = task_of(worker_job(spec(), "image", "here", None))
    assert task["max_retries"] == 0
    assert task["timeout"]["seconds"] == 24 * 3600
    assert overrides({}, timeout=10**9)["timeout"]["seconds"] == 7 * 24 * 3600
    assert execution_timeout(spec(timeout=100.0)) == 170.0


def test_worker_configs_become_fields_of_the_job() -> None:
    own = {"service_account": "me@acme.iam", "network": "n", "subnet": "s", "gpu": "nvidia-l4"}
    task = task_of(worker_job(with_own(**own), "image", "here", None))
    assert task["service_account"] == "me@acme.iam"
    assert task["vpc_access"] == {"network_interfaces": [{"network": "n", "subnetwork": "s"}]}
    assert task["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert task["node_selector"] == {"accelerator": "nvidia-l4"}
    connected = task_of(worker_job(with_own(vpc_connector="c", network="n"), "image", "here", None))
    assert connected["vpc_access"] == {"connector": "c"}


def test_the_worker_is_brought_only_to_images_without_ork_and_only_from_a_bucket() -> None:
    brought = task_of(worker_job(with_own(has_ork=False), "image", "here", BUCKET))
    assert brought["containers"][0]["command"][0] == "python3"
    assert brought["volumes"][0]["gcs"] == {
        "bucket": "docs", "read_only": True, "mount_options": ["only-dir=team/workers", "implicit-dirs"],
    }  # fmt: skip
    for own, volume in ((True, BUCKET), (False, None)):
        task = task_of(worker_job(with_own(has_ork=own), "image", "here", volume))
        assert task["containers"][0]["command"] == ["ork-worker"]
        assert not task["volumes"]


def test_secrets_are_references_and_the_token_is_only_in_the_execution() -> None:
    plan = worker_job(with_own(secrets={"ORK_SECRET_A": "projects/p/secrets/a/versions/3"}), "image", "here", None)
    (variable,) = task_of(plan)["containers"][0]["env"]
    assert variable == {
        "name": "ORK_SECRET_A", "value_source": {"secret_key_ref": {"secret": "projects/p/secrets/a", "version": "3"}},
    }  # fmt: skip
    env = worker_variables(spec(), "gs://docs/team", "the token", "ab12")
    assert env["ORK_WORKER"].endswith("/ab12.zip")
    assert "the token" not in str(plan.content)


def test_a_plain_image_has_a_job_and_volumes_of_its_own() -> None:
    files = spec(kind="container", to_file="/in/a.json", from_file="/out/b.json", argv=["run"])
    plan = plain_job(files, "image", "here", BUCKET, [("A", "1")], {"B": "projects/p/secrets/b/versions/latest"})
    assert plan.name == plain_job_name("7f3k/load/0/1", "here") != plain_job_name("7f3k/load/0/2", "here")
    first, second = task_of(plan)["volumes"]
    assert first["gcs"]["mount_options"][0] == f"only-dir=team/{attempt_files('7f3k/load/0/1')}/0"
    assert (first["gcs"]["read_only"], second["gcs"]["read_only"]) == (True, False)
    assert plain_file_key(files, "/out/b.json") == "runs/7f3k/load.0.1.files/1/b.json"
    same = spec(to_file="/data/a.json", from_file="/data/b.json")
    assert plain_folders(same) == {"/data": True}
    with pytest.raises(DocumentError, match="in a folder"):
        plain_folders(spec(to_file="/a.json", from_file=None))
    with pytest.raises(DocumentError, match="gs://"):
        plain_job(files, "image", "here", None, [], {})


@pytest.mark.parametrize(
    ("cpu", "memory", "words"),
    [
        (1, 512 * MI, None), (8, 32768 * MI, None), (None, None, None), (3, None, "not 3"), (16, None, "at most 8"),
        (1, 8192 * MI, "at most 4Gi"), (None, 64 * MI, "at least 512Mi"), (8, 512 * MI, "at least 4Gi"),
        (None, 65536 * MI, "at most 32Gi"),
    ],
)  # fmt: skip
def test_sizes_that_are_not_offered_are_known(cpu: float | None, memory: int | None, words: str | None) -> None:
    problem = size_problem(cpu, memory)
    assert problem is None if words is None else words in str(problem)


def test_a_smaller_request_gets_the_next_size_that_is_offered() -> None:
    assert size_for(None, None) == (1, 512 * MI)
    assert size_for(0.5, 100 * MI) == (1, 512 * MI)
    assert size_for(3, 600 * MI) == (4, 2048 * MI)
    assert size_for(1, 6000 * MI) == (2, 6000 * MI)
    for cpu, memory in (size_for(0.5, 5e9), size_for(5, 1), size_for(8, 3e10)):
        assert size_problem(cpu, memory) is None


def test_a_place_is_part_of_the_names_of_attempts_and_executors() -> None:
    here, there = Place("acme", "europe-west1"), Place("acme", "europe-west4")
    key = AttemptKey(RunId("7f3k"), TaskKey("load"), 1)
    assert here.external_name(key) == f"cloudrun:acme/europe-west1:{key}" != there.external_name(key)
    assert executor_name(here, here) == "cloudrun"
    assert executor_name(there, here) == "cloudrun:acme/europe-west4"
    assert is_on_cloud_run("cloudrun:acme/europe-west4")
    assert not is_on_cloud_run("container")


def test_the_end_of_a_worker_without_a_result_is_told_in_the_platforms_words() -> None:
    seen = Seen("e", "a", ExecutionState.FAILED, "Memory limit of 512 MiB exceeded with 520 MiB used.")
    ending = worker_ending(seen, ["last line"])
    assert ending["failure"]["kind"] == "exit"
    assert "512 MiB" in ending["failure"]["message"]
    lost = worker_ending(replaced(seen, message="The machine was lost."), [])
    assert lost["failure"]["kind"] == "lost"
    assert worker_ending(replaced(seen, state=ExecutionState.SUCCEEDED), [])["failure"]["kind"] == "lost"
    assert worker_ending(replaced(seen, state=ExecutionState.CANCELLED), [])["state"] == "stopped"
