"""Launches admitted attempts: writes their signed specs to the object store and gives them to their executors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from ork.core.bind import BindError
from ork.errors import DefinitionError, ExecutorError, ObjectsError, SecretError, SecretNotYetError
from ork.executors.executor import Executor, GroupOrder, LaunchOrder, NotStarted, StatusCallback
from ork.model.ids import AttemptKey
from ork.model.record import Record
from ork.model.secret import named_secrets
from ork.model.task import Failure, FailureKind, GroupPlace
from ork.model.workflow import (
    Isolation,
    TaskSpec,
)
from ork.objects import documents
from ork.objects.attempt_documents import AttemptDocuments
from ork.objects.calls import DocumentCalls
from ork.objects.references import shared_reference
from ork.scheduler import statuses
from ork.scheduler.options import SchedulerOptions
from ork.scheduler.sensitive import opened_params
from ork.scheduler.spec_secrets import SECRET_PREFIX
from ork.scheduler.specs import (
    LaunchJob,
    SharedValue,
    SpecTarget,
    SpecWriter,
    constant_env,
    kept_program,
    paths_in_place,
)

MANY_LAUNCHES = 300


class Refused(Record):
    """An attempt that was not started. `final`: a retry cannot help."""

    attempt: AttemptKey
    failure: Failure
    final: bool


class _Prepared(NamedTuple):
    job: LaunchJob
    spec: TaskSpec
    name: str  # the attempt's
    document: bytes  # empty if the executor needs no specs
    secrets: tuple[tuple[str, str], ...]
    shares: tuple[SharedValue, ...]  # must be written before the document
    env: tuple[tuple[str, str], ...] | None  # see `LaunchOrder.env`


class Launcher:
    def __init__(
        self,
        objects: AttemptDocuments,
        executors: Mapping[str, Executor],
        options: SchedulerOptions,
        on_status: StatusCallback,
    ) -> None:
        self._objects = objects
        self._calls = DocumentCalls(objects)
        self._executors = executors
        self._options = options
        self._on_status = on_status
        self.use_key(b"")
        self._launches = 0
        self._expects_many = False
        self._targets: dict[str, SpecTarget] = {}
        self._specs = SpecWriter(options)

    def use_key(self, signing_key: bytes) -> None:
        self._key = signing_key
        # Cached because it is needed twice: for the commit and for the launch.
        self._token = lru_cache(maxsize=1024)(documents.token_maker(signing_key))
        self._group_token = lru_cache(maxsize=64)(self._token_maker_of)

    def _token_maker_of(self, group: str) -> Callable[[str], str]:
        return documents.token_maker(documents.group_key(self._key, group))

    def name(self, key: AttemptKey, spec: TaskSpec, group: str | None = None) -> tuple[str, str]:
        """The attempt's external name and token hash. Both are committed before anything is started."""
        executor = self._executors.get(spec.executor)
        token = self._token(str(key)) if group is None else self._group_token(group)(str(key))
        return executor.name_for(key) if executor else f"none:{key}", documents.token_hash(token)

    async def launch(self, jobs: Sequence[LaunchJob]) -> list[Refused]:
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
        self._specs.drop_unwritten()
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
            statuses.expect_many()

    def group_size(self, spec: TaskSpec) -> int:
        """The most instances of a task that its executor starts as one unit; 0: it starts each alone."""
        executor = self._executors.get(spec.executor)
        return 0 if executor is None or not executor.traits.starts_groups else executor.group_size(spec)

    async def _start(self, name: str, orders: Sequence[LaunchOrder]) -> Sequence[NotStarted]:
        executor = self._executors.get(name)
        if executor is None:
            return [NotStarted(o.attempt.key, f"this scheduler has no executor `{name}`", final=False) for o in orders]
        grouped = [order for order in orders if order.attempt.group is not None]
        try:
            if not grouped:
                return await executor.start(orders, self._on_status)
            alone = [order for order in orders if order.attempt.group is None]
            refused = [*await executor.start(alone, self._on_status)] if alone else []
            return [*refused, *await executor.start_groups(group_orders(grouped, self._key), self._on_status)]
        except ExecutorError as problem:  # some may have started: the gate prevents a second start
            return [NotStarted(order.attempt.key, problem.message, final=False) for order in orders]

    def _prepare(self, job: LaunchJob) -> _Prepared:
        spec = job.machine.spec(job.attempt.key.task)
        run = job.machine.run
        target = self._target(job.attempt.executor)
        document, shares = self._specs.signed(job, spec, target) if target.needs_specs else (b"", ())
        refers = target.refers_to_secrets
        secrets = () if refers else self._secrets(spec, run.workflow)
        if run.params and (sealed := self._specs.sealed_params(run)):
            opened = opened_params(sealed, spec, run, self._key)
            if opened and refers:
                raise DefinitionError(f"a sensitive param would be visible on {spec.executor}: use a secret instead")
            secrets += opened
        env = None if self._options.task_user else constant_env(spec, self._options.worker_for(spec))
        return _Prepared(job, spec, str(job.attempt.key), document, secrets, shares, env)

    def _target(self, executor: str) -> SpecTarget:
        """Looked up once per launch and executor."""
        target = self._targets.get(executor)
        if target is None:
            found = self._executors.get(executor)
            target = SpecTarget(True, None) if found is None else _target_of(found)
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
        await self._write_shared(
            {share for each in prepared for share in each.shares if share in self._specs.unwritten}
        )
        specs = [(each.name, each.document) for each in prepared if each.document]
        found = await self._calls.call(self._objects.put_specs, specs) if specs else ()
        positions = dict(zip((name for name, _ in specs), found, strict=True))
        orders = []
        for job, spec, name, document, secrets, _, env in prepared:
            attempt, root = job.attempt, job.version.root
            make = self._token if attempt.group is None else self._group_token(attempt.group.id)
            token, position = make(name), positions.get(name, 0)
            orders.append(
                LaunchOrder(
                    attempt,
                    token,
                    root,
                    secrets,
                    isolation=spec.isolation,
                    spec=document,
                    position=position,
                    paths=paths_in_place(job.version, spec),
                    is_new=job.is_new,
                    env=env,
                    keeps=kept_program(spec, root),
                )
            )
        return orders

    async def _write_shared(self, shares: Collection[SharedValue]) -> None:
        if shares:
            values = [(shared_reference(*share), self._specs.unwritten[share]) for share in shares]
            await self._calls.call(self._objects.put_shared, values)
            for share in shares:
                del self._specs.unwritten[share]

    def _secrets(self, spec: TaskSpec, workflow: str) -> tuple[tuple[str, str], ...]:
        """Environment variables with the task's secrets. Their values go only into the worker's environment."""
        if not (names := named_secrets(spec)):
            return ()
        return tuple((SECRET_PREFIX + name, self._options.secrets(name, workflow)) for name in names)


def group_orders(orders: Sequence[LaunchOrder], signing_key: bytes) -> list[GroupOrder]:
    """One order for each group, with its attempts in the order of their index. All of `orders` belong to groups."""
    members: dict[str, list[tuple[GroupPlace, LaunchOrder]]] = {}
    for order in orders:
        if (place := order.attempt.group) is not None:
            members.setdefault(place.id, []).append((place, order))
    groups = []
    for id, found in members.items():
        found.sort(key=lambda each: each[0].index)
        key, parallelism = documents.group_key(signing_key, id).hex(), found[0][0].parallelism
        groups.append(GroupOrder(id, parallelism, key, tuple(order for _, order in found)))
    return groups


def _target_of(executor: Executor) -> SpecTarget:
    traits = executor.traits
    return SpecTarget(traits.needs_specs, executor.status_address, traits.fence_seconds, traits.refers_to_secrets)


def _secrets_wanted(jobs: Sequence[LaunchJob]) -> Iterator[tuple[str, str]]:
    """Names of secrets, each with the workflow that uses it."""
    for job in jobs:
        for name in named_secrets(job.machine.spec(job.attempt.key.task)):
            yield name, job.machine.run.workflow
