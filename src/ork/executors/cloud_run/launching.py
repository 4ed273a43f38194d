"""Starts executions: makes the Job that an attempt needs, and asks for one execution of it.

`jobs.run` has no request id. Where a worker runs in the container, a second execution is harmless: it loses the gate. So after a
lost answer the executions are searched for the attempt, and the start is asked for again if there is none. Where nothing of ours
runs in the container, the gate is won before the platform is asked, the platform is asked once, and an attempt that may or may not
have started is ended, not started again.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from ork.errors import AnswerLostError, DocumentError, EngineError, EngineUnreachableError, ObjectsError
from ork.executors.cloud_run import making
from ork.executors.cloud_run.api import CALL_SECONDS, NOT_FOUND, TOO_MANY, CloudRunApi
from ork.executors.cloud_run.archive import upload_worker
from ork.executors.cloud_run.executions import Seen, seen
from ork.executors.cloud_run.making import BucketVolume, JobPlan
from ork.executors.cloud_run.tracked import DOUBT_SECONDS, Tracked, best_of
from ork.executors.docker import endings
from ork.executors.docker.container_documents import ContainerDocuments
from ork.executors.docker.outcome import finish
from ork.executors.docker.retrying import retrying_call
from ork.executors.executor import GroupOrder, LaunchOrder
from ork.executors.secret_references import variables_and_references
from ork.executors.worker_variables import ATTEMPT_VARIABLE
from ork.model.cloud_run import DEFAULT_TIMEOUT_SECONDS
from ork.objects.attempt_documents import AttemptDocuments

READY_SECONDS = 120.0
_IN_USE_SECONDS = 3600.0
BUSY_SECONDS = 240.0  # how long a plain image waits for a quota
_LOOK_SECONDS = 1.0
_CLOCK_MARGIN = timedelta(hours=1)
_CONFLICT = 409

ResolveImage = Callable[[str], Awaitable[str]]


class Launching:
    """`installation` labels the Jobs. `volume` is the bucket of the object store, if Cloud Run can mount it."""

    def __init__(
        self,
        api: CloudRunApi,
        objects: AttemptDocuments,
        installation: str,
        volume: BucketVolume | None,
        resolve_image: ResolveImage,
    ) -> None:
        self._api = api
        self._objects = objects
        self._installation = installation
        self._volume = volume
        self._resolve_image = resolve_image
        self._ready: set[str] = set()
        self._making: dict[str, asyncio.Lock] = {}
        self._used_at: dict[str, float] = {}  # when an execution of a Job was last asked for

    def uses(self, job: str) -> bool:
        """True if an execution of this Job was asked for a moment ago: the platform may not show it yet."""
        return time.monotonic() - self._used_at.get(job, float("-inf")) < _IN_USE_SECONDS

    async def start(self, tracked: Tracked, order: LaunchOrder) -> None:
        """Ask for an execution of the attempt, unless there is one. EngineError: there is none, in the platform's words."""
        spec = tracked.spec
        assert spec is not None
        if making.is_plain(spec):
            await self._start_plain(tracked, spec)
        else:
            await self._start_worker(tracked, spec, order)

    async def job_of(self, spec: dict[str, Any]) -> str:
        """The full name of the attempt's Job."""
        place = self._api.place
        if spec["kind"] == "cloud_run_job":
            name = str(spec["job"])
            return name if name.startswith("projects/") else place.job(name)
        if making.is_plain(spec):
            return place.job(making.plain_job_name(spec["attempt"], self._installation))
        return place.job((await self._worker_plan(spec)).name)

    async def find(self, job: str, attempt: str, since: datetime, known: str | None = None) -> Seen | None:
        """The execution of an attempt in the list of a Job's executions."""
        return best_of(await self.listed(job, since), attempt, known)

    async def listed(self, job: str, since: datetime) -> list[Seen]:
        return [seen(each) for each in await self._api.executions(job, since - _CLOCK_MARGIN)]

    # ── with a worker ────────────────────────────────────────────────────────────────────────────

    async def _start_worker(self, tracked: Tracked, spec: dict[str, Any], order: LaunchOrder) -> None:
        plan = await self._worker_plan(spec)
        tracked.job = self._api.place.job(plan.name)
        since, attempt = tracked.attempt.dispatched_at, spec["attempt"]
        if not order.is_new and await self._is_under_way(tracked, attempt, since):
            return
        archive = None
        if making.brings_worker(spec, self._volume):
            archive = await retrying_call(tracked.documents, lambda: upload_worker(self._objects))
        env = making.worker_variables(spec, self._objects.url, order.token, archive)
        wanted = making.overrides(env, timeout=making.execution_timeout(spec))
        try:
            tracked.begin(await self._run(plan, wanted))
        except EngineError as error:
            # The platform may have started it all the same. If it is not listed yet, a second one loses the gate.
            if not is_ambiguous(error) or not await self._is_under_way(tracked, attempt, since):
                raise

    async def start_group(self, group: GroupOrder, documents: ContainerDocuments) -> str:
        """Ask for one execution with a task for each attempt, and return its full name. `documents` are those of the first."""
        spec = await documents.calls.call(documents.spec)
        if spec is None:
            raise ObjectsError("its spec is not in the object store")
        image = await self._resolve_image(spec["container"]["image"])
        parallelism = min(group.parallelism, len(group.orders))
        plan = making.worker_job(spec, image, self._installation, self._volume, parallelism=parallelism)
        archive = None
        if making.brings_worker(spec, self._volume):
            archive = await retrying_call(documents, lambda: upload_worker(self._objects))
        env = making.group_variables(group, self._objects.url, archive)
        timeout = making.execution_timeout(spec)
        return await self._run(plan, making.overrides(env, timeout=timeout, task_count=len(group.orders)))

    async def _is_under_way(self, tracked: Tracked, attempt: str, since: datetime) -> bool:
        assert tracked.job is not None
        found = await self.find(tracked.job, attempt, since)
        if found is None or found.state.is_over:
            return False
        tracked.note(found)
        return True

    async def _worker_plan(self, spec: dict[str, Any]) -> JobPlan:
        image = await self._resolve_image(spec["container"]["image"])
        return making.worker_job(spec, image, self._installation, self._volume)

    async def _run(self, plan: JobPlan, wanted: dict[str, Any]) -> str:
        full = self._api.place.job(plan.name)
        self._used_at[plan.name] = time.monotonic()  # first, so that nobody removes it from now on
        await self._make(plan)
        try:
            return await self._api.run_job(full, wanted)
        except EngineError as error:
            if error.status != NOT_FOUND:
                raise
        self._ready.discard(plan.name)  # somebody removed it
        await self._make(plan)
        return await self._api.run_job(full, wanted)

    async def _make(self, plan: JobPlan) -> None:
        """There is such a Job, and it can be run."""
        async with self._making.setdefault(plan.name, asyncio.Lock()):
            if plan.name in self._ready:
                return
            if await self._api.job(plan.name) is None:
                await self._api.create_job(plan.name, plan.content)
            await self._wait_until_ready(plan.name)
            self._ready.add(plan.name)

    async def _wait_until_ready(self, name: str) -> None:
        give_up_at, pause = time.monotonic() + READY_SECONDS, 0.2
        while True:
            job = await self._api.job(name)
            state = "" if job is None else job.terminal_condition.state.name
            if state == "CONDITION_SUCCEEDED":
                return
            if job is not None and state == "CONDITION_FAILED":
                await self._api.delete_job(name)  # what it lacks may be there at the next try
                raise EngineError(f"Cloud Run: the Job is not ready: {job.terminal_condition.message}", status=400)
            if time.monotonic() > give_up_at:
                words = "" if job is None else job.terminal_condition.message
                raise EngineError(f"Cloud Run: the Job was not ready within {READY_SECONDS:g} s: {words}", status=503)
            await asyncio.sleep(pause)
            pause = min(2 * pause, 5.0)

    # ── without a worker ─────────────────────────────────────────────────────────────────────────

    async def _start_plain(self, tracked: Tracked, spec: dict[str, Any]) -> None:
        documents = tracked.documents
        tracked.job = await self.job_of(spec)
        if await retrying_call(documents, documents.gate) is not None:
            return  # it was asked for, by us or by another scheduler: what became of it is looked up
        env, secrets = await self._variables(tracked, spec)
        plan = None
        if spec["kind"] == "container":
            await self._put_input(tracked, spec)
            image = await self._resolve_image(spec["container"]["image"])
            plan = making.plain_job(spec, image, self._installation, self._volume, list(env.items()), secrets)
            await self._make(plan)
        facts = {"job": tracked.job}
        if not await retrying_call(documents, lambda: documents.win_gate(facts)):
            return
        own = {} if plan is not None else env
        wanted = making.overrides(
            {**own, ATTEMPT_VARIABLE: spec["attempt"]},
            timeout=spec["timeout"] or DEFAULT_TIMEOUT_SECONDS,
            args=() if plan is not None else spec["argv"],
        )
        await self._ask_once(tracked, wanted)

    async def _ask_once(self, tracked: Tracked, wanted: dict[str, Any]) -> None:
        """Ask for the execution. Repeated only while the platform says that it did not start one."""
        assert tracked.job is not None
        give_up_at, pause = time.monotonic() + BUSY_SECONDS, 1.0
        while True:
            try:
                tracked.begin(await self._api.run_job(tracked.job, wanted))
                return
            except EngineError as error:
                if is_ambiguous(error):
                    tracked.asked_at = time.monotonic()
                    return  # `resolve_doubt` follows
                is_busy = isinstance(error, EngineUnreachableError) or error.status in (TOO_MANY, _CONFLICT)
                if not is_busy or time.monotonic() > give_up_at:
                    await finish(tracked.documents, endings.failed("start", error.message))
                    return
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(2 * pause, 30.0)
            if await retrying_call(tracked.documents, tracked.documents.is_over):
                return  # another scheduler has ended it

    async def is_in_doubt(self, tracked: Tracked) -> bool:
        """True for a plain image that was asked for a while ago, and has no execution. Whoever won its gate may go on asking for
        BUSY_SECONDS, so another scheduler waits for longer."""
        gate = await tracked.documents.calls.call(tracked.documents.gate)
        if gate is None or gate.get("state") != "started" or tracked.execution is not None:
            return False
        if tracked.asked_at is not None:
            return time.monotonic() - tracked.asked_at > DOUBT_SECONDS
        won = datetime.fromisoformat(str(gate["at"]))
        return (datetime.now(UTC) - won).total_seconds() > BUSY_SECONDS + 2 * CALL_SECONDS + DOUBT_SECONDS

    async def resolve_doubt(self, tracked: Tracked) -> None:
        """End an attempt that may or may not have been started: its own Job is deleted, so nothing of it can start any more."""
        spec = tracked.spec
        assert spec is not None
        if spec["kind"] == "container":
            await self._delete(making.plain_job_name(spec["attempt"], self._installation))
        words = "Cloud Run: the answer to its start was lost, and it has no execution"
        await finish(tracked.documents, endings.failed("lost", words))

    async def _delete(self, name: str) -> None:
        """Delete a Job and wait until it is gone: until then its executions may go on."""
        await self._api.delete_job(name)
        give_up_at, pause = time.monotonic() + READY_SECONDS, 0.2
        while await self._api.job(name) is not None:
            if time.monotonic() > give_up_at:
                raise EngineError(f"Cloud Run: the Job {name} was not deleted within {READY_SECONDS:g} s", status=503)
            await asyncio.sleep(pause)
            pause = min(2 * pause, 5.0)

    async def remove(self, attempt: str) -> None:
        """Remove the Job of an attempt of a plain image."""
        name = making.plain_job_name(attempt, self._installation)
        self._ready.discard(name)
        self._making.pop(name, None)
        await self._api.delete_job(name)

    async def _variables(self, tracked: Tracked, spec: dict[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
        """The task's variables with values, and those that refer to secrets."""
        references = spec["container"]["cloud_run"]["secrets"]
        env, secrets = await variables_and_references(tracked.documents, spec, references)
        if secrets and spec["kind"] == "cloud_run_job":
            raise DocumentError("an execution cannot be given secrets: add them to the Job itself")
        return env, secrets

    async def _put_input(self, tracked: Tracked, spec: dict[str, Any]) -> None:
        if not spec["to_file"]:
            return
        if spec["container"]["cloud_run"]["secrets"] and _has_secret(spec.get("inputs")):
            raise DocumentError("a secret cannot be written to an input file in the bucket: pass it with `env`")
        data = await tracked.documents.calls.call(tracked.documents.input, spec, {})
        key = making.plain_file_key(spec, spec["to_file"])
        await retrying_call(tracked.documents, lambda: self._objects.put_shared([(key, data)]))


def is_ambiguous(error: EngineError) -> bool:
    """True if the platform may have started it all the same."""
    return isinstance(error, AnswerLostError) or error.status >= 500


def _has_secret(bound: Any) -> bool:
    if isinstance(bound, dict):
        return "secret" in bound or ("value" not in bound and any(map(_has_secret, bound.values())))
    return isinstance(bound, list) and any(map(_has_secret, bound))
