"""Workflows of an image run in that very image, and nowhere else."""

from __future__ import annotations

import pytest

from ork.compile.load import load_workflow
from ork.definition.workers_file import load_workers
from ork.locations.document import FoundWorkflow
from ork.locations.pinning import pinned_version
from ork.locations.source import ScanError
from ork.model.workflow import TaskSpec, Version

IMAGE = "registry/etl@sha256:1"
WORKERS, _ = load_workers(b"heavy: {where: docker, cpu: 4}\nhere: {where: local, timeout: 60}\n")


def pinned(tasks: str, image: str = IMAGE) -> Version:
    loaded = load_workflow(f"name: flow\ntasks:\n{tasks}".encode(), "flow.yaml", read=None)
    assert loaded.draft is not None
    return pinned_version(FoundWorkflow(loaded.draft.workflow, "/app/sub/flow.yaml", "/app/sub"), image, WORKERS)


def only(version: Version) -> TaskSpec:
    (spec,) = version.workflow.tasks
    return spec


@pytest.mark.parametrize(
    "task", ["{file: a.py}", "{module: a.b}", "{command: ./run.sh}", "{file: a.py, isolation: fork}"]
)
def test_all_tasks_run_in_the_image(task: str) -> None:
    spec = only(pinned(f"  a: {task}\n"))
    assert (spec.image, spec.executor, spec.isolation) == (IMAGE, "container", None)


def test_its_files_are_where_they_were_found() -> None:
    version = pinned("  a: {file: a.py}\n")
    assert (version.root, version.source) == ("image:/app/sub", f"{IMAGE}:/app/sub/flow.yaml")


def test_a_task_that_names_another_image_keeps_it() -> None:
    assert only(pinned("  a: {image: 'busybox:1', command: [ls]}\n")).image == "busybox:1"


def test_what_needs_no_process_needs_no_image() -> None:
    approval, workflow = pinned("  a: {approval: Yes}\n  b: {workflow: other}\n").workflow.tasks
    assert (approval.image, approval.executor) == (None, "approval")
    assert (workflow.image, workflow.executor) == (None, "workflow")


def test_another_image_makes_another_version() -> None:
    assert pinned("  a: {file: a.py}\n").id != pinned("  a: {file: a.py}\n", "registry/etl@sha256:2").id


@pytest.mark.parametrize(
    "task", ["{file: a.py, environment: {requirements: [requests]}}", "{file: a.rs, executor: rust}"]
)
def test_what_is_built_outside_of_images_is_refused_for_as_long_as_the_image_is_the_same(task: str) -> None:
    with pytest.raises(ScanError, match="must be part of the image") as refused:
        pinned(f"  a: {task}\n")
    assert refused.value.is_lasting


def test_a_worker_config_of_the_installation_may_be_named() -> None:
    assert only(pinned("  a: {file: a.py, worker: heavy}\n")).worker == "heavy"


@pytest.mark.parametrize("worker", ["hevy", "here"])
def test_one_that_is_not_there_or_not_for_images_is_refused(worker: str) -> None:
    with pytest.raises(ScanError, match=f"workers.yaml has no config `{worker}`") as refused:
        pinned(f"  a: {{file: a.py, worker: {worker}}}\n")
    assert (refused.value.code, refused.value.is_lasting) == ("ORK606", False)
