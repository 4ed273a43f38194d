"""`ui` in ork.yaml: where the pages of the web UI are published, and what the processes of an installation know about it."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

from ork.model.record import Record, replaced

EVERY_SECONDS = 60.0
LEAST_EVERY_SECONDS = 5.0
MOST_RUNS = 10_000
LONGEST_PAUSE = timedelta(hours=1)
NOTE = "publish"
"""The name of the note in the store."""


class PublishConfig(Record):
    """`to` is a folder, relative to the project's, or a bucket. `since` is an age in seconds."""

    to: str
    runs: int = 200
    since: float | None = None
    logs: str = "failed"
    every: float = EVERY_SECONDS
    public: bool = False


class PublishState(Record):
    """What is known about one target. `wanted`: since when something has changed. `claimed`: until when somebody is at
    work. `done`: when the last attempt ended, with `said` or, after `failures` of them in a row, with `problem`."""

    to: str
    wanted: datetime | None = None
    claimed: datetime | None = None
    done: datetime | None = None
    said: str = ""
    problem: str | None = None
    failures: int = 0

    def due(self, every: float) -> datetime | None:
        """When to publish next; None if nothing has changed. After failures the pauses grow."""
        if self.claimed is not None:
            return self.claimed  # if it is not done by then, somebody else takes over
        if self.wanted is None:
            return None
        pause = min(
            timedelta(seconds=every) * 2 ** min(self.failures, 10), max(LONGEST_PAUSE, timedelta(seconds=every))
        )
        return self.wanted if self.done is None else max(self.wanted, self.done + pause)

    def is_wanted_at(self, now: datetime) -> PublishState:
        return self if self.wanted is not None else replaced(self, wanted=now)

    def claimed_until(self, end: datetime) -> PublishState:
        """Changes from now on are wanted anew."""
        return replaced(self, wanted=None, claimed=end)

    def ended(self, now: datetime, said: str, problem: str | None) -> PublishState:
        """After a failure it is wanted again."""
        failures = 0 if problem is None else self.failures + 1
        wanted = self.wanted if problem is None else self.wanted or now
        said = said if problem is None else self.said
        return PublishState(self.to, wanted, None, now, said, problem, failures)


_TIMES = ("wanted", "claimed", "done")


def state_text(state: PublishState) -> str:
    times = {name: time and time.isoformat() for name in _TIMES for time in [getattr(state, name)]}
    rest = {"to": state.to, "said": state.said, "problem": state.problem, "failures": state.failures}
    return json.dumps({**rest, **times})


def state_of(text: str | None, to: str) -> PublishState:
    """The state of this target; a new one if there is none, or it is of another target."""
    try:
        found = json.loads(text or "{}")
        if found["to"] != to:
            return PublishState(to)
        times = {name: datetime.fromisoformat(found[name]) for name in _TIMES if found.get(name)}
        rest = (str(found["said"]), found["problem"] and str(found["problem"]), int(found["failures"]))
        return PublishState(to, times.get("wanted"), times.get("claimed"), times.get("done"), *rest)
    except (ValueError, LookupError, TypeError):
        return PublishState(to)
