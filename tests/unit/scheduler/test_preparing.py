"""While what a task needs is being built, its own time has not begun; and its spec says what that is."""

from __future__ import annotations

import pytest

from ork.model.record import replaced
from ork.model.workflow import Command, CompiledWorkflow, Const, Environment, RustProgram, TaskSpec
from ork.objects import layout
from ork.objects.documents import open_signed
from tests.unit.scheduler.bench_top import BenchTop

TASK = TaskSpec("a", "process", Command((Const("x"),)), timeout=30.0)


def on_bench(task: TaskSpec) -> BenchTop:
    bench = BenchTop(CompiledWorkflow("flow", (task,)), builds_dir="/project/.ork")
    bench.create()
    bench.step()
    return bench


def test_a_timeout_begins_when_the_build_is_done() -> None:
    bench = on_bench(TASK)
    bench.win_gate("a")
    for seq in range(1, 13):  # two minutes of building, with a heartbeat every ten seconds
        bench.say("a", "running", seq, preparing=True)
        bench.step()
        bench.clock.advance(10)
        bench.step(3)
    assert bench.executor.stopped == []
    bench.say("a", "running", 13)
    for _ in range(5):
        bench.step(3)
        bench.clock.advance(10)
    assert bench.executor.stopped == [bench.order("a").attempt.key]


@pytest.mark.parametrize(
    ("action", "words"),
    [(Command((Const("x"),)), "building its environment"), (RustProgram("app", ()), "compiling its program")],
)
def test_people_see_that_it_is_being_built_until_it_runs(action: Command | RustProgram, words: str) -> None:
    bench = on_bench(replaced(TASK, action=action))
    bench.win_gate("a")
    bench.say("a", "running", 1, preparing=True)
    bench.step(2)
    assert bench.task("a").reason == words
    bench.say("a", "running", 2, preparing=True)
    bench.step(2)
    assert bench.task("a").reason == words
    bench.say("a", "running", 3)
    bench.clock.advance(10)
    bench.step(3)
    assert bench.task("a").reason is None


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        (None, None),
        (Environment(path="env"), {"path": "env"}),
        (Environment(requirements=("a", "b")), {"requirements": ["a", "b"]}),
        (Environment(requirements_file="r.txt"), {"requirements_file": "r.txt"}),
        (Environment(script=True), {"script": True}),
    ],
)
def test_the_worker_is_told_the_environment_and_where_to_build_it(
    environment: Environment | None, said: dict[str, object] | None
) -> None:
    bench = on_bench(replaced(TASK, environment=environment))
    spec = spec_of(bench)
    assert (spec["environment"], spec["builds"]) == (said, "/project/.ork")


def test_the_worker_is_told_which_rust_program_and_its_arguments() -> None:
    bench = on_bench(replaced(TASK, action=RustProgram("app", (Const("-v"), Const(3)))))
    spec = spec_of(bench)
    assert (spec["kind"], spec["path"], spec["argv"]) == ("rust", "app", ["-v", "3"])


def spec_of(bench: BenchTop) -> dict[str, object]:
    attempt = bench.order("a").attempt
    data = bench.objects.get(layout.spec_key(layout.attempt_stem(attempt.key)))
    assert data is not None
    return open_signed(data, attempt.token_hash)
