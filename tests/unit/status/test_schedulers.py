"""Which schedulers count as alive, as idle and out of sight, and as dead."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ork.executors.processes import boot_id, identity, pid_namespace
from ork.model.ids import SchedulerId
from ork.model.run import SchedulerEntry
from ork.status.schedulers import MAX_UNVERIFIED_SECONDS, Liveness, liveness, unverified_text

ELSEWHERE = "distant+aaaaaaaaaaaa/another-boot/4026531836/1/100"
OTHER_NAMESPACE = "/".join((identity().split("/")[0], boot_id(), str(pid_namespace() + 1), "1", "100"))
ENDED = "/".join((*identity().split("/")[:4], "1"))


def _entry(of: str, left: float, runs: int = 0, kind: str = "scheduler") -> SchedulerEntry:
    return SchedulerEntry(SchedulerId("ann"), of, kind, datetime(2026, 1, 1, tzinfo=UTC), left, runs)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (_entry(ELSEWHERE, 5), Liveness.ALIVE),
        (_entry(ELSEWHERE, -300), Liveness.UNVERIFIED),
        (_entry(OTHER_NAMESPACE, -300), Liveness.UNVERIFIED),
        (_entry(f"http://server/{ELSEWHERE}", -300), Liveness.UNVERIFIED),
        (_entry(ELSEWHERE, -300, runs=1), Liveness.DEAD),
        (_entry(ELSEWHERE, -300, kind="run"), Liveness.DEAD),
        (_entry(ELSEWHERE, -300, kind="tick"), Liveness.DEAD),
        (_entry(ELSEWHERE, -MAX_UNVERIFIED_SECONDS - 1), Liveness.DEAD),
        (_entry(ELSEWHERE, float("-inf")), Liveness.DEAD),
        (_entry(identity(), -300), Liveness.ALIVE),
        (_entry(ENDED, -300), Liveness.DEAD),
        (_entry(ENDED, 5), Liveness.DEAD),
    ],
)
def test_the_process_decides_where_it_can_be_checked_and_else_the_lease(
    entry: SchedulerEntry, expected: Liveness
) -> None:
    assert liveness(entry) is expected


def test_an_idle_one_is_described_with_the_age_of_its_lease() -> None:
    assert (
        unverified_text(_entry(ELSEWHERE, -300))
        == "idle, its lease expired 5m ago; it cannot be checked from this machine"
    )
