"""A team's installation under attack: schedulers on a real Postgres, runs of five tasks, and what the ledger says of them.

Each scene comes in two sizes: a small one for every day, and the full one of `pytest -m soak`.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ork.settings import LEASE_SECONDS
from tests.postgres import Server

from .judge import FAST, Court, eventually, kill

TASKS = {"a": 0.2, "b": 0.3, "c": 0.1, "d": 0.2, "e": 0.2}
AFTER = {"b": ["a"], "c": ["a"], "d": ["b", "c"]}

# What may pass between the end of a lease and the take-over of all it held, on a busy machine.
TAKE_OVER_SECONDS = 5.0
# How long the database keeps the transaction of somebody it does not hear of.
TRANSACTION_SECONDS = 15.0


class Size(NamedTuple):
    """One that is frozen or cut off stays so for at least these seconds."""

    runs: int
    kill_seconds: float
    frozen_seconds: float
    cut_seconds: float
    lease_seconds: float
    pace: Mapping[str, str]
    patience_seconds: float


SMALL = Size(6, 1.0, 10.0, 10.0, 6.0, FAST, 90.0)
FULL = Size(60, 2.0, 90.0, 120.0, LEASE_SECONDS, {}, 600.0)

both_sizes = pytest.mark.parametrize(
    "size", [pytest.param(SMALL, id="small"), pytest.param(FULL, id="full", marks=pytest.mark.soak)]
)


@dataclass
class Team:
    """Ends what it started. `ids` are the runs it triggered."""

    court: Court
    server: Server
    database: str
    size: Size
    ids: list[str] = field(default_factory=list)
    schedulers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def trigger(self, number: int) -> None:
        self.ids += [self.court.trigger("flow") for _ in range(number)]

    def trigger_until_acknowledged(self, number: int) -> None:
        """One call for each run, repeated with the same key while the answer is that the store cannot be reached."""
        for key in range(number):
            while (asked := self.court.ork("trigger", "flow", "--key", str(key))).returncode != 0:
                assert "error: The store" in asked.stderr
            self.ids.append(asked.stdout.strip())

    def start_scheduler(self, **options: Any) -> subprocess.Popen[bytes]:
        scheduler = self.court.start("scheduler", **options)
        self.schedulers.append(scheduler)
        return scheduler

    def replace_scheduler(self, place: int) -> None:
        """The one in this place is killed, and another starts."""
        kill(self.schedulers[place])
        self.schedulers[place] = self.court.start("scheduler")

    def stop(self) -> None:
        for scheduler in self.schedulers:
            kill(scheduler)

    def sql(self, text: str) -> str:
        return self.server.sql(text, self.database)

    def ended(self) -> int:
        return int(self.sql("SELECT count(*) FROM ork.runs WHERE finished_at IS NOT NULL"))

    def is_done(self) -> bool:
        return self.ended() == len(self.ids)

    def wait_until_done(self) -> None:
        eventually(self.is_done, self.size.patience_seconds)

    def wait_for_starts(self, number: int) -> None:
        eventually(lambda: sum(self.court.starts().values()) >= number, self.size.patience_seconds)

    def judge(self) -> None:
        """All that was triggered succeeded; each task was started once, as its first attempt; nothing is left over."""
        assert self.sql("SELECT DISTINCT status FROM ork.runs") == "success"
        assert int(self.sql("SELECT count(*) FROM ork.runs")) == len(self.ids)
        starts = self.court.starts()
        assert set(starts) == {f"{id} {task} 1" for id in self.ids for task in TASKS}
        assert sum(starts.values()) == len(self.ids) * len(TASKS)
        assert self.court.overlaps() == []
        eventually(lambda: not self.court.processes(), 10)
        assert "deadlock detected" not in self.server.log()


@contextmanager
def assembled(
    folder: Path, server: Server, size: Size, *, url: Callable[[str], str] | None = None, inside: Sequence[str] = ()
) -> Iterator[Team]:
    """A team with its workflow deployed, and as yet without schedulers."""
    database = server.new_database()
    court = Court(folder, {"ORK_STORE": (url or server.url)(database)}, size.pace, inside)
    fields = {name: {"depends_on": needed} for name, needed in AFTER.items()}
    court.write_workflow("flow", {name: court.task(seconds, **fields.get(name, {})) for name, seconds in TASKS.items()})
    court.deploy("flow")
    team = Team(court, server, database, size)
    try:
        yield team
    finally:
        team.stop()


class Outage(NamedTuple):
    """Seconds: until all runs were taken over and when that became possible, both after the last renewal by the one that
    was lost; and in all."""

    taken_over: float
    possible: float
    lasted: float

    def __str__(self) -> str:
        return f"taken over {self.taken_over:.1f} s after the last renewal (possible: {self.possible:.1f}), {self.lasted:.0f} s in all"


def lose_the_owner_of_everything(
    team: Team, victim: subprocess.Popen[bytes], seconds: float, begin: Callable[[], None], end: Callable[[], None]
) -> Outage:
    """The victim owns every run when it is lost; two others take them over and finish them. Then it comes back, they
    are killed, and it must do the next runs alone."""
    team.wait_for_starts(min(10, team.size.runs))
    owner = team.sql("SELECT id FROM ork.schedulers")
    begin()
    began = time.monotonic()
    possible, taken_over = _wait_for_take_over(team, owner)
    team.wait_until_done()
    eventually(lambda: time.monotonic() - began > seconds, 2 * seconds)
    assert victim.poll() is None
    end()
    lasted = time.monotonic() - began
    for other in team.schedulers[1:]:
        kill(other)
    team.trigger(2)
    team.wait_until_done()
    return Outage(taken_over, possible, lasted)


def _wait_for_take_over(team: Team, owner: str) -> tuple[float, float]:
    """How long after the owner's last renewal it was possible, and done, by the clock of the database.

    Possible: the lease is over, somebody is there to take the runs, and nobody's transaction holds them any more, even
    if the owner was lost in the middle of one.
    """
    owned = f"FROM ork.runs WHERE owner = '{owner}'"
    lease = f"interval '{team.size.lease_seconds} s'"
    renewed = team.sql(f"SELECT lease_until - {lease} FROM ork.schedulers WHERE id = '{owner}'")
    passed = f"SELECT extract(epoch FROM clock_timestamp() - '{renewed}')"
    let_go = float(team.sql(passed)) + TRANSACTION_SECONDS
    assert int(team.sql(f"SELECT count(*) {owned}")) > 0
    for others in (1, 2):
        team.start_scheduler(log="others.log")
        eventually(lambda n=others: (team.court.folder / "others.log").read_text().count("  ready") == n)
    possible = max(team.size.lease_seconds, let_go, float(team.sql(passed)))
    taken_over = eventually(lambda: team.sql(f"{passed} WHERE NOT EXISTS (SELECT {owned})"), possible + 60)
    return possible, float(taken_over)
