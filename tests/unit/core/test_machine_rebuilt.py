"""A machine rebuilt from rows, and what runs of any shape have in common."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ork.core import events as ev
from ork.core.machine import RunMachine
from ork.model.ids import TaskKey
from ork.model.record import replaced
from ork.model.run import CommandKind, RunStatus
from ork.model.task import Failure, FailureKind, GiveUp, TaskStatus
from ork.model.workflow import CompiledWorkflow, RunIf, TaskSpec

from .flows import Play, spec, workflow

LOST = Failure(FailureKind.LOST, "silent")
CANCELLED = Failure(FailureKind.CANCELLED, "cancelled by ann")


@st.composite
def flows(draw: st.DrawFn) -> CompiledWorkflow:
    size = draw(st.integers(1, 7))
    tasks: list[TaskSpec] = []
    for i in range(size):
        above = draw(st.lists(st.sampled_from([t.name for t in tasks]), unique=True, max_size=3)) if tasks else []
        tasks.append(
            spec(
                f"t{i}",
                *above,
                retries=draw(st.integers(0, 2)),
                run_if=draw(st.sampled_from(list(RunIf))),
                priority=draw(st.integers(-1, 1)),
            )
        )
    return workflow(*tasks, fail_fast=draw(st.booleans()))


def _random_move(play: Play, dice: random.Random) -> None:
    active = sorted(str(key) for key in play.machine.active)
    move = dice.choice(["launch", "end", "end", "wait", "command"])
    if move == "launch":
        play.launch(limit=dice.randint(1, 3))
    elif move == "end" and active:
        name = dice.choice(active)
        dice.choice([play.succeed, play.fail, lambda n: play.give_up(n, GiveUp.STALE, LOST), play.close])(name)
    elif move == "wait":
        play.wait(dice.choice([0, 1, 70]))
    elif move == "command":
        play.command(dice.choice(list(CommandKind)))


@given(flows(), st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_a_machine_rebuilt_from_its_rows_decides_the_same(flow: CompiledWorkflow, seed: int) -> None:
    kept, rebuilt = Play(flow), Play(flow)
    dice, same_dice = random.Random(seed), random.Random(seed)
    for _ in range(25):
        kept.wait(0)
        _random_move(kept, dice)
        rebuilt.rebuild()
        rebuilt.wait(0)  # a timer that has come wakes a rebuilt machine like any other
        _random_move(rebuilt, same_dice)
        forget_beats = lambda a: replaced(a, seen_at=None, seq=0)  # noqa: E731
        assert kept.rows == rebuilt.rows
        assert kept.run == rebuilt.run
        assert {k: forget_beats(a) for k, a in kept.attempts.items()} == {
            k: forget_beats(a) for k, a in rebuilt.attempts.items()
        }


@given(flows(), st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_every_run_ends_and_its_state_follows_from_its_tasks(flow: CompiledWorkflow, seed: int) -> None:
    play, dice = Play(flow), random.Random(seed)
    for _ in range(200):
        if play.run.status.is_final:
            break
        play.wait(100)
        play.launch()
        for key in list(play.machine.active):
            if key in play.machine.active:
                play.fail(str(key)) if dice.random() < 0.4 else play.succeed(str(key))
    assert play.run.status.is_final
    states = {task.status for task in play.rows.values()}
    assert all(state.is_final for state in states)
    assert (play.run.status is RunStatus.FAILED) == (TaskStatus.FAILED in states)
    for row in play.rows.values():
        assert row.attempt <= 1 + play.machine.spec(row.key).retries


def test_an_event_costs_the_edges_of_its_task_not_the_size_of_the_run() -> None:
    def touched(width: int) -> int:
        play = Play(workflow(*[spec(f"t{i}") for i in range(width)], spec("next", "t0")))
        play.launch()
        play.machine.handle(ev.Succeeded(TaskKey("t0"), 1, 5, None, play.now, play.now), play.now)
        decided = play.machine.take()
        return len(decided.tasks) + len(decided.attempts)

    assert touched(10) == touched(1000) == 2


@pytest.mark.slow
def test_a_chain_of_ten_thousand_is_skipped_without_recursion() -> None:
    chain = [spec("t0"), *[spec(f"t{i}", f"t{i - 1}") for i in range(1, 10_000)]]
    play = Play(workflow(*chain))
    play.launch()
    play.fail("t0")
    assert play.run.status is RunStatus.FAILED
    assert play.status("t9999") == "skipped"


def test_a_machine_is_built_from_rows_alone() -> None:
    flow = workflow(spec("a"))
    play = Play(flow)
    play.launch()
    again = RunMachine(flow, play.run, play.rows.values(), play.attempts.values())
    assert list(again.active) == [TaskKey("a")]
