"""Whole runs whose documents are in a bucket: no folder is shared, and nothing but the bucket is between scheduler and worker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.acceptance.waiting import wait_until
from tests.buckets import CREDENTIALS, new_bucket
from tests.cloud.fake_gcs import LIST, READ, WRITE, FakeGcs
from tests.conftest import OrkCli
from tests.postgres import fresh_database

pytestmark = pytest.mark.slow

FLOW = """
name: flow
tasks:
  small: {file: tasks.py, function: small}
  large: {file: tasks.py, function: large}
  read: {file: tasks.py, function: read, depends_on: [small], inputs: {text: {ref: tasks.large.output}}}
  command: {command: [sh, -c, 'echo from a command; echo 7'], depends_on: [read]}
  each: {file: tasks.py, function: small, parallel: 5, depends_on: [command]}
"""
TASKS = """
import os

def small():
    print("credentials:", [name for name in os.environ if name.startswith(("AWS_", "AZURE_", "ORK_STORE"))])
    return 1

def large():
    return "x" * 300_000

def read(text):
    return len(text)
"""
HELD = """
name: held
tasks:
  hold: {command: [sh, -c, 'echo begun >> {ledger}; while [ ! -e {go} ]; do sleep 0.05; done; echo 7']}
  after: {command: [sh, -c, 'echo after >> {ledger}'], depends_on: [hold]}
"""


def write_flow(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "workflow.yaml").write_text(FLOW)
    (folder / "tasks.py").write_text(TASKS)


def held_flow(folder: Path) -> str:
    return HELD.replace("{ledger}", str(folder / "ledger")).replace("{go}", str(folder / "go"))


@pytest.mark.parametrize("scheme", ["gs", "s3", "az"])
def test_a_run_with_its_documents_in_a_bucket(tmp_path: Path, ork_cli: OrkCli, scheme: str) -> None:
    write_flow(tmp_path)
    env = {"ORK_OBJECTS": new_bucket(scheme), **CREDENTIALS}

    def ork(*args: str) -> str:
        done = ork_cli(*args, cwd=tmp_path, env=env)
        assert done.returncode == 0, done.stdout + done.stderr
        return str(done.stdout)

    ork("run")
    assert json.loads(ork("output", "@last", "read")) == 300_000
    assert len(ork("output", "@last", "large").strip()) == 300_002
    assert "from a command" in ork("logs", "@last", "command")
    assert "credentials: []" in ork("logs", "@last", "small")
    assert "write, conditional write, read, list, delete" in ork("doctor")
    assert not (tmp_path / ".ork/objects").exists()
    assert "1 run deleted" in ork("prune", "--older-than", "0h", "--keep-last", "0")
    from ork.objects.buckets.opening import open_bucket

    assert open_bucket(env["ORK_OBJECTS"], forks=True).list("") == ["identity.json"]


@contextmanager
def running(folder: Path, environment: dict[str, str], *args: str) -> Iterator[subprocess.Popen[bytes]]:
    with open(folder / "log", "ab") as log, subprocess.Popen(
        [sys.executable, "-m", "ork", *args], cwd=folder, env=environment,
        stdin=subprocess.DEVNULL, stdout=log, stderr=log,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def test_a_run_goes_on_when_the_bucket_comes_back(
    gcs: FakeGcs, tmp_path: Path, plain_environment: dict[str, str]
) -> None:
    """The task ends while the bucket is away, and so does a heartbeat."""
    (tmp_path / "workflow.yaml").write_text(held_flow(tmp_path))
    env = {**plain_environment, "ORK_OBJECTS": gcs.url(), "ORK_HEARTBEAT_SECONDS": "1"}
    with running(tmp_path, env, "run") as process:
        wait_until(lambda: gcs.count(WRITE, ".status.json") > 0)
        gcs.is_down = True
        (tmp_path / "go").touch()
        time.sleep(3.0)  # the outage itself: nothing can be waited for while nobody answers
        gcs.is_down = False
        assert process.wait(120) == 0, (tmp_path / "log").read_text()
    assert (tmp_path / "ledger").read_text() == "begun\nafter\n"


def test_late_listings_and_lost_answers_delay_a_run_and_harm_nothing(
    gcs: FakeGcs, tmp_path: Path, plain_environment: dict[str, str]
) -> None:
    """No listing ever shows a heartbeat in time, and every third write loses its answer. The task is neither given up nor
    started twice."""
    (tmp_path / "workflow.yaml").write_text(held_flow(tmp_path))
    gcs.listing_delay, gcs.limits_writes = 60.0, True
    gcs.loses_answer = lambda kind, _key: kind == WRITE and gcs.count(WRITE) % 3 == 0
    env = {**plain_environment, "ORK_OBJECTS": gcs.url(), "ORK_HEARTBEAT_SECONDS": "1", "ORK_STALE_SECONDS": "6"}
    with running(tmp_path, env, "run") as process:
        wait_until(lambda: gcs.count(WRITE, ".status.json") >= 10)
        (tmp_path / "go").touch()
        assert process.wait(120) == 0, (tmp_path / "log").read_text()
    assert (tmp_path / "ledger").read_text() == "begun\nafter\n"


def test_two_schedulers_on_postgres_share_nothing_but_a_bucket(
    tmp_path: Path, plain_environment: dict[str, str], ork_cli: OrkCli
) -> None:
    """The one that owns the run is killed in its middle; the other one finishes it, and nothing starts twice."""
    with ExitStack() as stack:
        shared = {
            "ORK_STORE": stack.enter_context(fresh_database()),
            "ORK_OBJECTS": new_bucket("gs"),
            "ORK_LEASE_SECONDS": "2",
            "ORK_RENEW_SECONDS": "0.5",
        }
        folders = [tmp_path / "first", tmp_path / "second"]
        for folder in folders:
            folder.mkdir()
            (folder / "workflow.yaml").write_text(held_flow(tmp_path))

        def ork(*args: str) -> str:
            done = ork_cli(*args, cwd=folders[1], env=shared)
            assert done.returncode == 0, done.stdout + done.stderr
            return str(done.stdout)

        first = stack.enter_context(running(folders[0], {**plain_environment, **shared}, "scheduler"))
        ork("deploy", "workflow.yaml")
        ork("trigger", "held")
        wait_until(lambda: (tmp_path / "ledger").exists())
        stack.enter_context(running(folders[1], {**plain_environment, **shared}, "scheduler"))
        first.kill()
        first.wait()
        (tmp_path / "go").touch()
        ork("watch", "@last")
        assert json.loads(ork("show", "@last", "--json"))["status"] == "success"
        assert (tmp_path / "ledger").read_text() == "begun\nafter\n"


def test_a_missing_package_is_named(tmp_path: Path, ork_cli: OrkCli) -> None:
    write_flow(tmp_path)
    (tmp_path / "none").mkdir()
    (tmp_path / "none/obstore.py").write_text("raise ImportError('not here')\n")
    env = {"ORK_OBJECTS": "s3://bucket/prefix", "PYTHONPATH": str(tmp_path / "none")}
    for command in ("run", "doctor"):
        done = ork_cli(command, cwd=tmp_path, env=env)
        assert done.returncode != 0
        assert "pip install 'ork-orchestrator[cloud]'" in done.stdout + done.stderr


def test_what_running_attempts_cost(gcs: FakeGcs, tmp_path: Path, plain_environment: dict[str, str]) -> None:
    """Six heartbeats, which is a minute by default: at most 6 writes for them and 6 for the log, 7 reads for each attempt, and 6
    listings for the run. Here a heartbeat takes two seconds, the stale limit is six of them as it is by default, and a look comes with every
    second one."""
    heartbeat, attempts = 2.0, 4
    (tmp_path / "workflow.yaml").write_text(
        "name: wide\ntasks:\n  hold: {parallel: 4, command: [sh, -c, "
        f"'while [ ! -e {tmp_path}/go ]; do echo on; sleep 0.2; done']}}\n"
    )
    env = {
        **plain_environment,
        "ORK_OBJECTS": gcs.url(),
        "ORK_HEARTBEAT_SECONDS": f"{heartbeat:g}",
        "ORK_STALE_SECONDS": f"{6 * heartbeat:g}",
    }
    with running(tmp_path, env, "run") as process:
        # The first status and the gate of each are read once, with the first look.
        once = [f"hold.{number}.1.{name}.json" for number in range(attempts) for name in ("status", "gate")]
        wait_until(lambda: all(gcs.count(READ, name) > 0 for name in once))
        since = time.monotonic()
        time.sleep(6 * heartbeat)  # operations of a span of time are counted
        until = time.monotonic()
        counted = [each for each in list(gcs.operations) if since <= each.at <= until]
        (tmp_path / "go").touch()
        assert process.wait(60) == 0
    for number in range(attempts):
        own = [each for each in counted if f"hold.{number}.1." in each.key]
        writes = [each.key for each in own if each.kind == WRITE]
        assert 4 <= sum(key.endswith(".status.json") for key in writes) <= 6, writes
        assert sum("log/" in key for key in writes) <= 6, writes
        assert len(writes) <= 12
        assert sum(each.kind == READ for each in own) <= 7, [each.key for each in own if each.kind == READ]
    listings = [each.key for each in counted if each.kind == LIST]
    assert 2 <= len(listings) <= 4, listings  # with every second heartbeat, for all attempts
    assert os.path.basename(gcs.keys()[0]) == "identity.json"
