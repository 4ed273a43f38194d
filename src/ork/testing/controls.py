"""Simulated operators who pause, drain and resume schedulers at random times, and the check that schedulers obey."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from ork.model.ids import AttemptKey, SchedulerId
from ork.model.installation import ALL_SCHEDULERS, Control, Mode
from ork.state.records import Claim
from ork.testing.workload import People

OBEYED_AFTER_STEPS = 3  # one step reads the control, and an earlier commit may be answered in the next


class ControlChecks:
    """`mode_of` returns what a living scheduler must obey by now; `all_hold` whether every one of them must."""

    def __init__(self, violate: Callable[[str, str], None]) -> None:
        self.standing: dict[str, Control] = {}
        self.has_stood = False
        self.mode_of: Callable[[SchedulerId], Mode | None] = lambda _scheduler: None
        self.all_hold: Callable[[], bool] = lambda: False
        self._violate = violate

    def set(self, control: Control) -> None:
        self.standing[control.target] = control
        self.has_stood = True

    def clear(self, target: str) -> None:
        self.standing.pop(target, None)

    def check_starts(self, scheduler: SchedulerId, admitted: Sequence[AttemptKey]) -> None:
        if admitted and (mode := self.mode_of(scheduler)) is not None:
            self._violate("held-starts-nothing", f"{scheduler} is {mode} and started {sorted(map(str, admitted))}")

    def check_claim(self, scheduler: SchedulerId, claim: Claim) -> None:
        if claim.runs and self.mode_of(scheduler) is Mode.DRAINING:
            claimed = [each.run.id for each in claim.runs]
            self._violate("held-starts-nothing", f"{scheduler} is draining and claimed {claimed}")

    def check_fire(self, workflow: str) -> None:
        if self.all_hold():
            self._violate("held-starts-nothing", f"{workflow} was fired while every scheduler is paused or drains")


class Operators:
    """Set controls at random moments and mostly clear them again; `resume_all` clears what is left."""

    def __init__(
        self, random: Random, people: People, checks: ControlChecks, targets: Callable[[], Sequence[str]]
    ) -> None:
        self._random = random
        self._people = people
        self._checks = checks
        self._targets = targets  # ids of living schedulers, and machines
        self._have_gone_home = False

    async def act(self, controls: int, length: float) -> None:
        moments = sorted(self._random.uniform(0, length) for _ in range(controls))
        for moment in moments:
            await self._people.sleep_until(moment)
            if self._have_gone_home:
                return
            target = self._random.choice((ALL_SCHEDULERS, *self._targets()))
            await self._people.set_control(target, self._random.choice(tuple(Mode)))
            if self._random.random() < 0.7:
                await self._people.sleep(self._random.uniform(0.0, 120.0))
                await self._people.clear_control(target)

    async def resume_all(self, every: float) -> None:
        self._have_gone_home = True
        while True:
            for target in list(self._checks.standing):
                await self._people.clear_control(target)
            await self._people.sleep(every)
