"""Everything fails at once: schedulers are killed, answers of Cloud Run are lost, it starts tasks twice, listings are late, the bucket is away.

The ledger is a file that user code writes itself: it shows what really started.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("google.cloud.run_v2", reason="the extra `gcp` is not installed")

from tests.cloud.bucket_volumes import GcsBucket
from tests.cloud.fake_gcs import BUCKET, WRITE, FakeGcs
from tests.cloud.runners import ProcessRunner
from tests.cloud.test_cloud_run_runs import PROJECT, Yard
from tests.conftest import OrkCli
from tests.postgres import server_or_skip

pytestmark = pytest.mark.slow

LATE_SECONDS = 10.0
KILL_SECONDS = 5.0
FLOW = """
name: flow
defaults: {retries: 3}
tasks:
  numbers: {file: work.py}
  each: {file: work.py, foreach: [1, 2, 3], depends_on: [numbers]}
  command: {command: [sh, -c, 'echo $ORK_ATTEMPT_ID >> LEDGER; sleep 1'], depends_on: [numbers]}
  plain: {image: plain, command: [sh, -c, 'echo $ORK_ATTEMPT_ID >> LEDGER; cp /in/n.json /out/n.json'], retries: 9,
          depends_on: [numbers], inputs: {n: {ref: tasks.numbers.output}}, input: {to_file: /in/n.json}, output: {from_file: /out/n.json}}
  last: {file: work.py, depends_on: [each, command, plain]}
"""
WORK = """
import os, time
def main():
    with open("LEDGER", "a") as ledger:
        ledger.write(os.environ["ORK_ATTEMPT_ID"] + "\\n")
    time.sleep(1)
    return [1, 2, 3]
"""
# Failures of attempts whose user code never started do no harm, and a plain image whose start is in doubt counts as lost.
FALSELY_LOST = (
    "SELECT external_name, failure FROM ork.attempts WHERE failure::json->>'kind' <> 'start' AND name <> 'plain'"
)


class Size(NamedTuple):
    runs: int
    kills: int
    bucket_away_seconds: float
    patience_seconds: float


@pytest.fixture
def yard(tmp_path: Path, gcs: FakeGcs, ork_cli: OrkCli, plain_environment: dict[str, str]) -> Iterator[Yard]:
    """Schedulers on Postgres, documents in a bucket, tasks as processes on Cloud Run."""
    server = server_or_skip()
    database = server.new_database()
    made = Yard(tmp_path, ProcessRunner({"project:1": tmp_path, "plain": tmp_path}), ork_cli, plain_environment)
    made.environment |= {
        "ORK_STORE": server.url(database), "ORK_OBJECTS": gcs.url(), "ORK_LEASE_SECONDS": "4", "ORK_RENEW_SECONDS": "1",
        "ORK_HEARTBEAT_SECONDS": "2", "ORK_STALE_SECONDS": "12",
    }  # fmt: skip
    made.cloud.buckets[BUCKET] = GcsBucket(gcs.endpoint, BUCKET, gcs.keys)
    made.write("ork.yaml", PROJECT + "executors: {cloudrun: {max_workers: 4}}\n")
    made.write("workers.yaml", "default: {image: 'project:1'}\n")
    made.write("work.py", WORK.replace("LEDGER", str(tmp_path / "ledger")))
    made.write("flow.yaml", FLOW.replace("LEDGER", str(tmp_path / "ledger")))
    made.sql = lambda text: server.sql(text, database)  # type: ignore[attr-defined]
    yield made
    made.cloud.close()
    server.drop_database(database)


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(Size(2, 4, 8.0, 240.0), id="small"),
        pytest.param(Size(12, 24, 60.0, 900.0), id="full", marks=pytest.mark.soak),
    ],
)
def test_user_code_starts_at_most_once_and_every_run_ends(yard: Yard, gcs: FakeGcs, size: Size) -> None:
    yard.ork("deploy", "flow.yaml")
    for _ in range(size.runs):
        yard.ork("trigger", "flow")
    faults = yard.cloud.faults
    faults.lost_answers, faults.starts_twice, faults.late_listings = 0.3, True, LATE_SECONDS
    gcs.listing_delay = LATE_SECONDS
    harass(yard, gcs, size)
    last = yard.begin("scheduler")
    try:
        unfinished = "SELECT count(*) FROM ork.runs WHERE finished_at IS NULL"
        yard.until(lambda: yard.sql(unfinished) == "0", size.patience_seconds)
        assert yard.sql("SELECT DISTINCT status FROM ork.runs") == "success"
        assert yard.sql(FALSELY_LOST) == ""
        starts = Counter((yard.folder / "ledger").read_text().split())
        assert len(starts) >= size.runs * 7
        assert [name for name, number in starts.items() if number > (2 if "/plain/" in name else 1)] == []
        yard.until(lambda: yard.cloud.running() == 0)
        gives_back_everything(yard, gcs)
    finally:
        last.terminate()
        last.wait(60)


def gives_back_everything(yard: Yard, gcs: FakeGcs) -> None:
    """Slots are free. Of the Jobs only those that the next attempts use are left, once another run was carried out without faults: none of
    plain images."""
    assert not [limit for limit in json.loads(yard.ork("status", "--json"))["limits"] if limit["used"]]
    assert yard.sql("SELECT count(*) FROM ork.attempts WHERE status IN ('dispatched', 'running')") == "0"
    yard.cloud.faults.lost_answers, yard.cloud.faults.late_listings, gcs.listing_delay = 0.0, 0.0, 0.0
    yard.ork("trigger", "flow")
    yard.until(lambda: yard.sql("SELECT count(*) FROM ork.runs WHERE finished_at IS NULL") == "0")
    yard.until(lambda: not [job for job in yard.cloud.jobs if job.startswith("ork-a-")])


def harass(yard: Yard, gcs: FakeGcs, size: Size) -> None:
    """Kill the scheduler again and again; take the bucket away in the middle."""
    back_at = None
    for number in range(size.kills):
        scheduler = yard.begin("scheduler")
        time.sleep(KILL_SECONDS)
        if number == size.kills // 3:
            gcs.is_down, back_at = True, time.monotonic() + size.bucket_away_seconds
        if back_at is not None and time.monotonic() > back_at:
            gcs.is_down = False
        scheduler.kill()
        scheduler.wait()
    gcs.is_down = False


def test_a_task_without_retries_goes_on_without_the_bucket_for_longer_than_the_stale_limit(
    yard: Yard, gcs: FakeGcs
) -> None:
    """Elsewhere a worker that cannot write heartbeats ends its task after nine of these seconds. A scheduler dies, too. The minute at the usual
    pace is in test_cloud_run_buckets."""
    ledger, go = yard.folder / "ledger", yard.folder / "go"
    command = f"echo $ORK_ATTEMPT_ID >> {ledger}; while [ ! -e {go} ]; do sleep 0.1; done; echo end >> {ledger}"
    yard.write("held.yaml", f"name: held\ntasks:\n  hold: {{command: [sh, -c, '{command}']}}\n")
    yard.ork("deploy", "held.yaml")
    yard.ork("trigger", "held")
    schedulers = [yard.begin("scheduler")]
    try:
        yard.until(ledger.exists)
        yard.until(lambda: gcs.count(WRITE, ".status.json") > 0)
        gcs.is_down = True
        time.sleep(25)  # the outage itself
        schedulers[0].kill()
        go.touch()
        yard.until(lambda: ledger.read_text().endswith("end\n"))
        gcs.is_down = False
        schedulers.append(yard.begin("scheduler"))
        yard.until(lambda: yard.sql("SELECT count(*) FROM ork.runs WHERE finished_at IS NULL") == "0")
    finally:
        for scheduler in schedulers:
            scheduler.kill()
            scheduler.wait()
    assert yard.sql("SELECT status FROM ork.runs") == "success"
    assert len(ledger.read_text().splitlines()) == 2
    assert len(yard.cloud.executions) == 1
