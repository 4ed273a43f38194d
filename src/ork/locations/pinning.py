"""Workflows of an image, bound to that very image: nothing of them ever runs anywhere else."""

from __future__ import annotations

from collections.abc import Mapping

from ork.compile.content import make_version
from ork.compile.workers import fits
from ork.definition.problems import quoted
from ork.locations.document import Found
from ork.locations.place import LookError
from ork.model.infra import IMAGE_ROOT, WorkerConfig
from ork.model.record import replaced
from ork.model.workflow import Approval, RustProgram, SubWorkflow, TaskSpec, Version

_EXECUTOR = "container"


def pinned_version(found: Found, image: str, workers: Mapping[str, WorkerConfig]) -> Version:
    """The same workflow with every task of its own in `image`, whose files are there; tasks that name another image keep
    it. LookError if it names worker configs that are not there, or asks for what is built outside of images."""
    tasks = tuple(_pinned(spec, image) for spec in found.workflow.tasks)
    for spec in tasks:
        _check_worker(spec, workers)
    source = f"{image}:{found.file}"
    return make_version(replaced(found.workflow, tasks=tasks), f"{IMAGE_ROOT}{found.root}", source)


def _pinned(spec: TaskSpec, image: str) -> TaskSpec:
    if spec.image is not None or isinstance(spec.action, SubWorkflow | Approval):
        return spec
    if spec.environment is not None or isinstance(spec.action, RustProgram):
        what = "`environment`" if spec.environment is not None else "a program to be compiled"
        raise LookError(
            f"task {quoted(spec.name)}: {what} belongs into the image itself", code="ORK708", is_lasting=True
        )
    return replaced(spec, image=image, executor=_EXECUTOR, isolation=None)


def _check_worker(spec: TaskSpec, workers: Mapping[str, WorkerConfig]) -> None:
    """Where the image was looked into nobody knew which there are here."""
    if spec.worker is None:
        return
    config = workers.get(spec.worker)
    if config is None or not fits(spec, config):
        known = ", ".join(sorted(workers)) or "none"
        message = (
            f"task {quoted(spec.name)}: workers.yaml has no config {quoted(spec.worker)} for it (there is: {known})"
        )
        raise LookError(message, code="ORK606")
