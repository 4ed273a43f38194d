"""Launch groups: one execution with a task for each attempt. docs/adr/0016-launch-groups.md says what must hold.

An execution shows how many of its tasks run and have ended, not which. So which attempts have begun is read from their gates, and
only of those that the platform can have started: it starts tasks in order. The tasks are listed only after one of them failed.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from ork.errors import DocumentError, EngineError, ObjectsError, UsageError
from ork.executors.cloud_run.api import CloudRunApi
from ork.executors.cloud_run.executions import ExecutionState, Seen, seen
from ork.executors.cloud_run.launching import Launching, is_ambiguous
from ork.executors.cloud_run.settling import EXECUTION, worker_ending
from ork.executors.cloud_run.tracked import may_be_hidden
from ork.executors.cloud_run.units import Member, Unit
from ork.executors.docker.container_documents import DocumentsOf
from ork.executors.docker.outcome import finish
from ork.executors.docker.retrying import retrying_call
from ork.executors.executor import GroupOrder, NotStarted, Presence
from ork.model.ids import AttemptKey
from ork.model.task import Attempt, AttemptStatus
from ork.objects.attempt_documents import AttemptDocuments
from ork.objects.calls import DocumentCalls
from ork.objects.documents import sign

Refused = Callable[[AttemptKey, EngineError], NotStarted]


class Groups:
    """The groups of one executor. `in_background` runs a coroutine, `refused` turns an error of the platform into an answer."""

    def __init__(
        self,
        api: CloudRunApi,
        launching: Launching,
        documents: DocumentsOf,
        objects: AttemptDocuments,
        in_background: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
        notify: Callable[[AttemptKey], None],
        refused: Refused,
        *,
        workers_call: bool,
    ) -> None:
        self._api = api
        self._launching = launching
        self._documents = documents
        self._objects = objects
        self._calls = DocumentCalls(objects)
        self._in_background = in_background
        self._notify = notify
        self._refused = refused
        self._workers_call = workers_call
        self._units: dict[str, Unit] = {}
        self._finding: dict[str, asyncio.Lock] = {}

    # ── starting ─────────────────────────────────────────────────────────────────────────────────

    def start(self, groups: Sequence[GroupOrder]) -> tuple[list[NotStarted], list[asyncio.Task[None]]]:
        """Start in the background. Returns the problems of earlier starts, each once, and what is under way."""
        problems: list[NotStarted] = []
        begun = []
        for group in groups:
            unit = self._units.get(group.id)
            if unit is not None and unit.problem is not None:
                problems += self.problems([group])
            elif unit is None or unit.is_settled:
                unit = self._add(group.id, [order.attempt for order in group.orders])
                unit.work = self._in_background(self._start_one(unit, group))
                begun.append(unit.work)
            else:
                self._join(unit, [order.attempt for order in group.orders])
        return problems, begun

    def problems(self, groups: Sequence[GroupOrder]) -> list[NotStarted]:
        """Why groups were not started; told once."""
        found = []
        for group in groups:
            unit = self._units.get(group.id)
            if unit is not None and unit.problem is not None:
                why, final = unit.problem.why, unit.problem.final
                found += [NotStarted(order.attempt.key, why, final) for order in group.orders]
                self._drop(unit)
        return found

    async def _start_one(self, unit: Unit, group: GroupOrder) -> None:
        first = group.orders[0].attempt
        try:
            is_known = not all(order.is_new for order in group.orders) and await self._found(unit, first)
            if not is_known:
                try:
                    unit.begin(await self._launching.start_group(group, self._documents(first)))
                except EngineError as error:
                    if not is_ambiguous(error) or not await self._found(unit, first):
                        raise
            unit.follower = asyncio.ensure_future(self._follow(unit))
        except (DocumentError, UsageError) as error:
            unit.problem = NotStarted(first.key, error.message, final=True)
        except ObjectsError as error:
            unit.problem = NotStarted(first.key, error.message, final=False)
        except EngineError as error:
            unit.problem = self._refused(first.key, error)
        if unit.problem is not None:
            for member in unit.open_members():
                self._notify(member.attempt.key)

    async def _found(self, unit: Unit, attempt: Attempt) -> bool:
        """True if there is an execution of the group that is not over. Its Job may have any parallelism, so all are searched."""
        listed = await self._launching.listed(self._api.place.job("-"), attempt.dispatched_at)
        alive = [each for each in listed if each.group == unit.id and not each.state.is_over]
        if alive:
            unit.note(alive[0])
        return bool(alive)

    def _add(self, id: str, attempts: Sequence[Attempt]) -> Unit:
        unit = self._units[id] = Unit(id)
        self._join(unit, attempts)
        return unit

    def _join(self, unit: Unit, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            if attempt.key not in unit.members:
                unit.members[attempt.key] = Member(attempt)

    # ── finding ──────────────────────────────────────────────────────────────────────────────────

    async def find(self, attempts: Sequence[Attempt]) -> dict[AttemptKey, Presence]:
        by_group: dict[str, list[Attempt]] = {}
        for attempt in attempts:
            if attempt.group is not None:
                by_group.setdefault(attempt.group.id, []).append(attempt)
        found: dict[AttemptKey, Presence] = {}
        for presences in await asyncio.gather(*(self._find_group(id, group) for id, group in by_group.items())):
            found |= presences
        return found

    async def _find_group(self, id: str, attempts: Sequence[Attempt]) -> dict[AttemptKey, Presence]:
        try:
            unit = await self._unit_of(id, attempts)
            if unit is None:
                return {attempt.key: Presence.GONE for attempt in attempts}
            self._join(unit, attempts)
            for attempt in attempts:
                unit.members[attempt.key].attempt = attempt
            if not unit.is_busy:
                await self._look(unit, max_age=unit.max_age())
                await self._read_gates(unit)
                if unit.problem is not None or unit.is_settled:
                    await self._look_for_another(unit)
            return {attempt.key: _presence(unit, unit.members[attempt.key]) for attempt in attempts}
        except (EngineError, ObjectsError, UsageError):
            return {attempt.key: Presence.UNKNOWN for attempt in attempts}

    async def _look_for_another(self, unit: Unit) -> None:
        """An execution that was started twice, or whose start seemed to fail, may win gates at any time. So GONE is answered
        only after a look at them."""
        begun = [each for each in unit.open_members() if each.has_begun]
        await self._mark_over(begun)
        winner = await self._by_gate([each.attempt for each in begun if not each.is_over])
        if winner is not None:
            unit.problem, unit.is_settled = None, False
            unit.follow(winner)
            if unit.follower is None or unit.follower.done():
                unit.follower = asyncio.ensure_future(self._follow(unit))

    async def watch(self, attempts: Sequence[Attempt]) -> None:
        await self.find(attempts)

    async def _unit_of(self, id: str, attempts: Sequence[Attempt]) -> Unit | None:
        """The group's unit; None if nothing of it is alive, and none of the attempts has begun."""
        async with self._finding.setdefault(id, asyncio.Lock()):
            if id in self._units:
                return self._units[id]
            unit = Unit(id)
            if not await self._found(unit, attempts[0]):
                unit.execution = await self._by_gate(attempts)
                if unit.execution is None:
                    return None
            self._units[id] = unit
            self._join(unit, attempts)
            unit.follower = asyncio.ensure_future(self._follow(unit))
            return unit

    async def _by_gate(self, attempts: Sequence[Attempt]) -> str | None:
        """The execution that the gate of one of the attempts names."""
        for attempt in attempts:
            documents = self._documents(attempt)
            if await self._calls.call(documents.is_over):
                continue
            gate = await self._calls.call(documents.gate) or {}
            if gate.get(EXECUTION) and gate.get("job"):
                return f"{self._api.place.job(gate['job'])}/executions/{gate[EXECUTION]}"
        return None

    # ── looking ──────────────────────────────────────────────────────────────────────────────────

    async def _follow(self, unit: Unit) -> None:
        while not unit.is_settled:
            is_quiet = self._workers_call and unit.seen is not None and unit.seen.state is ExecutionState.RUNNING
            wait = None if is_quiet else max(0.0, unit.looked_at + unit.interval - time.monotonic())
            unit.changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await unit.changed.wait()
            with contextlib.suppress(EngineError, ObjectsError):
                await self._look(unit)
            unit.stretch()

    async def _look(self, unit: Unit, max_age: float = 0.0) -> None:
        async with unit.looking:
            if unit.execution is None or unit.is_settled or time.monotonic() - unit.looked_at < max_age:
                return
            execution = await self._api.execution(unit.execution)
            unit.looked_at = time.monotonic()
            if execution is None and may_be_hidden(unit.begun_at):
                return
            forgotten = Seen(unit.execution, None, ExecutionState.FAILED, "the platform has forgotten the execution")
            before = unit.note(seen(execution) if execution is not None else forgotten)
            await self._read_gates(unit)
            assert unit.seen is not None
            if unit.seen.state.is_over:
                winner = await self._settle(unit, unit.seen)
                if winner is not None:
                    unit.follow(winner)
                    return
                unit.is_settled = True
                for member in unit.open_members():
                    self._notify(member.attempt.key)
            elif before is None or unit.seen.ended != before.ended:
                await self._note_ends(unit, unit.seen)

    async def _read_gates(self, unit: Unit) -> None:
        """Which attempts have begun, of those that the platform can have started."""
        open_ones = [each for each in unit.startable() if not each.has_begun]
        if not open_ones:
            return
        gates = await self._calls.call(self._objects.read_gates, [str(each.attempt.key) for each in open_ones])
        for member, data in zip(open_ones, gates, strict=True):
            if isinstance(data, ObjectsError):
                raise data
            if data is not None:
                gate = await self._calls.call(self._documents(member.attempt).gate) or {}
                member.has_begun, member.is_closed = gate.get("state") == "started", gate.get("state") == "closed"

    async def _note_ends(self, unit: Unit, now: Seen) -> None:
        """Some tasks have ended: report those with a last status, and write one for those that the platform ended."""
        begun = [each for each in unit.open_members() if each.has_begun]
        await self._mark_over(begun)
        if now.failed > unit.failures_seen:
            unit.failures_seen = now.failed
            ended = await self._api.ended_tasks(now.name)
            for member in begun:
                position = unit.position(member)
                if not member.is_over and position in ended:
                    await self._finish(member, Seen(now.name, None, ExecutionState.FAILED, ended[position]))
        for member in begun:
            if member.is_over:
                self._notify(member.attempt.key)

    async def _mark_over(self, members: Sequence[Member]) -> None:
        asked = (self._calls.call(self._documents(member.attempt).is_over) for member in members)
        for member, is_over in zip(members, await asyncio.gather(*asked), strict=True):
            member.is_over = is_over

    async def _settle(self, unit: Unit, now: Seen) -> str | None:
        """The execution has ended: whoever had begun and left no last status was ended by the platform. Returns another
        execution of the group, in which somebody has begun: it may be alive, so it has to be looked at next."""
        begun = [each for each in unit.open_members() if each.has_begun]
        await self._mark_over(begun)
        for member in begun:
            if not member.is_over:
                await self._finish(member, now)
        return await self._by_gate([each.attempt for each in begun if not each.is_over])

    async def _finish(self, member: Member, now: Seen) -> None:
        """Write the last status of an attempt that began in this execution. Where the start was asked for twice, it may be another."""
        documents = self._documents(member.attempt)
        gate = await retrying_call(documents, documents.gate) or {}
        if gate.get(EXECUTION) == now.name.rpartition("/")[2]:
            await finish(documents, worker_ending(now, await self._calls.call(documents.log_tail)), now.started_at)
            member.is_over = True

    # ── ending ───────────────────────────────────────────────────────────────────────────────────

    async def stop(self, attempt: Attempt, *, at_once: bool) -> None:
        """Ask the attempt's worker to stop. The execution is cancelled only when nobody else of the group is left."""
        assert attempt.group is not None
        unit = await self._unit_of(attempt.group.id, [attempt])
        if unit is None or unit.is_settled:
            return
        self._join(unit, [attempt])
        member = unit.members[attempt.key]
        member.attempt, member.is_asked = attempt, True
        request = {"v": 1, "attempt": str(attempt.key), "why": str(attempt.closing or "stop"), "at_once": at_once}
        await self._calls.call(self._objects.request_stop, str(attempt.key), sign(request, attempt.token_hash))
        if unit.work is not None:
            await asyncio.wait([unit.work])
        if unit.execution is not None and unit.is_unwanted():
            await self._api.cancel(unit.execution)
        unit.look_soon()

    def release(self, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            unit = self._units.get(attempt.group.id) if attempt.group is not None else None
            if unit is not None:
                unit.release(attempt.key)
                if not unit.members:
                    self._drop(unit)

    def _drop(self, unit: Unit) -> None:
        unit.close()
        self._units.pop(unit.id, None)
        self._finding.pop(unit.id, None)

    def close(self) -> None:
        for unit in self._units.values():
            unit.close()


def _presence(unit: Unit, member: Member) -> Presence:
    if unit.problem is not None or unit.is_settled or member.is_over:
        return Presence.GONE
    if member.has_begun or member.attempt.status is AttemptStatus.RUNNING:
        return Presence.RUNNING
    return Presence.QUEUED if member.attempt.closing is None and not member.is_closed else Presence.GONE
