"""Draws what an attempt's user code does and what happens to its worker: a function of seed, attempt and start."""

from __future__ import annotations

import json
from enum import StrEnum
from random import Random
from typing import Any

from ork.model.ids import AttemptKey
from ork.model.record import Record, replaced
from ork.testing.faults import Faults
from ork.testing.language import PLAIN, Features

FOR_EVER = 1e9


class ScriptedEnding(StrEnum):
    SUCCESS = "success"
    EXIT = "exit"
    HOPELESS = "hopeless"  # a TaskError that forbids a retry
    HANG = "hang"  # runs until its timeout


class Death(StrEnum):
    """When a worker is killed from outside."""

    BEFORE_GATE = "before_gate"
    AT_GATE = "at_gate"
    WORKING = "working"
    BEFORE_STATUS = "before_status"
    STATUS_IN_FLIGHT = "status_in_flight"  # its last write arrives some time after its end


class Script(Record):
    """The part that belongs to the attempt: the same for every start."""

    seconds: float
    ending: ScriptedEnding
    output: str | None
    output_is_large: bool
    job_seconds: float | None = None  # duration of the external job that it hands over to
    job_fails: bool = False


class ExternalJob(Record):
    """The external job of an attempt. It is independent of schedulers."""

    done_at: float
    fails: bool
    output: str | None
    output_is_large: bool

    def is_done(self, moment: float) -> bool:
        return moment >= self.done_at

    def last_words(self) -> dict[str, Any]:
        if self.fails:
            return {"state": "failed", "failure": {"kind": "exit", "message": "the job failed", "detail": None}}
        return {"state": "success"}


class Luck(Record):
    """The part that belongs to one worker."""

    start_seconds: float = 0.01
    death: Death | None = None
    death_after: float = 0.0
    orphan_seconds: float = 0.0  # how long its user code outlives a worker that is killed
    silent_after: float = FOR_EVER
    silent_seconds: float = 0.0
    status_seconds: float = 0.0  # how long it takes to write its final status
    stops_after: float = 0.1
    babble: tuple[tuple[str, object], ...] = ()  # what replaces fields of its statuses
    garbles_gate: bool = False
    is_mistaken: bool = False  # its first status is another attempt's success, under its own key and signature


_NONSENSE: tuple[tuple[tuple[str, object], ...], ...] = (
    (("state", "elated"),),
    (("seq", "many"),),
    (("started_at", "long ago"),),
    (("attempt", "another/t0/0/1"),),
    (("output", {"object": "runs/another/t0/0/1/output.json", "size": 1}), ("exit_code", "none")),
    (("failure", {"kind": "boredom", "message": None}),),
)


def write_script(seed: int, attempt: AttemptKey, has_timeout: bool, features: Features = PLAIN) -> Script:
    random = Random(f"script {seed} {attempt}")
    ending = random.choices(list(ScriptedEnding), weights=(75, 16, 3, 6))[0]
    if ending is ScriptedEnding.HANG and not has_timeout:
        ending = ScriptedEnding.EXIT
    seconds = FOR_EVER if ending is ScriptedEnding.HANG else min(random.expovariate(1 / 20), 150.0)
    output = None if ending is not ScriptedEnding.SUCCESS or random.random() < 0.3 else f'{{"made":"{attempt}"}}'
    is_large = output is not None and random.random() < 0.3
    if features.is_plain or ending is not ScriptedEnding.SUCCESS:
        return Script(seconds, ending, output, is_large)
    return _write_more(random, features, Script(seconds, ending, _draw_output(random, attempt), is_large))


def _write_more(random: Random, features: Features, script: Script) -> Script:
    if random.random() >= features.deferral:
        return script
    seconds = min(random.expovariate(1 / 30), 100.0)
    return replaced(script, seconds=script.seconds / 4, job_seconds=seconds, job_fails=random.random() < 0.2)


def _draw_output(random: Random, attempt: AttemptKey) -> str | None:
    """A value for conditions and a list for fan-outs; sometimes nothing."""
    if random.random() < 0.1:
        return None
    made = [f"{attempt} {number}" for number in range(random.choice((0, 1, 2, 3, 4)))]
    return json.dumps({"made": str(attempt), "n": random.randint(0, 3), "list": made})


def draw_luck(faults: Faults) -> Luck:
    random, rates = faults.random, faults.rates
    slow = faults.happens(rates.slow_start)
    death = random.choice(list(Death)) if faults.happens(rates.worker_death) else None
    silent = faults.happens(rates.worker_silence)
    garbles_gate = faults.happens(rates.garbled_gate)
    if garbles_gate and random.random() < 0.5:
        death = Death.WORKING  # the fault that damaged the gate also ends the worker
    return Luck(
        start_seconds=random.uniform(1, 400) if slow else random.uniform(0.0, 0.05),
        death=death,
        death_after=random.uniform(0.0, 60.0),
        orphan_seconds=random.choice((0.0, 0.0, random.uniform(1, 100))),
        silent_after=random.uniform(0.0, 30.0) if silent else FOR_EVER,
        silent_seconds=random.choice((random.uniform(20, 200), FOR_EVER)),
        status_seconds=random.choice((0.0, 0.0, random.uniform(0, 30))) if not faults.healed else 0.0,
        stops_after=random.choice((0.1, 3.0, FOR_EVER)),
        babble=random.choice(_NONSENSE) if faults.happens(rates.worker_babble) else (),
        garbles_gate=garbles_gate,
        is_mistaken=faults.happens(rates.mistaken_status),
    )
