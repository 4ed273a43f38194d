"""An attempt starts once, is found by whoever looks for it, and outlives its scheduler."""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from ork.executors.executor import Presence
from ork.executors.local import LocalExecutor
from ork.executors.local_worker import raise_limit
from ork.model.record import replaced
from ork.model.task import Attempt
from ork.model.workflow import Isolation
from ork.objects import layout
from ork.objects.documents import open_signed, sign
from ork.objects.opening import open_objects
from tests.integration.workshop import Workshop, in_every_workshop


@in_every_workshop
async def test_a_closed_gate_keeps_user_code_from_ever_starting(shop: Workshop) -> None:
    shop.write("tasks.py", "open('ran', 'w').close()\n\ndef main():\n    pass\n")
    attempt = shop.attempt()
    order = shop.order(attempt)
    closed = {"v": 1, "attempt": str(attempt.key), "state": "closed"}
    gate = layout.gate_key(layout.attempt_stem(attempt.key))
    shop.objects.put(gate, sign(closed, attempt.token_hash))
    process = spawn_worker(shop, order.attempt, order.token)
    assert process.wait() == 0
    assert not (shop.root / "ran").exists()
    assert shop.status(attempt) is None


@in_every_workshop
async def test_one_that_is_found_gone_and_started_again_at_once_is_heard(shop: Workshop) -> None:
    shop.write("tasks.py", "def main():\n    return 1\n")
    attempt = shop.attempt()
    order = shop.order(attempt)
    await shop.executor.watch([attempt], shop.news.put_nowait)
    assert await shop.executor.start([order], shop.news.put_nowait) == []
    await asyncio.sleep(0)  # what was found gone would be told now
    assert shop.executor._knows(attempt.key, str(attempt.key))
    assert str(attempt.key) in shop.executor._listeners
    assert (await shop.ended(attempt))["state"] == "success"


@in_every_workshop
async def test_many_workers_of_one_attempt_run_it_once(shop: Workshop) -> None:
    shop.write("tasks.py", "def main():\n    with open('ledger', 'a') as file:\n        file.write('x')\n")
    attempt = shop.attempt()
    order = shop.order(attempt)
    workers = [spawn_worker(shop, order.attempt, order.token) for _ in range(6)]
    assert [worker.wait() for worker in workers] == [0] * 6
    assert (shop.status(attempt) or {})["state"] == "success"
    assert (shop.root / "ledger").read_text() == "x"


@in_every_workshop
async def test_starting_twice_starts_once(shop: Workshop) -> None:
    shop.write("tasks.py", "def main():\n    with open('ledger', 'a') as file:\n        file.write('x')\n")
    attempt = shop.attempt()
    order = shop.order(attempt)
    assert await shop.start_order(order) == []
    assert await shop.start_order(order) == []
    await shop.ended(attempt)
    assert await shop.start_order(order) == []
    await shop.vanished(attempt)
    assert (shop.root / "ledger").read_text() == "x"


@in_every_workshop
async def test_a_worker_with_the_wrong_token_does_nothing(shop: Workshop) -> None:
    shop.write("tasks.py", "open('ran', 'w').close()\n\ndef main():\n    pass\n")
    attempt = shop.attempt()
    order = shop.order(attempt)
    worker = spawn_worker(shop, order.attempt, "f" * 64)
    assert worker.wait() != 0
    assert not (shop.root / "ran").exists()
    assert shop.gates.of(attempt) is None


def spawn_worker(shop: Workshop, attempt: Attempt, token: str) -> subprocess.Popen[bytes]:
    """A worker beside the executor's own: as a second scheduler, or a repeated start, would make one."""
    code = "import sys; from ork.worker.main import main; main()"
    spec_key = layout.spec_key(layout.attempt_stem(attempt.key))
    return subprocess.Popen(
        [sys.executable, "-c", code, f"{shop.objects.url}/{spec_key}"],
        env={**os.environ, "ORK_TOKEN": token},
        stderr=subprocess.DEVNULL,
    )


SCHEDULER = """
import asyncio, os, sys
from pathlib import Path

import pytest
from ork.model.workflow import Isolation
from tests.integration.workshop import Workshop

async def start():
    shop = Workshop(Path(sys.argv[1]), isolation=Isolation(sys.argv[2]))
    assert await shop.start(shop.attempt(), argv=["sh", "-c", "echo begun; while [ ! -e go ]; do sleep 0.02; done; echo done; exit 7"]) == []
    await shop.running(shop.attempt())
    print("started", flush=True)
    await asyncio.sleep(600)

asyncio.run(start())
"""


@in_every_workshop
async def test_a_task_outlives_its_scheduler_and_is_adopted(shop: Workshop) -> None:
    tree = Path(__file__).resolve().parents[2]
    env = {**os.environ, "PYTHONPATH": f"{tree}{os.pathsep}{tree / 'src'}"}
    folder = str(shop.root.parent)
    command = [sys.executable, "-c", SCHEDULER, folder, shop.isolation]
    scheduler = subprocess.Popen(command, stdout=subprocess.PIPE, env=env)
    assert scheduler.stdout is not None
    assert scheduler.stdout.readline() == b"started\n"
    scheduler.kill()
    scheduler.wait()
    scheduler.stdout.close()
    attempt = shop.attempt()
    assert await shop.executor.find([attempt]) == [Presence.RUNNING]
    await shop.executor.watch([attempt], shop.news.put_nowait)
    shop.write("go", "")
    status = await shop.ended(attempt)
    assert (status["state"], status["exit_code"]) == ("failed", 7)
    assert shop.log(attempt) == b"begun\ndone\n"
    await shop.vanished(attempt)
    assert await shop.executor.find([attempt]) == [Presence.GONE]


@in_every_workshop
async def test_watching_an_attempt_that_is_gone_brings_news_at_once(shop: Workshop) -> None:
    attempt = shop.attempt()
    await shop.executor.watch([attempt], shop.news.put_nowait)
    async with asyncio.timeout(30):
        assert await shop.news.get() == attempt.key


@in_every_workshop
async def test_a_worker_counts_as_running_before_it_reaches_the_gate(shop: Workshop) -> None:
    shop.write(
        "tasks.py", "import os, time\n\ndef main():\n    while not os.path.exists('go'):\n        time.sleep(0.01)\n"
    )
    attempt = shop.attempt()
    await shop.start_order(replaced(shop.order(attempt), isolation=Isolation.INTERPRETER))
    stranger = LocalExecutor("python", shop.objects)  # as after a restart: it knows no children
    seen = await stranger.find([attempt])
    shop.write("go", "")
    await shop.ended(attempt)
    assert seen == [Presence.RUNNING]
    await stranger.close()


@in_every_workshop
async def test_running_out_of_descriptors_is_not_final(shop: Workshop) -> None:
    attempt = shop.attempt()
    order = shop.order(attempt, argv=["true"])
    # As after a restart: the journal has to be opened.
    shop.executor = LocalExecutor("python", open_objects(shop.objects.url), isolation=shop.isolation)
    raise_limit()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
    try:
        with suppress(OSError):
            while True:
                held.append(os.dup(0))
        (problem,) = await shop.start_order(order)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in held:
            os.close(descriptor)
    assert not problem.final
    assert await shop.start_order(order) == []
    assert (await shop.ended(attempt))["state"] == "success"


LOW_LIMIT = """
import asyncio, resource, sys
from pathlib import Path

import pytest
from ork.model.workflow import Isolation
from tests.integration.workshop import Workshop

async def start():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    shop = Workshop(Path(sys.argv[1]), isolation=Isolation(sys.argv[2]))
    print((await shop.run(argv=["sh", "-c", "ulimit -Sn"]))["output"]["inline"])
    print(resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(hard, 65536))
    await shop.executor.close()

asyncio.run(start())
"""


@pytest.mark.parametrize("isolation", list(Isolation))
def test_a_low_limit_of_open_files_is_raised_for_the_scheduler_and_not_for_tasks(
    tmp_path: Path, isolation: Isolation
) -> None:
    tree = Path(__file__).resolve().parents[2]
    env = {**os.environ, "PYTHONPATH": f"{tree}{os.pathsep}{tree / 'src'}"}
    done = subprocess.run(
        [sys.executable, "-c", LOW_LIMIT, str(tmp_path), isolation], env=env, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["256", "True"], done.stderr


@in_every_workshop
async def test_other_machines_and_boots_are_not_judged(shop: Workshop) -> None:
    attempt = shop.attempt()
    kind, host, boot, namespace, key = attempt.external_name.split(":", 4)
    elsewhere = replaced(attempt, external_name=f"{kind}:other:{boot}:{namespace}:{key}")
    rebooted = replaced(attempt, external_name=f"{kind}:{host}:other:{namespace}:{key}")
    container = replaced(attempt, external_name=f"{kind}:{host}:{boot}:1:{key}")
    answers = await shop.executor.find([elsewhere, rebooted, container, attempt])
    assert answers == [Presence.UNKNOWN, Presence.LOST, Presence.UNKNOWN, Presence.GONE]


@in_every_workshop
async def test_the_gate_names_the_worker_for_ever(shop: Workshop) -> None:
    attempt = shop.attempt()
    await shop.run(attempt, argv=["true"])
    data = shop.objects.get(layout.gate_key(layout.attempt_stem(attempt.key)))
    gate = open_signed(data or b"", attempt.token_hash)
    assert gate["state"] == "started"
    assert all(gate[name] for name in ("pid", "start_time", "boot_id", "pid_ns", "host", "nonce", "at"))
