"""Polls external jobs for attempts that wait without a worker, and writes the final status of these attempts.

The observer uses it as an executor (`ork.scheduler.waiting`) that can find, watch and stop such attempts. All it needs
is in the attempt's row (`waits_for`) and documents, so any scheduler that owns the run can continue.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from ork.errors import DocumentError, ExecutorError, ObjectsError, StoreError
from ork.executors.executor import DEFERRED, LaunchOrder, ReportedStatus, StatusCallback
from ork.model.ids import AttemptKey, RunId
from ork.model.outbound import OutboundRule
from ork.model.record import Record, made
from ork.model.run import CommandKind, RunCommand
from ork.model.task import Attempt, Failure, FailureKind
from ork.model.types import check
from ork.objects import documents
from ork.objects.attempt_documents import AttemptDocuments
from ork.objects.calls import DocumentCalls
from ork.scheduler.child_output import output_of_run
from ork.scheduler.poll_jobs import AskProcess, Done, Handover, JobFailed, JobResult, Jobs, NotYet
from ork.scheduler.sensitive import all_opened
from ork.sdk.defer import checked_job
from ork.state.scheduling import RunRequests

RUN_CHECK_SECONDS = 30.0
WRITE_AGAIN_SECONDS = 1.0
SETTLE_SECONDS = 0.01
RUNNING = "running"
# After that the handover is considered gone, and the attempt counts as lost.
MAX_STALE_READS = 60


class _Wait(Record, frozen=False):
    attempt: Attempt
    jobs: list[dict[str, Any]]
    handover: Handover
    on_status: StatusCallback
    task: asyncio.Task[None] | None = None
    is_stopping: bool = False
    unfinished: set[int] = made(default_factory=set)
    checked_once: asyncio.Event = made(default_factory=asyncio.Event)  # every job has been polled once


class Poller:
    def __init__(
        self,
        store: RunRequests,
        objects: AttemptDocuments,
        *,
        secrets: Callable[[str, str], str],
        rule: OutboundRule,
        ask_process: AskProcess,
        on_change: Callable[[], None],
    ) -> None:
        self._store = store
        self._objects = objects
        self._calls = DocumentCalls(objects)
        self._on_change = on_change
        self._jobs = Jobs(secrets, rule, ask_process, self._opened_params)
        self._waits: dict[AttemptKey, _Wait] = {}
        self._run_changes: dict[RunId, asyncio.Event] = {}
        self._finished = 0

    async def _opened_params(self, id: RunId) -> dict[str, str]:
        run = await self._store.get_run(id)
        return {} if run is None else all_opened(run, await self._store.signing_key())

    def is_waiting(self, key: AttemptKey) -> bool:
        return key in self._waits

    async def watch(self, attempts: Sequence[Attempt], on_status: StatusCallback) -> None:
        """Poll the jobs of these attempts. Can be repeated. Jobs of an attempt that is being given up are not polled; they
        are cancelled by `stop`."""
        await self._calls.for_each(lambda attempt: self._watch_one(attempt, on_status), attempts)

    async def _watch_one(self, attempt: Attempt, on_status: StatusCallback) -> None:
        if attempt.key in self._waits or attempt.waits_for is None:
            return
        wait = await self._begin(attempt, attempt.waits_for, on_status)
        if wait.task is not None or wait.is_stopping:
            return  # another call began it while we read the spec
        if attempt.closing is None:
            wait.task = asyncio.create_task(self._wait_for(wait))
        else:
            wait.checked_once.set()

    async def has_active_runs(self, attempt: Attempt) -> bool:
        """True if a run that the attempt waits for has not ended, even if this poller does not watch the attempt."""
        runs = [await self._store.get_run(RunId(job["run"])) for job in _jobs_of(attempt) if "run" in job]
        return any(run is not None and not run.status.is_final for run in runs)

    async def stop(self, attempts: Sequence[Attempt], *, at_once: bool) -> None:
        """Cancel the jobs. Runs are also waited for, since the next attempt must not overlap with them."""
        for attempt in attempts:
            wait, is_for_runs = self._waits.get(attempt.key), waits_for_runs(attempt)
            if wait is None and is_for_runs:
                wait = await self._begin(attempt, attempt.waits_for or "[]", _ignore_status)
            if wait is None:
                continue
            if at_once and not is_for_runs:
                self._drop(wait)
            elif not wait.is_stopping:
                wait.is_stopping = True
                _cancel(wait.task)
                wait.task = asyncio.create_task(self._stop(wait))

    def close(self) -> None:
        for wait in list(self._waits.values()):
            self._drop(wait)

    def forget_run(self, run: RunId) -> None:
        """Drop the run's waits: another scheduler may own it now and poll its jobs."""
        for key in [key for key in self._waits if key.run == run]:
            self._drop(self._waits[key])

    def runs_changed(self, runs: Sequence[RunId] | None = None) -> None:
        """These runs, or with None any run, may have changed: attempts that wait for one check it again."""
        for run in list(self._run_changes) if runs is None else runs:
            if run in self._run_changes:
                self._run_changes[run].set()

    async def settle(self) -> bool:
        """Wait until every job has been polled and no poll is under way. True if an attempt has ended.

        For ticks, which exit afterwards.
        """
        before = self._finished
        while any(self._is_busy(wait) for wait in self._waits.values()):
            await asyncio.sleep(SETTLE_SECONDS)
        return self._finished != before

    def _is_busy(self, wait: _Wait) -> bool:
        nudges = (self._run_changes.get(RunId(job.get("run", ""))) for job in wait.jobs)
        return wait.is_stopping or not wait.checked_once.is_set() or any(nudge and nudge.is_set() for nudge in nudges)

    # ── waiting ──────────────────────────────────────────────────────────────────────────────────

    async def _begin(self, attempt: Attempt, jobs: str, on_status: StatusCallback) -> _Wait:
        try:
            data = await self._calls.call(self._objects.read_spec, str(attempt.key))
            if data is None:
                raise ExecutorError(f"the spec of {attempt.key} is gone")
            spec = documents.open_signed(data, attempt.token_hash, limit=documents.SPEC_LIMIT)
        except ObjectsError as problem:
            raise ExecutorError(problem.message) from None
        order = LaunchOrder(attempt, "", spec["root"], paths=tuple(spec.get("paths") or ()))
        handover = Handover(order, spec, self._objects)
        wait = _Wait(attempt, _checked(json.loads(jobs), spec), handover, on_status)
        wait.unfinished = set(range(len(wait.jobs)))
        return self._waits.setdefault(attempt.key, wait)

    async def _wait_for(self, wait: _Wait) -> None:
        """Poll until all jobs are done or one has failed, then write the attempt's final status."""
        asked: set[int] = set()
        works = [asyncio.create_task(self._until_done(wait, number, asked)) for number in range(len(wait.jobs))]
        try:
            text = _output(await asyncio.gather(*works))
            _check_output(text, wait.handover.spec)
        except Exception as problem:
            await _end_all(works)
            await self._cancel_unfinished(wait)
            failure = problem.failure if isinstance(problem, _JobFailedError) else _internal(problem)
            await self._finish(wait, {"state": "failed", "failure": _document(failure)})
        else:
            await self._finish(wait, {"state": "success", "output": text})
        finally:
            wait.checked_once.set()
            await _end_all(works)

    async def _until_done(self, wait: _Wait, number: int, asked: set[int]) -> str | None:
        job, noted = wait.jobs[number], None
        while True:
            answer = await self._ask(job, wait)
            asked.add(number)
            if not isinstance(answer, NotYet):
                wait.unfinished.discard(number)
            if isinstance(answer, JobFailed):
                raise _JobFailedError(answer.failure)
            if len(asked) == len(wait.jobs) and wait.unfinished:
                wait.checked_once.set()  # otherwise only after the final status is written
            if isinstance(answer, Done):
                return answer.text
            if answer.error is not None and answer.error != noted:
                await self._note(wait, f"{answer.error}; asking again every {job.get('every', RUN_CHECK_SECONDS):g} s")
            noted = answer.error
            await self._pause(job)

    async def _ask(self, job: dict[str, Any], wait: _Wait) -> JobResult:
        return await (self._ask_run(job, wait) if "run" in job else self._jobs.ask(job, wait.handover))

    async def _ask_run(self, job: dict[str, Any], wait: _Wait) -> JobResult:
        id = RunId(job["run"])
        self._run_changes.setdefault(
            id, asyncio.Event()
        ).clear()  # cleared before the read, so that a later change is not missed
        try:
            run = await self._store.get_run(id)
            if run is not None and run.status == "success":
                return Done(await output_of_run(self._store, self._objects, run, wait.handover.spec["output_limit"]))
        except (StoreError, ObjectsError) as problem:
            return NotYet(problem.message)
        if run is None:
            return JobFailed(Failure(FailureKind.LOST, f"run {id} of `{job['workflow']}` is gone"))
        if not run.status.is_final:
            return NotYet()
        why = f": {run.error}" if run.error else ""
        message = f"run {id} of `{job['workflow']}` {'was cancelled' if run.status == 'cancelled' else 'failed'}{why}"
        return JobFailed(Failure(FailureKind.EXIT, message, {"run": id}))

    async def _pause(self, job: dict[str, Any]) -> None:
        if "run" not in job:
            await asyncio.sleep(job["every"])
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(RUN_CHECK_SECONDS):
                await self._run_changes[RunId(job["run"])].wait()

    # ── ending ───────────────────────────────────────────────────────────────────────────────────

    async def _stop(self, wait: _Wait) -> None:
        await self._cancel_unfinished(wait)
        stopped = Failure(FailureKind.CANCELLED, "stopped while it waited")
        await self._finish(wait, {"state": "stopped", "failure": _document(stopped)})

    async def _cancel_unfinished(self, wait: _Wait) -> None:
        """Cancel each job that is not finished."""
        jobs = [wait.jobs[number] for number in sorted(wait.unfinished)]
        for job, error in zip(jobs, await asyncio.gather(*(self._cancel(job, wait) for job in jobs)), strict=True):
            if error is not None:
                await self._note(wait, f"could not cancel {_describe_job(job)}: {error}")

    async def _cancel(self, job: dict[str, Any], wait: _Wait) -> str | None:
        if "run" not in job:
            return await self._jobs.cancel(job, wait.handover)
        command = RunCommand(RunId(job["run"]), CommandKind.CANCEL, by=f"task {wait.attempt.key.task}")
        while True:
            try:
                await self._store.submit_command(command, datetime.now(UTC))
                break
            except StoreError:
                await asyncio.sleep(WRITE_AGAIN_SECONDS)
        self._on_change()
        # Wait until its processes are gone: the scheduler that works on it may exit when we are done.
        while isinstance(await self._ask_run(job, wait), NotYet):
            await self._pause(job)
        return None

    async def _finish(self, wait: _Wait, ending: dict[str, Any]) -> None:
        """Write the attempt's final status, with the sequence number after the worker's. Retried until it is written."""
        stale = 0
        while stale < MAX_STALE_READS:
            try:
                if await self._calls.call(self._write, wait, ending):
                    break
                stale += 1
            except DocumentError:
                break  # the stored status is not the worker's: it cannot be continued, and the attempt counts as lost
            except ObjectsError:
                pass  # a temporary error, such as a full disk
            await asyncio.sleep(WRITE_AGAIN_SECONDS)
        wait.task = None
        self._finished += 1
        self._drop(wait)
        wait.on_status(wait.attempt.key)

    def _write(self, wait: _Wait, ending: dict[str, Any]) -> bool:
        """Write the final status. True if there is one now, also if another scheduler wrote it. False if the status that
        was read is older than the handover in the attempt's row."""
        attempt, name = wait.attempt, str(wait.attempt.key)
        (data,) = self._objects.read_statuses([name])
        if isinstance(data, ObjectsError):
            raise data
        handed_over = documents.open_signed(data, attempt.token_hash) if data is not None else {}
        if handed_over.get("state") != DEFERRED:
            return handed_over.get("state") not in (None, RUNNING)  # True: another scheduler has written it
        text = ending.get("output")
        if text is not None:
            ending = {**ending, "output": self._stored(text, name, wait.handover.spec["inline_limit"])}
        at = datetime.now(UTC).isoformat()
        kept = {name: value for name, value in handed_over.items() if name != "jobs"}
        status = {**kept, "seq": handed_over["seq"] + 1, "at": at, "finished_at": at, **ending}
        self._objects.put_last_status(name, documents.sign(status, attempt.token_hash))
        return True

    def _stored(self, text: str, attempt: str, inline_limit: int) -> dict[str, Any]:
        if len(text) <= inline_limit:
            return {"inline": text}
        data = text.encode()
        return {"object": self._objects.put_output(attempt, data), "size": len(data)}

    def _drop(self, wait: _Wait) -> None:
        _cancel(wait.task)
        wait.checked_once.set()
        self._waits.pop(wait.attempt.key, None)
        for job in wait.jobs:
            self._run_changes.pop(RunId(job.get("run", "")), None)

    async def _note(self, wait: _Wait, text: str) -> None:
        with contextlib.suppress(ObjectsError):
            line = f"ork: {text}\n".encode()
            await self._calls.call(self._objects.append_log, str(wait.attempt.key), line)


def waits_for_runs(attempt: Attempt) -> bool:
    return any("run" in job for job in _jobs_of(attempt))


def _jobs_of(attempt: Attempt) -> list[dict[str, Any]]:
    jobs: list[dict[str, Any]] = json.loads(attempt.waits_for or "[]")
    return jobs


def _ignore_status(_key: AttemptKey, _status: ReportedStatus | None = None, /) -> None:
    """The scheduler that gave the attempt up checks it by itself."""


def _checked(jobs: list[dict[str, Any]], spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The jobs, validated since they come from a document. Only sub-workflow tasks may wait for runs."""
    if spec["kind"] == "workflow":
        return jobs
    try:
        return [checked_job(job) for job in jobs]
    except ValueError as problem:
        raise ExecutorError(f"not a job: {problem}") from None


class _JobFailedError(Exception):
    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def _output(texts: Sequence[str | None]) -> str | None:
    """The output: the result of the only job, or a list of the results in the order of the jobs."""
    if len(texts) == 1:
        return texts[0]
    return "[" + ",".join("null" if text is None else text for text in texts) + "]"


def _check_output(text: str | None, spec: dict[str, Any]) -> None:
    """Raise _JobFailedError if the result does not have the declared output type."""
    declared = spec.get("output_type")
    if declared is None:
        return
    mismatch = check(None if text is None else json.loads(text), declared, spec.get("types") or {}, "output")
    if mismatch is not None:
        message = f"{mismatch.of_value()} (by `output_type`)"
        raise _JobFailedError(Failure(FailureKind.OUTPUT, message, mismatch.as_json()))


async def _end_all(works: Sequence[asyncio.Task[str | None]]) -> None:
    for work in works:
        work.cancel()
    await asyncio.gather(*works, return_exceptions=True)


def _internal(error: BaseException) -> Failure:
    return Failure(FailureKind.INTERNAL, f"waiting failed: {type(error).__name__}: {error}")


def _document(failure: Failure) -> dict[str, Any]:
    return {"kind": str(failure.kind), "message": failure.message[:4000].replace("\0", "\\0"), "detail": failure.detail}


def _describe_job(job: dict[str, Any]) -> str:
    """The job for messages, without query and user of a URL, which may contain secrets."""
    if "http" not in job:
        return str(job.get("call") or f"run {job.get('run')}")
    scheme, _, rest = str(job["http"]).partition("?")[0].partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def _cancel(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
