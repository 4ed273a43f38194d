"""The shim supervises the user's process from its start to the terminal status, with or without a scheduler.

It has one thread: one poll over signals and pipes. As a subreaper it adopts the orphans of the attempt, and it writes the terminal
status only when no process of the attempt is left, in any session.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import select
import time

from ork.errors import DocumentError, ObjectsError
from ork.objects.documents import open_signed
from ork.system import system
from ork.worker.supervise.log import Log
from ork.worker.supervise.process import has_waited, is_dbt
from ork.worker.supervise.status import Ending, StatusWriter, failed
from ork.worker.system import processes
from ork.worker.system.processes import Signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from typing import Any

    from ork.model.masking import Mask
    from ork.objects.attempt_documents import AttemptDocuments
    from ork.objects.documents import Signer
    from ork.worker.build.preparation import Preparation
    from ork.worker.supervise.guard import Guard
    from ork.worker.supervise.job import Host, Job

LEFTOVER_GRACE_SECONDS = 1.0
FORK_SERVER_GRACE_SECONDS = 1.0
# A task that ends before this reports its start and its end in one document.
FIRST_BEAT_SECONDS = 0.1
# Until then the shim reads neither replies nor stop requests: most tasks are over by then, and each message would wake it.
LISTEN_AFTER_SECONDS = 0.01
PREPARATION_SECONDS = 3600.0
_KILL_AGAIN_SECONDS = 0.02
_RETRY_BEAT_SECONDS = 1.0
_MOST_READS = 64  # more than any pipe holds
_NEVER = float("inf")
_SECRET_PREFIXES = ("ORK_SECRET_", "ORK_PARAM_")  # of secrets, and of sensitive params


class Shim:
    _is_subreaper = False
    _main = 0
    _main_status: int | None = None
    _has_returned = False  # the function has returned
    is_swift = False  # the user's process is known never to have waited for anything
    _are_all_gone = False
    _ending: Ending | None = None  # decided by the shim: stopped, timed out, fenced
    _kill_at: float | None = None
    _is_asked = False  # SIGTERM has been sent
    _is_killing = False
    _mask: Mask | None = None  # of the task's secrets
    _preparation: Preparation | None = None  # keeps what was built from being pruned

    def __init__(
        self,
        objects: AttemptDocuments,
        spec: dict[str, Any],
        signer: Signer,
        host: Host | None = None,
        job: Job | None = None,
        since: float | None = None,
        began_at: str | None = None,
    ) -> None:
        """`job` replaces the one that the spec describes. `since` and `began_at` are the time of an earlier start, by two clocks."""
        self._objects = objects
        self._spec = spec
        self._signer = signer
        self._host = host
        self._given_job = job
        self._since = since
        if host is None:  # a reusable worker never gets secrets
            self._mask = _mask_of_secrets(os.environ)
        self._signals = host.signals if host else Signals()
        self._status = StatusWriter(objects, spec, signer, host.report_status if host else None, began_at)

    def run(self) -> bool:
        """Run the attempt to its end. Returns whether the terminal status was written."""
        self._is_subreaper = processes.become_subreaper()
        job, log, guard = self._given_job, self._make_log(), None
        try:
            if not system.CHILDREN_DIE_WITH_PARENT:
                guard = _make_guard()
            if job is None:
                job = _job_of(self._spec, self._host)(self._objects, self._spec, self._host)
            if self._spec.get("limits") and not (system.HAS_LIMITS or self._spec.get("container")):
                log.note("memory and processors are not limited on this system")
            ending = self._prepare(log) or self._perform(job, log, self._spec["timeout"])
        except Exception as error:
            ending = self._own_fault(error, log)
        is_written = self._finish(ending, log)
        if job is not None:
            job.clean()
        if guard is not None:
            guard.dismiss()
        if self._preparation is not None:
            self._preparation.release()
        return is_written

    def _finish(self, ending: Ending, log: Log) -> bool:
        terms = self._signals.terms
        is_log_whole = log.flush()
        self._upload(log, terms)  # readers of the last status expect the whole log
        if self._mask is not None and ending.failure is not None:
            ending.failure = self._mask.value(ending.failure)
        is_written = self._status.finish(ending, is_asked_to_end=lambda: self._signals.terms > terms)
        if not is_log_whole:
            log.flush_at_last(is_asked_to_end=lambda: self._signals.terms > terms)
        log.close()
        return is_written

    def _upload(self, log: Log, terms: int) -> None:
        """Upload the rest of the log, until we are asked to go. A long log takes its time, so heartbeats go on."""
        next_beat = time.monotonic() + self._spec["heartbeat_seconds"]
        while log.upload() and self._signals.terms == terms:
            if time.monotonic() >= next_beat:
                next_beat = time.monotonic() + self._spec["heartbeat_seconds"]
                try:
                    self._status.beat()
                except ObjectsError:
                    continue

    def _make_log(self) -> Log:
        # In a container the output is also copied to the engine, which makes it available while the task runs.
        echo = None if self._spec.get("container") is None else 1
        return Log(self._objects.open_log(self._spec["attempt"]), echo, self._mask)

    def _prepare(self, log: Log) -> Ending | None:
        """Build the task's environment or program, once for all tasks. Returns the ending if that failed, else None."""
        if self._spec.get("environment") is None and self._spec["kind"] != "rust":
            return None
        from ork.worker.build.preparation import Preparation

        self._preparation = preparation = Preparation(self._objects, self._spec)
        ending = preparation.look()
        if ending is not None:
            return ending
        if not preparation.is_ready():
            self._status.is_preparing = True
            ending = self._perform(preparation, log, PREPARATION_SECONDS)
            self._status.is_preparing = False
            if ending.state != "success":
                return ending
            self._forget_process()
        preparation.settle()
        return None

    def _forget_process(self) -> None:
        self._main_status = self._kill_at = None
        self._has_returned = False
        self._are_all_gone = self._is_asked = self._is_killing = False

    def _perform(self, job: Job, log: Log, timeout: float | None) -> Ending:
        if self._signals.terms and not job.is_started:
            return _stopped("asked by the scheduler")
        started = job.start(log)
        if isinstance(started, Ending):
            return started
        self._main = started
        self._watch(job, log, timeout)
        ending = self._ending or job.ending(self._main_status or 0)
        self.is_swift = self.is_swift or job.is_swift
        return ending

    def _own_fault(self, error: Exception, log: Log) -> Ending:
        """Handle an internal error: end the task and report it, so that the scheduler does not wait."""
        import traceback

        text = traceback.format_exc().encode("utf-8", "replace")
        log.write(text if self._mask is None else self._mask.data(text))
        self._signal_all(_signal.SIGKILL)
        return failed("internal", f"the worker failed: {type(error).__name__}: {error}")

    def _watch(self, job: Job, log: Log, timeout: float | None) -> None:
        """Supervise until no process of the attempt is alive and every pipe is empty."""
        now = time.monotonic()
        deadline = _NEVER if timeout is None else (self._since or now) + timeout
        heard_at, next_beat = awake_seconds(), now + FIRST_BEAT_SECONDS
        readers = job.pipes()
        late = [] if job.reply < 0 else [job.reply]
        if self._host is not None:
            readers[self._host.descriptor] = self._host.look
            late.append(self._host.descriptor)
        # Nothing needs to be checked right after the start.
        listens_at = (self._since or now) + LISTEN_AFTER_SECONDS if late else _NEVER
        poller = self._poller(readers, late)
        # A process that had started before may already have ended.
        pause = 0.0 if job.is_started else self._pause(now, min(next_beat, listens_at), deadline)
        while True:
            for descriptor, _ in poller.poll(pause):
                if descriptor == self._signals.wake:
                    self._signals.quiet()
                elif not readers[descriptor]():
                    poller.unregister(descriptor)
            now = time.monotonic()
            self._has_returned = job.is_over or self._main_status is not None
            if now >= next_beat:
                heard_at, next_beat = self._beat(now, heard_at)
            self._judge(now, timeout, deadline)
            self._reap(job, now)
            if self._are_all_gone or (job.is_over and self._is_done_with(job, now)):
                break
            self._press(now, job.fork_server)
            log.tend(now)
            if now >= listens_at:
                for descriptor in late:
                    poller.register(descriptor, select.POLLIN)
                listens_at = _NEVER
            pause = self._pause(now, min(next_beat, listens_at), deadline, log.due(now))
        if listens_at != _NEVER:
            for descriptor in late:
                poller.register(descriptor, select.POLLIN)
        _empty(poller, readers)
        log.let_go()

    def _poller(self, readers: Iterable[int], late: Collection[int]) -> select.poll:
        poller = select.poll()
        poller.register(self._signals.wake, select.POLLIN)
        for descriptor in readers:
            if descriptor not in late:
                poller.register(descriptor, select.POLLIN)
        return poller

    def _pause(self, now: float, at_latest: float, deadline: float, log_due: float | None = None) -> float:
        """Milliseconds until something must be done even if nothing happens."""
        until = at_latest if log_due is None else min(at_latest, log_due)
        if self._ending is None:
            until = min(until, deadline)
        if self._kill_at is not None:
            until = min(until, now + _KILL_AGAIN_SECONDS if self._is_killing else self._kill_at)
        return max(0.0, until - now) * 1000 + 1

    def _beat(self, now: float, heard_at: float) -> tuple[float, float]:
        """Write a heartbeat, then check for a stop request. Returns when the last one was written, and when the next is due.

        The order matters: a scheduler that gives an attempt up writes the stop request before it reads the status for
        the last time, so at least one of the two sees the other. A task without heartbeats for the fence time is ended at
        once, unless a heartbeat can be written now and there is no stop request: then this machine was suspended.
        """
        awake, next_beat = awake_seconds(), now + _RETRY_BEAT_SECONDS
        silent = awake - heard_at
        is_fenced = silent > self._spec["fence_seconds"]
        try:
            self._status.beat()
            heard_at, next_beat = awake, now + self._spec["heartbeat_seconds"]
            self._look_for_stop(now, at_once=is_fenced)
        except ObjectsError:
            if is_fenced:
                silence = f"no heartbeat could be written for {silent:.0f}s; the task was stopped"
                self._end(failed("lost", silence), now, at_once=True)
        return heard_at, next_beat

    def _look_for_stop(self, now: float, *, at_once: bool) -> None:
        data = self._objects.read_stop(self._spec["attempt"])
        try:
            stop = open_signed(data, self._signer.token_hash) if data is not None else None
        except DocumentError:
            return
        if stop is None or stop.get("attempt") != self._spec["attempt"]:
            return
        self._end(_stopped(str(stop.get("why"))), now, at_once=at_once or stop.get("at_once") is True)

    def _judge(self, now: float, timeout: float | None, deadline: float) -> None:
        """End the task if its timeout has passed."""
        if self._signals.terms:
            self._end(_stopped("asked by the scheduler"), now)
        if now >= deadline:
            self._end(_timed_out(timeout), now)

    def _end(self, ending: Ending, now: float, *, at_once: bool = False) -> None:
        """End the task. The first reason is kept; a later one can only shorten the grace time."""
        if self._has_returned and self._ending is None:
            return
        self._ending = self._ending or ending
        kill_at = now if at_once else now + self._spec["stop_grace_seconds"]
        self._kill_at = kill_at if self._kill_at is None else min(self._kill_at, kill_at)

    def _reap(self, job: Job, now: float) -> None:
        if job.main_status is not None and not system.has_other_children(job.fork_server):
            # Its orphans would have become our children before its end was reported: there are none.
            self._main_status, self._are_all_gone = job.main_status, True
            return
        try:
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    break
                if pid == self._main:
                    self._main_status, self.is_swift = status, not has_waited(usage)
        except ChildProcessError:
            # As a subreaper we would have adopted its orphans.
            self._are_all_gone = self._is_subreaper or not self._descendants()
        if job.main_status is not None:
            self._main_status = job.main_status
            self._are_all_gone = not system.has_other_children(job.fork_server)
        if self._main_status is not None and self._kill_at is None:
            self._kill_at = now + LEFTOVER_GRACE_SECONDS

    def _is_done_with(self, job: Job, now: float) -> bool:
        """Whether its process can be reused: not if it is being ended, or if the attempt has other processes left."""
        if self._ending is not None or self._main_status is not None:
            return False
        if job.leaves_nothing or not system.has_other_children(self._main):
            return True
        self._kill_at = self._kill_at or now + LEFTOVER_GRACE_SECONDS
        return False

    def _press(self, now: float, fork_server: int) -> None:
        """Signal the remaining processes: SIGTERM once, then SIGKILL until none is left."""
        if self._kill_at is None:
            return
        if now >= self._kill_at:
            self._is_killing = True
            # If the task fork server was stopped, the end would never be reported.
            self._signal_all(_signal.SIGKILL, fork_server if now < self._kill_at + FORK_SERVER_GRACE_SECONDS else 0)
        elif not self._is_asked:
            self._is_asked = True
            self._signal_all(_signal.SIGTERM, fork_server)

    def _descendants(self) -> list[int]:
        return system.descendants(b"ORK_ATTEMPT_ID=" + str(self._spec["attempt"]).encode())

    def _signal_all(self, number: int, fork_server: int = 0) -> None:
        # If processes cannot be listed, signal their group.
        found = [pid for pid in self._descendants() if pid != fork_server]
        for pid in found or ([-self._main] if self._main else []):
            try:
                os.kill(pid, number)
            except OSError:
                continue


def awake_seconds() -> float:
    """A clock that includes time in which the machine was suspended: the attempt may have been given up then."""
    return system.awake_seconds()


def _make_guard() -> Guard | None:
    """A guard of this worker's session; none if it leads no session, so that the session has others in it."""
    if os.getsid(0) != os.getpid():
        return None
    from ork.worker.supervise.guard import Guard

    return Guard()


def _job_of(spec: dict[str, Any], host: Host | None) -> Callable[..., Job]:
    """The class for the spec's kind, imported when it is first needed."""
    if spec["kind"] in ("python", "custom"):
        from ork.worker.supervise.function import FunctionJob

        return FunctionJob
    if host is not None and is_dbt(spec):
        from ork.worker.supervise.dbt_job import DbtJob

        return DbtJob
    from ork.worker.supervise.command import CommandJob

    return CommandJob


def _empty(poller: select.poll, readers: dict[int, Callable[[], bool]]) -> None:
    """Read the available data, although another process may keep the write end open."""
    for _ in range(_MOST_READS):
        ready = [descriptor for descriptor, _ in poller.poll(0) if descriptor in readers]
        if not ready:
            return
        for descriptor in ready:
            if not readers[descriptor]():
                poller.unregister(descriptor)


def _timed_out(seconds: float | None) -> Ending:
    message = f"timed out after {seconds:g}s"
    return Ending("timed_out", failure={"kind": "timeout", "message": message, "detail": None})


def _stopped(why: str) -> Ending:
    return Ending("stopped", failure={"kind": "cancelled", "message": f"stopped: {why}", "detail": None})


def _mask_of_secrets(environ: Mapping[str, str]) -> Mask | None:
    """A mask for the attempt's secrets, in everything that is written about it; None if it has none. They are variables of
    the worker that are not passed to the task."""
    given = {name: value for name, value in environ.items() if name.startswith(_SECRET_PREFIXES)}
    if not given:
        return None
    from ork.model.masking import Mask, values_to_mask

    return Mask(values_to_mask(given)) or None
