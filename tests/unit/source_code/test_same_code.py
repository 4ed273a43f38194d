"""A version with the code of an earlier run: where it comes from, and why it may not be had."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ork.errors import RefusedError
from ork.model.record import replaced
from ork.model.workflow import (
    Action,
    Approval,
    CloudRunJob,
    Command,
    CompiledWorkflow,
    Const,
    Environment,
    PythonCall,
    SubWorkflow,
    TaskSpec,
    Version,
)
from ork.source_code.read import CodeReader
from ork.source_code.same_code import same_code_version
from tests.unit.source_code.repository import commit, git, write

CALL = PythonCall("tasks.py", None)
DIGEST = "example.org/etl@sha256:" + "0" * 64


def flow(*actions: Action, **options: object) -> CompiledWorkflow:
    specs = tuple(TaskSpec(f"t{number}", "process", action) for number, action in enumerate(actions or (CALL,)))
    return CompiledWorkflow("flow", specs, **options)  # type: ignore[arg-type]


def deployed(root: Path, workflow: CompiledWorkflow | None = None) -> Version:
    return CodeReader().version(workflow or flow(), str(root), "flow.yaml")


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loaded machine is no reason to fail."""
    monkeypatch.setattr("ork.source_code.git.STATUS_SECONDS", 60.0)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    write(folder, tasks="first", lib__util="X = 1")
    return folder


@pytest.fixture
def checkouts(tmp_path: Path) -> str:
    return str(tmp_path / "home/code")


def test_unchanged_code_needs_no_checkout(project: Path, checkouts: str) -> None:
    version = deployed(project)  # not even in Git
    assert same_code_version(version, checkouts) is version
    assert not Path(checkouts).exists()


def test_changed_code_comes_from_its_commit(project: Path, checkouts: str) -> None:
    here = commit(project)
    version = deployed(project)
    write(project, tasks="second", more="new")
    commit(project)
    write(project, tasks="third")
    status = git(project, "status", "--porcelain")
    found = same_code_version(version, checkouts)
    assert (found.workflow, found.source) == (version.workflow, version.source)
    assert found.id != version.id
    assert found.code == version.code
    assert found.code is not None
    assert found.code.commit == here
    root = Path(found.root)
    assert (root / "tasks.py").read_text() == "first"
    assert not (root / "more.py").exists()
    assert same_code_version(version, checkouts) == found  # the same folder
    assert [entry.name for entry in Path(checkouts).iterdir()] == [root.name]
    assert git(project, "status", "--porcelain") == status
    assert git(project, "worktree", "list").count("\n") == 0


def test_code_that_was_committed_after_its_run_is_found(project: Path, checkouts: str) -> None:
    commit(project)
    write(project, tasks="second")
    version = deployed(project)
    assert version.code is not None
    assert version.code.dirty
    here = commit(project)
    write(project, tasks="third")
    commit(project)
    found = same_code_version(version, checkouts)
    assert found.code is not None
    assert (found.code.commit, found.code.dirty) == (here, False)
    assert (Path(found.root) / "tasks.py").read_text() == "second"


def test_a_project_in_a_folder_of_the_repository_keeps_its_neighbours(tmp_path: Path, checkouts: str) -> None:
    write(tmp_path, repo__flows__a__tasks="first", repo__shared__lib="l", repo__other__x="x")
    workflow = flow(project="..", pythonpath=("../shared",))
    commit(tmp_path / "repo")
    version = deployed(tmp_path / "repo/flows/a", workflow)
    write(tmp_path, repo__shared__lib="changed")
    found = same_code_version(version, checkouts)
    root = Path(found.root)
    assert root.parts[-2:] == ("flows", "a")
    assert (root / "../../shared/lib.py").read_text() == "l"
    assert not (root / "../../other").exists()


def test_an_environment_stays_and_a_program_of_script_dir_does_not(project: Path, checkouts: str) -> None:
    (project / "scripts").mkdir()
    (project / "scripts/load.sh").write_text("#!/bin/sh\n")
    (project / ".venv").mkdir()
    (project / ".gitignore").write_text(".venv\n")
    workflow = flow(Command((Const("load.sh"), Const("1"))), Command((Const("echo"),)), CALL)
    first, second, third = workflow.tasks
    workflow = replaced(workflow, tasks=(first, second, replaced(third, environment=Environment(".venv"))))
    commit(project)
    version = deployed(project, workflow)
    (project / "scripts/load.sh").write_text("#!/bin/sh\nchanged\n")
    found = same_code_version(version, checkouts, str(project / "scripts"))
    program, echo, call = found.workflow.tasks
    assert isinstance(program.action, Command)
    assert program.action.argv == (Const(f"{found.root}/scripts/load.sh"), Const("1"))
    assert echo == second
    assert call.environment == Environment(str(project / ".venv"))


def test_code_in_images_is_the_same_by_their_digests(project: Path, checkouts: str) -> None:
    workflow = flow(CALL, Approval("go?"))
    pinned = replaced(workflow, tasks=(replaced(workflow.tasks[0], image=DIGEST), workflow.tasks[1]))
    version = deployed(project, pinned)
    write(project, tasks="changed")
    assert same_code_version(version, checkouts) is version
    tagged = replaced(workflow, tasks=(replaced(workflow.tasks[0], image="example.org/etl:latest"),))
    refused(deployed(project, tagged), checkouts, "t0.*example.org/etl:latest.*may have changed")


def refused(version: Version, checkouts: str, words: str) -> None:
    with pytest.raises(RefusedError, match=words):
        same_code_version(version, checkouts)
    assert not Path(checkouts).exists()


def test_each_refusal_says_what_is_missing(project: Path, checkouts: str) -> None:
    refused(deployed(project, flow(CALL, SubWorkflow("other"))), checkouts, "t1.*current version of workflow `other`")
    refused(deployed(project, flow(CloudRunJob("job"))), checkouts, "t0.*Cloud Run job `job`")
    refused(replaced(deployed(project), code=None), checkouts, "was not recorded")
    outside = deployed(project)
    write(project, tasks="second")
    refused(outside, checkouts, "not in a Git repository")
    here = commit(project)
    refused(outside, checkouts, f"no commit has this code: {here[:12]} differs from it in tasks.py")
    dirty = deployed(project)
    write(project, tasks="third", lib__util="X = 2")
    lost = deployed(project)
    write(project, tasks="fourth")
    refused(lost, checkouts, f"{here[:12]} differs from it in lib/util.py, tasks.py")
    assert dirty.code is not None
    missing = replaced(lost, code=replaced(dirty.code, hash="0" * 64, commit="1" * 40))
    refused(missing, checkouts, f"commit {'1' * 12} is no longer in the repository")
    shutil.rmtree(project)
    refused(lost, checkouts, "is not on this machine")


def test_a_checkout_that_somebody_changed_is_refused(project: Path, checkouts: str) -> None:
    commit(project)
    version = deployed(project)
    write(project, tasks="second")
    found = same_code_version(version, checkouts)
    write(Path(found.root), tasks="edited")
    with pytest.raises(RefusedError, match="are not those of the run"):
        same_code_version(version, checkouts)


def test_files_that_git_does_not_have_are_missed_before_anything_runs(project: Path, checkouts: str) -> None:
    write(project, generated="made by a build")
    git(project, "init", "-q")
    (project / ".git/info/exclude").write_text("generated.py\n")  # ignored, but not by a file that Ork reads
    commit(project)
    version = deployed(project)
    write(project, tasks="second")
    refused(version, checkouts, "differs from it in generated.py")
