"""Launches admitted attempts: writes their signed specs to the object store and gives them to their executors."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from json.encoder import encode_basestring_ascii as quoted
from typing import Any, NamedTuple, TypeAlias, assert_never

from ork.compile.declared import declared_types
from ork.core.bind import BindError, Bound, Scope
from ork.core.machine import RunMachine
from ork.errors import DefinitionError, ExecutorError, ObjectsError, SecretError, SecretNotYetError
from ork.executors.executor import Executor, LaunchOrder, NotStarted, StatusCallback
from ork.model.ids import AttemptKey, RunId, TaskKey
from ork.model.infra import WorkerConfig
from ork.model.record import Record
from ork.model.run import Run
from ork.model.sealed import PARAM_PREFIX
from ork.model.secret import named_secrets
from ork.model.task import Attempt, Failure, FailureKind
from ork.model.trees import Tree, bind_tree
from ork.model.workflow import (
    Approval,
    Command,
    Container,
    Custom,
    Environment,
    Isolation,
    PythonCall,
    RustProgram,
    SubWorkflow,
    TaskSpec,
    Value,
    Version,
)
from ork.objects import documents
from ork.objects.attempt_documents import AttemptDocuments
from ork.objects.calls import Calls
from ork.objects.references import shared_reference
from ork.objects.specs import joined
from ork.scheduler import reading
from ork.scheduler.containers import container_document, least, local_limits, paths_in_place, root_in_place
from ork.scheduler.options import SchedulerOptions
from ork.scheduler.sensitive import opened_params
from ork.scheduler.spec_secrets import SECRET_PREFIX
from ork.scheduler.spec_template import SpecTemplate, has_shared_text

SHARED_BY_INSTANCES = 2048  # bytes; larger upstream outputs are stored once for all instances
MAX_SHARED = 1000
MANY_LAUNCHES = 300


class Job(Record):
    """An attempt to launch and the run it belongs to. `is_new`: it was committed just now, so nobody has launched it."""

    attempt: Attempt
    machine: RunMachine
    version: Version
    is_new: bool = False


class Refused(Record):
    """An attempt that was not started. `final`: a retry cannot help."""

    attempt: AttemptKey
    failure: Failure
    final: bool


# A task output that many specs refer to: run, task, round.
_Shared: TypeAlias = tuple[RunId, str, int]


class _Prepared(NamedTuple):
    job: Job
    spec: TaskSpec
    name: str  # the attempt's
    document: bytes  # empty if the executor needs no specs
    secrets: tuple[tuple[str, str], ...]
    shares: tuple[_Shared, ...]  # must be written before the document


class _Target(NamedTuple):
    """What specs for an executor need."""

    needs_specs: bool
    status_address: str | None  # the socket to which the worker reports


class Launcher:
    def __init__(
        self,
        objects: AttemptDocuments,
        executors: Mapping[str, Executor],
        options: SchedulerOptions,
        on_status: StatusCallback,
    ) -> None:
        self._objects = objects
        self._calls = Calls(objects)
        self._executors = executors
        self._options = options
        self._on_status = on_status
        self.use_key(b"")
        self._shared: dict[_Shared, None] = {}  # stored, or about to be stored
        self._unwritten: dict[_Shared, bytes] = {}
        self._shares: list[_Shared] = []  # unwritten values that the current spec refers to
        self._launches = 0
        self._expects_many = False
        self._targets: dict[str, _Target] = {}
        self._template = SpecTemplate(options)

    def use_key(self, signing_key: bytes) -> None:
        self._key = signing_key
        # Cached because it is needed twice: for the commit and for the launch.
        self._token = lru_cache(maxsize=1024)(documents.token_maker(signing_key))

    def name(self, key: AttemptKey, spec: TaskSpec) -> tuple[str, str]:
        """The attempt's external name and token hash. Both are committed before anything is started."""
        executor = self._executors.get(spec.executor)
        token = self._token(str(key))
        return executor.name_for(key) if executor else f"none:{key}", documents.token_hash(token)

    async def launch(self, jobs: Sequence[Job]) -> list[Refused]:
        """Start the attempts and return those that could not be started. Can be repeated."""
        self._targets.clear()
        await self._options.secrets_ready(_secrets_wanted(jobs))
        refused: list[Refused] = []
        prepared: list[_Prepared] = []
        for job in jobs:
            key = job.attempt.key
            try:
                prepared.append(self._prepare(job))
            except ObjectsError as problem:
                refused.append(Refused(key, Failure(FailureKind.START, problem.message), final=False))
            except DefinitionError as problem:
                refused.append(Refused(key, Failure(FailureKind.START, problem.message), final=True))
            except SecretNotYetError as problem:
                refused.append(Refused(key, Failure(FailureKind.START, problem.message), final=False))
            except SecretError as problem:
                advice = f": {problem.hint}" if problem.hint else ""
                refused.append(Refused(key, Failure(FailureKind.INPUT, problem.message + advice), final=True))
            except BindError as problem:
                refused.append(Refused(key, Failure(FailureKind.INPUT, problem.message), final=True))
            except Exception as problem:  # one task that cannot be prepared must not affect the others
                refused.append(Refused(key, Failure(FailureKind.INTERNAL, repr(problem)), final=True))
        orders: dict[str, list[LaunchOrder]] = {}
        for order in await self._written(prepared, refused):
            orders.setdefault(order.attempt.executor, []).append(order)
        for name, group in orders.items():
            for failed in await self._start(name, group):
                refused.append(Refused(failed.attempt, Failure(FailureKind.START, failed.why), failed.final))
        for share in self._unwritten:  # not written: the next launch tries again
            self._shared.pop(share, None)
        self._unwritten.clear()
        self._launches += len(jobs)
        if not self._expects_many:
            self._may_expect_many(prepared)
        return refused

    def _may_expect_many(self, launched: Sequence[_Prepared]) -> None:
        """Load what speeds up many launches: after many of them, or when tasks share a process, since those usually are
        many. Loading overlaps with the start of their worker."""
        if self._launches >= MANY_LAUNCHES or any(each.spec.isolation is Isolation.SHARED for each in launched):
            self._expects_many = True
            documents.expect_many()
            reading.expect_many()

    async def _start(self, name: str, orders: Sequence[LaunchOrder]) -> Sequence[NotStarted]:
        executor = self._executors.get(name)
        if executor is None:
            return [NotStarted(o.attempt.key, f"this scheduler has no executor `{name}`", final=False) for o in orders]
        try:
            return await executor.start(orders, self._on_status)
        except ExecutorError as problem:  # some may have started: the gate prevents a second start
            return [NotStarted(order.attempt.key, problem.message, final=False) for order in orders]

    def _prepare(self, job: Job) -> _Prepared:
        spec = job.machine.spec(job.attempt.key.task)
        run = job.machine.run
        self._shares.clear()
        document = self._signed(job, spec, run) if self._target(job.attempt.executor).needs_specs else b""
        secrets = self._secrets(spec, run.workflow)
        if run.params and (sealed := self._template.sealed_params(run)):
            secrets += opened_params(sealed, spec, run, self._key)
        return _Prepared(job, spec, str(job.attempt.key), document, secrets, tuple(self._shares))

    def _target(self, executor: str) -> _Target:
        """Looked up once per launch and executor."""
        target = self._targets.get(executor)
        if target is None:
            found = self._executors.get(executor)
            target = _Target(True, None) if found is None else _Target(found.traits.needs_specs, found.status_address)
            self._targets[executor] = target
        return target

    async def _written(self, prepared: Sequence[_Prepared], refused: list[Refused]) -> list[LaunchOrder]:
        """Orders whose specs are stored. A spec that cannot be stored does not affect the others."""
        try:
            return await self._orders(prepared)
        except ObjectsError as problem:
            if len(prepared) > 1:
                return [order for each in prepared for order in await self._written([each], refused)]
            failure = Failure(FailureKind.START, problem.message)
            refused += [Refused(each.job.attempt.key, failure, final=False) for each in prepared]
            return []

    async def _orders(self, prepared: Sequence[_Prepared]) -> list[LaunchOrder]:
        await self._write_shared({share for each in prepared for share in each.shares if share in self._unwritten})
        specs = [(each.name, each.document) for each in prepared if each.document]
        found = await self._calls.call(self._objects.put_specs, specs) if specs else ()
        positions = dict(zip((name for name, _ in specs), found, strict=True))
        orders = []
        for job, spec, name, document, secrets, _ in prepared:
            attempt, root = job.attempt, job.version.root
            token, position = self._token(name), positions.get(name, 0)
            interpreter, paths = self._options.interpreter_for(root), paths_in_place(job.version, spec)
            orders.append(
                LaunchOrder(
                    attempt, token, root, secrets, interpreter, spec.isolation, document, position, paths, job.is_new
                )
            )
        return orders

    def _signed(self, job: Job, spec: TaskSpec, run: Run) -> bytes:
        key, call, config = job.attempt.key, spec.action, self._options.worker_for(spec)
        seal = job.attempt.token_hash
        if not isinstance(call, PythonCall) or not has_shared_text(key.task, spec, config):
            return documents.sign(self._document(job, spec, config), seal, self._template.for_run(run))
        folders = job.version.root, job.version.workflow.project, job.version.workflow.pythonpath
        kind = call.file, call.module, call.function, spec.timeout, folders, self._target(spec.executor).status_address
        common = self._template.for_kind(run, kind, lambda: self._document(job, spec, config))
        return documents.seal(joined(self._own_entries_text(key), common), seal)

    def _own_entries(self, key: AttemptKey) -> dict[str, Any]:
        """Entries that differ for each attempt."""
        trace = self._options.traceparent(key)
        return {"v": 1, "attempt": str(key), "task": key.task.name, "number": key.number, "traceparent": trace}

    def _own_entries_text(self, key: AttemptKey) -> bytes:
        """`_own_entries` as JSON text, built without a dict because there may be thousands."""
        trace = self._options.traceparent(key)
        return (
            f'"v":1,"attempt":{quoted(str(key))},"task":{quoted(key.task.name)},"number":{key.number},'
            f'"traceparent":{"null" if trace is None else quoted(trace)}'
        ).encode()

    def _document(self, job: Job, spec: TaskSpec, config: WorkerConfig | None) -> dict[str, Any]:
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
            "container": container_document(spec, config),
            "limits": local_limits(spec, config),
            "environment": _environment(spec),
            "inputs": {name: _without_value(scope.bind(value)) for name, value in spec.inputs} or None,
            "upstream": {name: self._share(job, name, scope.upstream(name)) for name in spec.depends_on},
            "upstream_states": {name: str(machine.tasks[TaskKey(name)].status) for name in spec.depends_on},
            "env": _variables(spec, scope, config),
            "timeout": spec.timeout if config is None else least(spec.timeout, config.timeout),
            **declared_types(spec, job.version.workflow),
            "news": self._target(spec.executor).status_address,
        }

    def _share(self, job: Job, name: str, bound: Bound) -> Bound:
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
            self._unwritten[share] = text.encode()
            while len(self._shared) > MAX_SHARED:
                del self._shared[next(iter(self._shared))]
        if share in self._unwritten:
            self._shares.append(share)
        return {"object": shared_reference(*share), "path": []}

    async def _write_shared(self, shares: Collection[_Shared]) -> None:
        if shares:
            values = [(shared_reference(*share), self._unwritten[share]) for share in shares]
            await self._calls.call(self._objects.put_shared, values)
            for share in shares:
                del self._unwritten[share]

    def _secrets(self, spec: TaskSpec, workflow: str) -> tuple[tuple[str, str], ...]:
        """Environment variables with the task's secrets. Their values go only into the worker's environment."""
        if not (names := named_secrets(spec)):
            return ()
        return tuple((SECRET_PREFIX + name, self._options.secrets(name, workflow)) for name in names)


def _secrets_wanted(jobs: Sequence[Job]) -> Iterator[tuple[str, str]]:
    """Names of secrets, each with the workflow that uses it."""
    for job in jobs:
        for name in named_secrets(job.machine.spec(job.attempt.key.task)):
            yield name, job.machine.run.workflow


def _action_document(spec: TaskSpec, scope: Scope) -> dict[str, Any]:
    match spec.action:
        case PythonCall(file, module, function):
            return {"kind": "python", "file": file, "module": module, "function": function}
        case Command(argv):
            return {"kind": "command", "argv": [_argument(value, scope) for value in argv]}
        case RustProgram(path, args):
            return {"kind": "rust", "path": path, "argv": [_argument(value, scope) for value in args]}
        case Container(argv, to_file, from_file):
            arguments = [_argument(value, scope) for value in argv]
            return {"kind": "container", "argv": arguments, "to_file": to_file, "from_file": from_file}
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


def _argument(value: Value, scope: Scope) -> str:
    bound = scope.bind(value)
    match bound:
        case {"value": str(text)}:
            return text
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
