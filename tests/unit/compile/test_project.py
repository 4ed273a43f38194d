"""Where a workflow is inside its project, and what its tasks import from there."""

from __future__ import annotations

import pytest

from ork.compile.content import from_document, make_version, to_document
from ork.compile.load import load_workflow
from ork.compile.project import import_paths
from ork.definition.project import Project
from ork.model.infra import IMAGE_ROOT
from ork.model.record import replaced
from ork.model.workflow import CompiledWorkflow, PythonCall
from ork.scheduler.specs import paths_in_place

TEXT = b"name: w\ntasks:\n  a: {module: m}\n"


def load(root: str, project: Project | None) -> CompiledWorkflow:
    return load_workflow(TEXT, "w.yaml", read=None, root=root, project=project).require()


@pytest.mark.parametrize(
    ("root", "folder", "pythonpath", "paths"),
    [
        ("/p/flows", "/p", ("src",), ("/p", "/p/src")),
        ("/p/flows/deep", "/p", (), ("/p",)),
        ("/p", "/p", ("src", "/lib"), ("/p/src", "/lib")),
        ("/p", "/p", (), ()),
        ("/elsewhere", "/p", ("src",), ()),
        ("/project", "/p", ("src",), ()),
    ],
)
def test_what_is_imported_from_follows_from_the_projects_folder(
    root: str, folder: str, pythonpath: tuple[str, ...], paths: tuple[str, ...]
) -> None:
    workflow = load(root, Project(folder=folder, pythonpath=pythonpath))
    assert import_paths(root, workflow.project, workflow.pythonpath) == paths
    assert from_document(to_document(workflow)) == workflow


def test_a_workflow_at_the_top_of_its_project_has_the_version_it_had_before_there_were_projects() -> None:
    assert make_version(load("/p", None), "/p").id == make_version(load("/p", Project(folder="/p")), "/p").id


def test_in_an_image_folders_are_those_of_the_image() -> None:
    workflow = load("/app/flows", Project(folder="/app", pythonpath=("src",)))
    (task,) = workflow.tasks
    pinned = replaced(task, image="box@sha256:1")
    found = make_version(replaced(workflow, tasks=(pinned,)), f"{IMAGE_ROOT}/app/flows")
    assert paths_in_place(found, pinned) == ("/app", "/app/src")
    named = make_version(workflow, "/here/flows")
    assert paths_in_place(named, replaced(task, image="box")) == ("src",)
    assert paths_in_place(named, task) == ("/here", "/here/src")


def test_a_path_that_begins_with_a_slash_is_seen_from_the_workflows_folder_if_the_project_has_it() -> None:
    files = {"../tasks/a.py": b"def main(): ...", "/opt/b.py": b"def main(): ..."}
    text = b"name: w\ntasks:\n  a: {file: /tasks/a.py}\n  b: {file: /opt/b.py}\n"
    project = Project(folder="/p")
    loaded = load_workflow(text, "w.yaml", read=files.get, root="/p/flows", project=project).require()
    assert [task.action for task in loaded.tasks] == [PythonCall("../tasks/a.py", None), PythonCall("/opt/b.py", None)]
