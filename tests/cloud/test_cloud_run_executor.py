"""What the executor for Cloud Run asks of the platform, and how it finds attempts that others started."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("google.cloud.run_v2", reason="the extra `gcp` is not installed")

from ork.executors.cloud_run.executor import CloudRunExecutor
from ork.executors.cloud_run.making import ATTEMPT_ANNOTATION, LABEL
from ork.executors.executor import LaunchOrder, Presence
from ork.model.record import replaced
from ork.objects.documents import open_signed
from ork.objects.group_members import members_of
from tests.cloud.cloud_run import FakeCloudRun
from tests.cloud.documents import container_document, group_order
from tests.cloud.executors import cloud_run_executor
from tests.cloud.runners import ProcessRunner, Result, Wanted
from tests.cloud.test_fake_cloud_run import Client
from tests.integration.workshop import ENDS, Workshop

pytestmark = pytest.mark.slow


class Shop(Workshop):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.cloud = FakeCloudRun(ProcessRunner({"image": self.root}))
        self.opened: list[CloudRunExecutor] = []

    def new_executor(self, **options: Any) -> CloudRunExecutor:
        self.opened.append(cloud_run_executor(self.cloud, self.objects, **options))
        return self.opened[-1]

    def command(self, script: str, task: str = "work") -> LaunchOrder:
        attempt = self.attempt(task)
        name = f"cloudrun:acme/europe-west1:{attempt.key}"
        attempt = replaced(attempt, executor="cloudrun", external_name=name)
        return self.order(attempt, argv=["sh", "-c", script], news=None, container=container_document("image"))

    def is_over(self, order: LaunchOrder) -> bool:
        status = self.status(order.attempt)
        return status is not None and status["state"] in ENDS

    def is_running(self, order: LaunchOrder) -> bool:
        status = self.status(order.attempt)
        return status is not None and status["state"] == "running"


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path)
    yield made
    made.cloud.close()


def heard(_key: object, _status: object = None, /) -> None:
    return


async def eventually(is_so: Callable[[], bool], seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        while not is_so():
            await asyncio.sleep(0.05)


def run(shop: Shop, scene: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        try:
            await scene()
        finally:
            for executor in shop.opened:
                await executor.close()

    asyncio.run(whole())


async def presence(executor: CloudRunExecutor, order: LaunchOrder) -> Presence:
    (found,) = await executor.find([order.attempt])
    return found


def test_attempts_of_one_config_share_a_job_and_its_list(shop: Shop) -> None:
    async def scene() -> None:
        executor = shop.new_executor()
        orders = [replaced(shop.command("exit 0", f"task{number}"), is_new=True) for number in range(8)]
        assert not await executor.start(orders, heard)
        await eventually(lambda: all(map(shop.is_over, orders)))
        assert len(shop.cloud.jobs) == 1
        calls = shop.cloud.calls
        assert calls["jobs.create"] == 1
        assert calls["jobs.run"] == 8
        assert calls["executions.get"] == 0
        assert calls["executions.list"] <= 5  # one for all of them, and not one for each

    run(shop, scene)


def test_running_workers_that_call_by_themselves_are_not_polled(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ork.executors.cloud_run.executor.FIRST_POLL_SECONDS", 0.2)

    async def scene() -> None:
        executor = shop.new_executor(workers_call=True)
        order = shop.command("sleep 600")
        await executor.start([order], heard)
        await eventually(lambda: shop.is_running(order) and not executor._needs_polling(executor_job(executor)))
        before = shop.cloud.calls["executions.list"]
        await asyncio.sleep(2)
        assert shop.cloud.calls["executions.list"] == before
        await executor.stop([order.attempt], at_once=True)
        await eventually(lambda: shop.is_over(order))

    def executor_job(executor: CloudRunExecutor) -> str:
        return next(iter(executor._tracked.open_jobs()), "")

    run(shop, scene)


def test_a_running_attempt_is_found_by_its_gate_though_no_list_shows_it(shop: Shop) -> None:
    async def scene() -> None:
        shop.cloud.faults.late_listings = 600.0
        first = shop.new_executor()
        order = shop.command("sleep 600")
        await first.start([order], heard)
        await eventually(lambda: shop.is_running(order))
        successor = shop.new_executor()
        assert await presence(successor, order) is Presence.RUNNING
        await successor.stop([order.attempt], at_once=True)
        await eventually(lambda: shop.is_over(order))

    run(shop, scene)


def test_an_execution_that_the_platform_has_forgotten_is_over(shop: Shop) -> None:
    async def scene() -> None:
        executor = shop.new_executor()
        order = shop.command("sleep 600")
        await executor.start([order], heard)
        await eventually(lambda: shop.is_running(order))
        shop.cloud.faults.forgets_ended = True
        shop.cloud.kill_tasks()
        await eventually(lambda: shop.is_over(order), 90)
        status = shop.status(order.attempt)
        assert status is not None
        assert status["failure"]["kind"] == "lost"

    run(shop, scene)


def test_an_execution_that_is_not_found_right_after_its_start_is_not_forgotten(shop: Shop) -> None:
    async def scene() -> None:
        shop.cloud.faults.late_names = shop.cloud.faults.late_listings = 600.0
        shop.cloud.faults.cold_start = 4.0  # the first look is earlier
        executor = shop.new_executor()
        alone, group = shop.command("exit 0"), group_order(shop, executor, 1, 1, "exit 0")
        await executor.start([alone], heard)
        await executor.start_groups([group], heard)
        for order in (alone, *group.orders):
            await eventually(lambda order=order: shop.is_over(order))  # type: ignore[misc]
            status = shop.status(order.attempt)
            assert status is not None
            assert status["state"] == "success"
        assert shop.cloud.calls["executions.get"] >= 2

    run(shop, scene)


def test_a_start_whose_answer_is_lost_is_looked_for_before_it_is_asked_for_again(shop: Shop) -> None:
    async def scene() -> None:
        executor = shop.new_executor()
        order = shop.command("sleep 600")
        answer = shop.cloud.answer

        def losing(method: str, url: str, body: bytes) -> Any:
            made = answer(method, url, body)
            return None if url.partition("?")[0].endswith(":run") else made

        shop.cloud.answer = losing  # type: ignore[method-assign]
        await executor.start([order], heard)
        await eventually(lambda: shop.is_running(order))
        assert await presence(executor, order) is Presence.RUNNING
        assert shop.cloud.calls["jobs.run"] == 1
        await executor.stop([order.attempt], at_once=True)
        await eventually(lambda: shop.is_over(order))

    run(shop, scene)


def test_a_start_that_seemed_to_fail_is_found_when_it_wins_its_gate(shop: Shop) -> None:
    """Its answer is lost, no list shows it, and it begins after that: it counts neither as gone nor as one to start again."""

    async def scene() -> None:
        shop.cloud.faults.late_listings, shop.cloud.faults.cold_start = 600.0, 2.0
        executor = shop.new_executor()
        order = shop.command("sleep 600")
        answer = shop.cloud.answer

        def losing(method: str, url: str, body: bytes) -> Any:
            made = answer(method, url, body)
            return None if url.partition("?")[0].endswith(":run") else made

        shop.cloud.answer = losing  # type: ignore[method-assign]
        await executor.start([order], heard)
        while await presence(executor, order) is Presence.RUNNING:
            await asyncio.sleep(0.05)
        assert await presence(executor, order) is Presence.GONE  # it has not begun
        await eventually(lambda: shop.is_running(order))
        assert await presence(executor, order) is Presence.RUNNING
        await executor.stop([order.attempt], at_once=True)
        await eventually(lambda: shop.is_over(order))

    run(shop, scene)


def test_a_missing_job_is_made_again(shop: Shop) -> None:
    async def scene() -> None:
        executor = shop.new_executor()
        first, second = shop.command("exit 0", "first"), shop.command("exit 0", "second")
        await executor.start([first], heard)
        await eventually(lambda: shop.is_over(first))
        shop.cloud._jobs.clear()
        await executor.start([second], heard)
        await eventually(lambda: shop.is_over(second))

    run(shop, scene)


@pytest.mark.parametrize("attempt", [None, "a1b2c3d4e5f6/work/0/1"], ids=["of many", "of a run that was deleted"])
def test_jobs_that_were_not_used_for_a_week_are_removed_and_those_of_others_are_not(
    shop: Shop, attempt: str | None
) -> None:
    async def scene() -> None:
        executor = shop.new_executor()
        order = shop.command("exit 0")
        await executor.start([order], heard)
        await eventually(lambda: shop.is_over(order))
        await executor.close()
        (job,) = shop.cloud._jobs.values()
        job.message.latest_created_execution.create_time = datetime.now(UTC) - timedelta(days=8)
        if attempt is not None:
            job.message.annotations[ATTEMPT_ANNOTATION] = attempt
        other = type(job.message)(job.message)
        other.name, other.labels[LABEL] = job.message.name + "x", "somebody-else"
        shop.cloud._jobs[other.name] = type(job)(other, None)
        again = shop.new_executor()
        next_one = shop.command("sleep 3", "next")
        next_one = replace_image(shop, next_one)
        await again.start([next_one], heard)
        await eventually(lambda: job.message.name not in shop.cloud._jobs)
        assert other.name in shop.cloud._jobs

    def replace_image(shop: Shop, order: LaunchOrder) -> LaunchOrder:
        shop.cloud._runner._images["image2"] = shop.root  # type: ignore[attr-defined]
        return shop.order(order.attempt, argv=["sleep", "3"], news=None, container=container_document("image2"))

    run(shop, scene)


def test_a_job_that_was_not_used_for_a_week_is_not_removed_while_it_is_used_again(shop: Shop) -> None:
    """The platform shows the new execution late, so that the Job looks old to who removes old ones."""

    async def scene() -> None:
        executor, order = shop.new_executor(), shop.command("exit 0")
        await executor.start([order], heard)
        await eventually(lambda: shop.is_over(order))
        await executor.close()
        (job,) = shop.cloud._jobs.values()
        looked = shop.cloud._jobs_list

        def late(*args: Any, **kwargs: Any) -> Any:
            job.message.latest_created_execution = None
            job.message.create_time = datetime.now(UTC) - timedelta(days=30)
            return looked(*args, **kwargs)

        shop.cloud._jobs_list = late  # type: ignore[method-assign]
        again, next_one = shop.new_executor(), shop.command("sleep 1", "next")
        await again.start([next_one], heard)
        await eventually(lambda: shop.cloud.calls["jobs.list"] == 2)
        await eventually(lambda: shop.is_over(next_one))
        assert shop.cloud.calls["jobs.delete"] == 0

    run(shop, scene)


def test_removing_old_jobs_is_tried_again_soon_after_it_failed(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ork.executors.cloud_run.executor._SWEEP_AGAIN_SECONDS", 0.5)

    async def scene() -> None:
        shop.cloud.faults.errors += [("jobs.list", 403, "Permission 'run.jobs.list' denied.")]
        executor, order = shop.new_executor(), shop.command("sleep 600")
        await executor.start([order], heard)
        await eventually(lambda: shop.cloud.calls["jobs.list"] == 2)
        await executor.stop([order.attempt], at_once=True)
        await eventually(lambda: shop.is_over(order))

    run(shop, scene)


class Recorder:
    """Starts nothing: each task ends at once, and its variables are kept."""

    def __init__(self) -> None:
        self.started: list[dict[str, str]] = []

    def has_image(self, _image: str) -> bool:
        return True

    def start(self, wanted: Wanted) -> Recorder:
        self.started.append(dict(wanted.env))
        return self

    def wait(self, _seconds: float) -> Result:
        return Result(0)

    def stop(self, _how: object) -> None:
        return


def test_a_thousand_instances_are_started_by_five_calls_and_each_finds_its_attempt(shop: Shop) -> None:
    shop.cloud._runner = recorder = Recorder()

    async def scene() -> None:
        executor = shop.new_executor(workers_call=True)
        group = group_order(shop, executor, 1000, 50, "exit 0")
        group = replaced(group, orders=tuple(replaced(order, is_new=True) for order in group.orders))
        assert not await executor.start_groups([group], heard)
        await eventually(lambda: len(recorder.started) == 1000)
        assert shop.cloud.calls.total() <= 5
        names = {members_of(env["ORK_ATTEMPTS"])[int(env["CLOUD_RUN_TASK_INDEX"])] for env in recorder.started}
        assert names == {str(order.attempt.key) for order in group.orders}
        (execution,) = shop.cloud.executions
        assert (execution.task_count, execution.parallelism) == (1000, 50)
        shown = str(execution)
        assert not any(order.token in shown for order in group.orders)

    run(shop, scene)


def test_a_task_of_a_group_that_the_platform_ends_is_lost_while_the_others_go_on(shop: Shop) -> None:
    async def scene() -> None:
        executor = shop.new_executor()
        script = "sleep 600"
        group = group_order(shop, executor, 2, 2, script)
        await executor.start_groups([group], heard)
        first, second = group.orders
        await eventually(lambda: shop.is_running(second))
        await eventually(lambda: shop.is_running(first))
        (data,) = shop.objects.read_gates([str(first.attempt.key)])
        assert isinstance(data, bytes)
        gate = open_signed(data, first.attempt.token_hash)
        os.killpg(gate["pid"], signal.SIGKILL)  # as if its machine were lost
        await eventually(lambda: shop.is_over(first), 90)
        status = shop.status(first.attempt)
        assert status is not None
        assert status["failure"]["kind"] == "lost"
        assert not shop.is_over(second)
        await executor.stop([second.attempt], at_once=True)
        await eventually(lambda: shop.is_over(second))

    run(shop, scene)


def test_a_group_that_was_started_twice_is_found_in_both_executions(shop: Shop) -> None:
    async def scene() -> None:
        shop.cloud.faults.late_listings = 600.0
        first, successor = shop.new_executor(), shop.new_executor()
        group = group_order(shop, first, 2, 1, "case {name} in *each/0/*) sleep 600;; *) exit 0;; esac")
        long, short = group.orders
        for executor in (first, successor):
            assert not await executor.start_groups([group], heard)
        await eventually(lambda: shop.is_running(long) and shop.is_over(short))
        await eventually(lambda: any(each.completion_time for each in shop.cloud.executions))
        for executor in (first, successor):
            await executor._groups._look(executor._groups._units[group.id])  # one of them has ended
            assert await presence(executor, long) is Presence.RUNNING
        await successor.stop([long.attempt], at_once=True)
        async with asyncio.timeout(60):
            while await presence(successor, long) is not Presence.GONE:
                await asyncio.sleep(0.05)
        assert shop.is_over(long)

    run(shop, scene)


def test_a_group_whose_start_seemed_to_fail_is_found_by_its_gates(shop: Shop) -> None:
    async def scene() -> None:
        executor = shop.new_executor()
        group = group_order(shop, executor, 1, 1, "sleep 600")
        (order,) = group.orders
        shop.cloud.faults.late_listings = 600.0
        await shop.new_executor().start_groups([group], heard)
        shop.cloud.faults.errors += [("jobs.run", 503, "The service is currently unavailable.")]
        await executor.start_groups([group], heard)
        await eventually(lambda: shop.is_running(order) and not executor._groups._units[group.id].is_busy)
        assert await presence(executor, order) is Presence.RUNNING
        await executor.stop([order.attempt], at_once=True)
        await eventually(lambda: shop.is_over(order))

    run(shop, scene)


def test_a_job_is_not_given_up_while_another_scheduler_may_still_ask_for_it(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for a quota, and would start the Job after its attempt was ended and the next one began."""
    monkeypatch.setattr("ork.executors.cloud_run.launching.DOUBT_SECONDS", 0.1)
    Client(shop.cloud).create("nightly", container={"image": "image", "command": ["sh", "-c"]})
    attempt = shop.attempt("work")
    attempt = replaced(attempt, executor="cloudrun", external_name=f"cloudrun:acme/europe-west1:{attempt.key}")
    plain = {"kind": "cloud_run_job", "job": "nightly", "env": {}, "news": None, "container": container_document("")}
    order = shop.order(attempt, argv=["exit 0"], **plain)

    async def scene() -> None:
        shop.cloud.faults.errors += [("jobs.run", 429, "Quota exceeded.")]
        await shop.new_executor().start([order], heard)
        await eventually(lambda: shop.cloud.calls["jobs.run"] == 1)
        await asyncio.sleep(0.3)
        successor = shop.new_executor()
        assert await presence(successor, order) is Presence.UNKNOWN
        await eventually(lambda: shop.is_over(order))
        status = shop.status(attempt)
        assert status is not None
        assert status["state"] == "success"

    run(shop, scene)
