"""The executor of sub-workflows: an attempt creates a run of another workflow once and waits for it.

It needs no process and, while it waits, no slot: the child run is treated like any external job.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from ork.compile.params import check_params
from ork.core.bind import walk
from ork.errors import DocumentError, ExecutorError, ObjectsError, OrkError, StoreError, UnreadableError
from ork.executors.executor import Executor, LaunchOrder, NotStarted, Presence, StatusCallback
from ork.model.digest import sha256
from ork.model.ids import ID_ALPHABET, RUN_ID_LENGTH, AttemptKey, RunId
from ork.model.record import replaced
from ork.model.run import CommandKind, NewRun, Run, RunCommand
from ork.model.secret import PARAM_PREFIX
from ork.model.task import Attempt
from ork.model.workflow import CompiledWorkflow
from ork.objects import documents
from ork.objects.attempt_documents import AttemptDocuments
from ork.objects.calls import DocumentCalls
from ork.scheduler.sensitive import opened_param
from ork.scheduler.statuses import gate_state
from ork.state.scheduling import RunRequests
from ork.state.sealing import stored_params

MAX_NESTED = 10
PARAMS_LIMIT = 1 << 20


class CannotStartError(OrkError):
    """The child run cannot be created, and a retry does not help. The message is a sentence."""

    code = "ORK605"


class WorkflowExecutor(Executor):
    """The documents record what was begun, and the child's id is derived from the attempt, so any scheduler can repeat each
    step."""

    name = "workflow"

    def __init__(
        self,
        store: RunRequests,
        objects: AttemptDocuments,
        on_change: Callable[[], None],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._objects = objects
        self._calls = DocumentCalls(objects)
        self._on_change = on_change
        self._now = now

    def name_for(self, attempt: AttemptKey) -> str:
        return f"run:{child_id(attempt)}"

    async def start(self, orders: Sequence[LaunchOrder], on_status: StatusCallback) -> Sequence[NotStarted]:
        problems: list[NotStarted] = []

        async def start_one(order: LaunchOrder) -> None:
            try:
                await self._begin(order.attempt)
            except (CannotStartError, DocumentError) as problem:
                problems.append(NotStarted(order.attempt.key, problem.message, final=True))
            except (StoreError, ObjectsError) as problem:
                problems.append(NotStarted(order.attempt.key, problem.message, final=False))
            else:
                on_status(order.attempt.key)

        await self._calls.for_each(start_one, orders)
        return problems

    async def find(self, attempts: Sequence[Attempt]) -> Sequence[Presence]:
        """Whether the attempts are alive. A start that was interrupted is completed. Not called for waiting attempts."""
        found = []
        for attempt in attempts:
            try:
                is_begun = await self._is_begun(attempt)
                if is_begun and attempt.closing is None:
                    await self._begin(attempt)
                is_alive = is_begun and not await self._is_over(attempt)
            except CannotStartError:
                is_alive = False
            except OrkError as problem:
                raise ExecutorError(problem.message) from None
            found.append(Presence.RUNNING if is_alive else Presence.GONE)
        return found

    async def watch(self, attempts: Sequence[Attempt], on_status: StatusCallback) -> None:
        for attempt in attempts:
            on_status(attempt.key)

    async def stop(self, attempts: Sequence[Attempt], *, at_once: bool) -> None:  # noqa: ARG002 (a run is cancelled or not)
        """Cancel the child run. If it does not exist yet it is created first, so that it cannot be started later."""
        for attempt in attempts:
            try:
                if not await self._is_begun(attempt):
                    continue
                new = await self._new_run(attempt, await self._spec(attempt))
                await self._store.create_runs([new], self._now())
                command = RunCommand(child_id(attempt.key), CommandKind.CANCEL, by=f"task {attempt.key.task}")
                await self._store.submit_command(command, self._now())
                self._on_change()
            except CannotStartError:
                continue
            except OrkError as problem:
                raise ExecutorError(problem.message) from None

    async def close(self) -> None:
        """Child runs continue."""

    async def _begin(self, attempt: Attempt) -> None:
        """Create the gate, the child run and the status, in this order, each only if it does not exist yet."""
        spec = await self._spec(attempt)
        new = await self._new_run(attempt, spec)  # before the gate, so that an attempt that cannot start never started
        if not await self._calls.call(self._win_gate, attempt):
            return
        await self._store.create_runs([new], self._now())
        self._on_change()
        at = self._now().isoformat()
        jobs = [{"run": new.id, "workflow": new.workflow}]
        status = {"v": 1, "attempt": str(attempt.key), "seq": 1, "state": "deferred", "at": at, "started_at": at}
        document = documents.sign({**status, "jobs": jobs}, attempt.token_hash)
        await self._calls.call(self._objects.put_status_if_absent, str(attempt.key), document)

    async def _is_begun(self, attempt: Attempt) -> bool:
        return await self._calls.call(gate_state, self._objects, attempt) == "started"

    def _win_gate(self, attempt: Attempt) -> bool:
        """True also if this or another scheduler has won the gate for this attempt before."""
        gate = {"v": 1, "attempt": str(attempt.key), "state": "started", "run": child_id(attempt.key)}
        if self._objects.claim_gate(str(attempt.key), documents.sign(gate, attempt.token_hash)):
            return True
        return gate_state(self._objects, attempt) == "started"

    async def _new_run(self, attempt: Attempt, spec: dict[str, Any]) -> NewRun:
        id, name = child_id(attempt.key), spec["child"]
        existing = await self._store.get_run(id)
        if existing is not None:  # use the version it was created with: the workflow may have been deployed since
            return NewRun(id, existing.workflow, existing.version, existing.params, parent=existing.parent)
        entry = await self._store.get_workflow(name)
        try:
            version = await self._store.get_version(entry.version) if entry else None
        except UnreadableError as problem:
            raise CannotStartError(f"workflow `{name}`: {problem.message}") from None
        if version is None:
            raise CannotStartError(f"there is no workflow `{name}`: deploy it with `ork deploy FILE`")
        parent = await self._parent(attempt, name)
        try:
            given = await self._params(spec, parent, version.workflow)
            params = await stored_params(
                self._store, version.workflow, check_params(version.workflow, given, may_refer=True)
            )
        except OrkError as problem:
            raise CannotStartError(f"workflow `{name}`: {problem.message}") from None
        key = str(attempt.key)
        new = NewRun(id, name, version.id, params, key=key, priority=parent.priority, fresh=parent.fresh, parent=key)
        return replaced(new, started_by=await self._store.get_starter(parent.id))

    async def _params(self, spec: dict[str, Any], parent: Run, child: CompiledWorkflow) -> dict[str, Any]:
        """The params that the task passes. Secrets are refused, since the store keeps params."""
        from ork.scheduler.child_output import open_bound

        given = {}
        for name, bound in (spec["inputs"] or {}).items():
            if "json" in bound:
                given[name] = await self._sensitive(name, bound, parent, child)
            elif "secret" in bound:
                raise CannotStartError(f"input `{name}` is a secret, and the params of a run are no place for one")
            else:
                given[name] = await open_bound(bound, self._objects, PARAMS_LIMIT)
        return given

    async def _sensitive(self, name: str, bound: dict[str, Any], parent: Run, child: CompiledWorkflow) -> Any:
        """The value of a sensitive param of the parent. The child's param must be sensitive, too."""
        own = bound["secret"].removeprefix(PARAM_PREFIX)
        if not any(param.name == name and param.sensitive for param in child.params):
            hint = f"write `{name}: {{sensitive: true}}` in `params` of `{child.name}`"
            raise CannotStartError(f"param `{own}` is sensitive, and `{name}` of `{child.name}` is not: {hint}")
        return walk(opened_param(parent, own, await self._store.signing_key()), bound["path"], own)

    async def _parent(self, attempt: Attempt, name: str) -> Run:
        """The run of the attempt. Chains that are nested too deeply are refused, as they are probably endless."""
        parent = run = await self._store.get_run(attempt.run)
        chain = [name]
        while run is not None:
            chain.append(run.workflow)
            if len(chain) > MAX_NESTED + 1:
                shown = " → ".join(reversed(chain))
                raise CannotStartError(f"sub-workflows are nested more than {MAX_NESTED} deep: {shown}")
            above, is_nested, _ = (run.parent or "").partition("/")
            run = await self._store.get_run(RunId(above)) if is_nested else None
        if parent is None:
            raise CannotStartError(f"run {attempt.run} is gone")
        return parent

    async def _is_over(self, attempt: Attempt) -> bool:
        """True if the child run has ended. One that does not exist yet may still be created; `stop` prevents that."""
        run = await self._store.get_run(child_id(attempt.key))
        return run is not None and run.status.is_final

    async def _spec(self, attempt: Attempt) -> dict[str, Any]:
        data = await self._calls.call(self._objects.read_spec, str(attempt.key))
        if data is None:
            raise CannotStartError(f"the spec of {attempt.key} is gone")
        return documents.open_signed(data, attempt.token_hash, limit=documents.SPEC_LIMIT)


def child_id(attempt: AttemptKey) -> RunId:
    """The id of the attempt's child run. It is always the same, so that the run is created only once."""
    digest = sha256(f"child of {attempt}".encode()).digest()
    return RunId("".join(ID_ALPHABET[byte % len(ID_ALPHABET)] for byte in digest[:RUN_ID_LENGTH]))
