"""Measures memory: of an idle server, of each running attempt, and of each task of a large run."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from time import sleep
from typing import Any

from ork.api import PACKAGES
from ork.bench import workloads
from ork.bench.ground import Ground
from ork.bench.measure import ResultTarget, one_result
from ork.bench.processes import run
from ork.bench.sampling import drive
from ork.bench.scale import Scale
from ork.bench.services import SETTLE_SECONDS, rss_mb, scheduler, service

BARE = "import asyncio, sqlite3"
FLOOR = f"`python -c '{BARE}'`"
NOTHING = "nothing: no memory for what is in the store"
SERVE_MB = {"sqlite": 60, "postgres": 80}


def memory(scale: Scale, ground: Ground) -> list[dict[str, Any]]:
    # The server cannot be measured without its packages.
    servers = [server(ground)] if all(find_spec(name) for name in PACKAGES) else []
    return [*servers, attempts(scale.attempts, ground), machine(scale.machine, ground)]


def server(ground: Ground) -> dict[str, Any]:
    """Measure `ork serve` with its API, some time after its start."""
    bare = run((sys.executable, "-c", BARE), ground.folder).rss_mb
    place = workloads.hello(ground.folder / "serve")
    with ground.fresh_store() as store, service(("serve", "--port", "0"), place, store) as pid:
        sleep(SETTLE_SECONDS)
        used = rss_mb(pid)
    target = ResultTarget(SERVE_MB[ground.store], at_most=True, field="rss_mb")
    floor = {"what": FLOOR, "rss_mb": round(bare, 1)}
    return one_result(
        f"memory-serve-{ground.store}", floor, (target,), rss_mb=round(used, 1), ratio=round(used / bare, 2)
    )


def attempts(count: int, ground: Ground) -> dict[str, Any]:
    """Measure how much an `ork scheduler` grows while that many commands run concurrently."""
    place = workloads.sleepers(ground.folder / "attempts", count)
    with ground.fresh_store() as store, scheduler(place, store) as pid:
        sleep(SETTLE_SECONDS)
        before = rss_mb(pid)
        try:
            drive(place, store, "attempts", str(place / "workflow.yaml"), str(count))
            used = rss_mb(pid)
        finally:
            drive(place, store, "cancel")
    each = round((used - before) * 1024 / count, 2)
    target = ResultTarget(20, at_most=True, field="kb_each")
    return one_result(
        f"memory-attempt-{ground.store}", {"what": NOTHING}, (target,), tasks=count, rss_mb=round(used, 1), kb_each=each
    )


def machine(count: int, ground: Ground) -> dict[str, Any]:
    """Measure the in-memory state of a run with that many tasks."""
    found = drive(ground.folder, None, "machine", str(count))
    each = round(found["bytes"] / count / 1024, 3)
    target = ResultTarget(1, at_most=True, field="kb_each")
    return one_result(
        "memory-task", {"what": NOTHING}, (target,), tasks=count, rss_mb=round(found["rss_mb"], 1), kb_each=each
    )
