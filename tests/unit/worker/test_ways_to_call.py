"""A function sees and leaves the same whoever calls it: a fork of a task fork server, a process of its own, or another
interpreter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.unit.worker import every_kind_of_task

pytestmark = pytest.mark.slow

SCRIPT = """
import _socket, functools, json, os, resource, signal, sys, time, typing
from ork.objects.local import LocalObjects
from ork.objects.references import output_reference
from ork.worker.call import packages
from ork.worker.supervise.process import Child
from ork.worker.pool.task_fork_server import TaskForkServer
from ork.worker.call.task_process import call_here
from ork.worker.system.processes import AttemptTag

way, folder, spec, tasks = sys.argv[1], sys.argv[2], *json.load(sys.stdin)
tag = AttemptTag()
packages.use_packages()
objects = LocalObjects(folder + "/objects", "normal")

def all_of(pipe):
    data = b""
    try:
        while chunk := os.read(pipe, 1 << 16):
            data += chunk
    except BlockingIOError:
        pass
    return data.decode()

def forked(spec, change):
    made.make_next("tasks.py")
    if change is not None:
        while not open(f"/proc/{made.pid}/task/{made.pid}/children").read():
            time.sleep(0.001)
        change()
    assert made.give(objects, spec)
    return made, made.read_end()

def in_a_process_of_its_own(spec, change):
    if change is not None:
        change()
    tag.write(spec["attempt"].encode())  # as its worker does
    child = Child(lambda answer: call_here(objects, spec, answer))
    return child, os.waitpid(child.pid, 0)[1]

def answer(number, changes):
    text = changes.pop("changed to", None)
    def change():
        with open(folder + "/tasks.py", "w") as file:
            file.write(text)
    child, status = ways[way](
        {**spec, "attempt": f"r/t/{number}/1", "root": folder, **changes}, None if text is None else change
    )
    said = [all_of(child.source), all_of(child.printed), status, objects.has_value(output_reference(f"r/t/{number}/1"))]
    if child is not made:
        child.close()
    return said

def in_another_interpreter(spec, change):
    return in_a_process_of_its_own({**spec, "python": sys.executable}, change)

ways = {"forked": forked, "own": in_a_process_of_its_own, "interpreter": in_another_interpreter}
made = TaskForkServer(tag, folder, objects.url) if way == "forked" else None
answers = [answer(number, changes) for number, changes in enumerate(tasks)]
if made is not None:
    made.dismiss()
with open(sys.argv[3], "w") as file:
    json.dump(answers, file)
"""
SPEC: dict[str, Any] = {
    "attempt": "r/t/0/1",
    "run_id": "r",
    "workflow": "w",
    "task": "t",
    "index": None,
    "parallel_count": None,
    "number": 1,
    "scheduled_for": None,
    "kind": "python",
    "file": "tasks.py",
    "module": None,
    "function": "main",
    "paths": [],
    "inputs": None,
    "upstream": {},
    "params": {},
    "env": {},
    "inline_limit": 1 << 16,
    "output_limit": 1 << 20,
    "durability": "normal",
}
FUNCTIONS = [
    name for name in vars(every_kind_of_task) if not name.startswith("_") and name not in ("annotations", "Any")
]
CASES: dict[str, dict[str, Any]] = {name: {"function": name} for name in FUNCTIONS} | {
    "of a class": {"function": "_Callable.inner"},
    "is missing": {"function": "missing"},
    "with variables of a schedule": {"function": "sees", "scheduled_for": "2024-01-01T00:00:00Z", "index": 0},
    "of many": {"function": "returns_text", "index": 3, "parallel_count": 5},
    "of many, with variables": {"function": "sees", "index": 3, "parallel_count": 5},
    "with a trace": {"function": "sees", "traceparent": "00-1-2-03"},
    "with long names": {"function": "sees", "task": "t" * 200, "workflow": "ö" * 200},
    "with inputs": {"function": "takes_a_parameter", "inputs": {"size": {"value": 7}}},
    "with an upstream task": {"function": "takes_a_parameter", "upstream": {"size": {"value": [1]}}},
    "with variables of its own": {"function": "sees", "env": {"MINE": {"value": "1"}}},
    "with little room": {"function": "returns_long_text", "inline_limit": 10},
    "with a small limit": {"function": "returns_text", "output_limit": 3},
    "with a large order": {"function": "takes_a_parameter", "params": {"size": 1, "other": "x" * 50_000}},
    "of another file": {"function": "main", "file": "other.py"},
    "of no file": {"function": "main", "file": "missing.py"},
    "of a module": {"function": "main", "file": None, "module": "other"},
    "with a declared output": {"function": "returns_text", "output_type": {"type": "integer"}},
    # These change the file for all that follow.
    "changed at the last moment": {"function": "main", "changed to": "def main():\n    return 'new'\n"},
    "broken when it is loaded": {"function": "main", "changed to": "raise ValueError('on load')\n"},
    "that leaves when it is loaded": {"function": "main", "changed to": "import sys\nsys.exit(4)\n"},
    "that is no Python": {"function": "main", "changed to": "def main(:\n"},
    "that says something when compiled": {"function": "main", "changed to": "def main():\n    return 1 is 1\n"},
    "that leaves nothing": {"function": "main", "changed to": "main = None\n"},
    "that makes functions when asked": {"function": "main", "changed to": "def __getattr__(name):\n    return dict\n"},
}


def answers(way: str, folder: Path) -> dict[str, Any]:
    folder.mkdir()
    (folder / "tasks.py").write_text(Path(every_kind_of_task.__file__).read_text())
    (folder / "other.py").write_text("def main():\n    return 'other'\n")
    environ = {**os.environ, "ORK_ATTEMPT_ID": "-" * 64, "ORK_OTHER": "hidden", "PYTHONPATH": os.pathsep.join(sys.path)}
    answered = folder / "answers"
    command = [sys.executable, "-c", SCRIPT, way, str(folder), str(answered)]
    asked = json.dumps([SPEC, list(CASES.values())])
    subprocess.run(command, input=asked, env=environ, text=True, check=True, timeout=180)
    return dict(zip(CASES, json.loads(answered.read_text().replace(str(folder), "FOLDER")), strict=True))


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    folder = tmp_path_factory.mktemp("ways")
    return answers("forked", folder / "forked"), answers("own", folder / "own")


def test_a_task_ends_the_same_in_another_interpreter(tmp_path: Path) -> None:
    own, other = answers("own", tmp_path / "own"), answers("interpreter", tmp_path / "interpreter")
    # Which variables and modules are there differs, as it should: those cases only have to succeed.
    for case in CASES:
        if CASES[case]["function"] in ("sees", "changes_its_environment"):
            assert json.loads(other[case][0])["exit_code"] == 0
        else:
            assert (case, _without_speed(other[case])) == (case, _without_speed(own[case]))


@pytest.mark.parametrize("case", CASES)
def test_a_task_ends_the_same_whoever_calls_it(case: str, both: tuple[dict[str, Any], dict[str, Any]]) -> None:
    forked, own = (_without_speed(answers[case]) for answers in both)
    assert forked == own
    assert case != "sees" or forked[0]["exit_code"] == 0


def _without_speed(answer: list[Any]) -> list[Any]:
    reply = json.loads(answer[0]) if answer[0] else {}
    for name in ("is_swift", "imports"):
        reply.pop(name, None)
    return [reply, *answer[1:]]
