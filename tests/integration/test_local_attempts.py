"""Real processes, from the order to the terminal status, without a scheduler."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from ork.model.record import replaced
from ork.objects import layout
from ork.objects.journaled import JOURNAL
from tests.integration.workshop import Workshop, in_every_workshop


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
    key = layout.output_key(layout.attempt_stem(attempt.key))
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
    assert sorted(path.name for path in shop.folder(attempt).iterdir()) == [JOURNAL, "work.0.1.log"]
    kinds = ("gate.json", "log", "spec.json", "status.json")
    assert shop.objects.list("") == [f"{layout.attempt_stem(attempt.key)}.{kind}" for kind in kinds]


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
        assert b"hush" not in path.read_bytes() or path.suffix == ".log"


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
