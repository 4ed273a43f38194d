"""`why` reads the tasks that its answer mentions, and answers as if it had read all of them."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from ork.compile.content import make_version
from ork.errors import NotFoundError
from ork.model.ids import RunId, TaskKey
from ork.model.record import replaced
from ork.model.run import NewRun, RunStatus
from ork.model.task import Attempt, AttemptStatus, Failure, FailureKind, Task, TaskStatus
from ork.model.workflow import CompiledWorkflow
from ork.objects.memory import MemoryObjects
from ork.state.memory.store import MemoryStore
from ork.state.records import ALL_TASKS, RunChanges, RunUpdate, TaskFilter
from ork.status import gather
from ork.status.explain import ExplainTimeouts, explain
from ork.status.ids import RunTarget
from ork.status.run_view import RunView, open_view
from tests.conformance.state_samples import ANN, NOW, attempt, later
from tests.unit.status.sample_runs import spec

pytestmark = pytest.mark.anyio

RUN = RunId("00000000000f")
WIDTH = 30
SPECS = (
    spec("extract"),
    spec("side"),
    spec("load", "extract", "side", concurrency=4),
    spec("check", "extract"),
    spec("publish", "load", "check", "side"),
    *(spec(f"leaf{number}", "publish") for number in range(25)),
    spec("reduce", *(f"leaf{number}" for number in range(25))),
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class CountingStore(MemoryStore):
    """Counts the tasks that are read."""

    tasks_read = 0

    async def run_updates(self, run: RunId, since: str | None = None, only: TaskFilter = ALL_TASKS) -> RunUpdate | None:
        update = await super().run_updates(run, since, only)
        self.tasks_read += len(update.tasks) if update is not None else 0
        return update


def any_task(chance: random.Random, name: str, index: int | None = None, **options: int) -> Task:
    status = chance.choice([*TaskStatus])
    number = chance.randrange(3) if status is TaskStatus.PENDING else 1 + chance.randrange(2)
    failed = Failure(FailureKind.EXCEPTION, f"{name} broke")
    return Task(
        TaskKey(name, index), status, "process", attempt=number,
        failure=failed if status is TaskStatus.FAILED or number > 1 else None,
        cause=TaskKey("load", chance.randrange(WIDTH)) if status is TaskStatus.SKIPPED else None,
        dispatched_at=NOW, started_at=later(1), finished_at=later(9) if status.is_final else None,
        retry_at=later(99) if status is TaskStatus.PENDING and number and chance.random() < 0.7 else None, **options,
    )  # fmt: skip


def current_attempt(task: Task) -> Attempt:
    status = AttemptStatus.RUNNING if task.status is TaskStatus.RUNNING else AttemptStatus.DISPATCHED
    made = attempt(RUN, task.key.name, task.attempt, status=status)
    return replaced(made, key=made.key._replace(task=task.key))


async def random_run(seed: int, width: int = WIDTH) -> CountingStore:
    chance, store = random.Random(seed), CountingStore()
    version = make_version(CompiledWorkflow("fan", SPECS), "/project", "fan.yaml")
    await store.save_version(version, origin=None, now=NOW)
    await store.create_runs([NewRun(RUN, "fan", version.id, {})], NOW)
    await store.register(ANN, "identity", "scheduler", NOW)
    (claimed,) = (await store.claim_runs(ANN, 10, NOW)).runs
    tasks = [any_task(chance, each.name) for each in SPECS if each.name != "load"]
    tasks += [any_task(chance, "load", instances=width), *(any_task(chance, "load", index) for index in range(width))]
    status = chance.choice([RunStatus.RUNNING, RunStatus.RUNNING, RunStatus.PAUSED, RunStatus.FAILED])
    row = replaced(claimed.run, status=status, started_at=NOW, finished_at=later(20) if status.is_final else None)
    active = (TaskStatus.RUNNING, TaskStatus.DISPATCHED)
    attempts = tuple(current_attempt(task) for task in tasks if task.status in active)
    await store.commit(ANN, [RunChanges(RUN, claimed.epoch, row, tuple(tasks), attempts)], NOW)
    return store


async def answer(store: MemoryStore, target: RunTarget) -> object:
    return await explain(store, MemoryObjects(), target, NOW + timedelta(seconds=30), ExplainTimeouts())


@pytest.mark.parametrize("seed", range(8))
async def test_an_answer_is_the_same_as_if_all_tasks_were_read(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await random_run(seed)
    targets = [RunTarget(RUN), *(RunTarget(RUN, each.name) for each in SPECS)]
    targets += [RunTarget(RUN, "load", index) for index in range(WIDTH)]
    found = [await answer(store, target) for target in targets]

    async def everything(store: MemoryStore, run: RunId, target: RunTarget) -> RunView:
        return (await open_view(store, run))[0]

    monkeypatch.setattr(gather, "why_view", everything)
    for target, narrow in zip(targets, found, strict=True):
        assert narrow == await answer(store, target), target


async def test_the_tasks_that_are_read_do_not_grow_with_the_run() -> None:
    store = await random_run(3, width=3000)
    for target, most in (
        (RunTarget(RUN, "load", 2000), 3),
        (RunTarget(RUN, "publish"), 5),
        (RunTarget(RUN, "reduce"), 40),
    ):
        store.tasks_read = 0
        await answer(store, target)
        assert store.tasks_read <= most, target


async def test_a_task_that_the_run_does_not_have_is_named_with_a_similar_one() -> None:
    store = await random_run(1)
    with pytest.raises(NotFoundError) as error:
        await answer(store, RunTarget(RUN, "pubish"))
    assert error.value.hint == "did you mean `publish`?"
    with pytest.raises(NotFoundError, match=r"load\[99\]"):
        await answer(store, RunTarget(RUN, "load", 99))
