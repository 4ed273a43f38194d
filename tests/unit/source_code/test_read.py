"""Which files are code, and what changes their hash."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ork.model.code import Code, code_difference, code_of_json, code_of_text, code_text
from ork.model.workflow import CompiledWorkflow
from ork.source_code import git as git_module
from ork.source_code import read
from ork.source_code.read import CodeReader, read_code
from tests.unit.source_code.repository import commit, git, write

PLAIN = CompiledWorkflow("flow", ())


def names(folder: Path, workflow: CompiledWorkflow = PLAIN) -> list[str]:
    code = read_code(str(folder), workflow)
    assert code is not None
    assert code.files is not None
    return list(code.files)


def known(folder: Path, workflow: CompiledWorkflow = PLAIN) -> Code:
    code = read_code(str(folder), workflow)
    assert code is not None
    return code


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path, tasks="def a(): pass\n", lib__util="X = 1\n")
    return tmp_path


def test_code_is_what_tasks_load_and_not_what_they_read_or_write(project: Path) -> None:
    for name in ("models/a.sql", "run.sh", "notes.ipynb", "config.yaml", "requirements.txt", "Dockerfile"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("x")
    for name in ("data.csv", "out/active.json", "log.txt", "a.parquet", ".env", "ork.yaml", "README.md"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text("x")
    (project / "flow.yaml").write_text("name: flow\ntasks: {}\n")  # a definition is compared on its own
    script, program = project / "deploy", project / "compiled"
    script.write_text("#!/bin/sh\n")
    program.write_bytes(b"\x7fELF")
    script.chmod(0o755)
    program.chmod(0o755)
    expected = ["Dockerfile", "config.yaml", "deploy", "lib/util.py", "models/a.sql", "notes.ipynb", "requirements.txt"]
    assert names(project) == [*expected, "run.sh", "tasks.py"]


def test_folders_of_packages_caches_and_environments_are_no_code(project: Path) -> None:
    for folder in ("__pycache__", ".hidden", "node_modules/x", "target/debug", "env/lib", "cache/deep"):
        write(project / folder, module="x")
    (project / "env/pyvenv.cfg").touch()
    (project / "cache/CACHEDIR.TAG").touch()
    assert names(project) == ["lib/util.py", "tasks.py"]


def test_ignore_files_leave_out_more(project: Path) -> None:
    write(project, generated="x", lib__old="x", lib__kept_pb2="x", deep__a__scratch="x", tmp1__x="x")
    (project / ".gitignore").write_text("# comment\n\ngenerated.py\n*_pb2.py\n!kept_pb2.py\n")
    (project / ".orkignore").write_text("/lib/old.py\nscratch.py\ntmp?/\n")
    assert names(project) == ["lib/kept_pb2.py", "lib/util.py", "tasks.py"]


def test_the_hash_follows_contents_and_names_and_nothing_else(project: Path) -> None:
    first = known(project)
    os.utime(project / "tasks.py", (1, 1))
    (project / "data.csv").write_text("new")
    assert known(project) == first
    write(project, tasks="def a(): return 1\n")
    second = known(project)
    (project / "lib/util.py").rename(project / "lib/other.py")
    third = known(project)
    assert len({first.hash, second.hash, third.hash}) == 3
    difference = code_difference(first, third)
    assert difference is not None
    assert (difference.changed, difference.added, difference.removed) == (
        ("tasks.py",),
        ("lib/other.py",),
        ("lib/util.py",),
    )
    assert code_difference(first, first) is None


def test_the_code_of_a_workflow_in_a_project_is_the_projects_and_that_of_pythonpath(tmp_path: Path) -> None:
    project = tmp_path / "project"
    write(tmp_path, project__flows__a__tasks="a", project__shared="s", outside__lib="l", other__not_code="n")
    workflow = CompiledWorkflow("flow", (), project="../..", pythonpath=("shared", "../outside"))
    assert names(project / "flows/a", workflow) == ["../outside/lib.py", "flows/a/tasks.py", "shared.py"]


def test_a_project_that_moves_as_a_whole_keeps_its_hash(tmp_path: Path) -> None:
    write(tmp_path, one__project__tasks="a", one__outside__lib="l")
    workflow = CompiledWorkflow("flow", (), pythonpath=("../outside",))
    before = known(tmp_path / "one/project", workflow)
    (tmp_path / "one").rename(tmp_path / "two")
    assert known(tmp_path / "two/project", workflow) == before


def test_a_folder_with_too_many_files_is_left_before_one_is_read(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "_hash_of", lambda *_: pytest.fail("a file was read"))
    for limit in ("MAX_ENTRIES", "MAX_FILES"):
        with monkeypatch.context() as patched:
            patched.setattr(read, limit, 1)
            assert read_code(str(project), PLAIN) is None


def test_what_is_no_regular_file_blocks_nobody(project: Path) -> None:
    os.mkfifo(project / "pipe.py")
    (project / "gone.py").symlink_to("nothing")
    (project / "loop").symlink_to(".")
    with open(project / "large.sql", "wb") as file:
        file.truncate(1 << 40)
    assert names(project) == ["gone.py", "lib/util.py", "tasks.py"]
    assert read_code(str(project / "nowhere"), PLAIN) is None


def test_a_name_that_is_not_utf8_is_shown_and_stored_as_text(project: Path) -> None:
    with open(os.fsencode(project) + b"/caf\xe9.py", "w") as file:
        file.write("x")
    code = known(project)
    assert list(code.files or ()) == ["caf?.py", "lib/util.py", "tasks.py"]
    assert code_of_text(code_text(code)) == code


def test_many_names_are_left_out_and_the_hash_stays(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = known(project)
    monkeypatch.setattr("ork.model.code.NAMES_LIMIT", 10)
    short = known(project)
    assert (short.hash, short.count, short.files) == (whole.hash, 2, None)


def test_workflows_of_one_project_share_one_reading(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(read, "read_code", lambda root, _: calls.append(root))
    reader = CodeReader()
    for name in ("a", "b"):
        reader.code_of(str(project), CompiledWorkflow(name, ()))
    assert calls == [str(project)]


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loaded machine is no reason to fail."""
    monkeypatch.setattr(git_module, "STATUS_SECONDS", 60.0)


# ── Git ──────────────────────────────────────────────────────────────────────────────────────────


def test_the_commit_is_recorded_and_dirty_only_by_code(project: Path) -> None:
    assert (known(project).commit, known(project).dirty) == (None, None)
    here = commit(project)
    (project / "out").mkdir()
    (project / "out/result.json").write_text("{}")  # what tasks write does not count
    assert (known(project).commit, known(project).dirty) == (here, False)


@pytest.mark.parametrize("change", ["edit", "stage", "add", "add a folder", "delete", "rename"])
def test_code_that_differs_from_the_commit_is_dirty(project: Path, change: str) -> None:
    here = commit(project)
    match change:
        case "edit":
            write(project, tasks="new")
        case "stage":
            write(project, tasks="new")
            git(project, "add", ".")
        case "add":
            write(project, more="new")
        case "add a folder":
            write(project, new__deep__more="new")
        case "delete":
            (project / "lib/util.py").unlink()
        case "rename":
            git(project, "mv", "tasks.py", "named ü.py")
    code = known(project)
    assert (code.commit, code.dirty) == (here, True)


def test_a_project_in_a_folder_of_the_repository_is_judged_by_its_own_files(tmp_path: Path) -> None:
    write(tmp_path, project__tasks="a", elsewhere__x="x")
    here = commit(tmp_path)
    write(tmp_path, elsewhere__x="changed", elsewhere__new="new")
    assert (known(tmp_path / "project").commit, known(tmp_path / "project").dirty) == (here, False)
    write(tmp_path, project__new__y="new")
    assert known(tmp_path / "project").dirty is True


def test_git_is_not_misled_by_the_variables_of_a_hook(
    project: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, other = commit(project), tmp_path_factory.mktemp("other")
    write(other, x="x")
    commit(other)
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git/index"))
    assert known(project).commit == here


@pytest.mark.parametrize("kind", ["branch", "packed", "detached", "work tree"])
def test_without_git_or_without_an_answer_the_commit_is_known_from_files(
    project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory, kind: str
) -> None:
    here = commit(project)
    if kind == "packed":
        git(project, "pack-refs", "--all")
    elif kind == "detached":
        git(project, "checkout", "-q", "--detach")
    elif kind == "work tree":
        git(project, "worktree", "add", "-q", str(project := tmp_path_factory.mktemp("trees") / "second"))
    slow = tmp_path_factory.mktemp("bin")
    (slow / "git").write_text("#!/bin/sh\nexec sleep 60\n")
    (slow / "git").chmod(0o755)
    monkeypatch.setattr(git_module, "STATUS_SECONDS", 0.05)
    monkeypatch.setenv("PATH", f"{slow}:{os.environ['PATH']}")
    assert (known(project).commit, known(project).dirty, known(project).count) == (here, None, 2)
    monkeypatch.setenv("PATH", str(slow.parent))
    assert (known(project).commit, known(project).dirty, known(project).count) == (here, None, 2)


def test_a_new_repository_without_a_commit_has_none(project: Path) -> None:
    git(project, "init", "-q")
    assert known(project).commit is None


# ── as text ──────────────────────────────────────────────────────────────────────────────────────


def test_a_code_that_cannot_be_read_counts_as_none() -> None:
    code = Code("0a" * 32, 1, "1b" * 20, False, {"tasks.py": "2c" * 6})
    assert code_of_text(code_text(code)) == code
    assert code_of_text("{") is None
    assert code_of_text('{"hash": 7}') is None


@pytest.mark.parametrize(
    "row",
    [
        7,
        {},
        {"hash": "0a"},
        {"hash": "0a" * 32, "count": -1},
        {"hash": "0a" * 32, "commit": "main"},
        {"hash": "0a" * 32, "dirty": "no"},
        {"hash": "0a" * 32, "files": ["tasks.py"]},
        {"hash": "0a" * 32, "files": {"a" * 70_000: "x"}},
    ],
)
def test_a_code_from_a_request_is_checked(row: object) -> None:
    with pytest.raises(ValueError, match="code"):
        code_of_json(row)
