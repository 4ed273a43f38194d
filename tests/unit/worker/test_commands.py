from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ork.objects.local import LocalObjects
from ork.worker.call.environment import Bindings, task_environment
from ork.worker.data.errors import InputError
from ork.worker.supervise import no_input
from ork.worker.supervise.command import CommandJob, input_text
from ork.worker.supervise.log import LastLine
from ork.worker.supervise.programs import ProgramError, find_program

SPEC: dict[str, Any] = {
    "attempt": "r1/load/2/3",
    "run_id": "r1",
    "task": "load",
    "workflow": "flow",
    "number": 3,
    "index": 2,
    "parallel_count": 8,
    "scheduled_for": "2026-01-31T00:00:00Z",
    "inputs": None,
    "upstream": {},
    "env": {},
}


def bindings(folder: Path, **environ: str) -> Bindings:
    return Bindings(LocalObjects(str(folder)), 1 << 20, environ)


@given(st.lists(st.binary(max_size=20)), st.integers(0, 30))
def test_the_last_line_is_the_same_however_it_arrives(chunks: list[bytes], limit: int) -> None:
    pieces = LastLine(limit)
    for chunk in chunks:
        pieces.feed(chunk)
    whole = LastLine(limit)
    whole.feed(b"".join(chunks))
    assert pieces.line() == whole.line()
    lines = [line for line in b"".join(chunks).split(b"\n") if line.strip()]
    if lines and len(lines[-1]) <= limit and all(len(line) <= limit for line in b"".join(chunks).split(b"\n")):
        assert pieces.line() == lines[-1]


def test_a_line_longer_than_the_limit_is_not_taken() -> None:
    last = LastLine(4)
    last.feed(b"1234\n12345\n")
    assert last.line() is None


def test_the_input_is_what_was_declared_else_the_only_upstream_else_a_map(tmp_path: Path) -> None:
    bound = bindings(tmp_path)
    one, two = {"value": {"rows": 1}}, {"value": 2}
    assert input_text(SPEC, bound) == b"{}"
    assert input_text({**SPEC, "upstream": {"a": one}}, bound) == b'{"rows":1}'
    assert json.loads(input_text({**SPEC, "upstream": {"a": one, "b": two}}, bound)) == {"a": {"rows": 1}, "b": 2}
    assert input_text({**SPEC, "inputs": {"x": two}, "upstream": {"a": one}}, bound) == b'{"x":2}'
    assert input_text({**SPEC, "upstream": {"a": {"missing": True}}}, bound) == b"null"


def test_bound_objects_are_followed_to_their_place(tmp_path: Path) -> None:
    LocalObjects(str(tmp_path)).put("out", b'{"rows": [{"id": 7}]}')
    bound = bindings(tmp_path)
    assert bound.value({"object": "out", "path": ["rows", 0, "id"]}) == 7
    assert bound.json_bytes({"object": "out", "path": []}) == b'{"rows": [{"id": 7}]}'
    for path in (["rows", 1], ["columns"], ["rows", "id"], [0]):
        with pytest.raises(InputError, match="there is no"):
            bound.value({"object": "out", "path": path})
    with pytest.raises(InputError, match="gone"):
        bound.value({"object": "other", "path": []})


def test_a_task_gets_its_variables_and_nothing_of_orks_own(tmp_path: Path) -> None:
    inherited = {"PATH": "/bin", "ORK_STORE": "s", "ORK_TOKEN": "t", "ORK_DEBUG": "1", "VAULT": "v"}
    spec = {
        **SPEC,
        "inputs": {"key": {"secret": "VAULT"}},
        "env": {"KEY": {"secret": "VAULT"}, "N": {"value": 3}, "ON": {"value": True}, "NONE": {"missing": True}},
    }
    assert task_environment(spec, inherited, bindings(tmp_path, **inherited)) == {
        "PATH": "/bin",
        "KEY": "v",
        "N": "3",
        "ON": "true",
        "NONE": "",
        "ORK_RUN_ID": "r1",
        "ORK_TASK_ID": "r1/load/2",
        "ORK_TASK_NAME": "load",
        "ORK_WORKFLOW_NAME": "flow",
        "ORK_ATTEMPT": "3",
        "ORK_PARALLEL_INDEX": "2",
        "ORK_PARALLEL_COUNT": "8",
        "ORK_SCHEDULED_FOR": "2026-01-31T00:00:00Z",
        "ORK_ATTEMPT_ID": "r1/load/2/3",
    }


def test_the_attempts_mark_cannot_be_overridden(tmp_path: Path) -> None:
    spec = {**SPEC, "env": {"ORK_ATTEMPT_ID": {"value": "mine"}}}
    assert task_environment(spec, {}, bindings(tmp_path))["ORK_ATTEMPT_ID"] == "r1/load/2/3"


def test_a_secret_that_was_not_given_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="VAULT"):
        task_environment({**SPEC, "env": {"KEY": {"secret": "VAULT"}}}, {}, bindings(tmp_path))


def test_programs_are_found_by_path_then_script_dir_then_path_variable(tmp_path: Path) -> None:
    for name, mode in {
        "tool": 0o755,
        "scripts/tool": 0o755,
        "scripts/a.py": 0o644,
        "b.sh": 0o644,
        "data": 0o644,
    }.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.touch()
        file.chmod(mode)
    root = str(tmp_path)
    assert find_program(["./tool", "x"], root, "scripts", "") == [f"{root}/tool", "x"]
    assert find_program(["tool"], root, "scripts", root) == [f"{root}/scripts/tool"]
    assert find_program(["tool"], root, None, f"/nowhere:{root}") == [f"{root}/tool"]
    assert find_program(["a.py"], root, "scripts", "") == [sys.executable, f"{root}/scripts/a.py"]
    assert find_program(["./b.sh"], root, None, "") == ["/bin/sh", f"{root}/b.sh"]
    assert find_program([f"{root}/tool"], "/", None, "") == [f"{root}/tool"]


def test_a_program_that_came_in_front_of_another_is_found(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    path = f"{first}{os.pathsep}{second}{os.pathsep}{first}"
    for folder in (second, first):
        folder.mkdir()
        (folder / "tool").touch(mode=0o755)
        assert find_program(["tool", "-v"], str(tmp_path), None, path) == [str(folder / "tool"), "-v"]
    (first / "tool").chmod(0o644)
    assert find_program(["tool"], str(tmp_path), None, path) == [str(second / "tool")]


def test_no_input_is_the_same_for_the_next_command_whatever_one_does_to_it() -> None:
    descriptor, path = no_input.opened()
    assert os.read(descriptor, 10) == b"{}"
    for flags in (os.O_WRONLY, os.O_RDWR):
        opened = os.open(path, flags)
        with pytest.raises(PermissionError):
            os.write(opened, b"[]")
        with pytest.raises(PermissionError):
            os.truncate(opened, 0)
        os.close(opened)
    os.chmod(path, 0o000)
    assert no_input.opened() == (descriptor, path)
    assert os.stat(path).st_mode & 0o777 == 0o400
    assert os.read(descriptor, 10) == Path(path).read_bytes() == b"{}"


def test_an_output_that_cannot_be_looked_at_is_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = SPEC | {"output_limit": 1000, "inline_limit": 100, "argv": []}
    assert CommandJob(LocalObjects(str(tmp_path)), spec).ending(0).state == "success"

    def broken(*_: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("os.open", broken)
    ending = CommandJob(LocalObjects(str(tmp_path)), spec).ending(0)
    assert ending.state == "failed"
    assert ending.failure is not None
    assert "Input/output error" in ending.failure["message"]


SPAWNED = """
import os, signal
from ork.worker.supervise.command import _spawned
signal.signal(signal.SIGTERM, lambda *_: None)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
os.waitpid(_spawned(["/bin/cat", "/proc/self/status"], {}, "/", (0, 1, 2)), 0)
"""


def test_a_program_has_the_usual_signals_and_ignores_what_it_was_meant_to() -> None:
    said = subprocess.run([sys.executable, "-c", SPAWNED], capture_output=True, text=True, check=True).stdout
    masks = {line[:6]: int(line.split()[1], 16) for line in said.splitlines() if line[:4] in ("SigI", "SigB", "SigC")}
    ignored = {number for number in signal.valid_signals() if masks["SigIgn"] >> number - 1 & 1}
    assert ignored == {signal.SIGHUP}
    assert masks["SigBlk"] == masks["SigCgt"] == 0


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["nothing"], "no program `nothing` in script_dir scripts/ or on PATH"),
        (["./nothing"], "no file `./nothing` in"),
        (["./scripts"], "is a folder"),
        (["./data"], "is not executable: chmod"),
        ([], "the command is empty"),
        ([""], "the command is empty"),
    ],
)
def test_what_cannot_be_run_is_told(tmp_path: Path, argv: list[str], message: str) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "data").touch()
    with pytest.raises(ProgramError, match=message):
        find_program(argv, str(tmp_path), "scripts/", os.defpath)
