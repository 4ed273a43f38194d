"""Very small tasks are handed to a worker before it is done with the last one; nobody waits for a long one."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from ork.executors import worker_handle, worker_pool
from ork.executors.executor import LaunchOrder, Presence
from ork.executors.local import LocalExecutor
from ork.model.task import Attempt
from ork.model.workflow import Isolation
from tests.integration.workshop import Workshop, in_shared_workshop, in_workshop, run_in_workshop

TASKS = """
import os, time

def main():
    with open('ledger', 'a') as file:
        file.write(os.environ['ORK_TASK_NAME'] + ' ')
    while os.environ['ORK_TASK_NAME'].startswith('slow') and not os.path.exists('go'):
        time.sleep(0.01)
    print(os.environ['ORK_TASK_NAME'])
    return os.environ['ORK_TASK_NAME']

def quiet():
    with open('ledger', 'a') as file:
        file.write(os.environ['ORK_TASK_NAME'] + ' ')
    return os.environ['ORK_TASK_NAME']

def nothing():
    return 1

def nap():
    time.sleep(0.001)

def compute():
    until = time.process_time() + 0.01
    while time.process_time() < until:
        pass
    return os.environ['ORK_TASK_NAME']
"""
QUICK = [f"t{number}" for number in range(12)]


@pytest.fixture(autouse=True)
def one_worker_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "_PROCESSORS", 1)
    for name in ("QUICK_SECONDS", "SWIFT_SECONDS"):
        monkeypatch.setattr(worker_pool, name, 30.0)  # on any machine


@pytest.fixture
def all_are_swift(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a process that had to wait for a busy disk."""
    monkeypatch.setattr(worker_pool, "_WAITED", 0.0)


async def settled(shop: Workshop) -> None:
    """The first worker of a server does not stay."""
    shop.write("tasks.py", TASKS)
    for name in ("first", "second"):
        assert (await shop.run(shop.attempt(name)))["state"] == "success"
    await shop.vanished(shop.made[-1])


def orders(shop: Workshop, *names: str) -> list[LaunchOrder]:
    return [shop.order(shop.attempt(name), function="main") for name in names]


async def all_succeeded(shop: Workshop, attempts: list[Attempt]) -> None:
    for attempt in attempts:
        status = await shop.ended(attempt)
        assert status["state"] == "success"
        assert status["output"] == {"inline": f'"{attempt.key.task.name}"'}
        assert shop.log(attempt).decode() == f"{attempt.key.task.name}\n"


def worker_of(shop: Workshop, attempt: Attempt) -> int:
    gate = shop.gates.of(attempt)
    assert gate is not None
    return int(gate["pid"])


def ledger(shop: Workshop) -> list[str]:
    return (shop.root / "ledger").read_text().split()


@in_shared_workshop
async def test_one_worker_has_many_at_hand_and_keeps_them_apart(shop: Workshop) -> None:
    await settled(shop)
    given = orders(shop, *QUICK)
    attempts = [order.attempt for order in given]
    assert await shop.executor.start(given, shop.news.put_nowait) == []
    assert await shop.executor.find(attempts) == [Presence.RUNNING] * len(attempts)
    await all_succeeded(shop, attempts)
    assert len({worker_of(shop, attempt) for attempt in attempts}) == 1
    assert ledger(shop) == ["first", "second", *QUICK]


@in_shared_workshop
async def test_nobody_waits_for_one_that_takes_its_time(shop: Workshop) -> None:
    await settled(shop)
    slow, *quick = orders(shop, "slow", *QUICK)
    assert await shop.executor.start([slow, *quick], shop.news.put_nowait) == []
    await all_succeeded(shop, [order.attempt for order in quick])
    shop.write("go", "")
    await all_succeeded(shop, [slow.attempt])
    assert sorted(ledger(shop)) == sorted(["first", "second", "slow", *QUICK])


@in_shared_workshop
async def test_the_ends_of_those_before_one_that_takes_its_time_are_told_while_it_runs(shop: Workshop) -> None:
    await settled(shop)
    quick = [shop.order(shop.attempt(name), function="quiet") for name in QUICK]
    (slow,) = orders(shop, "slow")
    assert await shop.executor.start([*quick, slow], shop.news.put_nowait) == []
    async with asyncio.timeout(30):
        while any(shop.executor._knows(order.attempt.key, str(order.attempt.key)) for order in quick):
            await asyncio.sleep(0.01)
    assert shop.executor._knows(slow.attempt.key, str(slow.attempt.key))
    shop.write("go", "")
    await all_succeeded(shop, [slow.attempt])


@in_shared_workshop
async def test_what_waits_at_a_worker_that_is_killed_is_done_by_others_and_once(shop: Workshop) -> None:
    await settled(shop)
    slow, *quick = orders(shop, "slow", *QUICK)
    assert await shop.executor.start([slow, *quick], shop.news.put_nowait) == []
    async with asyncio.timeout(30):
        while "slow" not in ledger(shop):
            await asyncio.sleep(0.001)
    os.kill(worker_of(shop, slow.attempt), signal.SIGKILL)
    await all_succeeded(shop, [order.attempt for order in quick])
    await shop.vanished(slow.attempt)
    assert shop.status(slow.attempt) is None or shop.status(slow.attempt)["state"] == "running"  # type: ignore[index]
    assert sorted(ledger(shop)) == sorted(["first", "second", "slow", *QUICK])


@in_shared_workshop
async def test_one_that_waits_can_be_stopped(shop: Workshop) -> None:
    """Nobody may begin it any more once its gate is closed, as a scheduler does first."""
    await settled(shop)
    slow, *quick = orders(shop, "slow", *QUICK)
    assert await shop.executor.start([slow, *quick], shop.news.put_nowait) == []
    stopped = quick.pop()
    shop.close_gate(stopped.attempt)
    await shop.executor.stop([stopped.attempt], at_once=False)
    await all_succeeded(shop, [order.attempt for order in quick])
    await shop.vanished(stopped.attempt)
    shop.write("go", "")
    await all_succeeded(shop, [slow.attempt])
    assert stopped.attempt.key.task.name not in ledger(shop)


@in_shared_workshop
async def test_what_is_taken_back_again_and_again_is_done_once_and_told_under_its_own_name(shop: Workshop) -> None:
    """A worker takes orders back while its process goes on taking them."""
    await settled(shop)
    names = [f"t{number}" for number in range(400)]
    given = [shop.order(shop.attempt(name), function="quiet") for name in names]
    for begin in range(0, len(given), 40):
        worker_pool.QUICK_SECONDS = 30.0  # all of them are handed ahead
        assert await shop.executor.start(given[begin : begin + 40], shop.news.put_nowait) == []
        worker_pool.QUICK_SECONDS = 0.0  # and each that is over was too slow
        for order in given[begin : begin + 40]:
            status = await shop.ended(order.attempt)
            assert status["output"] == {"inline": f'"{order.attempt.key.task.name}"'}
    assert sorted(ledger(shop)) == sorted(["first", "second", *names])


@in_shared_workshop
async def test_one_of_several_is_found_running_by_another_scheduler(shop: Workshop) -> None:
    """Also while its worker, which won the gate for it, is too slow to say which one it is at."""
    await settled(shop)
    worker = worker_of(shop, shop.made[-1])
    slow = shop.attempt("slow")
    os.kill(worker, signal.SIGSTOP)
    try:
        await shop.start(slow, function="main")
        os.kill(worker, signal.SIGCONT)
        async with asyncio.timeout(30):
            while "slow" not in ledger(shop):
                await asyncio.sleep(0)
        os.kill(worker, signal.SIGSTOP)
        assert worker_of(shop, slow) == worker
        assert await LocalExecutor("python", shop.objects).find([slow]) == [Presence.RUNNING]
    finally:
        os.kill(worker, signal.SIGCONT)
    shop.write("go", "")
    await all_succeeded(shop, [slow])


# ── in processes of their own ────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("all_are_swift")
def test_processes_that_never_wait_have_no_more_workers_than_are_of_use(tmp_path: Path) -> None:
    @in_workshop
    async def inside(shop: Workshop) -> None:
        await settled(shop)
        given = orders(shop, *QUICK)
        attempts = [order.attempt for order in given]
        assert await shop.executor.start(given, shop.news.put_nowait) == []
        assert await shop.executor.find(attempts) == [Presence.RUNNING] * len(attempts)
        await all_succeeded(shop, attempts)
        assert len({worker_of(shop, attempt) for attempt in attempts}) == 2
        assert sorted(ledger(shop)) == sorted(["first", "second", *QUICK])

    inside(tmp_path)


@pytest.mark.usefixtures("all_are_swift")
def test_no_process_waits_for_one_that_takes_its_time(tmp_path: Path) -> None:
    @in_workshop
    async def inside(shop: Workshop) -> None:
        await settled(shop)
        *slow, last = orders(shop, "slow0", "slow1", "last")
        assert await shop.executor.start([*slow, last], shop.news.put_nowait) == []
        await all_succeeded(shop, [last.attempt])
        os.kill(worker_of(shop, slow[0].attempt), signal.SIGKILL)
        shop.write("go", "")
        await all_succeeded(shop, [slow[1].attempt])
        assert sorted(ledger(shop)) == sorted(["first", "second", "slow0", "slow1", "last"])

    inside(tmp_path)


@in_workshop
async def test_it_is_told_whether_a_process_waited(shop: Workshop) -> None:
    await settled(shop)
    for name in QUICK:
        await shop.run(shop.attempt(name), function="nothing")
        await shop.vanished(shop.made[-1])
    (lately,) = shop.executor._pool._recent.values()
    told = lately.seconds
    assert min(list(told)[2:]) < worker_pool._WAITED
    await shop.run(shop.attempt("nap"), function="nap")
    await shop.vanished(shop.made[-1])
    assert told[-1] == worker_pool._WAITED


@in_workshop
async def test_processes_that_wait_for_something_run_side_by_side(shop: Workshop) -> None:
    await settled(shop)
    await shop.run(shop.attempt("nap"), function="nap")
    await shop.vanished(shop.made[-1])
    given = orders(shop, *QUICK)
    assert await shop.executor.start(given, shop.news.put_nowait) == []
    at_work = shop.executor._pool._busy.values()
    assert [len(resident.given) for resident in at_work] == [1] * len(given)
    await all_succeeded(shop, [order.attempt for order in given])


@in_shared_workshop
async def test_who_is_told_to_end_ends_the_one_it_is_at_and_leaves_the_others_alone(shop: Workshop) -> None:
    """The others are at the worker, too, when it is told: it must not begin the next one, only to end that as well."""
    await settled(shop)
    worker = worker_of(shop, shop.made[-1])
    slow, *quick = orders(shop, "slow", *QUICK)
    assert await shop.executor.start([slow, *quick], shop.news.put_nowait) == []
    async with asyncio.timeout(30):
        while "slow" not in ledger(shop):
            await asyncio.sleep(0)
    os.kill(worker, signal.SIGTERM)
    assert (await shop.ended(slow.attempt))["state"] == "stopped"
    await all_succeeded(shop, [order.attempt for order in quick])
    assert sorted(ledger(shop)) == sorted(["first", "second", "slow", *QUICK])


@in_shared_workshop
async def test_a_few_that_seemed_slow_do_not_get_a_worker_each(shop: Workshop) -> None:
    """They may only have waited for the first worker to come up."""
    shop.write("tasks.py", TASKS)
    worker_pool.QUICK_SECONDS = 0.0
    given = orders(shop, *QUICK[:4])
    assert await shop.executor.start(given, shop.news.put_nowait) == []
    await all_succeeded(shop, [order.attempt for order in given])
    assert len({worker_of(shop, order.attempt) for order in given}) == 2  # the first one does not stay


@in_shared_workshop
async def test_more_than_one_worker_has_room_for_get_one_more_and_not_one_each(shop: Workshop) -> None:
    await settled(shop)
    given = [shop.order(shop.attempt(f"t{number}"), function="quiet") for number in range(worker_handle.MAX_AHEAD + 12)]
    attempts = [order.attempt for order in given]
    assert await shop.executor.start(given, shop.news.put_nowait) == []
    for attempt in attempts:
        assert (await shop.ended(attempt))["state"] == "success"
    assert len({worker_of(shop, attempt) for attempt in attempts}) == 2
    assert len(set(ledger(shop))) == len(ledger(shop)) == len(given) + 2


def test_calls_that_never_wait_have_no_more_workers_than_processors_however_slow_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_pool, "QUICK_SECONDS", 0.0005)

    async def work(shop: Workshop) -> None:
        await settled(shop)
        for batch in range(4):  # the first ones are not remembered any more by then
            given = [shop.order(shop.attempt(f"b{batch}-{n}"), function="compute") for n in range(8)]
            assert await shop.executor.start(given, shop.news.put_nowait) == []
            for order in given:
                assert (await shop.ended(order.attempt))["state"] == "success"
        assert len({worker_of(shop, order.attempt) for order in given}) == 1

    run_in_workshop(work, tmp_path, Isolation.SHARED)


def test_calls_that_cost_something_are_shared_by_as_many_workers_as_there_are_processors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_pool, "_PROCESSORS", 2)

    async def work(shop: Workshop) -> None:
        await settled(shop)
        given = [shop.order(shop.attempt(f"t{n}"), function="compute") for n in range(40)]
        assert await shop.executor.start(given, shop.news.put_nowait) == []  # all to one: nothing is known of them
        for order in given:
            assert (await shop.ended(order.attempt))["state"] == "success"
        assert len({worker_of(shop, order.attempt) for order in given}) == 2

    run_in_workshop(work, tmp_path, Isolation.SHARED)


@in_shared_workshop
async def test_what_does_not_go_through_a_workers_door_goes_through_when_it_looks(shop: Workshop) -> None:
    await settled(shop)
    (first,) = orders(shop, "slow")
    assert await shop.executor.start([first], shop.news.put_nowait) == []
    while ledger(shop)[-1] != "slow":
        await asyncio.sleep(0.01)
    worker = worker_of(shop, first.attempt)
    os.kill(worker, signal.SIGSTOP)
    (door,) = (one for one in shop.executor._pool._working)
    message = b"stop " + b"x" * 2000  # of an attempt that it does not have
    try:
        while not door._late:
            door.send(message)
        door.send(message)
        assert len(door._late) == 2
        assert not door.has_capacity
    finally:
        os.kill(worker, signal.SIGCONT)
    while door._late:
        await asyncio.sleep(0.01)
    (shop.root / "go").touch()
    await all_succeeded(shop, [first.attempt])
