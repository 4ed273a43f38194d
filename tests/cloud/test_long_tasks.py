"""A task of six hours every day, on Cloud Run: its worker is a real process that waits, while the control plane is almost never alive."""

from __future__ import annotations

from datetime import timedelta

import pytest

pytest.importorskip("google.cloud.firestore_v1", reason="the extra `gcp` is not installed")

from tests.cloud.box import WAITING, CloudBox

pytestmark = pytest.mark.slow

SIX_HOURS = timedelta(hours=6)
MOST_AWAKE = 0.01
FLOW = f"""
name: daily
schedule: "0 12 * * *"
tasks:
  long: {{command: [sh, -c, '{WAITING}']}}
"""


@pytest.mark.soak
@pytest.mark.parametrize("days", [1, 14])
def test_a_daily_task_of_six_hours_leaves_the_control_plane_asleep(cloud_box: CloudBox, days: int) -> None:
    """It is awake for less than one hundredth of the time."""
    box = cloud_box
    box.write("daily.yaml", FLOW)
    box.ork("deploy", "daily.yaml")
    noon = box.begin.replace(hour=12, minute=0)
    for day in range(days):
        due = noon + timedelta(days=day)
        box.live_until(due)
        while not box.is_task_waiting:
            assert box.clock.now() < due + timedelta(hours=1)
            box.live_until(box.clock.now() + timedelta(seconds=1))
        box.live_until(due + SIX_HOURS)
        box.let_task_end()
        box.live_until(due + SIX_HOURS + timedelta(hours=1))
        _report(box)
    box.live_until(box.begin + timedelta(days=days))
    runs = box.ork("runs", "--limit", "100")["runs"]
    assert [run["status"] for run in runs] == ["success"] * days
    assert len(box.cloud.executions) == days
    assert _report(box) < MOST_AWAKE


def _report(box: CloudBox) -> float:
    """Prints what happened so far. The share of the time that the control plane was alive."""
    lived, awake = (box.clock.now() - box.begin).total_seconds(), box.front.awake_seconds
    print(
        f"{box.clock.now():%d %H:%M}: control plane alive {awake:.0f} s of {lived / 3600:.0f} h, {awake / lived:.2%}; "
        f"{box.front.cpu_seconds:.0f} s of CPU; {dict(box.counts())}",
        flush=True,
    )
    return awake / lived
