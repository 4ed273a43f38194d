"""An installation of every earlier release, killed in mid-run, is finished by this one: nothing is lost, nothing starts twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ork.compile.content import content_hash, from_document
from tests.golden.language import compiled
from tests.golden.opened import FOLDER, RELEASES, Opened, opened

FINAL = ("success", "failed", "cancelled")
CANCELLED = ("cancelled", "running, to be cancelled", "being cancelled")
FAILED = ("failed", "failed, to be retried")
# Times after which a machine that cannot be asked counts as lost, short enough for a test.
IMPATIENT = {
    "ORK_LEASE_SECONDS": "3", "ORK_RENEW_SECONDS": "1", "ORK_HEARTBEAT_SECONDS": "1", "ORK_STALE_SECONDS": "3",
    "ORK_FENCE_SECONDS": "2",
}  # fmt: skip


def ork(here: Opened, *words: str) -> str:
    command = [sys.executable, "-m", "ork", *words]
    done = subprocess.run(command, cwd=here.root, env=environment(here), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def environment(here: Opened) -> dict[str, str]:
    return {
        **os.environ,
        **IMPATIENT,
        "ORK_STORE": here.store,
        "ORK_OBJECTS": f"{objects_kind(here)}:{here.root}/.ork/objects",
    }


def objects_kind(here: Opened) -> str:
    return "journal" if here.store.startswith("sqlite") else "file"


@contextmanager
def scheduler(here: Opened) -> Iterator[None]:
    log = here.root / "scheduler.log"
    with open(log, "ab") as sink:
        process = subprocess.Popen(
            [sys.executable, "-m", "ork", "scheduler"], cwd=here.root, env=environment(here), stdout=sink, stderr=sink
        )
    try:
        yield
        assert process.poll() is None, log.read_text()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def statuses(here: Opened) -> dict[str, str]:
    return {run["id"]: run["status"] for run in json.loads(ork(here, "runs", "--limit", "100", "--json"))["runs"]}


def wait_for_all(here: Opened) -> dict[str, str]:
    deadline = time.monotonic() + 120
    while True:
        found = statuses(here)
        unfinished = [run for run, status in found.items() if status not in FINAL]
        if not unfinished:
            return found
        assert time.monotonic() < deadline, [ork(here, "why", run) for run in unfinished]
        time.sleep(0.2)


@pytest.mark.slow
@pytest.mark.parametrize("host", [None, "a-machine-that-is-gone"], ids=["same machine", "another machine"])
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.parametrize("release", RELEASES)
def test_all_its_runs_end_and_no_attempt_starts_twice(
    release: str, kind: str, host: str | None, tmp_path: Path
) -> None:
    with opened(release, kind, tmp_path, host=host) as here:
        before = statuses(here)
        (here.root / "release").touch()
        with scheduler(here):
            ork(here, "approve", here.runs["waiting for a person"], "release")
            for state in ("paused", "paused with something running"):
                ork(here, "resume", here.runs[state])
            after = wait_for_all(here)
    assert after.keys() == before.keys()
    ended = {state: after[run] for state, run in here.runs.items()}
    assert ended == {
        state: "cancelled" if state in CANCELLED else "failed" if state in FAILED else "success" for state in here.runs
    }
    started = here.started()
    assert sorted(started) == sorted(set(started)), "user code of one attempt began twice"
    assert f"start {here.runs['result nobody has seen']} work 2" not in started, "its result was lost"


@pytest.mark.parametrize("release", RELEASES)
def test_a_workflow_of_that_release_compiles_to_the_same_version(release: str) -> None:
    frozen = json.loads((FOLDER / release / "language.json").read_text())
    assert compiled(FOLDER / release / "language") == frozen


@pytest.mark.parametrize("release", RELEASES)
def test_a_version_of_that_release_is_read_and_keeps_its_hash(release: str) -> None:
    frozen = json.loads((FOLDER / release / "language.json").read_text())
    assert {name: content_hash(from_document(each["document"])) for name, each in frozen.items()} == {
        name: each["hash"] for name, each in frozen.items()
    }
