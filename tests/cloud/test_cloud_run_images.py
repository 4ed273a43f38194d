"""Attempts in three kinds of images on Cloud Run, as real containers: with Ork, with python3 only, and plain ones."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("google.cloud.run_v2", reason="the extra `gcp` is not installed")

from ork.executors.cloud_run.archive import worker_archive
from ork.executors.cloud_run.executor import CloudRunExecutor
from ork.executors.cloud_run.making import BucketVolume
from ork.executors.executor import LaunchOrder, Presence
from ork.model.record import replaced
from ork.objects.opening import open_objects
from tests.cloud.bucket_volumes import FolderBucket
from tests.cloud.cloud_run import FakeCloudRun
from tests.cloud.documents import container_document
from tests.cloud.executors import cloud_run_executor
from tests.cloud.runners import DockerRunner
from tests.docker import busybox, daemon_or_skip, python_image
from tests.integration.workshop import ENDS, Workshop

pytestmark = pytest.mark.slow

TASK = b"""
import os
def main(name):
    return {"hello": name, "secret": os.environ.get("ORK_SECRET_KEY") is not None}
"""


class Shop(Workshop):
    """An object store that is a bucket to the fake Cloud Run, which its containers see as a folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.folder = folder / "bucket"
        self.objects = open_objects(f"file:{self.folder}")
        self.daemon = daemon_or_skip()
        busybox(self.daemon)
        self.cloud = FakeCloudRun(DockerRunner(self.daemon, [self.folder]))
        self.cloud.buckets["docs"] = FolderBucket(self.folder)
        self.volume = BucketVolume("docs")

    @asynccontextmanager
    async def executor_open(self, volume: BucketVolume | None) -> AsyncIterator[CloudRunExecutor]:
        executor = cloud_run_executor(self.cloud, self.objects, volume)
        try:
            yield executor
        finally:
            await executor.close()

    def cloud_order(self, executor: CloudRunExecutor, image: str, task: str = "work", **spec: Any) -> LaunchOrder:
        attempt = self.attempt(task)
        attempt = replaced(attempt, executor="cloudrun", external_name=executor.name_for(attempt.key))
        own = {name: spec.pop(name) for name in ("has_ork", "secrets") if name in spec}
        return self.order(attempt, news=None, root=".", container=container_document(image, **own), **spec)

    async def ended_on(self, executor: CloudRunExecutor, order: LaunchOrder) -> dict[str, Any]:
        news: asyncio.Queue[object] = asyncio.Queue()
        assert list(await executor.start([order], lambda key, _status=None, /: news.put_nowait(key))) == []
        async with asyncio.timeout(90):
            while True:
                status = self.status(order.attempt)
                if status is not None and status["state"] in ENDS:
                    return status
                await news.get()
                if (await executor.find([order.attempt]))[0] is Presence.GONE and self.status(order.attempt) is None:
                    problems = await executor.start([order], lambda *_: None)
                    assert not problems, problems


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path)
    yield made
    made.cloud.close()


def run(work: Any) -> Any:
    return asyncio.run(work)


def test_an_image_with_python_alone_gets_the_worker_from_the_bucket(shop: Shop) -> None:
    image = python_image(shop.daemon, "py-only", {"/app/tasks.py": TASK}, "WORKDIR /app")

    async def scene() -> dict[str, Any]:
        async with shop.executor_open(shop.volume) as executor:
            inputs = {"name": {"value": "ada"}}
            order = shop.cloud_order(executor, image, kind="python", has_ork=False, inputs=inputs, secrets=secrets)
            return await shop.ended_on(executor, order)

    secrets = {"ORK_SECRET_KEY": "projects/acme/secrets/key/versions/latest"}
    shop.cloud.secrets["projects/acme/secrets/key"] = "open sesame"
    status = run(scene())
    assert status["state"] == "success", (status, shop.cloud.logs)
    assert json.loads(status["output"]["inline"])["hello"] == "ada"
    (execution,) = shop.cloud.executions
    shown = str(execution) + str(shop.cloud._jobs)
    assert "open sesame" not in shown
    assert "projects/acme/secrets/key" in shown
    assert (shop.folder / "workers" / f"{worker_archive()[0]}.zip").exists()


def test_a_worker_that_was_changed_in_the_bucket_is_not_run(shop: Shop) -> None:
    image = python_image(shop.daemon, "py-only", {"/app/tasks.py": TASK}, "WORKDIR /app")
    changed = shop.folder / "workers" / f"{worker_archive()[0]}.zip"
    changed.parent.mkdir(parents=True)
    changed.write_bytes(b"something else")

    async def scene() -> dict[str, Any]:
        async with shop.executor_open(shop.volume) as executor:
            order = shop.cloud_order(executor, image, kind="python", has_ork=False, inputs={"name": {"value": 1}})
            return await shop.ended_on(executor, order)

    status = run(scene())
    assert status["state"] == "failed"
    assert "did not start" in status["failure"]["message"]
    assert any(b"was changed" in log for log in shop.cloud.logs.values())


def test_a_plain_image_reads_its_input_and_leaves_its_output_in_files(shop: Shop) -> None:
    script = "echo working; cat /data/in.json > /out/result.json"
    files = {"kind": "container", "to_file": "/data/in.json", "from_file": "/out/result.json"}

    async def scene() -> dict[str, Any]:
        async with shop.executor_open(shop.volume) as executor:
            order = shop.cloud_order(
                executor, "busybox", argv=["sh", "-c", script], inputs={"n": {"value": 7}}, **files
            )
            status = await shop.ended_on(executor, order)
            executor.release([order.attempt])
            assert shop.log(order.attempt).startswith(b"working\n")
            return status

    status = run(scene())
    assert status["state"] == "success", status
    assert json.loads(status["output"]["inline"]) == {"n": 7}
    assert shop.cloud.jobs == []  # its own Job is gone
    assert shop.cloud.calls["jobs.run"] == 1


@pytest.mark.parametrize(
    ("script", "words", "code"),
    [("exit 4", "exit code 4", 4), ("tail /dev/zero", "out of memory", 137), ("exit 0", "no output", 0)],
)
def test_how_a_plain_image_fails_is_told_in_the_words_of_the_platform(
    shop: Shop, script: str, words: str, code: int
) -> None:
    async def scene() -> dict[str, Any]:
        async with shop.executor_open(shop.volume) as executor:
            files = {"kind": "container", "to_file": None, "from_file": "/out/result.json"}
            order = shop.cloud_order(executor, "busybox", argv=["sh", "-c", script], **files)
            return await shop.ended_on(executor, order)

    status = run(scene())
    assert status["state"] == "failed"
    assert words in status["failure"]["message"]
    assert status["exit_code"] == code


def test_a_plain_image_whose_start_is_in_doubt_is_ended_and_not_asked_for_again(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ork.executors.cloud_run.launching.DOUBT_SECONDS", 0.5)

    async def scene() -> dict[str, Any]:
        async with shop.executor_open(shop.volume) as executor:
            files = {"kind": "container", "to_file": None, "from_file": None}
            shop.cloud.faults.errors.append(("jobs.run", 503, "The service is currently unavailable."))
            shop.cloud.faults.slow_deletes = 3.0
            order = shop.cloud_order(executor, "busybox", argv=["sleep", "1"], **files)
            status = await shop.ended_on(executor, order)
            assert shop.cloud.jobs == []  # its next attempt may begin now, so nothing of this one may be left
            return status

    status = run(scene())
    assert status["failure"]["kind"] == "lost"
    assert shop.cloud.calls["jobs.run"] == 1


def test_a_job_that_exists_runs_with_arguments_and_variables_of_its_own(shop: Shop) -> None:
    from tests.cloud.test_fake_cloud_run import Client

    Client(shop.cloud).create("nightly", container={"image": "busybox", "command": ["sh", "-c"]})

    async def scene() -> dict[str, Any]:
        async with shop.executor_open(None) as executor:
            order = shop.cloud_order(
                executor,
                "",
                kind="cloud_run_job",
                job="nightly",
                argv=["test $DAY = friday"],
                env={"DAY": {"value": "friday"}},
            )
            return await shop.ended_on(executor, order)

    status = run(scene())
    assert status["state"] == "success", (status, shop.cloud.logs)
    assert "nightly" in json.loads(status["output"]["inline"])["execution"]
    assert shop.cloud.jobs == ["nightly"]
