"""What a task prints, from its process to the log: nothing lost, nothing torn, in the order it was said."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.integration.workshop import Workshop, in_workshop

# One word on each stream in turn, each after the one before has been logged.
IN_TURN = """
import os, sys, time
for number in range(20):
    stream = (sys.stdout, sys.stderr)[number % 2]
    stream.write(f"{number}\\n")
    stream.flush()
    while not os.path.exists(sys.argv[1]) or f"{number}\\n" not in open(sys.argv[1]).read().splitlines(True):
        time.sleep(0.002)
"""

# Both streams at once, every line in three pieces.
IN_PIECES = """
import os, threading, time
def say(descriptor, letter):
    for number in range(300):
        for piece in (letter * 10, letter * 10, f" {number}\\n"):
            os.write(descriptor, piece.encode())
            if number % 50 == 0:
                time.sleep(0.001)
threads = [threading.Thread(target=say, args=each) for each in ((1, "o"), (2, "e"))]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


@in_workshop
async def test_the_two_streams_of_a_command_are_logged_in_the_order_they_were_written(shop: Workshop) -> None:
    shop.write("turns.py", IN_TURN)
    attempt = shop.attempt()
    await shop.run(attempt, argv=[sys.executable, "turns.py", str(shop.log_path(attempt))], timeout=60)
    assert shop.log(attempt).split() == [str(number).encode() for number in range(20)]


@in_workshop
async def test_lines_of_two_streams_are_never_torn(shop: Workshop) -> None:
    shop.write("pieces.py", IN_PIECES)
    attempt = shop.attempt()
    await shop.run(attempt, argv=[sys.executable, "pieces.py"])
    lines = shop.log(attempt).decode().splitlines()
    for letter in "oe":
        assert [line for line in lines if letter in line] == [f"{letter * 20} {number}" for number in range(300)]
    assert len(lines) == 600


@in_workshop
async def test_when_both_streams_are_there_at_once_the_error_comes_last(shop: Workshop) -> None:
    """A pipe tells no time: of two words within one blink, what went wrong most often came last."""
    attempt = shop.attempt()
    stop = "kill -STOP $PPID; until grep -q 'State:.T' /proc/$PPID/status; do :; done"
    await shop.run(attempt, argv=["sh", "-c", f"{stop}; echo oops >&2; echo working; kill -CONT $PPID"])
    assert shop.log(attempt) == b"working\noops\n"


@in_workshop
async def test_writing_to_dev_stderr_cuts_no_log_short(shop: Workshop) -> None:
    script = "echo one; echo two > /dev/stderr; echo three; echo four > /dev/stdout; sleep 0.05; echo five >&2"
    attempt = shop.attempt()
    await shop.run(attempt, argv=["sh", "-c", script])
    assert sorted(shop.log(attempt).split()) == [b"five", b"four", b"one", b"three", b"two"]
    shop.write(
        "tasks.py",
        "import subprocess\n\ndef main():\n    print('before')\n"
        "    subprocess.run('echo child > /dev/stderr', shell=True)\n    print('after')\n",
    )
    function = shop.attempt("function")
    await shop.run(function)
    assert shop.log(function) == b"before\nchild\nafter\n"


@in_workshop
async def test_what_a_function_prints_is_logged_in_the_very_order(shop: Workshop) -> None:
    shop.write(
        "tasks.py",
        "import os, sys\n\ndef main():\n    for n in range(500):\n"
        "        print(n, end=' ', flush=True)\n        print(n, end='\\n', file=(sys.stdout, sys.stderr)[n % 2], flush=True)\n",
    )
    attempt = shop.attempt()
    await shop.run(attempt)
    assert shop.log(attempt) == b"".join(b"%d %d\n" % (number, number) for number in range(500))


@in_workshop
async def test_an_unfinished_line_appears_while_its_task_waits(shop: Workshop) -> None:
    attempt = shop.attempt()
    script = "printf 'Password: '; while [ ! -e go ]; do sleep 0.01; done; echo ok"
    await shop.start(attempt, argv=["sh", "-c", script], heartbeat_seconds=60)
    async with asyncio.timeout(30):
        while shop.log(attempt) != b"Password: ":
            await asyncio.sleep(0.01)
    shop.write("go", "")
    await shop.ended(attempt)
    assert shop.log(attempt) == b"Password: ok\n"


@in_workshop
async def test_a_large_last_line_is_the_output(shop: Workshop) -> None:
    shop.write("large.py", "print('[' + '1,' * 100_000 + '1]')\n")
    attempt = shop.attempt()
    status = await shop.run(attempt, argv=[sys.executable, "large.py"])
    assert status["state"] == "success"
    assert status["output"]["size"] == 200_003
    assert shop.objects.get(status["output"]["object"]) == b"[" + b"1," * 100_000 + b"1]"


@in_workshop
async def test_a_last_line_too_large_to_be_kept_fails_with_advice(shop: Workshop) -> None:
    shop.write("large.py", "print('[' + '1,' * 5_000_000 + '1]')\n")
    status = await shop.run(argv=[sys.executable, "large.py"])
    assert (status["state"], status["failure"]["kind"]) == ("failed", "output")
    assert "$ORK_OUTPUT_FILE" in status["failure"]["message"]
    shop.write("small.py", "print('[' + '1,' * 1000 + '1]')\n")
    status = await shop.run(shop.attempt("limited"), argv=[sys.executable, "small.py"], output_limit=100)
    assert (status["state"], status["failure"]["kind"]) == ("failed", "output")
    assert "$ORK_OUTPUT_FILE" in status["failure"]["message"]


@in_workshop
async def test_the_tail_of_a_huge_last_line_is_its_end(shop: Workshop) -> None:
    shop.write("huge.py", "import sys\nsys.stderr.write('x' * 300_000 + ' the reason')\nsys.exit(3)\n")
    status = await shop.run(argv=[sys.executable, "huge.py"])
    (line,) = status["failure"]["detail"]["tail"]
    assert line.startswith("…x")
    assert line.endswith(" the reason")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    mount = tmp_path / "small"
    mount.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(mount)], capture_output=True).returncode:
        pytest.skip("NOT TESTED, logs on a full disk: cannot mount a small one here")
    yield mount
    subprocess.run(["umount", "-l", str(mount)], check=True)


def fill_up(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)


async def log_on_a_full_disk(folder: Path, mount: Path, source: str, frees_early: bool, **spec: object) -> bytes:
    """The log of a task that prints `source` while the disk is full."""
    shop = Workshop(folder, mount / "objects")
    try:
        shop.write("task.py", source)
        attempt = shop.attempt()
        await shop.start(attempt, heartbeat_seconds=0.05, **spec)
        await shop.running(attempt)
        fill_up(mount / "ballast")
        # What is left of the log's last page is used up as well.
        with shop.log_path(attempt).open("ab", buffering=0) as log, suppress(OSError):
            while True:
                log.write(b"#" * 64)
        shop.write("go", "")
        await shop.until_file(shop.root / "said")
        if not frees_early:
            await asyncio.sleep(0.3)  # the task has ended, and its worker tries to say so
        (mount / "ballast").unlink()
        shop.write("end", "")
        status = await shop.ended(attempt)
        assert (status["state"], status["output"]) == ("success", {"inline": "7"})
        await shop.vanished(attempt)
        return shop.log(attempt).lstrip(b"#")
    finally:
        await shop.executor.stop(shop.made, at_once=True)
        await shop.executor.close()


FEW = """
import os, time
def main():
    while not os.path.exists("go"): time.sleep(0.01)
    print("printed on a full disk")
    os.system("echo by a child > /dev/stderr")
    open("said", "w").write("yes")
    while not os.path.exists("end"): time.sleep(0.01)
    return 7
"""


@pytest.mark.parametrize("kind", ["function", "command"])
@pytest.mark.parametrize("when", ["while it runs", "after it ended"])
def test_what_is_printed_on_a_full_disk_is_logged_when_there_is_room(
    tmp_path: Path, small_disk: Path, kind: str, when: str
) -> None:
    early = when == "while it runs"
    source = FEW if early else FEW.replace('os.path.exists("end")', "True")
    spec: dict[str, object] = {"file": "task.py"}
    if kind == "command":
        source += "result = main()\nprint(result)\n"
        spec = {"argv": [sys.executable, "-u", "task.py"]}
    log = asyncio.run(log_on_a_full_disk(tmp_path, small_disk, source, early, **spec))
    if kind == "function":
        assert log == b"printed on a full disk\nby a child\n"
    else:  # the order of what is printed to standard output and to standard error is not promised
        assert log.replace(b"by a child\n", b"") == b"printed on a full disk\n7\n"
        assert log.count(b"by a child\n") == 1


MUCH = FEW.replace('print("printed on a full disk")', 'print(("y" * 63 + "\\n") * 65536, end="")')


def test_what_finds_no_room_is_counted_in_the_log(tmp_path: Path, small_disk: Path) -> None:
    log = asyncio.run(log_on_a_full_disk(tmp_path, small_disk, MUCH, True, file="task.py"))
    kept, _, note = log.partition(b"[ork: ")
    lost = int(note.split(b" bytes of log lost: the disk was full]")[0].replace(b",", b""))
    rest = note.partition(b"]\n")[2]
    assert len(kept.rstrip(b"\n") + b"\n") + lost + len(rest) == 65536 * 64 + len(b"by a child\n")
    assert 0 < len(kept) < 65536 * 64


@in_workshop
async def test_the_log_goes_on_without_a_scheduler(shop: Workshop) -> None:
    shop.write(
        "tasks.py",
        "import os, time\n\ndef main():\n    while not os.path.exists('go'):\n        time.sleep(0.01)\n    print('alone')\n",
    )
    attempt = shop.attempt()
    await shop.start(attempt)
    await shop.running(attempt)
    await shop.executor.close()
    shop.write("go", "")
    async with asyncio.timeout(30):
        while (shop.status(attempt) or {})["state"] == "running":
            await asyncio.sleep(0.01)
    assert shop.log(attempt) == b"alone\n"
    assert os.path.exists(shop.root / "go")
