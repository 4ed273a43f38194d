"""User code is looked into by a child: within limits, without touching this process, and only when it has changed."""

from __future__ import annotations

import os
import select
import sys
from pathlib import Path

import pytest

from ork.locations import inspect, inspection_cache
from ork.locations.inspect import Inspected, inspect_file

FLOW = """\
from ork import Workflow

etl = Workflow("etl")
print("printed while it is loaded")

@etl.task(retries=2)
def extract(day: int) -> list[str]: ...
"""


def look(root: Path, file: str = "flow.py", cache_dir: Path | None = None) -> Inspected:
    cache = str(cache_dir) if cache_dir else None
    return inspect_file(file, root=str(root), interpreter=sys.executable, cache_dir=cache)


def error_of(root: Path, text: str) -> dict[str, object]:
    (root / "flow.py").write_text(text)
    (error,) = look(root).errors
    return error


def test_inspection_reports_workflows_and_functions_without_importing_them(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(FLOW)
    before = set(sys.modules)
    found = look(tmp_path)
    assert not [name for name in set(sys.modules) - before if "flow" in name]
    assert found.errors == []
    (told,) = found.workflows
    assert told["document"]["tasks"] == {"extract": {"file": "flow.py", "function": "extract", "retries": 2}}
    assert told["document"]["params"] == {"day": {"type": "int"}}
    assert (told["file"], told["line"], told["task_lines"]) == ("flow.py", 3, {"extract": 6})
    assert found.functions["flow.py:extract"]["returns"] == {"list": "str"}


def test_only_workflows_made_by_the_file_are_its_own_and_those_it_uses_come_along(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text(
        "from ork import Workflow\nused = Workflow('used')\nused.command('a', ['true'])\n"
        "idle = Workflow('idle')\nidle.command('a', ['true'])\n"
    )
    (tmp_path / "flow.py").write_text(
        "from ork import Workflow\nfrom other import used, idle\n"
        "etl = Workflow('etl')\nalso = etl\netl.workflow('child', used)\n"
    )
    told = [(each["document"]["name"], each["file"], each["is_own"]) for each in look(tmp_path).workflows]
    assert told == [("etl", "flow.py", True), ("used", "other.py", False)]


def test_an_error_names_its_type_and_the_users_own_lines(tmp_path: Path) -> None:
    error = error_of(tmp_path, "def f():\n    raise ValueError('no')\n\nf()\n")
    assert (error["type"], error["message"]) == ("ValueError", "no")
    frames = error["frames"]
    assert isinstance(frames, list)
    assert [(frame["file"], frame["line"]) for frame in frames] == [("flow.py", 4), ("flow.py", 2)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f(:\n", "SyntaxError"),
        ("import sys; sys.exit(4)", "SystemExit"),
        ("import os; print('last words'); os._exit(3)", "Ended"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "Ended"),
        ("import not_there", "ModuleNotFoundError"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("input()", "EOFError"),
    ],
)
def test_every_end_of_loading_is_reported(tmp_path: Path, text: str, expected: str) -> None:
    error = error_of(tmp_path, text)
    assert error["type"] == expected
    if "last words" in text:
        assert "exit code 3" in str(error["message"])
        assert "last words" in str(error["message"])


def test_a_missing_file_and_a_missing_interpreter_are_reported(tmp_path: Path) -> None:
    assert look(tmp_path, "nothing.py").errors[0]["type"] == "LoadError"
    found = inspect_file("flow.py", root=str(tmp_path), interpreter=str(tmp_path / "python"), cache_dir=None)
    assert found.errors[0]["type"] == "StartError"


def is_ended(pid: int) -> bool:
    """Waits a while for one that has been killed but is not dead yet."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    ready, _, _ = select.select([process], [], [], 10.0)
    os.close(process)
    return bool(ready)


@pytest.mark.slow
def test_loading_that_never_ends_is_ended_with_everything_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspect, "WALL_SECONDS", 3.0)
    error = error_of(
        tmp_path,
        "import subprocess, time\nchild = subprocess.Popen(['sleep', '600'])\n"
        "open('pid', 'w').write(str(child.pid))\ntime.sleep(600)\n",
    )
    assert error["type"] == "TimeoutError"
    assert is_ended(int((tmp_path / "pid").read_text()))


def test_memory_is_limited(tmp_path: Path) -> None:
    error = error_of(tmp_path, "x = bytearray(64 * 1024**3)\n")
    assert error["type"] == "MemoryError"


def test_a_process_left_behind_does_not_delay_the_answer(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text("import os, time\nif os.fork() == 0:\n    time.sleep(600)\n")
    assert look(tmp_path).errors == []


def test_nothing_of_orks_own_settings_reaches_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORK_STORE", "secret")
    error = error_of(tmp_path, "import os\nassert not [n for n in os.environ if n.startswith('ORK_')]\nraise IOError")
    assert error["type"] == "OSError"


def counting(root: Path) -> int:
    return len((root / "loads").read_text()) if (root / "loads").exists() else 0


def test_an_answer_is_kept_until_a_file_it_came_from_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    (tmp_path / "part.py").write_text("name = 'one'\n")
    (tmp_path / "flow.py").write_text(
        "open('loads', 'a').write('.')\nfrom ork import Workflow\nfrom part import name\n"
        "w = Workflow(name)\nw.command('a', ['true'])\n"
    )
    cache = tmp_path / "cache"

    def name() -> str:
        return str(look(tmp_path, cache_dir=cache).workflows[0]["document"]["name"])

    assert (name(), name(), counting(tmp_path)) == ("one", "one", 1)
    (tmp_path / "part.py").write_text("name = 'two'\n")
    assert (name(), name(), counting(tmp_path)) == ("two", "two", 2)


def test_nothing_is_left_in_the_folder_that_was_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    (tmp_path / "part.py").write_text("")
    (tmp_path / "flow.py").write_text("import part\n")
    look(tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["flow.py", "part.py"]


def test_a_failure_is_not_kept_and_a_broken_cache_is_only_slow(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    (tmp_path / "flow.py").write_text("import part\n")
    assert look(tmp_path, cache_dir=cache).errors
    (tmp_path / "part.py").write_text("")
    assert look(tmp_path, cache_dir=cache).errors == []
    for entry in cache.iterdir():
        entry.write_bytes(b'{"files": 3')
    assert look(tmp_path, cache_dir=cache).errors == []
    cache_that_cannot_be = tmp_path / "flow.py" / "cache"
    assert look(tmp_path, cache_dir=cache_that_cannot_be).errors == []


def test_the_cache_keeps_what_was_used_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection_cache, "MAX_ENTRIES", 10)
    kept = inspection_cache.InspectionCache(str(tmp_path / "cache"))
    empty = {"workflows": [], "functions": {}, "files": [], "errors": []}
    for number in range(11):
        kept.keep(f"key{number:02}", str(tmp_path), empty)
        path = tmp_path / "cache" / f"key{number:02}.json"
        if path.exists():
            os.utime(path, (number, number))
    assert len(list((tmp_path / "cache").iterdir())) == 5
    assert kept.find("key10", str(tmp_path)) == empty
    assert kept.find("key00", str(tmp_path)) is None


def test_a_file_that_prints_without_end_is_cut_off(tmp_path: Path) -> None:
    error = error_of(tmp_path, "while True:\n    print('x' * 1_000_000)\n")
    assert (error["type"], "File too large" in str(error["message"])) == ("OSError", True)
