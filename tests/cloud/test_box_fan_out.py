"""A fan-out of which three shards fail, on Cloud Run with documents in each kind of bucket, by a scheduler and by ticks alone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("google.cloud.run_v2", reason="the extra `gcp` is not installed")

from tests.buckets import CREDENTIALS, new_bucket
from tests.cloud.bucket_volumes import GcsBucket
from tests.cloud.fake_gcs import BUCKET, FakeGcs
from tests.cloud.runners import ProcessRunner
from tests.cloud.test_cloud_run_runs import Yard
from tests.conftest import OrkCli

pytestmark = pytest.mark.slow

FLOW = "name: flow\ntasks:\n  each: {file: shards.py, parallel: SIZE, concurrency: 8, retries: 1}\n"
SHARDS = """
import os
def main():
    shard = int(os.environ["ORK_PARALLEL_INDEX"])
    with open("LEDGER", "a") as ledger:
        ledger.write(f"{shard} ")
    if shard in BROKEN and os.environ["ORK_ATTEMPT"] == "1":
        raise ValueError(f"shard {shard} is broken")
    return shard
"""


@pytest.fixture
def yard(tmp_path: Path, ork_cli: OrkCli, plain_environment: dict[str, str]) -> Iterator[Yard]:
    """Its image is the project's own folder, with Ork and the credentials of a bucket; its containers are processes."""
    runner = ProcessRunner({"project:1": tmp_path}, CREDENTIALS)
    made = Yard(tmp_path, runner, ork_cli, {**plain_environment, **CREDENTIALS})
    made.write("workers.yaml", "default: {image: 'project:1'}\n")
    yield made
    made.cloud.close()


@pytest.mark.parametrize("how", ["scheduler", "tick"])
@pytest.mark.parametrize("bucket", ["gs", "s3"])
@pytest.mark.parametrize("size", [pytest.param(24, id="small"), pytest.param(1000, id="full", marks=pytest.mark.soak)])
def test_shards_that_fail_come_back_in_few_executions(
    yard: Yard, gcs: FakeGcs, size: int, bucket: str, how: str
) -> None:
    yard.environment["ORK_OBJECTS"] = gcs.url() if bucket == "gs" else new_bucket(bucket)
    yard.cloud.buckets[BUCKET] = GcsBucket(gcs.endpoint, BUCKET, gcs.keys)
    broken, ledger = [size // 100, size // 2, size - 1], yard.folder / "ledger"
    yard.write("shards.py", SHARDS.replace("LEDGER", str(ledger)).replace("BROKEN", str(broken)))
    yard.write("flow.yaml", FLOW.replace("SIZE", str(size)))
    yard.ork("deploy", "flow.yaml")
    yard.ork("trigger", "flow")
    began = time.monotonic()
    scheduler = yard.begin("scheduler") if how == "scheduler" else None

    def is_over() -> bool:
        if scheduler is None:
            yard.ork("tick")
        return yard.show()["status"] not in ("pending", "running")

    try:
        yard.until(is_over, 2400)
    finally:
        if scheduler is not None:
            scheduler.terminate()
            scheduler.wait(60)
    print(f"{size} shards, {bucket}, {how}: {time.monotonic() - began:.0f} s, {dict(yard.cloud.calls)}")
    assert yard.show()["status"] == "success"
    assert sorted(map(int, ledger.read_text().split())) == sorted([*range(size), *broken])
    assert sum(execution.task_count for execution in yard.cloud.executions) == size + 3
    assert len(yard.cloud.executions) <= 4, "one for all, and at most one for each failed shard"
    yard.until(lambda: yard.cloud.running() == 0)
