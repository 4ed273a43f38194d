"""What the first request of a new instance takes: the time from the alarm's call until Cloud Run has accepted the start, and memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

pytest.importorskip("google.cloud.firestore_v1", reason="the extra `gcp` is not installed")

from tests.cloud.box import ACCOUNT, CloudBox
from tests.cloud.front_end import Instance, ask
from tests.cloud.virtual_clock import VirtualClock
from tests.firestore import emulator_or_skip

pytestmark = pytest.mark.slow

MOST_SECONDS = 0.5
MOST_MEMORY = 128 << 20
STARTS = 5


@pytest.fixture
def box(tmp_path: Path, plain_environment: dict[str, str]) -> Iterator[CloudBox]:
    """Its clock is the real one."""
    clock = VirtualClock(datetime.now(UTC), tmp_path.parent / f"{tmp_path.name}.clock")
    with ExitStack() as stack:
        yield CloudBox(tmp_path, plain_environment, clock, emulator_or_skip(), stack)


def test_a_task_is_started_soon_after_the_call_and_in_little_memory(box: CloudBox) -> None:
    """The first start makes the Job, which later ones use; an instance is new for each of them."""
    box.write("flow.yaml", "name: flow\ntasks:\n  a: {command: 'true'}\n")
    box.ork("deploy", "flow.yaml")
    took = [first_request(box) for _ in range(STARTS + 1)][1:]
    seconds, cpu, memory = (min(values) for values in zip(*took, strict=True))
    print(
        f"\nfrom the call to the accepted start: {seconds * 1000:.0f} ms at best of {STARTS}, {cpu * 1000:.0f} ms of it on a processor; "
        f"all: {[f'{each[0] * 1000:.0f}' for each in took]} ms; memory {memory / 2**20:.0f} MB"
    )
    assert cpu <= MOST_SECONDS
    assert seconds <= MOST_SECONDS * other_work()
    assert memory <= MOST_MEMORY


def other_work() -> float:
    """How many processes want each processor of this machine; at least 1."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def first_request(box: CloudBox) -> tuple[float, float, int]:
    """A new run is started by the first request of a new instance. Seconds until the start, seconds of CPU until the answer, memory."""
    box.ork("trigger", "flow")
    instance = Instance(box.folder, box.environment)
    try:
        token = box.queue.signer.token(box.front.url, ACCOUNT, datetime.now(UTC))
        headers = {"Authorization": f"Bearer {token}", "Host": box.front.url.removeprefix("http://")}
        began = datetime.now(UTC)
        status, answer = ask(instance.port, "POST", "/api/v1/tick", headers, b"", 120)
        assert status == 200, answer
        cpu = instance.cpu_seconds() - instance.cpu_at_start
        started = max(each.create_time for each in box.cloud.executions)
        return (started - began).total_seconds(), cpu, instance.memory()
    finally:
        instance.end()
