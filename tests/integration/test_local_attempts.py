"""Real processes, from the order to the terminal status, without a scheduler."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from ork.executors.executor import Presence
from ork.executors.local import LocalExecutor
from ork.model.record import replaced
from ork.model.workflow import Isolation
from ork.objects import layout
from ork.objects.documents import open_signed, sign
from tests.integration.workshop import Workshop, in_every_workshop, is_alive

# Starts a grandchild in a session of its own that ignores SIGTERM, tells its pid, and waits.
STUBBORN_TREE = """
import os, signal, subprocess, sys, time
child = subprocess.Popen(
    [sys.executable, "-c", "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"],
    start_new_session=True, stdout=subprocess.PIPE)
child.stdout.readline()
with open("pid.tmp", "w") as file:
    file.write(f"{child.pid} {os.getpid()}")
os.rename("pid.tmp", "pid")
time.sleep(600)
"""


@in_every_workshop
async def test_a_function_runs_and_its_output_is_in_the_status(shop: Workshop) -> None:
    shop.write("tasks.py", "def main(n: int):\n    print('counting', n)\n    return {'n': n}\n")
    attempt = shop.attempt()
    status = await shop.run(attempt, inputs={"n": {"value": 5}})
    assert (status["state"], status["exit_code"], status["output"]) == ("success", 0, {"inline": '{"n":5}'})
    assert shop.log(attempt) == b"counting 5\n"
    assert status["started_at"] <= status["finished_at"]


@in_every_workshop
async def test_a_command_gets_its_input_on_stdin_and_in_a_file(shop: Workshop) -> None:
    shop.write("both.sh", 'read line; echo "$line" >&2; cp "$ORK_INPUT_FILE" copy; echo \'{"ok": true}\'\n')
    attempt = shop.attempt()
    status = await shop.run(attempt, argv=["./both.sh"], upstream={"extract": {"value": {"rows": 3}}})
    assert status["output"] == {"inline": '{"ok":true}'}
    # Both at once: which of the two streams comes first is not said.
    assert sorted(shop.log(attempt).splitlines()) == [b'{"ok": true}', b'{"rows":3}']
    assert (shop.root / "copy").read_text() == '{"rows":3}'


@in_every_workshop
async def test_a_command_without_input_can_read_that_as_often_as_it_likes(shop: Workshop) -> None:
    reads = "cat; cat $ORK_INPUT_FILE; setsid sh -c 'cat $ORK_INPUT_FILE' < /dev/null; echo"
    attempt = shop.attempt()
    await shop.run(attempt, argv=["sh", "-c", reads])
    assert shop.log(attempt) == b"{}{}{}\n"


@in_every_workshop
async def test_the_output_file_goes_before_the_last_line(shop: Workshop) -> None:
    script = 'echo \'{"b": [1, 2], "a": 1}\' > "$ORK_OUTPUT_FILE"; echo \'"line"\'\n'
    shop.write("out.sh", script)
    status = await shop.run(argv=["./out.sh"])
    assert status["output"] == {"inline": '{"b":[1,2],"a":1}'}


@in_every_workshop
async def test_a_last_line_that_is_not_json_is_no_output(shop: Workshop) -> None:
    status = await shop.run(argv=["echo", "all done"])
    assert (status["state"], status["output"]) == ("success", None)


@in_every_workshop
async def test_a_malformed_output_file_fails_the_task(shop: Workshop) -> None:
    shop.write("out.sh", 'echo "{" > "$ORK_OUTPUT_FILE"\n')
    status = await shop.run(argv=["./out.sh"])
    assert (status["state"], status["failure"]["kind"]) == ("failed", "output")
    assert "ORK_OUTPUT_FILE" in status["failure"]["message"]


@in_every_workshop
async def test_a_failing_command_tells_its_exit_code_and_last_lines(shop: Workshop) -> None:
    shop.write("bad.sh", "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo line $i; done; echo oops >&2; exit 3\n")
    status = await shop.run(argv=["./bad.sh"])
    assert (status["state"], status["exit_code"]) == ("failed", 3)
    assert (status["failure"]["kind"], status["failure"]["message"]) == ("exit", "exit code 3")
    assert len(status["failure"]["detail"]["tail"]) == 10
    assert "line 12" in status["failure"]["detail"]["tail"]


@in_every_workshop
async def test_a_killed_user_process_is_told_as_such(shop: Workshop) -> None:
    shop.write("tasks.py", "import os\n\ndef main():\n    os.kill(os.getpid(), 9)\n")
    status = await shop.run()
    assert status["failure"]["message"] == "killed by SIGKILL, out of memory?"
    shop.write("tasks.py", "import os\n\ndef main():\n    os.kill(os.getpid(), 11)\n")
    assert (await shop.run(shop.attempt("other")))["failure"]["message"] == "killed by SIGSEGV"


@in_every_workshop
async def test_a_missing_program_is_a_clear_failure(shop: Workshop) -> None:
    status = await shop.run(argv=["no-such-program"], script_dir="scripts")
    assert status["failure"]["kind"] == "start"
    assert status["failure"]["message"] == "no program `no-such-program` in script_dir scripts/ or on PATH"


@in_every_workshop
async def test_scripts_are_found_in_script_dir_and_run_by_shebang_or_extension(shop: Workshop) -> None:
    shop.write("scripts/a", "#!/bin/sh\necho 1\n", executable=True)
    shop.write("scripts/b.py", "print(2)\n")
    shop.write("scripts/c.sh", "echo $1\n")
    shop.write("scripts/d", "echo 4\n", executable=True)  # no shebang: a shell script
    for name, argv in {"a": ["a"], "b": ["b.py"], "c": ["c.sh", "3"], "d": ["d"]}.items():
        status = await shop.run(shop.attempt(name), argv=argv, script_dir="scripts")
        assert status["output"] == {"inline": str("abcd".index(name) + 1)}, name


@in_every_workshop
async def test_a_timeout_ends_the_whole_tree(shop: Workshop) -> None:
    shop.write("tree.py", STUBBORN_TREE)
    status = await shop.run(argv=[sys.executable, "tree.py"], timeout=2.5, stop_grace_seconds=0.2)
    grandchild, child = map(int, (shop.root / "pid").read_text().split())
    assert (status["state"], status["failure"]["kind"]) == ("timed_out", "timeout")
    assert status["failure"]["message"] == "timed out after 2.5s"
    assert not is_alive(grandchild)
    assert not is_alive(child)


@in_every_workshop
async def test_stop_ends_the_whole_tree_gently_then_firmly(shop: Workshop) -> None:
    shop.write("tree.py", STUBBORN_TREE)
    attempt = shop.attempt()
    await shop.start(attempt, argv=[sys.executable, "tree.py"], stop_grace_seconds=0.2)
    grandchild, _ = map(int, (await shop.until_file(shop.root / "pid")).split())
    await shop.executor.stop([attempt], at_once=False)
    status = await shop.ended(attempt)
    assert (status["state"], status["failure"]["kind"]) == ("stopped", "cancelled")
    assert not is_alive(grandchild)
    await shop.vanished(attempt)


@in_every_workshop
async def test_stopping_a_worker_on_its_way_leaves_no_started_task_without_a_word(shop: Workshop) -> None:
    shop.write("tasks.py", "import time\n\ndef main():\n    time.sleep(600)\n")
    for number in range(12):
        attempt = shop.attempt(f"t{number}")
        await shop.start(attempt)
        await asyncio.sleep(number * 0.002)  # somewhere between its first instruction and its task
        await shop.executor.stop([attempt], at_once=False)
        await shop.vanished(attempt)
        status = shop.status(attempt)
        assert (shop.documents.gate(attempt) is None) == (status is None)
        assert status is None or status["state"] == "stopped"


@in_every_workshop
async def test_a_stopped_task_may_use_its_grace(shop: Workshop) -> None:
    shop.write("slow.sh", "trap 'echo bye; exit 0' TERM; echo up > up; while :; do sleep 0.05; done\n")
    attempt = shop.attempt()
    await shop.start(attempt, argv=["./slow.sh"])
    await shop.until_file(shop.root / "up")
    await shop.executor.stop([attempt], at_once=False)
    assert (await shop.ended(attempt))["state"] == "stopped"
    assert b"bye" in shop.log(attempt)


@in_every_workshop
async def test_a_stop_document_is_as_good_as_a_signal(shop: Workshop) -> None:
    shop.write("tasks.py", "import time\n\ndef main():\n    time.sleep(600)\n")
    attempt = shop.attempt()
    await shop.start(attempt)
    await shop.running(attempt)
    stop = {"v": 1, "attempt": str(attempt.key), "why": "cancelled by ann", "at_once": True}
    shop.objects.put(layout.stop_key(layout.attempt_folder(attempt.key)), sign(stop, attempt.token_hash))
    status = await shop.ended(attempt)
    assert (status["state"], status["failure"]["message"]) == ("stopped", "stopped: cancelled by ann")


@in_every_workshop
async def test_a_forged_stop_document_stops_nothing(shop: Workshop) -> None:
    shop.write(
        "tasks.py", "import os, time\n\ndef main():\n    while not os.path.exists('go'):\n        time.sleep(0.01)\n"
    )
    attempt = shop.attempt()
    await shop.start(attempt)
    first = await shop.running(attempt)
    stop = {"v": 1, "attempt": str(attempt.key), "why": "mischief", "at_once": True}
    shop.objects.put(layout.stop_key(layout.attempt_folder(attempt.key)), sign(stop, "00" * 32))
    while (shop.status(attempt) or first)["seq"] < first["seq"] + 2:
        await asyncio.sleep(0.05)
    shop.write("go", "")
    assert (await shop.ended(attempt))["state"] == "success"


@in_every_workshop
async def test_what_a_finished_task_leaves_behind_is_ended(shop: Workshop) -> None:
    shop.write("daemon.sh", "setsid sleep 600 & echo $! > pid\n")
    status = await shop.run(argv=["./daemon.sh"])
    assert status["state"] == "success"
    assert not is_alive(int((shop.root / "pid").read_text()))


@in_every_workshop
async def test_the_heartbeat_grows(shop: Workshop) -> None:
    shop.write(
        "tasks.py", "import os, time\n\ndef main():\n    while not os.path.exists('go'):\n        time.sleep(0.01)\n"
    )
    attempt = shop.attempt()
    await shop.start(attempt, heartbeat_seconds=0.02)
    first = await shop.running(attempt)
    while (shop.status(attempt) or first)["seq"] < first["seq"] + 3:
        await asyncio.sleep(0.01)
    shop.write("go", "")
    assert (await shop.ended(attempt))["seq"] > first["seq"] + 3


@in_every_workshop
async def test_orphans_of_a_killed_shim_are_told_from_a_running_task_until_they_are_ended(shop: Workshop) -> None:
    shop.write("tree.py", STUBBORN_TREE)
    attempt = shop.attempt()
    await shop.start(attempt, argv=[sys.executable, "tree.py"])
    grandchild, child = map(int, (await shop.until_file(shop.root / "pid")).split())
    gate = shop.documents.gate(attempt)
    assert gate is not None
    os.kill(gate["pid"], signal.SIGKILL)
    while is_alive(child):  # it dies with its shim
        await asyncio.sleep(0.01)
    assert await shop.executor.find([attempt]) == [Presence.ORPHANED]
    await shop.executor.stop([attempt], at_once=True)
    await shop.vanished(attempt)
    assert not is_alive(grandchild)
    assert (shop.status(attempt) or {"state": "running"})["state"] == "running"


@in_every_workshop
async def test_news_comes_when_a_shim_dies_without_a_word(shop: Workshop) -> None:
    shop.write("tasks.py", "import time\n\ndef main():\n    time.sleep(600)\n")
    attempt = shop.attempt()
    await shop.start(attempt)
    await shop.running(attempt)
    while not shop.news.empty():
        shop.news.get_nowait()
    gate = shop.documents.gate(attempt)
    assert gate is not None
    os.kill(gate["pid"], signal.SIGKILL)
    async with asyncio.timeout(30):
        assert await shop.news.get() == attempt.key
    await shop.vanished(attempt)
    assert await shop.executor.find([attempt]) == [Presence.GONE]


@in_every_workshop
async def test_stopping_at_once_kills_shim_and_tree(shop: Workshop) -> None:
    shop.write("tree.py", STUBBORN_TREE)
    attempt = shop.attempt()
    await shop.start(attempt, argv=[sys.executable, "tree.py"])
    grandchild, child = map(int, (await shop.until_file(shop.root / "pid")).split())
    await shop.executor.stop([attempt], at_once=True)
    await shop.vanished(attempt)
    assert not is_alive(grandchild)
    assert not is_alive(child)


@in_every_workshop
async def test_a_closed_gate_keeps_user_code_from_ever_starting(shop: Workshop) -> None:
    shop.write("tasks.py", "open('ran', 'w').close()\n\ndef main():\n    pass\n")
    attempt = shop.attempt()
    order = shop.order(attempt)
    closed = {"v": 1, "attempt": str(attempt.key), "state": "closed"}
    gate = layout.gate_key(layout.attempt_folder(attempt.key))
    shop.objects.put(gate, sign(closed, attempt.token_hash))
    process = spawn_worker(shop, order.spec_key, order.token)
    assert process.wait() == 0
    assert not (shop.root / "ran").exists()
    assert shop.status(attempt) is None


@in_every_workshop
async def test_many_workers_of_one_attempt_run_it_once(shop: Workshop) -> None:
    shop.write("tasks.py", "def main():\n    with open('ledger', 'a') as file:\n        file.write('x')\n")
    attempt = shop.attempt()
    order = shop.order(attempt)
    workers = [spawn_worker(shop, order.spec_key, order.token) for _ in range(6)]
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
    worker = spawn_worker(shop, order.spec_key, "f" * 64)
    assert worker.wait() != 0
    assert not (shop.root / "ran").exists()
    assert shop.documents.gate(attempt) is None


@in_every_workshop
async def test_logs_are_kept_byte_for_byte(shop: Workshop) -> None:
    shop.write("junk.py", "import sys\nfor n in range(64):\n    sys.stdout.buffer.write(bytes(range(256)) * 320)\n")
    attempt = shop.attempt()
    status = await shop.run(attempt, argv=[sys.executable, "junk.py"])
    assert status["state"] == "success"
    assert shop.log(attempt) == bytes(range(256)) * 320 * 64
    shop.write("tasks.py", "import os\n\ndef main():\n    os.write(1, b'\\x00\\xff\\r\\x1b[2J' * 1000)\n")
    other = shop.attempt("function")
    await shop.run(other)
    assert shop.log(other) == b"\x00\xff\r\x1b[2J" * 1000


@in_every_workshop
async def test_a_line_without_end_is_logged_in_bounded_memory(shop: Workshop) -> None:
    shop.write("long.py", "import sys\nfor n in range(80):\n    sys.stdout.write('x' * 65536)\n")
    attempt = shop.attempt()
    await shop.start(attempt, argv=[sys.executable, "long.py"])
    status = await shop.ended(attempt)
    assert (status["state"], status["output"]) == ("success", None)
    assert shop.log(attempt) == b"x" * (80 * 65536)


@in_every_workshop
async def test_large_outputs_lie_beside_the_status(shop: Workshop) -> None:
    shop.write("tasks.py", "def main():\n    return 'y' * 100_000\n")
    attempt = shop.attempt()
    status = await shop.run(attempt)
    key = layout.output_key(layout.attempt_folder(attempt.key))
    assert status["output"] == {"object": key, "size": 100_002}
    assert shop.objects.get(key) == b'"' + b"y" * 100_000 + b'"'
    shop.write("next.py", "def main(big):\n    return len(big)\n")
    below = await shop.run(shop.attempt("next"), file="next.py", upstream={"big": {"object": key, "path": []}})
    assert below["output"] == {"inline": "100000"}


@in_every_workshop
async def test_nothing_but_documents_and_the_log_is_left(shop: Workshop) -> None:
    attempt = shop.attempt()
    await shop.run(attempt, argv=["echo", "hello"])
    await shop.vanished(attempt)
    assert sorted(path.name for path in shop.folder(attempt).iterdir()) == [
        "gate.json",
        "log",
        "spec.json",
        "status.json",
    ]


@in_every_workshop
async def test_secrets_and_tokens_stay_out_of_the_task_and_its_documents(shop: Workshop) -> None:
    shop.write(
        "tasks.py",
        "import os\n\ndef main(key):\n    print(sorted(k for k in os.environ if 'SECRET' in k or 'TOKEN' in k))\n    assert key == 'hush' and os.environ['API_KEY'] == 'hush'\n    1 / 0\n",
    )
    attempt = shop.attempt()
    bound = {"secret": "ORK_SECRET_api"}
    order = shop.order(attempt, inputs={"key": bound}, env={"API_KEY": bound})
    status = await shop.run_order(order, secrets=(("ORK_SECRET_api", "hush"),))
    assert status["failure"]["message"] == "ZeroDivisionError: division by zero"
    assert status["failure"]["detail"]["inputs"] == {"key": "***"}
    assert shop.log(attempt).startswith(b"[]\n")
    for path in shop.folder(attempt).iterdir():
        assert b"hush" not in path.read_bytes() or path.name == "log"


@in_every_workshop
async def test_the_projects_own_environment_is_used(shop: Workshop) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(shop.root / ".venv")], check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    shop.write(f".venv/lib/{version}/site-packages/only_here.py", "answer = 42\n")
    shop.write(
        "tasks.py",
        "import sys, only_here\n\ndef main():\n    return [only_here.answer, sys.prefix, [p for p in sys.path if 'site-packages' in p]]\n",
    )
    status = await shop.run()
    home = str(shop.root / ".venv")
    assert status["output"] == {"inline": f'[42,"{home}",["{home}/lib/{version}/site-packages"]]'}, status


@in_every_workshop
async def test_a_missing_interpreter_is_final(shop: Workshop) -> None:
    order = shop.order(shop.attempt())
    (problem,) = await shop.start_order(replaced(order, interpreter="/no/such/python"))
    assert problem.final
    assert "/no/such/python" in problem.why


@in_every_workshop
async def test_a_worker_that_cannot_write_its_heartbeat_stops_its_task(shop: Workshop) -> None:
    shop.write(
        "tasks.py",
        "import os, time\n\ndef main():\n    open('pid', 'w').write(str(os.getpid()))\n    time.sleep(600)\n",
    )
    attempt = shop.attempt()
    await shop.start(attempt, heartbeat_seconds=0.05, fence_seconds=0.5)
    pid = int(await shop.until_file(shop.root / "pid"))
    folder = shop.folder(attempt)
    away = folder.rename(folder.with_name("away"))
    folder.write_text("in its place, so that it cannot be made again")
    while is_alive(pid):
        await asyncio.sleep(0.02)
    folder.unlink()
    (away / "status.json").unlink(missing_ok=True)
    folder.mkdir(exist_ok=True)  # unless its worker has made it again
    for document in away.iterdir():
        document.rename(folder / document.name)
    status = await shop.ended(attempt)
    assert (status["state"], status["failure"]["kind"]) == ("failed", "lost")


def spawn_worker(shop: Workshop, spec_key: str, token: str) -> subprocess.Popen[bytes]:
    """A worker beside the executor's own: as a second scheduler, or a repeated start, would make one."""
    code = "import sys; from ork.worker.main import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, f"{shop.objects.url}/{spec_key}"],
        env={**os.environ, "ORK_TOKEN": token},
        stderr=subprocess.DEVNULL,
    )


SCHEDULER = """
import asyncio, os, sys
from pathlib import Path
from tests.integration.workshop import Workshop

async def start():
    shop = Workshop(Path(sys.argv[1]))
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
    scheduler = subprocess.Popen([sys.executable, "-c", SCHEDULER, folder], stdout=subprocess.PIPE, env=env)
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
    stranger = LocalExecutor("python", shop.documents)  # as after a restart: it knows no children
    seen = await stranger.find([attempt])
    shop.write("go", "")
    await shop.ended(attempt)
    assert seen == [Presence.RUNNING]
    await stranger.close()


@in_every_workshop
async def test_running_out_of_descriptors_is_not_final(shop: Workshop) -> None:
    attempt = shop.attempt()
    order = shop.order(attempt, argv=["true"])
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


@in_every_workshop
async def test_other_machines_and_boots_are_not_judged(shop: Workshop) -> None:
    attempt = shop.attempt()
    kind, host, boot, namespace, key = attempt.external_name.split(":", 4)
    elsewhere = replaced(attempt, external_name=f"{kind}:other:{boot}:{namespace}:{key}")
    rebooted = replaced(attempt, external_name=f"{kind}:{host}:other:{namespace}:{key}")
    container = replaced(attempt, external_name=f"{kind}:{host}:{boot}:1:{key}")
    answers = await shop.executor.find([elsewhere, rebooted, container, attempt])
    assert answers == [Presence.UNKNOWN, Presence.LOST, Presence.UNKNOWN, Presence.GONE]


def test_a_disk_that_was_full_loses_nothing(tmp_path: Path) -> None:
    mount = tmp_path / "small"
    mount.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(mount)], capture_output=True).returncode:
        pytest.skip("cannot mount a small tmpfs here: behaviour on a full disk not tested")
    try:
        asyncio.run(run_on_a_full_disk(tmp_path, mount))
    finally:
        subprocess.run(["umount", "-l", str(mount)], check=True)


def fill_up(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)


async def run_on_a_full_disk(folder: Path, mount: Path) -> None:
    shop = Workshop(folder, mount / "objects")
    try:
        shop.write(
            "tasks.py",
            "import os, time\n\ndef main():\n    while not os.path.exists('go'):\n        time.sleep(0.01)\n    return 'kept'\n",
        )
        attempt = shop.attempt()
        await shop.start(attempt, heartbeat_seconds=0.05)
        await shop.running(attempt)
        ballast = mount / "ballast"
        fill_up(ballast)
        shop.write("go", "")
        before = shop.status(attempt)
        await asyncio.sleep(0.5)
        assert before is not None
        assert (shop.status(attempt) or {})["state"] == "running"
        ballast.unlink()
        status = await shop.ended(attempt)
        assert (status["state"], status["output"]) == ("success", {"inline": '"kept"'})
    finally:
        await shop.executor.stop(shop.made, at_once=True)
        await shop.executor.close()


@in_every_workshop
async def test_the_gate_names_the_worker_for_ever(shop: Workshop) -> None:
    attempt = shop.attempt()
    await shop.run(attempt, argv=["true"])
    data = shop.objects.get(layout.gate_key(layout.attempt_folder(attempt.key)))
    gate = open_signed(data or b"", attempt.token_hash)
    assert gate["state"] == "started"
    assert all(gate[name] for name in ("pid", "start_time", "boot_id", "pid_ns", "host", "nonce", "at"))
