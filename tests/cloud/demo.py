"""`make cloud-demo`: the sample project with nothing running between two due times, in a box on this machine.

Exit code 1 if something is not as promised.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections import Counter
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.cloud.box import CLOUD, IMAGE, ROOT, CloudBox, seconds_between
from tests.cloud.virtual_clock import VirtualClock, library
from tests.firestore import emulator_or_skip

BEGIN = datetime(2026, 3, 28, 1, 50, tzinfo=UTC)
DUE = datetime(2026, 3, 28, 2, 0, tzinfo=UTC)
INSTANCES = 100
MOST_CALLS = 8  # that are shown
FAN_OUT = f"""
name: fan_out
tasks:
  each: {{command: [sh, -c, 'echo done'], foreach: {list(range(INSTANCES))}, concurrency: 10}}
"""
WORKERS = f"default: {{image: '{IMAGE}', cpu: 1, memory: 512Mi}}\n"
PARTS = """
  real        Ork: `ork deploy`, `ork serve --on-request` (a new process for each call), its workers
  real        Google's clients for Firestore, Cloud Run and Cloud Tasks; the official Firestore emulator
  stand-in    Cloud Run, Cloud Tasks, Cloud Storage: strict fakes in tests/cloud. Containers are processes
  stand-in    the clock: it jumps while nothing is alive, so that a day takes minutes
"""


class BrokenPromiseError(Exception):
    """What was promised and did not happen."""


class Demo:
    def __init__(self, box: CloudBox) -> None:
        self.box = box
        self._seen: Counter[str] = Counter()
        self._awake = 0.0
        self._called = 0

    def run(self) -> None:
        self._deploy()
        self._schedule()
        self._fan_out()
        self._rest_of_the_day()
        lived = (self.box.clock.now() - self.box.begin).total_seconds()
        say(
            f"\nIn {lived / 3600:.0f} hours the control plane was alive for {self.box.front.awake_seconds:.0f} seconds."
        )

    def _deploy(self) -> None:
        title("1. Deploy: examples/etl as it is, with a workers.yaml for Cloud Run")
        say(indented(f"# ork.yaml\n{CLOUD}# workers.yaml\n{WORKERS}"))
        self.box.ork("deploy", "workflow.yaml", "fan_out.yaml")
        self._live(DUE - timedelta(minutes=1))
        self._show_calls()
        self._show_nothing_alive()

    def _schedule(self) -> None:
        title('2. The schedule "0 2 * * *" fires')
        self._live(DUE + timedelta(minutes=20))
        self._show_calls()
        (run,) = self._runs("my_etl")
        accepted = min(each.create_time for each in self.box.cloud.executions)
        say(f"  run {run['id']}: {run['status']}, due {run['scheduled_for'][11:19]}")
        say(
            f"  first task accepted by Cloud Run {(accepted - DUE).total_seconds():.1f} s after the due time, 2 s of them a cold start"
        )
        say(f"  whole run {seconds_between(run['scheduled_for'], run['finished_at']):.1f} s")
        promise(run["status"] == "success", "the scheduled run succeeds")
        promise(datetime.fromisoformat(run["scheduled_for"]) == DUE, "the run is the one that was due")
        self._show_nothing_alive()

    def _fan_out(self) -> None:
        title(f"3. A fan-out of {INSTANCES}")
        before = self.box.cloud.calls["jobs.run"]
        self.box.ork("trigger", "fan_out")
        self._live(self.box.clock.now() + timedelta(minutes=30))
        self._show_calls()
        (run,) = self._runs("fan_out")
        starts = self.box.cloud.calls["jobs.run"] - before
        ended = self.box.cloud.executions[-1]
        say(f"  run {run['id']}: {run['status']}; {ended.succeeded_count} instances in {starts} execution of Cloud Run")
        promise(run["status"] == "success" and ended.succeeded_count == INSTANCES, f"all {INSTANCES} instances succeed")
        promise(starts == 1, "one call starts all of them")
        self._show_nothing_alive()

    def _rest_of_the_day(self) -> None:
        title("4. The rest of the day: nothing is due until 02:00")
        self._live(DUE + timedelta(hours=23, minutes=50))
        self._show_calls()
        promise(not self._show_spent(), "a day without due work costs nothing")
        left = self.box.queue.next_at()
        promise(left == DUE + timedelta(days=1), "one alarm is left, for the next due time")
        say(f"  the next call is set for {left:%Y-%m-%d %H:%M:%S}" if left else "")

    # ── what is shown ────────────────────────────────────────────────────────────────────────────

    def _live(self, end: datetime) -> None:
        self.box.live_until(end)

    def _runs(self, workflow: str) -> list[Any]:
        return [run for run in self.box.ork("runs")["runs"] if run["workflow"] == workflow]

    def _show_calls(self) -> None:
        """The calls of Cloud Tasks since the last look."""
        calls, self._called = self.box.queue.deliveries[self._called :], len(self.box.queue.deliveries)
        shown = calls if len(calls) <= MOST_CALLS else [*calls[: MOST_CALLS - 1], calls[-1]]
        for number, call in enumerate(shown):
            if len(calls) > len(shown) and number == len(shown) - 1:
                say(f"  …         {len(calls) - len(shown)} more, for tasks that ended")
            took = "" if call.ended is None else f", {(call.ended - call.began).total_seconds():.1f} s"
            purpose = call.task.split("-")[1]
            say(f"  {call.began:%H:%M:%S}  Cloud Tasks calls POST /api/v1/tick ({purpose}): {call.status}{took}")
        if not calls:
            say("  no call")

    def _show_nothing_alive(self) -> None:
        self._show_spent()
        alive = {"processes": self.box.processes(), "executions": self.box.cloud.running()}
        say(
            f"  {self.box.clock.now():%H:%M:%S}  alive now: "
            + ", ".join(f"{count} {name}" for name, count in alive.items())
        )
        promise(not any(alive.values()), "nothing is alive when the work is done")

    def _show_spent(self) -> Counter[str]:
        """What was requested of whom since the last look."""
        counts, awake = self.box.counts(), self.box.front.awake_seconds
        spent = counts - self._seen
        say(
            f"  spent: control plane alive {awake - self._awake:.1f} s"
            + "".join(f", {n} {name}" for name, n in spent.items())
        )
        self._seen, self._awake = counts, awake
        return spent


def promise(is_kept: bool, text: str) -> None:
    if not is_kept:
        raise BrokenPromiseError(text)
    say(f"  ✓ {text}")


def title(text: str) -> None:
    say(f"\n{text}")


def say(text: str) -> None:
    print(text, flush=True)


def indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


def main() -> int:
    sample = ROOT / "examples" / "etl"
    dropped = ("ORK_", "OTEL_", "PYTEST_", "PYTHON")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    say(f"Ork with nothing running in between: Firestore + Cloud Storage + Cloud Run + Cloud Tasks, in a box\n{PARTS}")
    with tempfile.TemporaryDirectory(prefix="ork-cloud-demo-") as place, ExitStack() as stack:
        folder = Path(place).resolve() / "project"
        shutil.copytree(sample, folder, ignore=shutil.ignore_patterns(".ork", "out", "__pycache__"))
        try:
            library()
            emulator = emulator_or_skip()
        except pytest.skip.Exception as missing:
            say(f"cannot be shown here: {missing}")
            return 1
        clock = VirtualClock(BEGIN, Path(place) / "clock")
        box = CloudBox(folder, {**environment, "NO_COLOR": "1"}, clock, emulator, stack)
        box.write("workers.yaml", WORKERS)
        box.write("fan_out.yaml", FAN_OUT)
        try:
            Demo(box).run()
        except BrokenPromiseError as broken:
            say(f"  ✗ not kept: {broken}")
            return 1
    say("All of this is as promised.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
