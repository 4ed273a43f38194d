"""Memory: of a server with nothing to do, of each running attempt, and of each task of a large run."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from time import sleep
from typing import Any

from ork.api import PACKAGES
from ork.bench import workloads
from ork.bench.ground import Ground
from ork.bench.measure import Target, one_result
from ork.bench.processes import run
from ork.bench.sampling import drive
from ork.bench.scale import Scale
from ork.bench.services import SETTLE_SECONDS, rss_mb, scheduler, service

BARE = "import asyncio, sqlite3"
FLOOR = f"`python -c '{BARE}'`"
NOTHING = "nothing: no memory for what is in the store"
SERVE_MB = {"sqlite": 60, "postgres": 80}


def memory(scale: Scale, ground: Ground) -> list[dict[str, Any]]:
    # Without its packages there is no server to measure.
    servers = [server(ground)] if all(find_spec(name) for name in PACKAGES) else []
    return [*servers, attempts(scale.attempts, ground), machine(scale.machine, ground)]


def server(ground: Ground) -> dict[str, Any]:
    """`ork serve` with its API, some time after its start."""
    bare = run((sys.executable, "-c", BARE), ground.folder).rss_mb
    place = workloads.hello(ground.folder / "serve")
    with ground.fresh_store() as store, service(("serve", "--port", "0"), place, store) as pid:
        sleep(SETTLE_SECONDS)
        used = rss_mb(pid)
    target = Target(SERVE_MB[ground.store], at_most=True, field="rss_mb")
    floor = {"what": FLOOR, "rss_mb": round(bare, 1)}
    return one_result(
        f"memory-serve-{ground.store}", floor, (target,), rss_mb=round(used, 1), ratio=round(used / bare, 2)
    )


def attempts(count: int, ground: Ground) -> dict[str, Any]:
    """How much an `ork scheduler` grows while so many commands run at once."""
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
    target = Target(20, at_most=True, field="kb_each")
    return one_result(
        f"memory-attempt-{ground.store}", {"what": NOTHING}, (target,), tasks=count, rss_mb=round(used, 1), kb_each=each
    )


def machine(count: int, ground: Ground) -> dict[str, Any]:
    """What the decisions about a run of so many tasks are made from."""
    found = drive(ground.folder, None, "machine", str(count))
    each = round(found["bytes"] / count / 1024, 3)
    target = Target(1, at_most=True, field="kb_each")
    return one_result(
        "memory-task", {"what": NOTHING}, (target,), tasks=count, rss_mb=round(found["rss_mb"], 1), kb_each=each
    )
