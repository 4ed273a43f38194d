"""The end of a process, as its forker tells it, or its forker's own."""

from __future__ import annotations

import os
import time

from ork.worker.call.task_process import LARGEST, make_orders, receive, send
from ork.worker.pool.task_fork_server import TaskForkServer
from ork.worker.supervise.log import has_words

_SLOW = 0.2


def forker_that(ends: int, pid: int) -> TaskForkServer:
    forker = object.__new__(TaskForkServer)
    forker.ends, forker.pid = ends, pid
    return forker


def test_a_forker_that_is_dying_is_waited_for_before_anybody_looks_for_what_it_had_forked() -> None:
    ends, end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(end)
        time.sleep(_SLOW)
        os._exit(0)
    os.close(end)
    assert os.waitstatus_to_exitcode(forker_that(ends, pid).read_end()) == -9
    assert os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG) is not None  # is there to be collected, and dead
    os.close(ends)


def test_one_that_has_been_collected_is_not_waited_for() -> None:
    ends, end = os.pipe()
    os.close(end)
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    assert forker_that(ends, pid).read_end() == 9
    os.close(ends)


def test_an_end_that_is_told_is_taken_as_it_is() -> None:
    ends, end = os.pipe()
    os.write(end, b"256")
    assert forker_that(ends, os.getpid()).read_end() == 256
    os.close(ends)
    os.close(end)


def test_nobody_waits_for_a_process_that_does_not_take_its_order() -> None:
    taken, orders = make_orders()
    assert not send(orders, {"spec": "x" * LARGEST})
    assert not has_words(taken)
    sent = 0
    while send(orders, {"spec": "x" * (LARGEST - 10_000)}):
        sent += 1
    assert sent > 0
    os.close(taken)
    assert not send(orders, {})
    os.close(orders)


def test_an_order_is_received_whole_and_its_end_is_no_order() -> None:
    taken, orders = make_orders()
    for size in (1, LARGEST - 100):
        assert send(orders, {"spec": "x" * size})
        assert receive(taken) == {"spec": "x" * size}
    os.close(orders)
    assert receive(taken) is None
    os.close(taken)
