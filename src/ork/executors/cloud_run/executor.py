"""Runs attempts as executions of Cloud Run Jobs, in one place (a region of a project).

Calls of the platform are made in tasks of the event loop, so that they do not delay the scheduler. One list per Job shows how its
executions are; it is read after 2 s at first, then less and less often, and not at all while workers report by themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Sequence
from typing import Any

from ork.errors import DocumentError, EngineError, ObjectsError, StoreError, UsageError
from ork.executors.attempt_rows import AttemptOf, unknown_attempt
from ork.executors.cloud_run import making
from ork.executors.cloud_run.api import TOO_MANY, CloudRunApi
from ork.executors.cloud_run.executions import ExecutionState, Seen, seen
from ork.executors.cloud_run.groups import Groups
from ork.executors.cloud_run.launching import Launching
from ork.executors.cloud_run.leftovers import remove_old_jobs
from ork.executors.cloud_run.settling import EXECUTION, settle
from ork.executors.cloud_run.tracked import Tracked, TrackedAttempts, best_of, may_be_hidden
from ork.executors.docker.container_documents import DocumentsOf
from ork.executors.executor import (
    PLATFORM_TRAITS,
    Executor,
    GroupOrder,
    LaunchOrder,
    NotStarted,
    Presence,
    StatusCallback,
)
from ork.model.ids import AttemptKey
from ork.model.task import Attempt
from ork.model.workflow import CloudRunJob, Container, TaskSpec
from ork.objects.attempt_documents import AttemptDocuments

FIRST_POLL_SECONDS, LONGEST_POLL_SECONDS = 2.0, 30.0
CLOSING_POLL_SECONDS = 1.0
POLL_GROWTH = 1.5
_SWEEP_SECONDS, _SWEEP_AGAIN_SECONDS = 3600.0, 60.0  # after one that worked, and one that failed
_LAST_START_SECONDS = 60.0  # for a tick, which closes right after `start`
_LONGEST_PAUSE_SECONDS = 60.0
_SETTLE_SECONDS = 5.0


class _JobPoll:
    """When the executions of a Job are listed next."""

    def __init__(self) -> None:
        self.interval = FIRST_POLL_SECONDS
        self.listed_at = float("-inf")

    @property
    def due_at(self) -> float:
        return self.listed_at + self.interval


class CloudRunExecutor(Executor):
    """`workers_call`: workers report their ends by a wake URL, so running ones need not be polled. `waits`: for ticks, which end
    soon, `start` and `find` wait for the platform. `attempt_of` returns the row of an attempt by its id, for Jobs that another
    scheduler left."""

    traits = PLATFORM_TRAITS

    def __init__(
        self,
        name: str,
        api: CloudRunApi,
        launching: Launching,
        documents: DocumentsOf,
        objects: AttemptDocuments,
        installation: str,
        *,
        workers_call: bool = False,
        waits: bool = False,
        attempt_of: AttemptOf = unknown_attempt,
    ) -> None:
        self._waits = waits
        self.name = name
        self._api = api
        self._launching = launching
        self._documents = documents
        self._objects = objects
        self._installation = installation
        self._workers_call = workers_call
        self._attempt_of = attempt_of
        self._tracked = TrackedAttempts()
        self._polls: dict[str, _JobPoll] = {}
        self._on_status: StatusCallback | None = None
        self._background: set[asyncio.Task[None]] = set()
        self._poller: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._pause, self._paused_until = 1.0, 0.0  # after the platform refused because of a quota
        self._swept_at = float("-inf")
        self._said: dict[AttemptKey, str] = {}
        self._groups = Groups(
            api,
            launching,
            documents,
            objects,
            self._in_background,
            self._notify,
            self._refused,
            workers_call=workers_call,
        )

    def name_for(self, attempt: AttemptKey) -> str:
        return self._api.place.external_name(attempt)

    # ── starting ─────────────────────────────────────────────────────────────────────────────────

    async def start(self, orders: Sequence[LaunchOrder], on_status: StatusCallback) -> Sequence[NotStarted]:
        """Starts in the background. A problem is returned by the next `start` of the attempt, which the scheduler makes as soon as
        it learns that nothing of the attempt is alive."""
        self._on_status = on_status
        self._begin_polling()
        problems = self._problems(orders)
        begun = []
        for order in orders:
            tracked = self._tracked.get(order.attempt.key)
            if order.attempt.key not in problems and (tracked is None or self._has_ended(tracked)):
                tracked = Tracked(order.attempt, self._documents(order.attempt))
                self._tracked.add(tracked)
                tracked.work = self._in_background(self._start_one(tracked, order))
                begun.append(tracked.work)
        if begun and self._waits:
            await asyncio.wait(begun, timeout=_LAST_START_SECONDS)
            problems |= self._problems(orders)
        return list(problems.values())

    def _problems(self, orders: Sequence[LaunchOrder]) -> dict[AttemptKey, NotStarted]:
        """Why attempts were not started. Told once: the next start tries again."""
        found = {}
        for order in orders:
            tracked = self._tracked.get(order.attempt.key)
            if tracked is not None and tracked.problem is not None:
                found[order.attempt.key] = tracked.problem
                self._tracked.forget(order.attempt.key)
        return found

    def group_size(self, task: TaskSpec) -> int:
        """Images in which nothing of ours runs have a Job each."""
        return 0 if isinstance(task.action, Container | CloudRunJob) else self.traits.starts_groups

    async def start_groups(self, groups: Sequence[GroupOrder], on_status: StatusCallback) -> Sequence[NotStarted]:
        self._on_status = on_status
        problems, begun = self._groups.start(groups)
        if begun and self._waits:
            await asyncio.wait(begun, timeout=_LAST_START_SECONDS)
            problems += self._groups.problems(groups)
        return problems

    async def _start_one(self, tracked: Tracked, order: LaunchOrder) -> None:
        key = order.attempt.key
        try:
            tracked.spec = await tracked.documents.calls.call(tracked.documents.spec)
            if tracked.spec is None:
                raise ObjectsError("its spec is not in the object store")
            await asyncio.sleep(max(0.0, self._paused_until - time.monotonic()))
            await self._launching.start(tracked, order)
            self._pause = 1.0
            self._poll_soon(tracked)
        except (DocumentError, UsageError) as error:
            tracked.problem = NotStarted(key, error.message, final=True)
        except ObjectsError as error:
            tracked.problem = NotStarted(key, error.message, final=False)
        except EngineError as error:
            tracked.problem = self._refused(key, error)
            self._say(tracked, tracked.problem.why)
        finally:
            self._notify(key)

    def _refused(self, key: AttemptKey, error: EngineError) -> NotStarted:
        """400, 403 and 404 do not go away by themselves. Quotas do: starts are slowed down until then."""
        if error.status == TOO_MANY or error.status >= 500:
            self._paused_until = time.monotonic() + self._pause * random.uniform(0.5, 1.5)
            self._pause = min(2 * self._pause, _LONGEST_PAUSE_SECONDS)
        is_final = 400 <= error.status < 500 and error.status not in (409, TOO_MANY)
        advice = f" ({error.hint})" if error.hint else ""
        return NotStarted(key, error.message + advice, final=is_final)

    # ── finding ──────────────────────────────────────────────────────────────────────────────────

    async def find(self, attempts: Sequence[Attempt]) -> Sequence[Presence]:
        ours = [each for each in attempts if each.external_name == self.name_for(each.key)]
        grouped = await self._groups.find([each for each in ours if each.group is not None])
        alone = [each for each in ours if each.group is None]
        found = dict(zip((each.key for each in alone), await asyncio.gather(*map(self._find_one, alone)), strict=True))
        return [{**grouped, **found}.get(each.key, Presence.UNKNOWN) for each in attempts]

    async def _find_one(self, attempt: Attempt) -> Presence:
        try:
            tracked = self._tracked.get(attempt.key) or await self._adopted(attempt)
            if tracked is None:
                return Presence.GONE
            tracked.attempt = attempt
            if tracked.is_busy:
                return Presence.RUNNING
            if tracked.problem is None and not tracked.is_settled:
                await self._refresh(tracked)
                work = tracked.work  # its end may be being written
                if self._waits and work is not None and not work.done():
                    await asyncio.wait([work], timeout=_SETTLE_SECONDS)
            return await self._presence(tracked)
        except (EngineError, ObjectsError, UsageError):
            return Presence.UNKNOWN

    async def _presence(self, tracked: Tracked) -> Presence:
        """An execution that was started twice, or whose start seemed to fail, may win the gate at any time. So GONE is answered only after
        a look at the gate."""
        is_open = tracked.problem is None and not tracked.is_settled
        if is_open and (tracked.seen is not None or tracked.execution is not None):
            return Presence.RUNNING  # also if it is not listed yet, and while its end is being written down
        gate = await tracked.documents.calls.call(tracked.documents.gate) or {}
        if gate.get("state") != "started":
            return Presence.GONE
        winner = self._winner(gate)
        if winner is None or (tracked.is_settled and winner[1] == tracked.execution):
            return Presence.UNKNOWN if is_open else Presence.GONE
        if await tracked.documents.calls.call(tracked.documents.is_over):
            return Presence.GONE
        tracked.job, tracked.execution = winner
        tracked.seen, tracked.problem, tracked.is_settled = None, None, False
        self._poll_soon(tracked)
        return Presence.RUNNING

    def _winner(self, gate: dict[str, Any]) -> tuple[str, str] | None:
        """Job and execution that won the gate, which the worker in it names. No listing is needed to find it."""
        if not gate.get(EXECUTION) or not gate.get("job"):
            return None
        job = self._api.place.job(gate["job"])
        return job, f"{job}/executions/{gate[EXECUTION]}"

    async def _adopted(self, attempt: Attempt) -> Tracked | None:
        """Track an attempt that another scheduler started; None if nothing of it is alive."""
        documents = self._documents(attempt)
        spec = await documents.calls.call(documents.spec)
        if spec is None or await documents.calls.call(documents.is_over):
            return None
        tracked = Tracked(attempt, documents)
        tracked.spec = spec
        gate = await documents.calls.call(documents.gate) or {}
        tracked.job = await self._launching.job_of(spec)
        winner = self._winner(gate)
        if winner is not None:
            tracked.job, tracked.execution = winner
        again = self._tracked.get(attempt.key)
        if again is not None:
            return again
        self._tracked.add(tracked)
        self._poll_soon(tracked)
        self._begin_polling()
        return tracked

    async def watch(self, attempts: Sequence[Attempt], on_status: StatusCallback) -> None:
        self._on_status = on_status
        ours = [each for each in attempts if each.external_name == self.name_for(each.key)]
        await self._groups.watch([each for each in ours if each.group is not None])
        for attempt in ours:
            if attempt.group is None and self._tracked.get(attempt.key) is None:
                with contextlib.suppress(ObjectsError, EngineError, UsageError):
                    await self._adopted(attempt)

    # ── ending ───────────────────────────────────────────────────────────────────────────────────

    async def stop(self, attempts: Sequence[Attempt], *, at_once: bool) -> None:
        """Cancels the execution: the platform sends SIGTERM, and SIGKILL ten seconds later. An attempt of a group is asked by its
        documents, so that the others go on."""
        for attempt in attempts:
            if attempt.external_name == self.name_for(attempt.key):
                in_group = attempt.group is not None
                self._in_background(self._stop_member(attempt, at_once) if in_group else self._stop_one(attempt))

    async def _stop_member(self, attempt: Attempt, at_once: bool) -> None:
        with contextlib.suppress(EngineError, ObjectsError, UsageError):
            await self._groups.stop(attempt, at_once=at_once)

    async def _stop_one(self, attempt: Attempt) -> None:
        with contextlib.suppress(EngineError, ObjectsError, UsageError):
            tracked = self._tracked.get(attempt.key) or await self._adopted(attempt)
            if tracked is None or tracked.is_settled:
                return
            tracked.attempt = attempt
            if tracked.is_busy and tracked.work is not None:
                await asyncio.wait([tracked.work])
            if tracked.execution is None:
                await self._refresh(tracked, max_age=0.0)
            if tracked.execution is not None:
                await self._api.cancel(tracked.execution)
            self._poll_soon(tracked)

    def release(self, attempts: Sequence[Attempt]) -> None:
        """Remove the Jobs of plain images. Jobs with a worker serve the next attempts."""
        self._groups.release(attempts)
        for attempt in attempts:
            self._said.pop(attempt.key, None)
            tracked = self._tracked.forget(attempt.key)
            if tracked is not None and (tracked.spec or {}).get("kind") == "container":
                self._polls.pop(tracked.job or "", None)
                self._in_background(self._remove(str(attempt.key)))

    async def _remove(self, attempt: str) -> None:
        with contextlib.suppress(EngineError):
            await self._launching.remove(attempt)

    async def close(self) -> None:
        """Wait a limited time for pending starts and removals. Executions continue."""
        self._on_status = None
        self._groups.close()
        if self._poller is not None:
            self._poller.cancel()
        if self._background:
            _, late = await asyncio.wait(self._background, timeout=_LAST_START_SECONDS)
            for work in late:
                work.cancel()
        self._api.close()

    # ── polling ──────────────────────────────────────────────────────────────────────────────────

    def _begin_polling(self) -> None:
        if self._poller is None:
            self._poller = asyncio.ensure_future(self._poll())

    def _poll_soon(self, tracked: Tracked) -> None:
        if tracked.job is not None:
            poll = self._polls.setdefault(tracked.job, _JobPoll())
            poll.interval = FIRST_POLL_SECONDS
            self._changed.set()

    async def _poll(self) -> None:
        while True:
            self._changed.clear()
            wanted = [job for job in self._tracked.open_jobs() if self._needs_polling(job)]
            due_at = min((self._polls.setdefault(job, _JobPoll()).due_at for job in wanted), default=None)
            wait = None if due_at is None else max(0.0, due_at - time.monotonic())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._changed.wait()
                continue
            now = time.monotonic()
            await asyncio.gather(*(self._look(job) for job in wanted if self._polls[job].due_at <= now))
            if now - self._swept_at > _SWEEP_SECONDS:
                self._swept_at = now
                self._in_background(self._sweep())

    def _needs_polling(self, job: str) -> bool:
        """False while every attempt of the Job has a worker that runs, and calls at its end."""
        open_ones = self._tracked.open_of(job)
        return not self._workers_call or any(
            each.seen is None
            or each.seen.state is not ExecutionState.RUNNING
            or making.is_plain(each.spec or {"kind": ""})
            for each in open_ones
        )

    async def _look(self, job: str) -> None:
        poll = self._polls[job]
        with contextlib.suppress(EngineError, ObjectsError):
            await self._list(job)
        poll.listed_at = time.monotonic()
        poll.interval = min(poll.interval * POLL_GROWTH, LONGEST_POLL_SECONDS)

    async def _refresh(self, tracked: Tracked, max_age: float | None = None) -> None:
        """List the attempt's Job again if the last list is too old. A closing attempt is looked at more often."""
        if tracked.job is None:
            return
        poll = self._polls.setdefault(tracked.job, _JobPoll())
        if max_age is None:
            max_age = CLOSING_POLL_SECONDS if tracked.attempt.closing is not None else poll.interval
        if time.monotonic() - poll.listed_at >= max_age or (tracked.seen is None and tracked.execution is None):
            poll.listed_at = time.monotonic()
            await self._list(tracked.job)

    async def _list(self, job: str) -> None:
        """One list, for all attempts of the Job that are not over."""
        tracked = self._tracked.open_of(job)
        if not tracked:
            return
        since = min(each.attempt.dispatched_at for each in tracked)
        listed = await self._launching.listed(job, since)
        await asyncio.gather(*(self._note(each, listed) for each in tracked))

    async def _note(self, tracked: Tracked, listed: list[Seen]) -> None:
        before = tracked.seen
        found = best_of(listed, str(tracked.attempt.key), tracked.execution)
        if found is None and tracked.execution is not None:
            found = await self._by_name(tracked)  # the list may be late, or leave out what is old
        elif found is None and not making.is_plain(tracked.spec or {"kind": ""}):
            return
        if found is None:
            if tracked.execution is None and await self._launching.is_in_doubt(tracked):
                self._settle_later(tracked, self._launching.resolve_doubt(tracked))
            return
        tracked.note(found)
        if found.state is ExecutionState.PENDING and found.message:
            self._say(tracked, f"Cloud Run: {found.message}")
        if found.state.is_over:
            self._settle_later(tracked, self._settle(tracked, found))
        elif before is None or before.state is not found.state:
            self._notify(tracked.attempt.key)

    async def _by_name(self, tracked: Tracked) -> Seen | None:
        assert tracked.execution is not None
        execution = await self._api.execution(tracked.execution)
        if execution is not None:
            return seen(execution)
        if may_be_hidden(tracked.begun_at):
            return None
        words = "the platform has forgotten the execution"
        return Seen(tracked.execution, str(tracked.attempt.key), ExecutionState.FAILED, words)

    async def _settle(self, tracked: Tracked, found: Seen) -> None:
        if not await settle(tracked, found, self._api, self._objects):
            tracked.seen = None  # another execution won the gate, whose name is known now
            return
        tracked.is_settled = True

    def _settle_later(self, tracked: Tracked, work: Any) -> None:
        """In the background: the object store may be away for a while."""
        if tracked.work is not None and not tracked.work.done():
            work.close()
            return

        async def settled() -> None:
            with contextlib.suppress(EngineError, ObjectsError):
                await work
            self._notify(tracked.attempt.key)

        tracked.work = self._in_background(settled())

    async def _sweep(self) -> None:
        try:
            await remove_old_jobs(self._api, self._installation, self._attempt_of, self._launching.uses)
        except (EngineError, StoreError, ObjectsError):
            self._swept_at = time.monotonic() - _SWEEP_SECONDS + _SWEEP_AGAIN_SECONDS

    # ── small parts ──────────────────────────────────────────────────────────────────────────────

    def _has_ended(self, tracked: Tracked) -> bool:
        return tracked.is_settled or (tracked.execution is None and not tracked.is_busy)

    def _say(self, tracked: Tracked, words: str) -> None:
        """Write why the attempt has not begun into its log, in the platform's words: `ork why` shows the last of them."""
        if self._said.get(tracked.attempt.key) != words:
            self._said[tracked.attempt.key] = words
            self._in_background(self._note_in_log(tracked, words))

    async def _note_in_log(self, tracked: Tracked, words: str) -> None:
        with contextlib.suppress(ObjectsError):
            await tracked.documents.calls.call(tracked.documents.note, words)

    def _notify(self, key: AttemptKey) -> None:
        if self._on_status is not None:
            self._on_status(key)

    def _in_background(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task
