"""What the specs of attempts say: makes the signed document of each attempt.

Large values that many specs refer to are stored once, before the specs. A wide run creates thousands of similar specs:
`SpecTemplate` serialises their common parts once. Container settings come only from the worker config.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable
from json.encoder import encode_basestring_ascii as quoted
from typing import Any, NamedTuple, TypeAlias, assert_never

from ork.compile.declared import declared_types
from ork.compile.project import import_paths
from ork.core.bind import BindError, Bound, Scope
from ork.core.machine import RunMachine
from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.infra import IMAGE_ROOT, PLAIN_DOCKER, WorkerConfig, resources_of
from ork.model.record import Record
from ork.model.run import Run
from ork.model.secret import PARAM_PREFIX, sealed_names
from ork.model.task import Attempt
from ork.model.trees import Tree, bind_tree
from ork.model.workflow import (
    Approval,
    CloudRunJob,
    Command,
    Const,
    Container,
    Custom,
    Environment,
    PythonCall,
    RustProgram,
    SubWorkflow,
    TaskSpec,
    Value,
    Version,
)
from ork.objects import documents
from ork.objects.documents import joined
from ork.objects.references import shared_reference
from ork.scheduler.options import SchedulerOptions
from ork.scheduler.spec_secrets import SECRET_PREFIX

MAX_KINDS = 100
OWN = frozenset({"v", "attempt", "task", "number", "traceparent"})  # entries that differ for each attempt
SHARED_BY_INSTANCES = 2048  # bytes; larger upstream outputs are stored once for all instances
MAX_SHARED = 1000

# A task output that many specs refer to: run, task, round.
SharedValue: TypeAlias = tuple[RunId, str, int]


class LaunchJob(Record):
    """An attempt to launch and the run it belongs to. `is_new`: it was committed just now, so nobody has launched it."""

    attempt: Attempt
    machine: RunMachine
    version: Version
    is_new: bool = False


class SpecTarget(NamedTuple):
    """What specs for an executor need."""

    needs_specs: bool
    status_address: str | None  # the socket to which the worker reports
    fence_seconds: float | None = None
    refers_to_secrets: bool = False


class SpecWriter:
    """Makes the specs of attempts."""

    def __init__(self, options: SchedulerOptions) -> None:
        self._options = options
        self._template = SpecTemplate(options)
        self._shared: dict[SharedValue, None] = {}  # stored, or about to be stored
        self.unwritten: dict[SharedValue, bytes] = {}
        self._shares: list[SharedValue] = []  # unwritten values that the current spec refers to

    def sealed_params(self, run: Run) -> list[str]:
        """Names of the run's sensitive params, whose values are in no spec."""
        return self._template.sealed_params(run)

    def signed(self, job: LaunchJob, spec: TaskSpec, target: SpecTarget) -> tuple[bytes, tuple[SharedValue, ...]]:
        """The spec of an attempt, and those `unwritten` values that it refers to: they must be stored before it."""
        self._shares.clear()
        return self._signed(job, spec, target), tuple(self._shares)

    def drop_unwritten(self) -> None:
        """Forget values that were not stored. The next spec that needs one makes it again."""
        for share in self.unwritten:
            self._shared.pop(share, None)
        self.unwritten.clear()

    def _signed(self, job: LaunchJob, spec: TaskSpec, target: SpecTarget) -> bytes:
        key, call, run, config = job.attempt.key, spec.action, job.machine.run, self._options.worker_for(spec)
        seal = job.attempt.token_hash
        if not isinstance(call, PythonCall) or not has_shared_text(key.task, spec, config):
            return documents.sign(self._document(job, spec, target, config), seal, self._template.for_run(run))
        workflow = job.version.workflow
        folders = job.version.root, workflow.project, workflow.pythonpath, workflow.codecs
        kind = call.file, call.module, call.function, spec.timeout, folders, target.status_address
        common = self._template.for_kind(run, kind, lambda: self._document(job, spec, target, config))
        return documents.seal(joined(self._own_entries_text(key), common), seal)

    def _own_entries(self, key: AttemptKey) -> dict[str, Any]:
        """Entries that differ for each attempt."""
        trace = self._trace(key)
        return {"v": 1, "attempt": str(key), "task": key.task.name, "number": key.number, "traceparent": trace}

    def _own_entries_text(self, key: AttemptKey) -> bytes:
        """`_own_entries` as JSON text, built without a dict because there may be thousands."""
        trace = self._trace(key)
        return (
            f'"v":1,"attempt":{quoted(str(key))},"task":{quoted(key.task.name)},"number":{key.number},'
            f'"traceparent":{"null" if trace is None else quoted(trace)}'
        ).encode()

    def _trace(self, key: AttemptKey) -> str | None:
        return None if self._options.traceparent is None else self._options.traceparent(key)

    def _document(
        self, job: LaunchJob, spec: TaskSpec, target: SpecTarget, config: WorkerConfig | None
    ) -> dict[str, Any]:
        """All entries of the spec but those that the whole run has in common."""
        machine, key = job.machine, job.attempt.key
        scope, position = machine.scope(key.task), machine.position(key.task)
        return self._own_entries(key) | {
            "index": key.task.index,
            "parallel_index": position.index,
            "parallel_count": position.count,
            "item": scope.item(),
            **_action_document(spec, scope),
            "root": root_in_place(job.version.root, spec),
            "paths": paths_in_place(job.version, spec),
            "container": self._container(job, spec, config),
            **({"codecs": dict(job.version.workflow.codecs)} if job.version.workflow.codecs else {}),
            "limits": local_limits(spec, config),
            "environment": _environment(spec),
            "inputs": {name: _without_value(scope.bind(value)) for name, value in spec.inputs} or None,
            "upstream": {name: self._share(job, name, scope.upstream(name)) for name in spec.depends_on},
            "upstream_states": {name: str(machine.tasks[TaskKey(name)].status) for name in spec.depends_on},
            "env": _variables(spec, scope, config),
            "timeout": spec.timeout if config is None else least(spec.timeout, config.timeout),
            **(declared_types(spec, job.version.workflow) if spec.input_types or spec.output_type else {}),
            "news": target.status_address,
            "fence_seconds": target.fence_seconds or self._options.fence_seconds,
        }

    def _container(self, job: LaunchJob, spec: TaskSpec, config: WorkerConfig | None) -> dict[str, Any] | None:
        made, platform = container_document(spec, config), self._options.platform
        there = None if platform is None else platform(spec, job.version)
        return made if there is None else {**(made or {}), **there}

    def _share(self, job: LaunchJob, name: str, bound: Bound) -> Bound:
        """Replace a large value by a reference to an object that is written once for all specs.

        Otherwise a fan-out over the outputs of a fan-out would write all of them into each spec.
        """
        if "value" not in bound:
            return bound
        limit = SHARED_BY_INSTANCES if job.attempt.key.task.index is not None else self._options.inline_limit
        share = (job.attempt.run, name, job.machine.run.round)
        if share not in self._shared:
            text = json.dumps(bound["value"])
            if len(text) <= limit:
                return bound
            self._shared[share] = None
            self.unwritten[share] = text.encode()
            while len(self._shared) > MAX_SHARED:
                del self._shared[next(iter(self._shared))]
        if share in self.unwritten:
            self._shares.append(share)
        return {"object": shared_reference(*share), "path": []}


def _action_document(spec: TaskSpec, scope: Scope) -> dict[str, Any]:
    match spec.action:
        case PythonCall(file, module, function):
            return {"kind": "python", "file": file, "module": module, "function": function}
        case Command(argv, from_file):
            words = [_argument(value, scope) for value in argv]
            return {"kind": "command", "argv": words, **({} if from_file is None else {"from_file": from_file})}
        case RustProgram(path, args):
            return {"kind": "rust", "path": path, "argv": [_argument(value, scope) for value in args]}
        case Container(argv, to_file, from_file):
            arguments = [_argument(value, scope) for value in argv]
            return {"kind": "container", "argv": arguments, "to_file": to_file, "from_file": from_file}
        case CloudRunJob(name, args):
            words = [_argument(value, scope, has_files=False) for value in args]
            return {"kind": "cloud_run_job", "job": name, "argv": words}
        case Custom(target, config, task):
            kind = {"kind": "custom", "executor": spec.executor, "target": target}
            return {**kind, "config": _config(config, scope), "task_config": _config(task, scope)}
        case SubWorkflow(name):
            return {"kind": "workflow", "child": name}
        case Approval():
            raise BindError("an approval is decided by a person, not launched")
        case _:
            assert_never(spec.action)


def _variables(spec: TaskSpec, scope: Scope, config: WorkerConfig | None) -> dict[str, Bound]:
    """Variables of the worker config, overridden by the task's own."""
    given: dict[str, Bound] = {name: {"value": value} for name, value in (config.env if config else ())}
    return given | {name: _without_value(scope.bind(value)) for name, value in spec.env}


def _config(tree: Tree | None, scope: Scope) -> Bound:
    return bind_tree(tree, lambda value: _without_value(scope.bind(value)))


def _environment(spec: TaskSpec) -> dict[str, Any] | None:
    match spec.environment:
        case None:
            return None
        case Environment(path=str(path)):
            return {"path": path}
        case Environment(requirements_file=str(file)):
            return {"requirements_file": file}
        case Environment(script=True):
            return {"script": True}
        case environment:
            return {"requirements": list(environment.requirements)}


def _argument(value: Value, scope: Scope, *, has_files: bool = True) -> Any:
    """A word of a command line; a binding where the worker has to make a file of it."""
    bound = scope.bind(value)
    match bound:
        case {"as_file": _}:
            if not has_files:
                raise BindError(f"`{value}`: a job that exists gets no files, pass a value")
            return bound
        case {"value": str(text)}:
            return text
        case {"value": _, "has_values": True}:
            raise BindError(f"`{value}` is not JSON and cannot be an argument: write `{{ref: {value}, as: file}}`")
        case {"value": other}:
            return json.dumps(other)
        case {"missing": _}:
            return ""
        case {"secret": variable, "json": True}:
            name = variable.removeprefix(PARAM_PREFIX)
            raise BindError(f"param `{name}` is sensitive, and every process could see an argument: use `env`")
        case {"secret": name}:
            raise BindError(f"secret `{name}` cannot be an argument, where every process could see it: use `env`")
        case _:
            raise BindError(f"`{value}` is too large for a command line: read it from $ORK_INPUT_FILE")


def _without_value(bound: dict[str, Any]) -> dict[str, Any]:
    """Replace a secret by the name of the environment variable that will hold it."""
    return {"secret": SECRET_PREFIX + bound["secret"]} if "secret" in bound and "json" not in bound else bound


def has_shared_text(key: TaskKey, spec: TaskSpec, config: WorkerConfig | None) -> bool:
    """True if the spec differs only in its own entries from the specs of other tasks that call the same function."""
    return (
        key.index is None
        and config is None
        and spec.environment is None
        and spec.image is None
        and spec.resources is None
        and spec.output_type is None
        and not (spec.inputs or spec.env or spec.depends_on or spec.input_types)
    )


class SpecTemplate:
    """Serialised entries for `documents.sign`, cached per run and per kind of task."""

    def __init__(self, options: SchedulerOptions) -> None:
        self._options_document = _options_document(options)
        self._last_run: tuple[Run, list[str], bytes] | None = None
        self._kinds: dict[Hashable, bytes] = {}
        self._of_last_run: dict[Hashable, bytes] = {}  # entries of the kind and of the run together

    def for_run(self, run: Run) -> bytes:
        """Entries that the specs of all attempts of the run have in common."""
        return self._of_run(run)[2]

    def sealed_params(self, run: Run) -> list[str]:
        """Names of the run's sensitive params. `for_run` leaves their values out."""
        return self._of_run(run)[1]

    def _of_run(self, run: Run) -> tuple[Run, list[str], bytes]:
        if self._last_run is None or self._last_run[0] is not run:
            sealed = sealed_names(run.params)
            self._last_run = run, sealed, documents.entries(_run_document(run, sealed) | self._options_document)
            self._of_last_run.clear()
        return self._last_run

    def for_kind(self, run: Run, kind: Hashable, document: Callable[[], dict[str, Any]]) -> bytes:
        """Entries that all tasks of this kind and run have in common, taken from the document of one of them."""
        of_run = self.for_run(run)
        text = self._of_last_run.get(kind)
        if text is None:
            text = self._of_last_run[kind] = b"%b,%b" % (self._of_kind(kind, document), of_run)
        return text

    def _of_kind(self, kind: Hashable, document: Callable[[], dict[str, Any]]) -> bytes:
        text = self._kinds.get(kind)
        if text is None:
            if len(self._kinds) >= MAX_KINDS:
                self._kinds.clear()
                self._of_last_run.clear()
            text = documents.entries({name: value for name, value in document().items() if name not in OWN})
            self._kinds[kind] = text
        return text


def _run_document(run: Run, sealed: list[str]) -> dict[str, Any]:
    return {
        "run_id": run.id,
        "workflow": run.workflow,
        "round": run.round,
        "scheduled_for": run.scheduled_for.isoformat() if run.scheduled_for else None,
        "params": {name: value for name, value in run.params.items() if name not in sealed} if sealed else run.params,
        **({"sealed_params": sealed} if sealed else {}),
    }


def _options_document(options: SchedulerOptions) -> dict[str, Any]:
    return {
        "script_dir": options.script_dir,
        "builds": options.builds_dir,
        "task_user": options.task_user,
        "heartbeat_seconds": options.heartbeat_seconds,
        "stop_grace_seconds": options.stop_grace_seconds,
        "inline_limit": options.inline_limit,
        "output_limit": options.output_limit,
        "durability": options.durability,
        "wake_url": options.wake_url,
    }


DEFAULT_PIDS = 4096  # enough for a database or a build, too few for a fork bomb


def container_document(spec: TaskSpec, config: WorkerConfig | None) -> dict[str, Any] | None:
    """Container settings, or None for a task without an image. A task may request less than the config allows, not more."""
    if spec.image is None:
        return None
    config = config or PLAIN_DOCKER
    size = resources_of(spec.resources, config)
    return {
        "image": spec.image,
        "worker": config.name,
        "host": config.host,
        "certificates": config.certificates,
        "network": config.network,
        "user": config.user,
        "read_only": config.read_only,
        "pull": str(config.pull),
        "cpu": size.cpu,
        "memory": size.memory,
        "pids": config.pids or DEFAULT_PIDS,
        "capabilities": list(config.capabilities),
        "new_privileges": config.new_privileges,
        "volumes": [str(mount) for mount in config.volumes],
    }


def local_limits(spec: TaskSpec, config: WorkerConfig | None) -> dict[str, Any] | None:
    """CPU and memory limits of a task without an image; None if it has none."""
    if spec.image is not None:
        return None
    size = resources_of(spec.resources, config)
    if size.cpu is None and size.memory is None:
        return None
    return {"cpu": size.cpu, "memory": size.memory, "worker": config.name if config is not None else None}


def root_in_place(root: str, spec: TaskSpec) -> str:
    """The project folder as the task's process sees it. In an image without a known folder: its working directory."""
    if spec.image is None:
        return root
    return root.removeprefix(IMAGE_ROOT) if root.startswith(IMAGE_ROOT) else "."


def paths_in_place(version: Version, spec: TaskSpec) -> tuple[str, ...]:
    """The import folders as the task's process sees them. If the workflow's files do not come from the task's image, the
    image's working directory counts as the project folder."""
    root, workflow = root_in_place(version.root, spec), version.workflow
    is_other_image = spec.image is not None and root == "."
    return import_paths(root, None if is_other_image else workflow.project, workflow.pythonpath)


def least(*amounts: float | None) -> float | None:
    return min((amount for amount in amounts if amount is not None), default=None)


def kept_program(spec: TaskSpec, root: str) -> str:
    """A name for the dbt that a worker keeps for the tasks of one project; empty for other tasks. See `LaunchOrder.keeps`."""
    if not isinstance(spec.action, Command) or spec.action.argv[:1] != (Const("dbt"),):
        return ""
    words = [word.value if isinstance(word, Const) else "" for word in spec.action.argv]
    at = words.index("--project-dir") + 1 if "--project-dir" in words else len(words)
    return " ".join(["dbt", root, *words[at : at + 1]])


def constant_env(spec: TaskSpec, config: WorkerConfig | None) -> tuple[tuple[str, str], ...] | None:
    """The task's own variables, sorted, or None if its modules must not be preloaded (see `LaunchOrder.env`)."""
    if spec.environment is not None:
        return None
    if config is None and not spec.env and spec.resources is None:
        return ()
    if local_limits(spec, config) is not None:
        return None
    values = {name: Const(value) for name, value in (config.env if config else ())} | dict(spec.env)
    found = {name: value.value for name, value in values.items() if isinstance(value, Const)}
    is_constant = len(found) == len(values) and all(isinstance(value, str) for value in found.values())
    # The interpreter itself reads variables like PYTHONPATH when it starts.
    if not is_constant or any(name.startswith("PYTHON") for name in values):
        return None
    return tuple(sorted(found.items()))
