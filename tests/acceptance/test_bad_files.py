"""Bad definitions through the real program: exit 2 with a place, no traceback, in little time and memory."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SECONDS = 2.0
MEMORY_KIB = 300 * 1024


def chain(count: int) -> Iterator[str]:
    """A cycle as long as the file."""
    yield "name: w\ntasks:\n"
    for number in range(count):
        yield f"  t{number}: {{command: x, depends_on: [t{(number + 1) % count}]}}\n"


LAUGHS = "a: &a [x, x]\n" + "".join(
    f"{name}: &{name} [*{before}, *{before}, *{before}]\n"
    for before, name in zip("abcdefghi", "bcdefghij", strict=True)
)

BAD: dict[str, bytes] = {
    "empty": b"",
    "not a map": b"- a\n- b\n",
    "broken YAML": b"name: w\ntasks: {a: [}\n",
    "tab as indentation": b"name: w\ntasks:\n\ta: {command: x}\n",
    "NUL": b"name: w\x00\ntasks: {a: {command: x}}\n",
    "not UTF-8": b"name: w\ntasks: {a: {command: '\xff\xfe'}}\n",
    "UTF-16": "name: w\ntasks: {a: {command: x}}\n".encode("utf-16"),
    "aliases, a billion of them": LAUGHS.encode(),
    "duplicate key": b"name: w\ntasks:\n  a: {command: x}\n  a: {command: y}\n",
    "tag that makes objects": b"name: w\ntasks: !!python/object/apply:os.system [touch owned]\n",
    "two hundred thousand levels": b"name: w\ntasks: " + b"[" * 200_000,
    "unknown key": b"name: w\ntasks:\n  a: {comand: x}\n",
    "hostile name": b"name: ../../etc/passwd\ntasks: {a: {command: x}}\n",
    "unknown dependency": b"name: w\ntasks: {a: {command: x, depends_on: [b]}}\n",
    "cycle of two": b"name: w\ntasks: {a: {command: x, depends_on: [b]}, b: {command: x, depends_on: [a]}}\n",
    "cycle of a thousand": "".join(chain(1000)).encode(),
    "wrong type": b"name: w\ntasks: {a: {command: x, retries: many, timeout: soon}}\n",
    "cron that never fires": b"name: w\nschedule: 0 0 30 2 *\ntasks: {a: {command: x}}\n",
    "unknown zone": b"name: w\nschedule: {cron: '@daily', timezone: Mars/Base}\ntasks: {a: {command: x}}\n",
    "missing file": b"name: w\ntasks: {a: {file: nowhere.py}}\n",
    "Python that does not parse": b"name: w\ntasks: {a: {file: broken.py}}\n",
    "reference into nowhere": b"name: w\ntasks: {a: {command: x, inputs: {v: {ref: tasks.z.output}}}}\n",
    "file larger than allowed": b"#" * (64 * 1024 * 1024 + 1),
    "endless number": b"name: w\ntasks: {a: {command: x, retries: " + b"9" * 100_000 + b"}}\n",
    "wrong three thousand times": b"name: w\ntasks:\n" + b"".join(b"  t%d: {comand: x}\n" % n for n in range(3000)),
}


# A lean process in between: the kernel counts what the process that forks is large with as its child's own.
MEASURE = """
import json, os, sys, time
begun = time.monotonic()
pid = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, used = os.wait4(pid, 0)
facts = [os.waitstatus_to_exitcode(status), time.monotonic() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss]
with open(sys.argv[1], "w") as file:
    json.dump(facts, file)
"""


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_definition_is_told_with_its_place_in_little_time_and_memory(
    tmp_path: Path, plain_environment: dict[str, str], kind: str
) -> None:
    (tmp_path / "w.yaml").write_bytes(BAD[kind])
    (tmp_path / "broken.py").write_text("def main(:\n")
    with (tmp_path / "said").open("w") as said:
        subprocess.run(
            [sys.executable, "-S", "-c", MEASURE, str(tmp_path / "used"), sys.executable, "-m", "ork", "run", "w.yaml"],
            cwd=tmp_path,
            env=plain_environment,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            check=True,
        )
    returncode, took, processor, memory_kib = json.loads((tmp_path / "used").read_text())
    text = (tmp_path / "said").read_text()
    assert returncode == 2, text[:2000]
    assert re.search(r"^error\[ORK\d{3}\]: .+\n *--> (w\.yaml|broken\.py):\d+:\d+$", text, re.MULTILINE), text[:2000]
    assert "Nothing was run." in text.splitlines()[-1]
    assert "Traceback" not in text
    assert not any(character < " " and character != "\n" for character in text)
    # Processor time, not the clock: how long others kept the machine busy says nothing about the file.
    assert min(took, processor) < SECONDS
    assert memory_kib < MEMORY_KIB
    assert not (tmp_path / ".ork").exists()
    assert not (tmp_path / "owned").exists()


def test_there_are_at_least_eighteen_kinds() -> None:
    assert len(BAD) >= 18
