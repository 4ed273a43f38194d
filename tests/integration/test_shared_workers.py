"""`isolation: shared`: functions one after the other in the same process, replaced as soon as something is amiss."""

from __future__ import annotations

import asyncio
import json
import os
from datetime import UTC, datetime
from typing import Any

from ork.model.task import Attempt
from tests.integration.workshop import Workshop, in_shared_workshop, is_alive

TASKS = """
import os, sys, time

calls = 0

def main():
    global calls
    calls += 1
    print('call', calls)
    return [os.getpid(), calls]

def untidy():
    os.environ['LEFT'] = 'behind'
    os.chdir('/')
    sys.path.insert(0, '/nowhere')
    sys.stdout = open('/dev/null', 'w')
    return os.getpid()

def untidier():
    os.environ = dict(os.environ, LEFT='behind')
    return os.getpid()

def look():
    return [os.getpid(), os.environ.get('LEFT'), os.getcwd(), '/nowhere' in sys.path, os.environ['ORK_TASK_NAME']]

def lower_a_limit():
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    return os.getpid()

def fail():
    raise ValueError(f'in {os.getpid()}')

def leave():
    sys.exit(0)

def thread():
    import threading
    threading.Thread(target=time.sleep, args=(0.2,)).start()
    return os.getpid()

def forget_a_process():
    if os.fork() == 0:
        time.sleep(600)
    return os.getpid()

def leave_a_daemon():
    if os.fork() == 0:
        if os.fork() == 0:
            open('daemon', 'w').write(str(os.getpid()))
            time.sleep(600)
        os._exit(0)
    os.wait()
    while not os.path.exists('daemon'):
        time.sleep(0.001)

def fork_and_return():
    if os.fork() == 0:
        return 'child'
    time.sleep(0.1)
    return 'parent'

def slow_at_exit():
    import atexit
    atexit.register(time.sleep, 600)
    return os.getpid()

def loud_and_slow():
    began = time.time()
    time.sleep(0.2)
    print('done')
    return began

def sleep():
    open('pid', 'w').write(str(os.getpid()))
    time.sleep(600)

def at_exit():
    import atexit
    atexit.register(lambda: open('left', 'w').write('yes'))
    return os.getpid()
"""


async def settled(shop: Workshop) -> None:
    """The first worker of a server does not stay."""
    shop.write("tasks.py", TASKS)
    await output(shop, shop.attempt("first"))


async def output(shop: Workshop, attempt: Attempt, **spec: Any) -> Any:
    status = await shop.run(attempt, **spec)
    assert status["state"] == "success", status["failure"]
    await shop.vanished(attempt)
    return json.loads(status["output"]["inline"]) if status["output"] else None


@in_shared_workshop
async def test_functions_are_called_in_one_process_each_with_its_own_log(shop: Workshop) -> None:
    await settled(shop)
    made = [shop.attempt(f"t{n}") for n in range(4)]
    outputs = [await output(shop, attempt) for attempt in made]
    assert len({pid for pid, _ in outputs}) == 1
    assert [calls for _, calls in outputs] == [1, 2, 3, 4]
    assert [shop.log(attempt) for attempt in made] == [f"call {n}\n".encode() for n in (1, 2, 3, 4)]


@in_shared_workshop
async def test_what_a_function_did_to_the_process_is_undone_where_it_can_be(shop: Workshop) -> None:
    await settled(shop)
    pid = await output(shop, shop.attempt("a"), function="untidy", env={"LEFT": {"value": "mine"}})
    attempt = shop.attempt("b")
    assert await output(shop, attempt, function="look") == [pid, None, str(shop.root), False, "b"]
    assert (await output(shop, shop.attempt("c")))[0] == pid
    assert shop.log(shop.made[-1]) == b"call 1\n"
    assert await output(shop, shop.attempt("d"), function="untidier") == pid
    attempt = shop.attempt("e")
    assert await output(shop, attempt, function="look") == [pid, None, str(shop.root), False, "e"]


@in_shared_workshop
async def test_after_a_failure_another_process_takes_over(shop: Workshop) -> None:
    await settled(shop)
    pid, _ = await output(shop, shop.attempt("a"))
    status = await shop.run(shop.attempt("b"), function="fail")
    assert (status["state"], status["failure"]["message"]) == ("failed", f"ValueError: in {pid}")
    assert not is_alive(pid)
    assert (await output(shop, shop.attempt("c")))[1] == 1


@in_shared_workshop
async def test_one_that_leaves_a_process_unable_to_write_is_in_nobodys_way(shop: Workshop) -> None:
    await settled(shop)
    before = await output(shop, shop.attempt("before"), function="lower_a_limit")
    pid, calls = await output(shop, shop.attempt("after"))
    assert pid != before
    assert calls == 1


@in_shared_workshop
async def test_one_that_exits_or_leaves_something_running_is_replaced(shop: Workshop) -> None:
    await settled(shop)
    for number, function in enumerate(("leave", "thread", "forget_a_process")):
        pid, _ = await output(shop, shop.attempt(f"before{number}"))
        await output(shop, shop.attempt(f"amiss{number}"), function=function)
        assert not is_alive(pid)
    assert (await output(shop, shop.attempt("after")))[1] == 1


@in_shared_workshop
async def test_what_a_function_left_to_itself_is_gone_before_its_end_is_told(shop: Workshop) -> None:
    await settled(shop)
    assert (await shop.run(shop.attempt("a"), function="leave_a_daemon"))["state"] == "success"
    assert not is_alive(int((shop.root / "daemon").read_text()))
    assert (await output(shop, shop.attempt("b")))[1] >= 1


@in_shared_workshop
async def test_after_what_was_left_to_itself_was_ended_the_next_one_finds_all_in_order(shop: Workshop) -> None:
    await settled(shop)
    made = [shop.attempt(name) for name in "ab"]
    orders = [shop.order(made[0], function="leave_a_daemon"), shop.order(made[1], function="main")]
    assert await shop.executor.start(orders, shop.news.put_nowait) == []
    assert [(await shop.ended(attempt))["state"] for attempt in made] == ["success"] * 2
    assert shop.log(made[1]) == b"call 1\n"


@in_shared_workshop
async def test_a_process_that_a_function_forked_and_that_comes_back_from_it_takes_nothing_more(shop: Workshop) -> None:
    await settled(shop)
    made = [shop.attempt(name) for name in "abcd"]
    functions = ["fork_and_return", "main", "fork_and_return", "main"]
    orders = [shop.order(attempt, function=each) for attempt, each in zip(made, functions, strict=True)]
    assert await shop.executor.start(orders, shop.news.put_nowait) == []
    said = [json.loads((await shop.ended(attempt))["output"]["inline"]) for attempt in made]
    assert (said[0], said[2]) == ("parent", "parent")
    assert all(isinstance(each, list) for each in (said[1], said[3]))


@in_shared_workshop
async def test_nobody_waits_for_the_exit_functions_of_others(shop: Workshop) -> None:
    await settled(shop)
    pid = await output(shop, shop.attempt("a"), function="slow_at_exit")
    shop.write("tasks.py", TASKS + "# changed\n")
    assert (await output(shop, shop.attempt("b")))[1] == 1
    assert not is_alive(pid)


@in_shared_workshop
async def test_one_that_takes_its_time_is_said_to_have_begun_when_it_did(shop: Workshop) -> None:
    await settled(shop)
    await output(shop, shop.attempt("a"))
    status = await shop.run(shop.attempt("b"), function="loud_and_slow")
    began = datetime.fromtimestamp(json.loads(status["output"]["inline"]), UTC)
    assert abs((datetime.fromisoformat(status["started_at"]) - began).total_seconds()) < 0.04


@in_shared_workshop
async def test_a_timeout_ends_the_process_and_the_next_function_has_another(shop: Workshop) -> None:
    await settled(shop)
    pid, _ = await output(shop, shop.attempt("a"))
    status = await shop.run(shop.attempt("b"), function="sleep", timeout=0.2)
    assert status["state"] == "timed_out"
    assert not is_alive(pid)
    assert (await output(shop, shop.attempt("c")))[1] == 1


@in_shared_workshop
async def test_a_stop_ends_the_process_and_nobody_elses(shop: Workshop) -> None:
    await settled(shop)
    attempt = shop.attempt("b")
    await shop.start(attempt, function="sleep")
    pid = int(await shop.until_file(shop.root / "pid"))
    other, _ = await output(shop, shop.attempt("c"))
    await shop.executor.stop([attempt], at_once=False)
    assert (await shop.ended(attempt))["state"] == "stopped"
    assert not is_alive(pid)
    assert is_alive(other)


@in_shared_workshop
async def test_changed_code_is_noticed(shop: Workshop) -> None:
    shop.write("helper.py", "VALUE = 1\n")
    shop.write("tasks.py", "import helper\n\ndef main():\n    return helper.VALUE\n")
    await output(shop, shop.attempt("first"))
    assert await output(shop, shop.attempt("a")) == 1
    shop.write("helper.py", "VALUE = 'two'\n")
    assert await output(shop, shop.attempt("b")) == "two"


@in_shared_workshop
async def test_commands_have_processes_of_their_own_all_the_same(shop: Workshop) -> None:
    await settled(shop)
    first, second = [await output(shop, shop.attempt(name), argv=["sh", "-c", "echo $$"]) for name in "ab"]
    assert first != second


@in_shared_workshop
async def test_exit_functions_are_run_when_the_process_is_no_longer_needed(shop: Workshop) -> None:
    await settled(shop)
    await output(shop, shop.attempt("a"), function="at_exit")
    assert not (shop.root / "left").exists()
    await shop.executor.close()
    assert await shop.until_file(shop.root / "left") == "yes"


@in_shared_workshop
async def test_functions_at_the_same_time_are_in_different_processes(shop: Workshop) -> None:
    await settled(shop)
    made = [shop.attempt(name) for name in "ab"]
    pids = []
    for attempt in made:
        await shop.start(attempt, function="sleep")
        pids.append(int(await shop.until_file(shop.root / "pid")))
        os.unlink(shop.root / "pid")
    assert len(set(pids)) == 2
    await asyncio.gather(*(shop.running(attempt) for attempt in made))
