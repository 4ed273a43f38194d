"""The plain way to perform a task is seen by nobody: whatever a task is, it sees and leaves what it would the other way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ork.worker.environment import additions
from ork.worker.order import UNUSUAL, WORDS_BYTES, head_of
from ork.worker.rehearsal import SPEC
from tests.unit.worker import every_kind_of_task

SCRIPT = """
import functools, json, os, signal, sys, typing
from ork.objects.local import LocalObjects
from ork.worker import forker, invoke, packages
from ork.worker.mark import Mark
from ork.worker.order import UNUSUAL
from ork.worker.rehearsal import SPEC, rehearse

way, folder, tasks = sys.argv[1], sys.argv[2], json.load(sys.stdin)
mark = Mark()
mark.keep_at_hand()
packages.use_packages()
rehearse(mark)
if way == "general":
    forker.head_of = lambda spec, variables: UNUSUAL
tell = invoke.tell
invoke.tell = lambda answer, output, waited: tell(answer, output + ',"is_plain":true', waited)
objects = LocalObjects(folder + "/objects", "normal")
spec = {**SPEC, "attempt": "r/t/0/1", "run_id": "r", "task": "t", "root": folder, "file": "tasks.py"}
made = forker.Forker(mark, folder, None, objects.root)

def all_of(pipe):
    data = b""
    try:
        while chunk := os.read(pipe, 1 << 16):
            data += chunk
    except BlockingIOError:
        return data.decode()

def answer(number, changes):
    text = changes.pop("changed to", None)
    made.make_next("tasks.py")
    if text is not None:
        while not open(f"/proc/{made.pid}/task/{made.pid}/children").read():
            continue
        with open(folder + "/tasks.py", "w") as file:
            file.write(text)
    assert made.give(objects, f"runs/{number}", {**spec, **changes})
    status = made.read_end()
    return [all_of(made.source), all_of(made.printed), status, objects.size(f"runs/{number}.output")]

answers = [answer(number, changes) for number, changes in enumerate(tasks)]
made.dismiss()
with open(sys.argv[3], "w") as file:
    json.dump(answers, file)
"""
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
    subprocess.run(command, input=json.dumps(list(CASES.values())), env=environ, text=True, check=True, timeout=30)
    return dict(zip(CASES, json.loads(answered.read_text().replace(str(folder), "FOLDER")), strict=True))


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    folder = tmp_path_factory.mktemp("ways")
    return answers("plain", folder / "plain"), answers("general", folder / "general")


@pytest.mark.parametrize("case", CASES)
def test_a_task_ends_as_it_would_the_other_way(case: str, both: tuple[dict[str, Any], dict[str, Any]]) -> None:
    plain, general = (_without_speed(answers[case]) for answers in both)
    assert plain == general
    assert case != "sees" or plain[0]["exit_code"] == 0


def _without_speed(answer: list[Any]) -> list[Any]:
    reply = json.loads(answer[0]) if answer[0] else {}
    for name in ("is_swift", "imports", "is_plain"):
        reply.pop(name, None)
    return [reply, *answer[1:]]


@pytest.mark.parametrize("case", ["returns_a_number", "returns_nothing", "returns_much", "prints", "of many"])
def test_a_usual_task_is_performed_plainly(case: str, both: tuple[dict[str, Any], dict[str, Any]]) -> None:
    plain, general = (json.loads(answers[case][0]) for answers in both)
    assert "is_plain" in plain
    assert "is_plain" not in general


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"kind": "custom"}, id="a task of a custom kind"),
        pytest.param({"file": None, "module": "m"}, id="a function of a module"),
        pytest.param({"function": "Flow.run"}, id="a function of a class"),
        pytest.param({"env": {"A": {"value": 1}}}, id="variables of its own"),
        pytest.param({"inputs": {"a": {"value": 1}}}, id="inputs"),
        pytest.param({"python": "/venv/bin/python"}, id="another interpreter"),
        pytest.param({"output_type": {"type": "integer"}}, id="a declared output"),
        pytest.param({"inline_limit": 10}, id="little room for its output"),
        pytest.param({"workflow": "w" * 120}, id="more than a slot has room for"),
        pytest.param({"file": "f" * WORDS_BYTES}, id="more than there is room for"),
        pytest.param({"workflow": "ö"}, id="what is longer than it looks"),
        pytest.param({"workflow": "a\0b"}, id="what cannot be told apart"),
    ],
)
def test_what_is_unusual_is_not_performed_plainly(change: dict[str, Any]) -> None:
    spec = {**SPEC, **change}
    variables = additions({**spec, "env": {}}, {}, None)
    assert head_of(spec, variables) is UNUSUAL
    assert head_of(SPEC, additions(SPEC, {}, None)) is not UNUSUAL
    assert head_of(SPEC, None) is UNUSUAL
