"""Runs attempts as Jobs of Kubernetes, in one namespace of a cluster.

Calls of the platform are made in tasks of the event loop, so that they do not delay the scheduler. One watch shows how all pods are;
a Job itself is looked at only while it has no pods. docs/adr/0023-kubernetes.md says what must hold.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from ork.errors import DocumentError, EngineError, ObjectsError, StoreError, UsageError
from ork.executors.attempt_rows import AttemptOf, unknown_attempt
from ork.executors.docker.container_documents import ContainerDocuments, DocumentsOf
from ork.executors.executor import (
    PLATFORM_TRAITS,
    Executor,
    GroupOrder,
    LaunchOrder,
    NotStarted,
    Presence,
    StatusCallback,
)
from ork.executors.kubernetes.api import TOO_MANY, ClusterApi, is_final
from ork.executors.kubernetes.launching import Launching
from ork.executors.kubernetes.leftovers import remove_if_ended, remove_leftovers
from ork.executors.kubernetes.logs import copy_log
from ork.executors.kubernetes.making import LABEL, STATUS_SECONDS, is_plain
from ork.executors.kubernetes.pod_endings import taken_down
from ork.executors.kubernetes.pod_watch import PodWatch
from ork.executors.kubernetes.pods import PodSeen, PodState
from ork.executors.kubernetes.settling import settle
from ork.executors.kubernetes.units import Member, Unit, has_begun, is_overdue, may_wait
from ork.executors.kubernetes.waiting import Waiting
from ork.model.ids import AttemptKey, RunId
from ork.model.kubernetes import KUBERNETES
from ork.model.task import Attempt
from ork.model.workflow import Container, TaskSpec
from ork.objects.attempt_documents import AttemptDocuments

READY_SECONDS = 20.0
_SWEEP_SECONDS, _SWEEP_AGAIN_SECONDS = 3600.0, 60.0  # after one that worked, and one that failed
_LAST_START_SECONDS = 60.0  # for a tick, which closes right after `start`
_LONGEST_PAUSE_SECONDS = 60.0
_SETTLE_SECONDS = 5.0
_HOUSEKEEPING_SECONDS = 5.0
_IDLE_SECONDS = 60.0  # after which the watch ends, if there is nothing to watch
_AT_ONCE_SECONDS = 1  # of grace: with 0 the API server would forget a pod that may still run
_COPY_AGAIN_SECONDS = 2.0
_MOST_FOLLOWED = 50  # logs at the same time: each has a connection. Those of others are copied when they have ended


class KubernetesExecutor(Executor):
    """`waits`: for ticks, which end soon, `start` and `find` wait for the platform. `attempt_of` returns the row of an attempt by its id,
    for Jobs that another scheduler left."""

    traits = PLATFORM_TRAITS

    def __init__(
        self,
        name: str,
        api: ClusterApi,
        launching: Launching,
        documents: DocumentsOf,
        objects: AttemptDocuments,
        *,
        waits: bool = False,
        attempt_of: AttemptOf = unknown_attempt,
    ) -> None:
        self.name = name
        self._api = api
        self._launching = launching
        self._documents = documents
        self._objects = objects
        self._waits = waits
        self._attempt_of = attempt_of
        self._units: dict[str, Unit] = {}
        self._by_job: dict[str, Unit] = {}
        self._finding: dict[str, asyncio.Lock] = {}
        self._watch = PodWatch(api, {LABEL: launching.installation}, self._on_pod)
        self._waiting = Waiting(api, documents, self._in_background)
        self._on_status: StatusCallback | None = None
        self._background: set[asyncio.Task[None]] = set()
        self._keeper: asyncio.Task[None] | None = None
        self._followers = asyncio.Semaphore(_MOST_FOLLOWED)
        self._pause, self._paused_until = 1.0, 0.0  # after the platform refused because of a quota
        self._swept_at = float("-inf")
        self._used_at = time.monotonic()
        self._released_groups: set[str] = set()
        self._has_released = False

    def name_for(self, attempt: AttemptKey) -> str:
        place = self._api.connection
        return f"{KUBERNETES}:{place.identity}/{place.namespace}:{attempt}"

    # ── starting ─────────────────────────────────────────────────────────────────────────────────

    async def start(self, orders: Sequence[LaunchOrder], on_status: StatusCallback) -> Sequence[NotStarted]:
        """Starts in the background. A problem is returned by the next `start` of the attempt, which the scheduler makes as soon as
        it learns that nothing of the attempt is alive."""
        self._use(on_status)
        problems = self._problems({str(order.attempt.key): [order.attempt.key] for order in orders})
        failed = {each.attempt for each in problems}
        begun = []
        for order in orders:
            key = str(order.attempt.key)
            if order.attempt.key not in failed and self._may_start(key):
                unit = self._add(Unit(key, self._launching.job_of(key), is_group=False), [order.attempt])
                documents = self._documents(order.attempt)
                begun.append(self._begin(unit, lambda u=unit, o=order, d=documents: self._launching.start(u, o, d)))  # type: ignore[misc]
        if begun and self._waits:
            await asyncio.wait(begun, timeout=_LAST_START_SECONDS)
            problems += self._problems({str(order.attempt.key): [order.attempt.key] for order in orders})
        return problems

    def group_size(self, task: TaskSpec) -> int:
        """The variables of a plain image differ from instance to instance, so each has a Job of its own."""
        return 0 if isinstance(task.action, Container) else self.traits.starts_groups

    async def start_groups(self, groups: Sequence[GroupOrder], on_status: StatusCallback) -> Sequence[NotStarted]:
        self._use(on_status)
        members = {group.id: [order.attempt.key for order in group.orders] for group in groups}
        problems = self._problems(members)
        failed = {each.attempt for each in problems}
        begun = []
        for group in groups:
            attempts = [order.attempt for order in group.orders]
            if failed & set(members[group.id]):
                continue
            if not self._may_start(group.id):
                for attempt in attempts:
                    self._units[group.id].join(attempt)
                continue
            unit = self._add(Unit(group.id, None, is_group=True), attempts)
            documents = self._documents(attempts[0])
            begun.append(self._begin(unit, lambda u=unit, g=group, d=documents: self._launching.start_group(u, g, d)))  # type: ignore[misc]
        if begun and self._waits:
            await asyncio.wait(begun, timeout=_LAST_START_SECONDS)
            problems += self._problems(members)
        return problems

    def _may_start(self, key: str) -> bool:
        """True unless there is a Job of it that may still start something."""
        unit = self._units.get(key)
        if unit is None:
            return True
        return not unit.is_busy and unit.is_over and not unit.has_alive_pods()

    def _begin(self, unit: Unit, launch: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
        unit.work = self._in_background(self._launch(unit, launch))
        return unit.work

    async def _launch(self, unit: Unit, launch: Callable[[], Coroutine[Any, Any, None]]) -> None:
        first = next(iter(unit.members))
        try:
            await asyncio.sleep(max(0.0, self._paused_until - time.monotonic()))
            await launch()
            self._pause = 1.0
            self._follow(unit)
        except (DocumentError, UsageError) as error:
            unit.problem = NotStarted(first, error.message, final=True)
        except ObjectsError as error:
            unit.problem = NotStarted(first, error.message, final=False)
        except EngineError as error:
            unit.problem = self._refused(first, error)
            self._waiting.say(unit.members[first], unit.problem.why)
        if unit.problem is not None:
            for key in unit.members:
                self._notify(key)

    def _refused(self, key: AttemptKey, error: EngineError) -> NotStarted:
        """Starts are slowed down while the platform is overloaded."""
        if error.status == TOO_MANY or error.status >= 500:
            self._paused_until = time.monotonic() + self._pause * random.uniform(0.5, 1.5)
            self._pause = min(2 * self._pause, _LONGEST_PAUSE_SECONDS)
        advice = f" ({error.hint})" if error.hint else ""
        return NotStarted(key, error.message + advice, final=is_final(error))

    def _problems(self, members: dict[str, list[AttemptKey]]) -> list[NotStarted]:
        """Why units were not started, told once: the next start tries again."""
        found: list[NotStarted] = []
        for key, attempts in members.items():
            unit = self._units.get(key)
            if unit is not None and unit.problem is not None:
                found += [NotStarted(attempt, unit.problem.why, unit.problem.final) for attempt in attempts]
                self._forget(unit)
        return found

    # ── finding ──────────────────────────────────────────────────────────────────────────────────

    async def find(self, attempts: Sequence[Attempt]) -> Sequence[Presence]:
        self._used_at = time.monotonic()
        ours = [each for each in attempts if each.external_name == self.name_for(each.key)]
        if not ours:
            return [Presence.UNKNOWN] * len(attempts)
        self._begin_watching()
        await self._watch.ready(READY_SECONDS)
        by_unit: dict[str, list[Attempt]] = {}
        for attempt in ours:
            by_unit.setdefault(_unit_key(attempt), []).append(attempt)
        found: dict[AttemptKey, Presence] = {}
        for presences in await asyncio.gather(*(self._find_unit(key, group) for key, group in by_unit.items())):
            found |= presences
        return [found.get(each.key, Presence.UNKNOWN) for each in attempts]

    async def _find_unit(self, key: str, attempts: list[Attempt]) -> dict[AttemptKey, Presence]:
        try:
            unit = await self._unit_of(key, attempts)
            if unit is None:
                return {attempt.key: Presence.GONE for attempt in attempts}
            members = [unit.join(attempt) for attempt in attempts]
            if not unit.is_busy and unit.problem is None:
                await self._look(unit, members)
            return {member.attempt.key: await self._presence(unit, member) for member in members}
        except (EngineError, ObjectsError, UsageError):
            return {attempt.key: Presence.UNKNOWN for attempt in attempts}

    async def _presence(self, unit: Unit, member: Member) -> Presence:
        if unit.problem is not None or member.is_settled:
            return Presence.GONE
        pods = unit.pods_of(member)
        alive = [pod for pod in pods if not pod.is_over]
        if alive and (not self._watch.is_current or all(map(is_overdue, alive))):
            return Presence.UNKNOWN
        if has_begun(alive):
            return Presence.RUNNING
        is_waiting = bool(alive) or unit.is_busy or not (pods or unit.is_over)
        if is_waiting and unit.is_group and not unit.is_busy and not alive and not may_wait(member):
            # Its row says that it runs, or it is being ended, and it has no pod.
            is_waiting = False
        if is_waiting:
            self._waiting.note(unit, member, alive, at_once=self._waits)
            return Presence.QUEUED if unit.is_group and may_wait(member) else Presence.RUNNING
        self._settle_later(unit, member)
        if self._waits and member.settling is not None:
            await asyncio.wait([member.settling], timeout=_SETTLE_SECONDS)
        return Presence.GONE if member.is_settled else Presence.RUNNING

    async def _look(self, unit: Unit, members: list[Member]) -> None:
        """Look at the Job, if it has no pods for some of the attempts, and was not looked at for a while."""
        if all(each.is_settled or unit.pods_of(each) for each in members) or unit.job is None:
            return
        async with unit.looking:
            if unit.is_over or time.monotonic() - unit.looked_at < unit.max_age():
                return
            found = await self._api.job(unit.job)
            unit.looked_at = time.monotonic()
            unit.seen, unit.is_missing = found, found is None
            if not unit.is_over and not unit.has_alive_pods():
                await self._waiting.ask(unit)

    async def _unit_of(self, key: str, attempts: list[Attempt]) -> Unit | None:
        """The unit of these attempts; None if there is no Job, and none of them has begun."""
        if key in self._units:
            return self._units[key]
        async with self._finding.setdefault(key, asyncio.Lock()):
            if key in self._units:
                return self._units[key]
            unit = await self._adopted(key, attempts)
            self._finding.pop(key, None)
            return unit

    async def _adopted(self, key: str, attempts: list[Attempt]) -> Unit | None:
        """Track what another scheduler started."""
        is_group = attempts[0].group is not None
        unit = Unit(key, None if is_group else self._launching.job_of(key), is_group=is_group)
        if is_group:
            jobs = sorted(await self._launching.jobs_of_group(key), key=lambda job: (not job.is_over, job.name))
            if jobs:
                unit.begin(jobs[-1].name, jobs[-1].attempts, jobs[-1])
        elif unit.job is not None and not self._watch.pods_of(unit.job):
            job = await self._api.job(unit.job)
            if job is not None:
                unit.begin(job.name, job.attempts, job)
            unit.is_missing = job is None
        unit.is_missing = unit.is_missing or unit.job is None
        if unit.is_missing and not await self._any_has_begun(attempts):
            return None
        documents = self._documents(attempts[0])
        unit.spec = await documents.calls.call(documents.spec)
        self._add(unit, attempts)
        self._follow(unit)
        return unit

    async def _any_has_begun(self, attempts: list[Attempt]) -> bool:
        """True if one of them won its gate, and has no last status."""
        for attempt in attempts:
            documents = self._documents(attempt)
            gate = await documents.calls.call(documents.gate) or {}
            if gate.get("state") == "started" and not await documents.calls.call(documents.is_over):
                return True
        return False

    async def watch(self, attempts: Sequence[Attempt], on_status: StatusCallback) -> None:
        self._use(on_status)
        await self.find(attempts)

    def why_waiting(self, attempt: AttemptKey) -> str | None:
        for unit in self._units.values():
            member = unit.members.get(attempt)
            if member is not None:
                taken = (taken_down(pod) for pod in unit.pods_of(member))
                return next((words for words in taken if words), None) or member.waits_for or unit.warning
        return None

    # ── ending ───────────────────────────────────────────────────────────────────────────────────

    async def stop(self, attempts: Sequence[Attempt], *, at_once: bool) -> None:
        """Deletes the pod: its program gets SIGTERM, and SIGKILL after the grace. The other pods of its Job go on."""
        for attempt in attempts:
            if attempt.external_name == self.name_for(attempt.key):
                self._in_background(self._stop_one(attempt, at_once))

    async def _stop_one(self, attempt: Attempt, at_once: bool) -> None:
        with contextlib.suppress(EngineError, ObjectsError, UsageError):
            self._begin_watching()
            await self._watch.ready(READY_SECONDS)
            unit = await self._unit_of(_unit_key(attempt), [attempt])
            if unit is None:
                return
            member = unit.join(attempt)
            member.is_asked = True
            if unit.work is not None:
                await asyncio.wait([unit.work])
            pods = [pod for pod in unit.pods_of(member) if not pod.is_over]
            grace = _AT_ONCE_SECONDS if at_once else self._grace(unit)
            await asyncio.gather(*(self._api.delete_pod(pod.name, grace) for pod in pods))
            if unit.job is not None and not pods and not unit.is_over and unit.is_unwanted():
                await self._api.delete_job(unit.job)
            unit.looked_at = float("-inf")
            self._notify(attempt.key)

    def _grace(self, unit: Unit) -> int:
        spec = unit.spec or {"stop_grace_seconds": 10, "kind": ""}
        return int(spec["stop_grace_seconds"]) + (0 if is_plain(spec) else STATUS_SECONDS)

    def release(self, attempts: Sequence[Attempt]) -> None:
        """Delete the Jobs of attempts whose ends are committed; that of a group when all of them are."""
        for attempt in attempts:
            if attempt.external_name != self.name_for(attempt.key):
                continue
            self._has_released = True
            unit = self._units.get(_unit_key(attempt))
            if unit is None and attempt.group is None:
                self._in_background(self._delete(self._launching.job_of(str(attempt.key))))
            elif unit is None and attempt.group is not None:
                self._released_groups.add(attempt.group.id)
            elif unit is not None:
                self._release_member(unit, attempt.key)

    def _release_member(self, unit: Unit, key: AttemptKey) -> None:
        member = unit.members.get(key)
        if member is not None and member.copying is not None:
            member.copying.cancel()
        unit.release(key)
        if unit.members:
            return
        self._forget(unit)
        if not unit.is_group or unit.is_released:
            self._in_background(self._delete(unit.job))
        else:
            self._released_groups.add(unit.key)

    def forget_run(self, run: RunId) -> None:
        """Another scheduler owns the run: its Jobs are left to that one."""
        for unit in [each for each in self._units.values() if next(iter(each.members)).run == run]:
            self._forget(unit)
            for member in unit.members.values():
                for task in (member.copying, member.settling):
                    if task is not None:
                        task.cancel()

    async def _delete(self, job: str | None) -> None:
        if job is not None:
            with contextlib.suppress(EngineError):
                await self._api.delete_job(job)

    async def close(self) -> None:
        """Wait a limited time for pending starts and removals. Pods go on."""
        self._on_status = None
        for unit in list(self._units.values()):
            for member in unit.members.values():
                for task in (member.copying, member.settling):
                    if task is not None:
                        task.cancel()
        if self._keeper is not None:
            self._keeper.cancel()
        await self._remove_released_groups()
        if self._waits and self._has_released:  # a tick that was killed may have left something
            await self.sweep()
        pending = [task for task in self._background if not task.done()]
        if pending:
            _, late = await asyncio.wait(pending, timeout=_LAST_START_SECONDS)
            for work in late:
                work.cancel()
        await self._watch.stop()
        await self._api.close()

    async def _remove_released_groups(self) -> None:
        """Delete the Jobs of groups of which this scheduler has seen some ends only, if all have ended."""
        groups, self._released_groups = self._released_groups, set()
        for group in groups:
            with contextlib.suppress(EngineError, StoreError):
                for job in await self._launching.jobs_of_group(group):
                    await remove_if_ended(job, self._api, self._attempt_of)

    # ── following pods ───────────────────────────────────────────────────────────────────────────

    def _on_pod(self, pod: PodSeen, before: PodSeen | None) -> None:
        unit = self._by_job.get(pod.job)
        if unit is None:
            return
        unit.note(pod)
        member = unit.member_at(pod.position)
        if member is None:
            return
        if not pod.is_over:
            member.is_settled = False
        is_new_state = before is None or before.state is not pod.state or pod.is_over
        self._follow_pod(unit, member, pod)
        if is_new_state:
            self._notify(member.attempt.key)

    def _follow(self, unit: Unit) -> None:
        """Take over what the watch knows of the unit's pods."""
        if unit.job is None:
            return
        self._by_job[unit.job] = unit
        for pod in self._watch.pods_of(unit.job):
            self._on_pod(pod, None)

    def _follow_pod(self, unit: Unit, member: Member, pod: PodSeen) -> None:
        if pod.is_over:
            if all(each.is_over for each in unit.pods_of(member)):
                self._settle_later(unit, member)
        elif pod.state is PodState.RUNNING:
            self._copy_log(unit, member, pod)
        elif self._waiting.is_hopeless(pod):
            self._in_background(self._waiting.give_up(member, pod))

    def _copy_log(self, unit: Unit, member: Member, pod: PodSeen) -> None:
        if unit.spec is None or not is_plain(unit.spec) or (member.copying is not None and not member.copying.done()):
            return
        member.copying = self._in_background(self._copy(member, pod.name))

    async def _copy(self, member: Member, pod: str) -> None:
        documents, name = self._documents(member.attempt), str(member.attempt.key)
        async with self._followers:
            member.is_copying = True
            while True:
                with contextlib.suppress(EngineError, ObjectsError):
                    await copy_log(self._api, pod, name, documents, self._objects, follow=True)
                    return
                await asyncio.sleep(_COPY_AGAIN_SECONDS)

    def _settle_later(self, unit: Unit, member: Member) -> None:
        """In the background: the object store may be away for a while."""
        if member.is_settled or member.is_settling:
            return
        pods = unit.pods_of(member)
        if len(pods) == 1 and pods[0].state is PodState.SUCCEEDED and unit.spec and not is_plain(unit.spec):
            member.is_settled = True  # a worker that ends without an error has written its last status
            return
        member.settling = self._in_background(self._settle(unit, member, self._documents(member.attempt)))

    async def _settle(self, unit: Unit, member: Member, documents: ContainerDocuments) -> None:
        with contextlib.suppress(EngineError, ObjectsError):
            if member.copying is not None:
                await asyncio.wait([member.copying], timeout=_SETTLE_SECONDS if member.is_copying else 0)
                member.copying.cancel()
            member.is_settled = await settle(unit, member, documents, self._api, self._objects)
        self._notify(member.attempt.key)

    # ── housekeeping ─────────────────────────────────────────────────────────────────────────────

    def _use(self, on_status: StatusCallback) -> None:
        self._on_status = on_status
        self._begin_watching()

    def _begin_watching(self) -> None:
        self._used_at = time.monotonic()
        self._watch.start()
        if self._keeper is None or self._keeper.done():
            self._keeper = asyncio.ensure_future(self._keep())

    async def _keep(self) -> None:
        """Say why pods wait, look at Jobs without pods, remove leftovers, and end the watch when nothing needs it."""
        while True:
            if not self._waits and time.monotonic() - self._swept_at > _SWEEP_SECONDS:
                self._swept_at = time.monotonic()
                self._in_background(self.sweep())
            await asyncio.sleep(_HOUSEKEEPING_SECONDS)
            for unit in list(self._units.values()):
                if not unit.is_busy and unit.problem is None:
                    await self._keep_unit(unit)
            await self._remove_released_groups()
            if not self._units and time.monotonic() - self._used_at > _IDLE_SECONDS:
                await self._watch.stop()
                return

    async def _keep_unit(self, unit: Unit) -> None:
        members = [each for each in unit.members.values() if not each.is_settled]
        with contextlib.suppress(EngineError, ObjectsError):
            if not unit.has_alive_pods():
                await self._look(unit, members)
        for member in members:
            alive = [pod for pod in unit.pods_of(member) if not pod.is_over]
            if not has_begun(alive):
                self._waiting.note(unit, member, alive)
            if unit.is_over and not alive:
                self._settle_later(unit, member)

    def sweep_soon(self) -> None:
        """Remove what earlier schedulers left, when a scheduler begins."""
        self._swept_at = time.monotonic()
        self._in_background(self.sweep())

    async def sweep(self) -> None:
        """Remove the Jobs that earlier schedulers left."""
        try:
            await remove_leftovers(self._api, self._launching.installation, self._attempt_of)
        except (EngineError, StoreError, ObjectsError):
            self._swept_at = time.monotonic() - _SWEEP_SECONDS + _SWEEP_AGAIN_SECONDS

    # ── small parts ──────────────────────────────────────────────────────────────────────────────

    def _add(self, unit: Unit, attempts: Sequence[Attempt]) -> Unit:
        self._units[unit.key] = unit
        if unit.job is not None:
            self._by_job[unit.job] = unit
        for attempt in attempts:
            unit.join(attempt)
        return unit

    def _forget(self, unit: Unit) -> None:
        if self._units.get(unit.key) is unit:
            del self._units[unit.key]
        if unit.job is not None and self._by_job.get(unit.job) is unit:
            del self._by_job[unit.job]

    def _notify(self, key: AttemptKey) -> None:
        if self._on_status is not None:
            self._on_status(key)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task


def _unit_key(attempt: Attempt) -> str:
    return str(attempt.key) if attempt.group is None else attempt.group.id
