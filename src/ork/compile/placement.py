"""Where each task runs: `where` of its worker config, or `default_where` of the project. Workflows do not say it.

A task on Cloud Run gets that executor, and the image of its worker config if it names none. This is decided when a scheduler takes
over a run, and committed with each attempt before it starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from posixpath import dirname
from typing import TYPE_CHECKING

from ork.definition.problems import quoted
from ork.definition.report import ProblemReport
from ork.definition.workers_file import DEFAULT
from ork.definition.workflow_file import ParsedWorkflow
from ork.model.cloud_run import Place, executor_name, size_problem
from ork.model.infra import Where, WorkerConfig
from ork.model.record import replaced
from ork.model.secret import SecretOrigin, named_secrets, secret_reference
from ork.model.value_reference import is_json_file
from ork.model.workflow import (
    CloudRunJob,
    Command,
    CompiledWorkflow,
    Container,
    Custom,
    PythonCall,
    Ref,
    RustProgram,
    TaskSpec,
)

if TYPE_CHECKING:
    from ork.definition.project import Project

_FUNCTION_HINT = "use a Python function, a command in an image with a worker, or a worker config with `where: docker`"
_MOVABLE = PythonCall | Command | Container | Custom | RustProgram
_IMAGE_HINT = (
    "name an `image` in the worker config, which has the project's files in its working directory; or deploy the workflow "
    "in the image of a code location (locations.yaml)"
)
_MOUNTABLE = "gs://"
_OBJECTS_HINT = (
    "set ORK_OBJECTS to gs://bucket/prefix (or `objects` in ork.yaml): it mounts only buckets of Google Cloud Storage; or run "
    "the task elsewhere, with a worker config with `where: docker`"
)
NO_PLACE = (
    "Cloud Run needs a project and a region",
    "add `gcp: {project: ID, region: europe-west1}` to ork.yaml, or `project` and `region` to the worker config",
)


class Placement:
    """The places of a project's tasks."""

    def __init__(self, project: Project) -> None:
        self._configs: Mapping[str, WorkerConfig] = project.workers or {}
        self._default = project.default_where
        self._project = project
        self.usual = project.gcp

    @property
    def is_used(self) -> bool:
        """False if every task runs where it always did: on this machine or on a container engine."""
        wheres = {self._default, *(config.where for config in self._configs.values())}
        return Where.CLOUDRUN in wheres

    def config(self, spec: TaskSpec) -> WorkerConfig | None:
        """The worker config of a task on Cloud Run; None for all other tasks."""
        if not isinstance(spec.action, _MOVABLE):
            return None
        config = self._configs.get(spec.worker or DEFAULT) or self._configs.get(DEFAULT)
        if config is not None and config.where in (Where.LOCAL, Where.DOCKER):
            is_for_it = config.where is (Where.LOCAL if spec.image is None else Where.DOCKER)
            config = None if not is_for_it and spec.worker is None else config
        where = (config.where if config is not None else None) or self._default
        if where is not Where.CLOUDRUN:
            return None
        return config or WorkerConfig(DEFAULT, Where.CLOUDRUN)

    def place(self, config: WorkerConfig) -> Place | None:
        """None if project or region is unknown."""
        project = config.project or (self.usual.project if self.usual else None)
        region = config.region or (self.usual.region if self.usual else None)
        return Place(project, region) if project and region else None

    def places(self) -> list[Place]:
        """All places that tasks may run in."""
        configs = [each for each in self._configs.values() if each.where in (None, Where.CLOUDRUN)]
        found = [self.usual, *(self.place(config) for config in configs if self.is_used)]
        return list(dict.fromkeys(place for place in found if place is not None))

    def task(self, spec: TaskSpec) -> TaskSpec:
        """The task as it is run: with its executor and image."""
        config = self.config(spec)
        if config is None:
            return spec
        executor = executor_name(self.place(config), self.usual)
        return replaced(spec, executor=executor, image=spec.image or config.image, isolation=None)

    def workflow(self, workflow: CompiledWorkflow) -> CompiledWorkflow:
        tasks = tuple(map(self.task, workflow.tasks))
        return workflow if tasks == workflow.tasks else replaced(workflow, tasks=tasks)

    def problem(self, spec: TaskSpec) -> tuple[str, str] | None:
        """Why a task that belongs on Cloud Run cannot run there, and a hint; None if it can, or belongs elsewhere."""
        if isinstance(spec.action, CloudRunJob):
            return None if self.usual else NO_PLACE
        config = self.config(spec)
        if config is None:
            return None
        if self.place(config) is None:
            return NO_PLACE
        shown = f"worker config {quoted(config.name)}"
        if isinstance(spec.action, RustProgram) or spec.environment is not None:
            what = "a program to be compiled" if isinstance(spec.action, RustProgram) else "`environment`"
            return (
                f"{what} must be part of the image on Cloud Run",
                "build it into the image, and run it with `command`",
            )
        if spec.image is None and config.image is None:
            return f"{shown} is for Cloud Run, and there is no image with the task's code", _IMAGE_HINT
        size = size_problem(config.resources.cpu, config.resources.memory)
        if size is not None:
            return f"{shown}: {size}", "see docs/cloud-run.md for the sizes it offers"
        return self._file_problem(spec)

    def _file_problem(self, spec: TaskSpec) -> tuple[str, str] | None:
        """Files of an image in which nothing of ours runs are in volumes of the object store's bucket."""
        action, objects = spec.action, self._project.objects
        if not isinstance(action, Container):
            return None
        paths = [path for path in (action.to_file, action.from_file) if path is not None]
        refs = [*action.argv, *(value for _, value in (*spec.inputs, *spec.env))]
        if any(isinstance(value, Ref) and value.as_file for value in refs):
            return "an image without a worker gets no files (`as: file`) on Cloud Run", _FUNCTION_HINT
        if action.from_file is not None and not is_json_file(action.from_file):
            return f"on Cloud Run the output {action.from_file} must be JSON", _FUNCTION_HINT
        for path in paths:
            if dirname(path) == "/":
                return f"{path} must be in a folder: a bucket cannot be mounted at /", f"write /data{path}"
        if paths and objects is not None and not objects.startswith(_MOUNTABLE):
            return f"Cloud Run cannot mount the object store {objects} for its file {paths[0]}", _OBJECTS_HINT
        return None

    def hidden(self, spec: TaskSpec, workflow: CompiledWorkflow | ParsedWorkflow) -> tuple[str, str] | None:
        """The first value of the task that would be visible on Cloud Run and must not be, with a hint."""
        if self.config(spec) is None and not isinstance(spec.action, CloudRunJob):
            return None
        for name in named_secrets(spec):
            declared = self._project.secrets.get(name)
            is_there = declared is not None and declared.origin is SecretOrigin.GCP
            if not is_there or (declared is not None and secret_reference(declared, self._gcp_project) is None):
                hint = f"keep it in Secret Manager and declare `secrets: {{{name}: {{from: gcp}}}}` in ork.yaml"
                return f"secret {quoted(name)} would be visible on Cloud Run", hint
        sensitive = {param.name for param in workflow.params if param.sensitive}
        for _, value in (*spec.inputs, *spec.env):
            if (
                isinstance(value, Ref)
                and value.path[0] == "params"
                and len(value.path) > 1
                and value.path[1] in sensitive
            ):
                hint = "use a secret in Secret Manager instead"
                return f"param {quoted(str(value.path[1]))} is sensitive, and would be visible on Cloud Run", hint
        return None

    @property
    def _gcp_project(self) -> str | None:
        return self.usual.project if self.usual else None


def check_placement(parsed: ParsedWorkflow, project: Project, report: ProblemReport) -> None:
    """Check that tasks that belong on Cloud Run can run there."""
    placement = Placement(project)
    if project.default_where is Where.KUBERNETES:
        report.add(
            "ORK606",
            "default_where: kubernetes is not supported in this version",
            next(iter(parsed.tasks.values())).key,
        )
    for task in parsed.tasks.values():
        if not task.is_complete:
            continue
        problem = placement.problem(task.spec) or placement.hidden(task.spec, parsed)
        if problem is not None:
            message, hint = problem
            report.add("ORK613", f"task {quoted(task.spec.name)}: {message}", task.node_at("worker"), hint=hint)
