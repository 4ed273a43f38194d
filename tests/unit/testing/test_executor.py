"""The scripted executor and its workers keep to the protocol that real ones follow."""

from __future__ import annotations

import pytest

from ork.objects import documents, layout
from tests.unit.testing.stage import Stage


@pytest.fixture
def hanging() -> Stage:
    """A stage whose task would run for ever, and has a timeout of 100 s."""
    for seed in range(1000):
        stage = Stage(seed=seed, timeout=100.0)
        if stage.cluster.script_of(stage.order().attempt.key, True).ending == "hang":
            return stage
    raise AssertionError("no seed gives a task that hangs")


def starts(stage: Stage) -> int:
    return sum(what == "started" for what, _ in stage.witness.events)


def test_user_code_of_one_attempt_starts_once_however_often_it_is_launched(hanging: Stage) -> None:
    order = hanging.order()
    hanging.start(order)
    hanging.start(order)
    hanging.pass_time(1)
    assert starts(hanging) == 1


def test_a_worker_that_finds_its_gate_shut_leaves_without_a_word(hanging: Stage) -> None:
    order = hanging.order()
    stem = layout.attempt_stem(order.attempt.key)
    hanging.objects.put_if_absent(layout.gate_key(stem), b"closed")
    hanging.start(order)
    hanging.pass_time(1)
    assert starts(hanging) == 0
    assert hanging.objects.get(layout.status_key(stem)) is None
    assert hanging.find(order) == "gone"


def test_a_worker_beats_and_ends_its_task_at_the_timeout(hanging: Stage) -> None:
    order = hanging.order()
    hanging.start(order)
    hanging.pass_time(1)
    first = hanging.status(order)
    hanging.pass_time(30)
    assert first["state"] == hanging.status(order)["state"] == "running"
    assert hanging.status(order)["seq"] > first["seq"]
    hanging.pass_time(100)
    assert hanging.status(order)["state"] == "timed_out"
    assert hanging.find(order) == "gone"
    assert order.attempt.key in hanging.news


def test_a_stop_request_in_the_store_is_seen_with_the_next_heartbeat(hanging: Stage) -> None:
    order = hanging.order()
    hanging.start(order)
    hanging.pass_time(1)
    stop = documents.sign({"v": 1, "attempt": str(order.attempt.key)}, order.attempt.token_hash)
    hanging.objects.put(layout.stop_key(layout.attempt_stem(order.attempt.key)), stop)
    hanging.pass_time(25)
    assert hanging.status(order)["state"] == "stopped"


def test_a_worker_that_is_killed_leaves_no_last_word(hanging: Stage) -> None:
    order = hanging.order()
    hanging.start(order)
    hanging.pass_time(1)
    hanging.do(hanging.executor.stop([order.attempt], at_once=True))
    assert hanging.status(order)["state"] == "running"
    assert hanging.find(order) == "gone"
    assert hanging.cluster.living_user_code() == []


def test_a_worker_that_cannot_be_heard_for_45_seconds_ends_its_task(hanging: Stage) -> None:
    order = hanging.order()
    hanging.start(order)
    hanging.pass_time(1)
    now = hanging.kernel.time
    hanging.faults._full_disks = [(now, now + 70)]  # no write succeeds
    hanging.pass_time(60)
    assert hanging.cluster.living_user_code() == []
    hanging.pass_time(30)
    assert hanging.status(order)["failure"]["kind"] == "lost"


def test_after_a_reboot_an_attempt_is_lost_and_names_differ(hanging: Stage) -> None:
    order = hanging.order()
    hanging.start(order)
    hanging.pass_time(1)
    assert hanging.find(order) == "running"
    hanging.cluster.reboot(hanging.cluster.machines[0])
    assert hanging.find(order) == "lost"
    assert hanging.executor.name_for(order.attempt.key) != order.attempt.external_name


def test_an_attempt_that_nobody_started_is_gone(hanging: Stage) -> None:
    assert hanging.find(hanging.order()) == "gone"


def test_out_of_reach_the_executor_cannot_say() -> None:
    stage = Stage(unreachable=1.0)
    assert stage.find(stage.order()) == "unknown"
