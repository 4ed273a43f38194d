"""Where each task runs: `where` of its worker config, or `default_where` of the project. Workflows do not say it.

A task on a platform (Cloud Run, Kubernetes) gets that executor, and the image of its worker config if it names none. This is decided
when a scheduler takes over a run, and committed with each attempt before it starts.
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
from ork.model.kubernetes import ClusterDefaults, KubernetesPlace, cluster_executor
from ork.model.record import replaced
from ork.model.secret import SecretDeclaration, SecretOrigin, named_secrets, secret_reference
from ork.model.value_reference import FILES_IN_IMAGE, is_json_file
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
PLATFORMS = {Where.CLOUDRUN: "Cloud Run", Where.KUBERNETES: "Kubernetes"}
_MOVABLE = PythonCall | Command | Container | Custom | RustProgram
_OUTPUT_HINT = "write /output/NAME"
_IMAGE_HINT = (
    "name an `image` in the worker config, which has the project's files in its working directory; or deploy the workflow "
    "in the image of a code location (locations.yaml)"
)
_MOUNTABLE = "gs://"
_OBJECTS_HINT = (
    "set ORK_OBJECTS to gs://bucket/prefix (or `objects` in ork.yaml): it mounts only buckets of Google Cloud Storage; or run "
    "the task elsewhere, with a worker config with `where: docker`"
)
_REACHABLE_HINT = (
    "set ORK_OBJECTS (or `objects` in ork.yaml) to a bucket, such as s3://bucket/prefix, or to the server that keeps the "
    "documents, such as https://ork.example.org"
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
        self.cluster = project.kubernetes or ClusterDefaults()

    def uses(self, platform: Where) -> bool:
        """Whether a task may run on the platform."""
        return platform in {self._default, *(config.where for config in self._configs.values())}

    def config(self, spec: TaskSpec) -> WorkerConfig | None:
        """The worker config of a task on a platform; None for all other tasks."""
        if not isinstance(spec.action, _MOVABLE):
            return None
        config = self._configs.get(spec.worker or DEFAULT) or self._configs.get(DEFAULT)
        if config is not None and config.where in (Where.LOCAL, Where.DOCKER):
            is_for_it = config.where is (Where.LOCAL if spec.image is None else Where.DOCKER)
            config = None if not is_for_it and spec.worker is None else config
        where = (config.where if config is not None else None) or self._default
        if where not in PLATFORMS:
            return None
        return config or WorkerConfig(DEFAULT, where)

    def platform(self, config: WorkerConfig) -> Where | None:
        """What runs the tasks of a config."""
        return config.where or self._default

    def place(self, config: WorkerConfig) -> Place | None:
        """The place on Cloud Run; None if project or region is unknown."""
        project = config.project or (self.usual.project if self.usual else None)
        region = config.region or (self.usual.region if self.usual else None)
        return Place(project, region) if project and region else None

    def places(self) -> list[Place]:
        """All places on Cloud Run that tasks may run in."""
        configs = [each for each in self._configs.values() if each.where in (None, Where.CLOUDRUN)]
        found = [self.usual, *(self.place(config) for config in configs if self.uses(Where.CLOUDRUN))]
        return list(dict.fromkeys(place for place in found if place is not None))

    def namespace(self, config: WorkerConfig) -> KubernetesPlace:
        """The place on Kubernetes. A config that names another context does not get the project's namespace."""
        usual, pod = self.cluster.place, config.pod
        if pod.context is not None and pod.context != usual.context:
            return KubernetesPlace(pod.context, pod.namespace)
        return KubernetesPlace(usual.context, pod.namespace or usual.namespace)

    def namespaces(self) -> list[KubernetesPlace]:
        """All places on Kubernetes that tasks may run in."""
        configs = [each for each in self._configs.values() if self.platform(each) is Where.KUBERNETES]
        return list(dict.fromkeys([self.cluster.place, *map(self.namespace, configs)]))

    def task(self, spec: TaskSpec) -> TaskSpec:
        """The task as it is run: with its executor and image."""
        config = self.config(spec)
        if config is None:
            return spec
        if self.platform(config) is Where.KUBERNETES:
            executor = cluster_executor(self.namespace(config), self.cluster.place)
        else:
            executor = executor_name(self.place(config), self.usual)
        return replaced(spec, executor=executor, image=spec.image or config.image, isolation=None)

    def workflow(self, workflow: CompiledWorkflow) -> CompiledWorkflow:
        tasks = tuple(map(self.task, workflow.tasks))
        return workflow if tasks == workflow.tasks else replaced(workflow, tasks=tasks)

    # ── what cannot run there ────────────────────────────────────────────────────────────────────

    def problem(self, spec: TaskSpec) -> tuple[str, str] | None:
        """Why a task that belongs on a platform cannot run there, and a hint; None if it can, or belongs elsewhere."""
        if isinstance(spec.action, CloudRunJob):
            return None if self.usual else NO_PLACE
        config = self.config(spec)
        if config is None:
            return None
        platform = self.platform(config)
        assert platform is not None
        if platform is Where.CLOUDRUN and self.place(config) is None:
            return NO_PLACE
        shown = f"worker config {quoted(config.name)}"
        if isinstance(spec.action, RustProgram) or spec.environment is not None:
            what = "a program to be compiled" if isinstance(spec.action, RustProgram) else "`environment`"
            return (
                f"{what} must be part of the image on {PLATFORMS[platform]}",
                "build it into the image, and run it with `command`",
            )
        if spec.image is None and config.image is None:
            return f"{shown} is for {PLATFORMS[platform]}, and there is no image with the task's code", _IMAGE_HINT
        if platform is Where.KUBERNETES:
            return self._kubernetes_problem(spec)
        if (problem := _value_problem(spec)) is not None:
            return problem
        size = size_problem(config.resources.cpu, config.resources.memory)
        if size is not None:
            return f"{shown}: {size}", "see docs/cloud-run.md for the sizes it offers"
        return self._file_problem(spec)

    def _file_problem(self, spec: TaskSpec) -> tuple[str, str] | None:
        """Files of an image in which nothing of ours runs are in volumes of the object store's bucket."""
        objects = self._project.objects
        for path in (paths := _files_of(spec)):
            if dirname(path) == "/":
                return f"{path} must be in a folder: a bucket cannot be mounted at /", f"write /data{path}"
        if paths and objects is not None and not objects.startswith(_MOUNTABLE):
            return f"Cloud Run cannot mount the object store {objects} for its file {paths[0]}", _OBJECTS_HINT
        return None

    def _kubernetes_problem(self, spec: TaskSpec) -> tuple[str, str] | None:
        """Pods share nothing with this machine but the object store. An output is left in a volume, which needs a folder."""
        objects, action = self._project.objects, spec.action
        if isinstance(action, Container) and action.from_file is not None:
            path = action.from_file
            if dirname(path) == "/":
                return f"{path} must be in a folder: a volume cannot be mounted at /", f"write /data{path}"
            if dirname(path) == FILES_IN_IMAGE and _gets_files(spec, action):
                return (
                    f"{path} must be in another folder: {FILES_IN_IMAGE} has the files that the task gets",
                    _OUTPUT_HINT,
                )
        if objects is not None and "://" not in objects:
            return (
                f"pods on Kubernetes cannot reach the object store {objects}, a folder of this machine",
                _REACHABLE_HINT,
            )
        return None

    def hidden(self, spec: TaskSpec, workflow: CompiledWorkflow | ParsedWorkflow) -> tuple[str, str] | None:
        """The first value of the task that would be visible on its platform and must not be, with a hint."""
        config = self.config(spec)
        if config is None and not isinstance(spec.action, CloudRunJob):
            return None
        platform = Where.CLOUDRUN if config is None else self.platform(config)
        assert platform is not None
        for name in named_secrets(spec):
            if not self._is_referable(self._project.secrets.get(name), platform):
                kept, origin = _KEPT[platform]
                hint = f"keep it in {kept} and declare `secrets: {{{name}: {{from: {origin}}}}}` in ork.yaml"
                return f"secret {quoted(name)} would be visible on {PLATFORMS[platform]}", hint
        sensitive = {param.name for param in workflow.params if param.sensitive}
        for _, value in (*spec.inputs, *spec.env):
            if (
                isinstance(value, Ref)
                and value.path[0] == "params"
                and len(value.path) > 1
                and value.path[1] in sensitive
            ):
                hint = f"use a secret in {_KEPT[platform][0]} instead"
                shown = f"param {quoted(str(value.path[1]))} is sensitive"
                return f"{shown}, and would be visible on {PLATFORMS[platform]}", hint
        return None

    def _is_referable(self, declared: SecretDeclaration | None, platform: Where) -> bool:
        """Whether the platform itself can give the secret to a task."""
        if declared is None or declared.origin is not _KEPT[platform][1]:
            return False
        project = self.usual.project if self.usual else None
        return platform is Where.KUBERNETES or secret_reference(declared, project) is not None


def _value_problem(spec: TaskSpec) -> tuple[str, str] | None:
    """On Cloud Run nothing of ours runs beside a plain image, so nothing there can read or store values that are not JSON."""
    action = spec.action
    if not isinstance(action, Container):
        return None
    if _gets_files(spec, action):
        return "an image without a worker gets no files (`as: file`) on Cloud Run", _FUNCTION_HINT
    if action.from_file is not None and not is_json_file(action.from_file):
        return f"on Cloud Run the output {action.from_file} must be JSON", _FUNCTION_HINT
    return None


def _gets_files(spec: TaskSpec, action: Container) -> bool:
    values = [*action.argv, *(value for _, value in (*spec.inputs, *spec.env))]
    return any(isinstance(value, Ref) and value.as_file for value in values)


_KEPT = {
    Where.CLOUDRUN: ("Secret Manager", SecretOrigin.GCP),
    Where.KUBERNETES: ("a Secret", SecretOrigin.KUBERNETES),
}


def _files_of(spec: TaskSpec) -> list[str]:
    """The input and output file of an image in which nothing of ours runs."""
    action = spec.action
    if not isinstance(action, Container):
        return []
    return [path for path in (action.to_file, action.from_file) if path is not None]


def check_placement(parsed: ParsedWorkflow, project: Project, report: ProblemReport) -> None:
    """Check that tasks that belong on a platform can run there."""
    placement = Placement(project)
    for task in parsed.tasks.values():
        if not task.is_complete:
            continue
        problem = placement.problem(task.spec) or placement.hidden(task.spec, parsed)
        if problem is not None:
            message, hint = problem
            report.add("ORK613", f"task {quoted(task.spec.name)}: {message}", task.node_at("worker"), hint=hint)
