"""The executor for Kubernetes on a scripted API server: starts, faults of the API, watches, launch groups, leftovers, rights."""

from __future__ import annotations

import asyncio
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from ork.errors import UsageError
from ork.executors.executor import Presence
from ork.executors.kubernetes import api as api_module
from ork.executors.kubernetes import pod_watch
from ork.executors.kubernetes.access import NEEDED, missing_rights
from ork.executors.kubernetes.api import ClusterApi
from ork.executors.kubernetes.connection import connection_to
from ork.executors.unusable import UnusableExecutor
from ork.model.kubernetes import KubernetesPlace
from ork.model.record import replaced
from ork.model.task import AttemptStatus, GiveUp
from ork.objects.group_members import members_of
from ork.worker.supervise.stand_in import StandIn
from tests.unit.executors.kubernetes_subject import CONNECTION, KubernetesShop
from tests.unit.executors.scripted_cluster import JOBS, PODS, Fault, ended, refusal, running, unschedulable


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_module, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(pod_watch, "FIRST_PAUSE_SECONDS", 0.01)


def run(work: Callable[[KubernetesShop], Awaitable[None]], folder: Path, **options: Any) -> None:
    async def main() -> None:
        shop = KubernetesShop(folder, **options)
        try:
            await work(shop)
        finally:
            await shop.close()

    asyncio.run(main())


def fault(times: int, answer: Callable[[], httpx2.Response], method: str, path: str) -> Fault:
    """The next requests of this kind get that answer."""
    left = [times]

    def of(asked: str, url: str) -> httpx2.Response | None:
        if left[0] and asked == method and url.startswith(path):
            left[0] -= 1
            return answer()
        return None

    return of


# ── starting ─────────────────────────────────────────────────────────────────────────────────────


def test_a_start_can_be_repeated_by_anyone_and_creates_one_job(tmp_path: Path) -> None:
    async def work(shop: KubernetesShop) -> None:
        order = shop.order()
        await shop.started(order)
        assert await shop.start(order) == []
        other = shop.another()
        assert list(await other.start([order], shop.on_status)) == []
        await shop.until(lambda: shop.cluster.count("POST", JOBS) == 2)
        assert (await other.find([order.attempt])) == [Presence.RUNNING]
        assert len(shop.cluster.jobs) == 1
        await other.close()

    run(work, tmp_path)


def test_a_lost_answer_is_asked_for_again_and_the_job_is_there(tmp_path: Path) -> None:
    def lost() -> httpx2.Response:
        raise httpx2.ReadError("cut")

    async def work(shop: KubernetesShop) -> None:
        order = shop.order()
        shop.cluster.faults = [fault(1, lost, "POST", JOBS)]
        await shop.started(order)
        assert await shop.presence(order.attempt) is Presence.RUNNING

    run(work, tmp_path)


@pytest.mark.parametrize(
    ("code", "reason", "message", "final"),
    [
        (422, "Invalid", "spec.template: Invalid value", True),
        (403, "Forbidden", 'jobs.batch is forbidden: User "ork" cannot create resource', True),
        (403, "Forbidden", "exceeded quota: jobs, requested: count/jobs.batch=1", False),
        (404, "NotFound", 'namespaces "ns" not found', True),
        (401, "Unauthorized", "the token has expired", False),
        (429, "TooManyRequests", "too many requests", False),
        (503, "ServiceUnavailable", "etcd leader changed", False),
    ],
)
def test_a_refusal_is_returned_by_the_next_start_in_the_platforms_words(
    code: int, reason: str, message: str, final: bool, tmp_path: Path
) -> None:
    async def work(shop: KubernetesShop) -> None:
        order = shop.order()
        shop.cluster.faults = [fault(99, lambda: refusal(code, reason, message), "POST", JOBS)]
        (problem,) = await shop.start(order)
        assert (problem.attempt, problem.why, problem.final) == (order.attempt.key, f"Kubernetes: {message}", final)
        shop.cluster.faults = []
        assert await shop.start(order) == []
        assert len(shop.cluster.jobs) == 1

    run(work, tmp_path, waits=True)


def test_too_many_requests_are_asked_again_after_the_time_that_the_server_names(tmp_path: Path) -> None:
    async def work(shop: KubernetesShop) -> None:
        busy = fault(1, lambda: refusal(429, "TooManyRequests", "wait", **{"Retry-After": "1"}), "POST", JOBS)
        shop.cluster.faults = [busy]
        began = time.monotonic()
        assert await shop.start(shop.order()) == []
        assert time.monotonic() - began >= 1

    run(work, tmp_path, waits=True)


def test_a_job_of_this_name_that_is_being_deleted_is_waited_for(tmp_path: Path) -> None:
    async def work(shop: KubernetesShop) -> None:
        order = shop.order()
        job = await shop.started(order)
        shop.cluster.jobs[job]["metadata"]["deletionTimestamp"] = shop.cluster.now()
        other = shop.another(waits=True)
        (problem,) = await other.start([order], shop.on_status)
        assert (problem.final, "being deleted" in problem.why) == (False, True)
        await other.close()

    run(work, tmp_path)


def test_without_a_configuration_nothing_starts_and_the_reason_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        connection_to(KubernetesPlace(), str(tmp_path / "missing"))
    executor = UnusableExecutor("kubernetes", refused.value)

    async def work(shop: KubernetesShop) -> None:
        order = shop.order()
        (problem,) = await executor.start([order], shop.on_status)
        assert (problem.final, "no configuration" in problem.why) == (True, True)
        assert await executor.find([order.attempt]) == [Presence.UNKNOWN]

    run(work, tmp_path)


def test_another_cluster_or_namespace_is_unknown_and_never_gone(tmp_path: Path) -> None:
    async def work(shop: KubernetesShop) -> None:
        order = shop.order()
        await shop.started(order)
        assert order.attempt.external_name == f"kubernetes:abc123/ns:{order.attempt.key}"
        elsewhere = replaced(order.attempt, external_name=f"kubernetes:other/ns:{order.attempt.key}")
        assert await shop.presence(elsewhere) is Presence.UNKNOWN

    run(work, tmp_path)


# ── the watch ────────────────────────────────────────────────────────────────────────────────────


def test_a_watch_goes_on_where_it_was_cut_without_a_new_list(tmp_path: Path) -> None:
    async def work(shop: KubernetesShop) -> None:
        order = shop.order()
        job = await shop.started(order)
        shop.cluster.pod(job)
        await shop.until(lambda: len(shop.executor._watch) == 1)
        for _ in range(3):
            shop.cluster.cut_watches()
            shop.cluster.pod(job, phase="Pending")
        shop.win_gate(order.attempt, shop.cluster.pod(job, **running()))
        shop.cluster.pod(job, **ended(1))
        assert (await shop.ended(order.attempt))["state"] == "failed"
        assert shop.executor._watch.lists == 1

    run(work, tmp_path)


def test_a_watch_whose_version_is_too_old_begins_anew_and_notices_what_was_removed(tmp_path: Path) -> None:
    async def work(shop: KubernetesShop) -> None:
        order = shop.order()
        job = await shop.started(order)
        pod = shop.cluster.pod(job, **running())
        shop.win_gate(order.attempt, pod)
        await shop.until(lambda: len(shop.executor._watch) == 1)
        shop.cluster.faults = [fault(10**6, lambda: refusal(503, "ServiceUnavailable", "restarting"), "GET", PODS)]
        shop.cluster.cut_watches()
        await shop.until(lambda: not shop.cluster._watchers)
        shop.cluster.remove_pod(pod)
        shop.cluster.end_job(job)
        shop.cluster.oldest = shop.cluster.version + 1
        shop.cluster.version += 10
        shop.cluster.faults = []
        assert "its pod was deleted" in (await shop.ended(order.attempt))["failure"]["message"]
        assert shop.executor._watch.lists == 2

    run(work, tmp_path)


def test_what_runs_is_unknown_while_the_platform_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(shop: KubernetesShop) -> None:
        order = shop.order()
        job = await shop.started(order)
        shop.cluster.pod(job, **running())
        await shop.until(lambda: len(shop.executor._watch) == 1)
        assert await shop.presence(order.attempt) is Presence.RUNNING
        monkeypatch.setattr(pod_watch, "CURRENT_SECONDS", 0.0)
        shop.cluster.faults = [fault(10**6, lambda: refusal(401, "Unauthorized", "expired"), "GET", PODS)]
        shop.cluster.cut_watches()
        await shop.until(lambda: shop.executor._watch.problem is not None)
        for _ in range(20):
            assert await shop.presence(order.attempt) in (Presence.UNKNOWN, Presence.RUNNING)
        await shop.until(lambda: not shop.executor._watch.is_current)
        shop.cluster.faults = []
        await shop.until(lambda: shop.executor._watch.is_current)
        assert await shop.presence(order.attempt) is Presence.RUNNING

    run(work, tmp_path)


def test_a_long_list_is_read_in_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_module, "PAGE_SIZE", 3)

    async def work(shop: KubernetesShop) -> None:
        group = shop.group(8, 8)
        await shop.executor.start_groups([group], shop.on_status)
        await shop.until(lambda: bool(shop.cluster.jobs))
        (job,) = shop.cluster.jobs
        for index in range(8):
            shop.cluster.pod(job, index, **running())
        other = shop.another()
        found = await other.find([order.attempt for order in group.orders])
        assert found == [Presence.RUNNING] * 8
        await other.close()

    run(work, tmp_path)


def test_5000_pods_are_followed_by_one_watch_with_less_than_20_kilobytes_each(tmp_path: Path) -> None:
    count = 5000

    async def work(shop: KubernetesShop) -> None:
        job = await shop.started(shop.order())
        template = shop.cluster.jobs[job]
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for number in range(count):
            name = f"other-{number}"
            shop.cluster.jobs[name] = template
            shop.cluster.pod(name, number, **running())
            shop.cluster.history.clear()
            shop.cluster.pods.clear()
            del shop.cluster.jobs[name]
            if number % 100 == 0:
                await asyncio.sleep(0)
        await shop.until(lambda: len(shop.executor._watch) == count)
        used = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        assert used / count < 20_000
        assert (shop.executor._watch.lists, shop.cluster.count("GET", "?watch")) == (1, 1)

    run(work, tmp_path)


# ── launch groups ────────────────────────────────────────────────────────────────────────────────


def test_a_group_of_1000_costs_two_calls_and_only_failed_indexes_come_back(tmp_path: Path) -> None:
    async def work(shop: KubernetesShop) -> None:
        group = shop.group(1000, 1000)
        assert list(await shop.executor.start_groups([group], shop.on_status)) == []
        await shop.until(lambda: bool(shop.cluster.jobs))
        ((job, manifest),) = shop.cluster.jobs.items()
        assert manifest["spec"]["completions"] == 1000
        for index, order in enumerate(group.orders):
            if index in (7, 500):  # the platform ends these, and their workers cannot say so
                shop.win_gate(order.attempt, shop.cluster.pod(job, index, **running()))
                shop.cluster.pod(job, index, **ended(137, "OOMKilled"))
            else:
                shop.cluster.pod(job, index, **ended(0))
        for index in (7, 500):
            found = await shop.ended(group.orders[index].attempt)
            assert found["failure"]["message"] == "out of memory: exit code 137"
        attempts = [order.attempt for order in group.orders]
        await shop.until(lambda: len(set(shop.reported)) == 1000)
        assert set(await shop.executor.find(attempts)) == {Presence.GONE}
        shop.executor.release(attempts)
        await shop.until(lambda: not shop.cluster.jobs)
        calls = [
            each for each in shop.cluster.requests if each[1] not in (PODS, f"{PODS}?watch", JOBS) or each[0] != "GET"
        ]
        assert [method for method, _ in calls] == ["POST", "DELETE"]

    run(work, tmp_path)


def test_attempts_of_a_group_wait_in_it_until_they_have_a_pod_that_runs(tmp_path: Path) -> None:
    async def work(shop: KubernetesShop) -> None:
        group = shop.group(4, 2)
        attempts = [order.attempt for order in group.orders]
        await shop.executor.start_groups([group], shop.on_status)
        await shop.until(lambda: bool(shop.cluster.jobs))
        (job,) = shop.cluster.jobs
        shop.cluster.pod(job, 0, **running())
        shop.cluster.pod(job, 1, **unschedulable("no room"))
        shop.cluster.pod(job, 2, **ended(0))
        await shop.until(lambda: len(shop.executor._watch) == 3)
        found = await shop.executor.find(attempts)
        assert found == [Presence.RUNNING, Presence.QUEUED, Presence.GONE, Presence.QUEUED]
        # One that is being ended and has no pod is gone: its gate is closed.
        closing = replaced(attempts[3], closing=GiveUp.CANCEL)
        StandIn(shop.shop.objects, closing).win_gate({"state": "closed"})
        await shop.executor.find([closing])
        await shop.until(lambda: attempts[3].key in shop.reported)
        assert await shop.presence(closing) is Presence.GONE

    run(work, tmp_path)


def test_while_a_job_of_the_group_is_alive_no_second_one_is_created_and_then_one_for_the_rest(tmp_path: Path) -> None:
    async def work(shop: KubernetesShop) -> None:
        group = shop.group(3, 1)
        again = replaced(group, orders=tuple(replaced(order, is_new=False) for order in group.orders[1:]))
        await shop.executor.start_groups([group], shop.on_status)
        await shop.until(lambda: bool(shop.cluster.jobs))
        (job,) = shop.cluster.jobs
        other = shop.another(waits=True)
        assert list(await other.start_groups([again], shop.on_status)) == []
        assert len(shop.cluster.jobs) == 1
        shop.cluster.pod(job, 0, **ended(0))
        shop.cluster.end_job(job, reason="DeadlineExceeded")
        third = shop.another(waits=True)
        assert list(await third.start_groups([again], shop.on_status)) == []
        assert len(shop.cluster.jobs) == 2
        rest = next(each for name, each in shop.cluster.jobs.items() if name != job)
        assert rest["metadata"]["name"].endswith("-1")
        assert members_of(rest["metadata"]["annotations"]["ork.dev/attempts"]) == [
            str(order.attempt.key) for order in again.orders
        ]
        await other.close()
        await third.close()

    run(work, tmp_path)


def test_stopping_one_attempt_of_a_group_deletes_its_pod_only_and_stopping_all_the_job(tmp_path: Path) -> None:
    async def work(shop: KubernetesShop) -> None:
        group = shop.group(2, 1)
        first, second = (replaced(order.attempt, closing=GiveUp.CANCEL) for order in group.orders)
        await shop.executor.start_groups([group], shop.on_status)
        await shop.until(lambda: bool(shop.cluster.jobs))
        (job,) = shop.cluster.jobs
        pod = shop.cluster.pod(job, 0, **running())
        await shop.until(lambda: len(shop.executor._watch) == 1)
        await shop.executor.stop([first], at_once=True)
        await shop.until(lambda: [name for name, _ in shop.cluster.deleted] == [pod])
        assert shop.cluster.deleted[0][1]["gracePeriodSeconds"] == "1"
        await shop.executor.stop([second], at_once=True)
        await shop.until(lambda: job in [name for name, _ in shop.cluster.deleted])
        assert shop.cluster.deleted[-1][1]["propagationPolicy"] == "Background"

    run(work, tmp_path)


# ── after the end ────────────────────────────────────────────────────────────────────────────────


def test_a_job_is_deleted_when_the_end_of_its_attempt_is_committed_and_not_before(tmp_path: Path) -> None:
    async def work(shop: KubernetesShop) -> None:
        order = shop.order()
        job = await shop.started(order)
        shop.cluster.pod(job, **ended(0))
        await shop.until(lambda: order.attempt.key in shop.reported)
        assert await shop.presence(order.attempt) is Presence.GONE
        assert shop.cluster.deleted == []
        shop.executor.release([order.attempt])
        await shop.until(lambda: shop.cluster.deleted == [(job, {"propagationPolicy": "Background"})])

    run(work, tmp_path)


def test_a_scheduler_that_never_looked_at_it_deletes_it_too(tmp_path: Path) -> None:
    async def work(shop: KubernetesShop) -> None:
        order = shop.order()
        await shop.started(order)
        other = shop.another(waits=True)
        other.release([order.attempt])
        await other.close()
        assert shop.cluster.jobs == {}

    run(work, tmp_path)


def test_jobs_that_a_dead_scheduler_left_are_removed_and_no_others(tmp_path: Path) -> None:
    async def work(shop: KubernetesShop) -> None:
        done, alive = shop.order("done"), shop.order("alive")
        group = shop.group(2, 2)
        await shop.start(done, alive)
        await shop.executor.start_groups([group], shop.on_status)
        await shop.until(lambda: len(shop.cluster.jobs) == 3)
        rows = {str(order.attempt.key): order.attempt for order in (done, alive, *group.orders)}
        for order in (done, *group.orders):
            rows[str(order.attempt.key)] = replaced(order.attempt, status=AttemptStatus.SUCCESS)

        async def attempt_of(name: str) -> Any:
            return rows.get(name)

        successor = shop.another(attempt_of=attempt_of)
        await successor.sweep()
        assert list(shop.cluster.jobs) == [shop.executor._launching.job_of(str(alive.attempt.key))]
        await successor.close()

    run(work, tmp_path)


# ── rights, logs, time ───────────────────────────────────────────────────────────────────────────


def test_missing_rights_are_named_and_asking_starts_nothing(tmp_path: Path) -> None:
    async def work(shop: KubernetesShop) -> None:
        api = ClusterApi(CONNECTION, shop.cluster)
        assert await missing_rights(api) == []
        shop.cluster.denied = {("create", "jobs"), ("get", "pods/log")}
        assert await missing_rights(api) == ["create jobs", "get pods/log"]
        assert {method for method, _ in shop.cluster.requests} == {"POST"}
        assert len(shop.cluster.requests) == 2 * len(NEEDED)
        assert shop.cluster.jobs == {}
        await api.close()

    run(work, tmp_path)


def test_the_log_of_a_plain_image_is_copied_once_also_by_two_schedulers(tmp_path: Path) -> None:
    async def work(shop: KubernetesShop) -> None:
        order = shop.plain()
        job = await shop.started(order)
        StandIn(shop.shop.objects, order.attempt).note("Kubernetes: no room")
        pod = shop.cluster.pod(job, **running())
        shop.win_gate(order.attempt, pod)
        shop.cluster.logs[pod] = "one\ntwo\n"
        await shop.until(lambda: b"two\n" in shop.shop.log(order.attempt))
        shop.cluster.logs[pod] = "one\ntwo\nthree\n"
        other = shop.another()
        await other.watch([order.attempt], shop.on_status)
        shop.cluster.pod(job, **ended(0))
        await shop.ended(order.attempt)
        await other.close()
        assert shop.shop.log(order.attempt) == b"ork: Kubernetes: no room\none\ntwo\nthree\n"

    run(work, tmp_path)


def test_orks_own_time_for_a_pod_is_below_50_milliseconds(tmp_path: Path) -> None:
    """Of this process, from the order to the end of the Job, with an API server that answers at once."""
    count = 100

    async def work(shop: KubernetesShop) -> None:
        orders = [shop.order(f"t{number}") for number in range(count)]
        began = time.process_time()
        assert await shop.start(*orders) == []
        await shop.until(lambda: len(shop.cluster.jobs) == count)
        for job in list(shop.cluster.jobs):
            shop.cluster.pod(job)
            shop.cluster.pod(job, **running())
            shop.cluster.pod(job, **ended(0))
        attempts = [order.attempt for order in orders]
        await shop.until(lambda: len(set(shop.reported)) == count)
        assert set(await shop.executor.find(attempts)) == {Presence.GONE}
        shop.executor.release(attempts)
        await shop.until(lambda: not shop.cluster.jobs)
        assert (time.process_time() - began) / count < 0.05

    run(work, tmp_path)
