"""The small pure parts of the core: retry, rules of liveness, binding."""

from __future__ import annotations

from datetime import timedelta

import pytest

from ork.core.bind import BindError, Scope
from ork.core.liveness import LivenessTimeouts, check_liveness, overdue_at
from ork.core.retry import retry_delay, should_retry
from ork.model.ids import AttemptKey, TaskKey
from ork.model.task import Failure, FailureKind, GiveUp, InlineOutput, StoredOutput
from ork.model.workflow import Const, Ref, Secret

from .flows import RUN, Play, exited, spec, workflow

KEY = AttemptKey(RUN, TaskKey("a"), 1)


def test_backoff_doubles_up_to_a_minute_with_a_jitter_of_a_quarter() -> None:
    delays = [retry_delay(spec("a"), exited(), tries, str(KEY)).total_seconds() for tries in range(1, 10)]
    for delay, base in zip(delays, [1, 2, 4, 8, 16, 32, 60, 60, 60], strict=True):
        assert 0.75 * base <= delay <= 1.25 * base


def test_jitter_differs_between_attempts_and_is_deterministic() -> None:
    spreads = {retry_delay(spec("a"), exited(), 1, str(AttemptKey(RUN, TaskKey(f"t{i}"), 1))) for i in range(20)}
    assert len(spreads) > 10
    assert retry_delay(spec("a"), exited(), 1, str(KEY)) == retry_delay(spec("a"), exited(), 1, str(KEY))


def test_a_configured_retry_delay_is_used() -> None:
    assert retry_delay(spec("a", retry_delay=7.0), exited(), 3, str(KEY)) == timedelta(seconds=7)


def test_unresolvable_inputs_are_not_retried() -> None:
    assert not should_retry(spec("a", retries=5), Failure(FailureKind.INPUT, "no such field"), 1)


@pytest.mark.parametrize(
    ("now", "running_since", "last_seen", "timeout", "expected"),
    [
        (59.0, 0.0, 0.0, None, None),
        (60.0, 0.0, 0.0, None, GiveUp.STALE),
        (100.0, 0.0, 90.0, None, None),
        (100.0, 0.0, 90.0, 85.0, GiveUp.TIMEOUT),
        (299.0, None, 0.0, None, None),
        (300.0, None, 0.0, None, GiveUp.NOT_STARTED),
    ],
)
def test_liveness_is_judged_by_the_last_heartbeat(
    now: float, running_since: float | None, last_seen: float, timeout: float | None, expected: GiveUp | None
) -> None:
    facts = {"running_since": running_since, "watched_since": 0.0, "last_seen": last_seen, "timeout": timeout}
    given_up = check_liveness(LivenessTimeouts(), now, **facts)  # type: ignore[arg-type]
    assert (given_up[0] if given_up else None) == expected
    moment = overdue_at(LivenessTimeouts(), **facts)  # type: ignore[arg-type]
    assert (moment <= now) == (expected is not None)


def scope(**outputs: str) -> Scope:
    play = Play(workflow(spec("a")))
    return Scope(play.run, {name: InlineOutput(text) for name, text in outputs.items()})


def test_a_reference_follows_fields_and_indexes() -> None:
    bound = scope(a='{"files": ["x", "y"]}').bind(Ref(("tasks", "a", "output", "files", 1)))
    assert bound == {"value": "y"}


def test_a_reference_to_a_missing_field_names_the_existing_ones() -> None:
    with pytest.raises(BindError, match=r"`tasks.a.output.file`: there is no `file` in an object with files"):
        scope(a='{"files": []}').bind(Ref(("tasks", "a", "output", "file")))


def test_a_large_output_is_bound_by_its_object_key() -> None:
    stored = Scope(Play(workflow(spec("a"))).run, {"a": StoredOutput("runs/r/a/0/1/output.json", 10**6)})
    assert stored.bind(Ref(("tasks", "a", "output", "rows"))) == {
        "object": "runs/r/a/0/1/output.json",
        "path": ["rows"],
    }


def test_an_upstream_without_output_is_missing_not_an_error() -> None:
    assert Scope(Play(workflow(spec("a"))).run, {"a": None}).bind(Ref(("tasks", "a", "output"))) == {"missing": True}


def test_constants_are_unchanged_and_secrets_are_not_resolved() -> None:
    assert scope().bind(Const([1, None])) == {"value": [1, None]}
    assert scope().bind(Secret("TOKEN")) == {"secret": "TOKEN"}
    assert scope().bind(Ref(("run", "scheduled_for"))) == {"value": None}
