"""Binds workflows of an image to exactly this image: their tasks never run elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

from ork.compile.content import make_version
from ork.compile.workers import fits
from ork.definition.problems import quoted
from ork.locations.document import FoundWorkflow
from ork.locations.source import ScanError
from ork.model.infra import IMAGE_ROOT, WorkerConfig
from ork.model.record import replaced
from ork.model.workflow import Approval, CloudRunJob, RustProgram, SubWorkflow, TaskSpec, Version

_EXECUTOR = "container"


def pinned_version(found: FoundWorkflow, image: str, workers: Mapping[str, WorkerConfig]) -> Version:
    """The workflow with all its tasks in `image`, which contains their files; tasks with another image keep it. Raises
    ScanError if it names unknown worker configs, or needs something built outside of images."""
    tasks = tuple(_pinned(spec, image) for spec in found.workflow.tasks)
    for spec in tasks:
        _check_worker(spec, workers)
    source = f"{image}:{found.file}"
    return make_version(replaced(found.workflow, tasks=tasks), f"{IMAGE_ROOT}{found.root}", source)


def _pinned(spec: TaskSpec, image: str) -> TaskSpec:
    if spec.image is not None or isinstance(spec.action, SubWorkflow | Approval | CloudRunJob):
        return spec
    if spec.environment is not None or isinstance(spec.action, RustProgram):
        what = "`environment`" if spec.environment is not None else "a program to be compiled"
        raise ScanError(f"task {quoted(spec.name)}: {what} must be part of the image", code="ORK708", is_lasting=True)
    return replaced(spec, image=image, executor=_EXECUTOR, isolation=None)


def _check_worker(spec: TaskSpec, workers: Mapping[str, WorkerConfig]) -> None:
    """The worker configs of this installation are unknown inside the image, so they are checked here."""
    if spec.worker is None:
        return
    config = workers.get(spec.worker)
    if config is None or not fits(spec, config):
        known = ", ".join(sorted(workers)) or "none"
        message = (
            f"task {quoted(spec.name)}: workers.yaml has no config {quoted(spec.worker)} for it (there is: {known})"
        )
        raise ScanError(message, code="ORK606")
