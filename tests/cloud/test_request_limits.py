"""Requests end before the work does: by their own time limit, or because the platform kills the instance at its limit.

Many runs are due at once, and Firestore and the bucket answer slowly. The next call does the rest, and nothing runs twice.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, timedelta
from typing import Any
from urllib.request import urlopen

import pytest

pytest.importorskip("google.cloud.firestore_v1", reason="the extra `gcp` is not installed")

from ork.scheduler.service import TIMED_CLAIM_RUNS
from tests.cloud.box import CloudBox
from tests.firestore_proxy import Proxy

pytestmark = pytest.mark.slow

SLOW_SECONDS = 0.05  # what each answer of Firestore and the bucket takes
FLOW = """
name: {name}
schedule: {{cron: "0 12 * * *", catchup: all}}
tasks:
  a: {{command: [sh, -c, 'echo $ORK_ATTEMPT_ID >> ledger']}}
  b: {{command: [sh, -c, 'echo $ORK_ATTEMPT_ID >> ledger'], depends_on: [a]}}
"""
REQUEST_SECONDS = 0.2  # less than any step of this work takes


def deploy(box: CloudBox, runs: int) -> datetime:
    """So many runs are due at the same time, which is returned."""
    box.ork("deploy", *(box.write(f"flow{number}.yaml", FLOW.format(name=f"flow{number}")) for number in range(runs)))
    noon = box.begin.replace(hour=12, minute=0)
    box.live_until(noon - timedelta(minutes=1))
    box.firestore.latency = box.gcs.delay = SLOW_SECONDS
    return noon


def check(box: CloudBox, runs: int) -> None:
    """Each due time has one run that succeeded, and user code of each attempt started once."""
    box.firestore.latency = box.gcs.delay = 0.0
    shown = box.ork("runs", "--limit", "500")["runs"]
    assert [run["status"] for run in shown] == ["success"] * runs
    assert len({run["workflow"] for run in shown}) == runs
    started = Counter((box.folder / "ledger").read_text().split())
    assert len(started) == 2 * runs
    assert set(started.values()) == {1}


class Leases:
    """Which schedulers are registered in the store when a request has been answered."""

    def __init__(self, proxy: Proxy, store: str) -> None:
        project, database = store.removeprefix("firestore://").split("/")
        self._url = f"http://{proxy.emulator.host}/v1/projects/{project}/databases/{database}/documents/schedulers"

    def held(self) -> int:
        with urlopen(self._url, timeout=30) as answer:
            return len(json.load(answer).get("documents", ()))


@pytest.mark.parametrize("runs", [TIMED_CLAIM_RUNS + 2, pytest.param(60, marks=pytest.mark.soak)])
def test_a_request_that_reaches_its_limit_hands_the_rest_to_the_next_call(cloud_box: CloudBox, runs: int) -> None:
    box = cloud_box
    box.environment |= {"ORK_REQUEST_SECONDS": str(REQUEST_SECONDS)}
    leases, held = Leases(box.firestore, box.environment["ORK_STORE"]), list[int]()
    forward = box.front.forward

    def noting(*args: Any, **kwargs: Any) -> Any:
        answer = forward(*args, **kwargs)
        if args[1].endswith("/tick") and not box.front.has_instances:
            held.append(leases.held())
        return answer

    noon = deploy(box, runs)
    box.front.forward = noting  # type: ignore[method-assign]
    box.live_until(noon + timedelta(minutes=30))
    ticks = [
        (seconds, json.loads(body))
        for path, status, seconds, body in box.front.answers
        if path.endswith("/tick") and status == 200
    ]
    for seconds, report in ticks:
        print(f"{seconds:.1f} s: {report}")
    check(box, runs)
    assert box.front.killed == 0
    assert [status for _, status, _, _ in box.front.answers if status >= 300] == []
    assert len(box.cloud.executions) == 2 * runs
    assert max(report["launched"] for _, report in ticks) <= TIMED_CLAIM_RUNS
    assert held
    assert set(held) == {0}


@pytest.mark.parametrize("runs", [3, pytest.param(30, marks=pytest.mark.soak)])
def test_instances_that_are_killed_at_the_limit_of_the_platform_lose_nothing(cloud_box: CloudBox, runs: int) -> None:
    """Each kill makes the limit longer, so that a step fits into it some day, however slow this machine is. Leases are short,
    because they take real time."""
    box = cloud_box
    box.environment |= {"ORK_LEASE_SECONDS": "4", "ORK_RENEW_SECONDS": "1"}
    noon = deploy(box, runs)
    box.front.cuts_after = lambda: 0.5 * 1.5**box.front.cut
    box.live_until(noon + timedelta(minutes=20))
    print(f"{box.front.cut} requests were cut, {len(box.cloud.executions)} executions")
    check(box, runs)
    assert box.front.cut
