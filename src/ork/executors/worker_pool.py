"""A pool of reusable workers (see `ork.worker.pool.reusable_worker`), forked from a server of their interpreter.

This pool is an optimisation. Any attempt that it cannot take, or does not confirm, is returned and started as a new process.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from ork.executors.fork_server import MAX_TAG_BYTES
from ork.executors.fork_servers import ForkServers, PreloadGroup
from ork.executors.worker_handle import ENDS, LARGEST_REQUEST, Kind, WorkerHandle, make_socket_pair
from ork.model.workflow import Isolation

START_TIMEOUT_SECONDS = 5.0
MAX_START_TIMEOUT_SECONDS = 60.0  # for a worker that is forked after many others
_MAX_IDLE = 32
QUICK_SECONDS = 0.005
SWIFT_SECONDS = 0.05
_FEW = 5
_REMEMBERED = 20  # durations of the last attempts
_LIGHT, _SWIFT = 0.0, 1e-9  # practically no time
_WAITED = float("inf")  # a task that waits, so that others can run meanwhile
_PROCESSORS = os.cpu_count() or 1


class _RecentDurations:
    """Durations of the last attempts of one kind, and how many of them were slow."""

    def __init__(self) -> None:
        self.seconds: deque[float] = deque(maxlen=_REMEMBERED)
        self.slow = 0

    def note(self, seconds: float) -> None:
        if len(self.seconds) == _REMEMBERED:
            self.slow -= self.seconds[0] >= SWIFT_SECONDS
        self.seconds.append(seconds)
        self.slow += seconds >= SWIFT_SECONDS


_NO_DURATIONS = _RecentDurations()


class PoolListener(Protocol):
    """Receives reports about attempts that were given to the pool."""

    def on_taken(self, attempt: str, pid: int, start_time: int) -> None:
        """A worker has taken the attempt and will report its end."""
        ...

    def on_status(self, attempt: str, status: bytes | None) -> None:
        """The attempt wrote a new status, which is passed if its bytes are known."""
        ...

    def on_end(self, attempt: str, status: bytes | None) -> None:
        """The worker has finished the attempt, or is gone."""
        ...

    def on_returned(self, attempt: str) -> None:
        """No worker took the attempt: start it in another way."""
        ...


class WorkerPool:
    """`servers` may be shared with other pools; closing one pool closes the servers for all."""

    def __init__(self, listener: PoolListener, servers: ForkServers) -> None:
        self._listener = listener
        self._servers = servers
        self._idle: dict[Kind, list[WorkerHandle]] = {}
        self._busy: dict[str, WorkerHandle] = {}  # by attempt
        self._working: dict[WorkerHandle, None] = {}  # busy workers, each once
        self._recent: dict[Kind, _RecentDurations] = {}
        self._unsent: dict[WorkerHandle, None] = {}
        self._fingerprints: dict[str, object] = {}  # of the current servers
        self._renewed: set[str] = set()  # interpreters, since the last flush
        self._timer: asyncio.TimerHandle | None = None
        self._ends = EndBatch(listener.on_end)

    def ask(self, kind: Kind, attempt: str, request: bytes, spec: bytes = b"") -> bool:
        """Queue the attempt for a worker; `flush` sends it. False if the pool cannot take it. An attempt that no worker takes
        is returned later. A small spec is sent with the request."""
        if len(request) > LARGEST_REQUEST - 2 or len(attempt.encode()) > MAX_TAG_BYTES:
            return False
        has_capacity = len(request) + len(spec) <= LARGEST_REQUEST - 2
        data = b"%b\n%b\n" % (request, spec if has_capacity and b"\n" not in spec else b"")
        if kind[0] not in self._renewed:
            self._renew(kind[0])
        return self._give(kind, attempt, data)

    def flush(self) -> None:
        """Send queued requests, so that each worker is woken only once."""
        self._renewed.clear()
        unsent, self._unsent = self._unsent, {}
        for worker in unsent:
            worker.flush()

    def expect(self, interpreter: str, isolation: str) -> None:
        """Start a worker in advance."""
        self._renew(interpreter)
        worker = self._new_worker((interpreter, isolation, None, ""), is_ahead=True)
        if worker is not None:
            self._keep(worker)

    def stop(self, attempt: str) -> bool:
        """Ask the attempt's worker to stop it. False if no worker of this pool has it."""
        worker = self._busy.get(attempt)
        if worker is not None:
            worker.send(b"stop " + attempt.encode())
        return worker is not None

    def close(self) -> None:
        """Detach all workers. They finish their requests without further reports."""
        if self._timer is not None:
            self._timer.cancel()
        self._ends.cancel_timer()
        self._servers.close()
        for worker in [*self._working, *(one for idle in self._idle.values() for one in idle)]:
            worker.detach()
        self._busy.clear()
        self._working.clear()
        self._idle.clear()

    def _give(self, kind: Kind, attempt: str, request: bytes) -> bool:
        worker = self._worker_with_queue(kind) or self._idle_worker(kind) or self._new_worker(kind)
        if worker is None:
            return False
        self._busy[attempt] = worker
        self._working[worker] = None
        worker.give(attempt, request)
        self._unsent[worker] = None
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(START_TIMEOUT_SECONDS, self._check_silent)
        return True

    def _worker_with_queue(self, kind: Kind) -> WorkerHandle | None:
        """A busy worker that may be given one more task in advance. CPU-bound tasks gain nothing from more workers than
        cores, and queueing ahead saves a round trip."""
        useful = self._useful_workers(kind)
        if useful is None:
            return None
        quick, fingerprint = 0, self._fingerprints.get(kind[0])
        candidates: list[WorkerHandle] = []
        for worker in self._working:
            if worker.kind == kind and worker.is_quick:
                quick += 1
                if worker.fingerprint is fingerprint and worker.has_capacity:
                    candidates.append(worker)
        if quick < useful or not candidates:
            return None
        return min(candidates[:useful], key=_queue_length)

    def _useful_workers(self, kind: Kind) -> int | None:
        """Number of workers beyond which throughput no longer rises, or None if unknown."""
        recent = self._recent.get(kind, _NO_DURATIONS)
        seconds = recent.seconds
        if kind[1] == Isolation.SHARED:
            # Light tasks cost a worker less than they cost the executor. The first ones may have waited for its start.
            if len(seconds) < _FEW or seconds[-1] == _LIGHT:
                return 1
            return _PROCESSORS if seconds[-1] < QUICK_SECONDS or min(seconds) < QUICK_SECONDS else None
        # While the process of one task is created or ended, another can run. One of many tasks may be slow because of a busy
        # disk or CPU.
        return 2 * _PROCESSORS if seconds and recent.slow * _REMEMBERED <= len(seconds) else None

    def _renew(self, interpreter: str) -> None:
        """Detach idle workers whose code or environment is outdated."""
        self._renewed.add(interpreter)
        fingerprint = self._servers.fingerprint(interpreter)
        if self._fingerprints.get(interpreter) is fingerprint:
            return
        self._fingerprints[interpreter] = fingerprint
        for kind in [kind for kind in self._idle if kind[0] == interpreter]:
            for worker in self._idle.pop(kind):
                worker.detach()

    def _idle_worker(self, kind: Kind) -> WorkerHandle | None:
        idle = self._idle.get(kind)
        return idle.pop() if idle else None

    def _new_worker(self, kind: Kind, *, is_ahead: bool = False) -> WorkerHandle | None:
        server = kind[2] or self._servers.server(kind[0], is_ahead=is_ahead)
        if server is None or not server.is_open:
            return None
        try:
            ours, theirs = make_socket_pair()
        except OSError:
            return None
        worker = WorkerHandle(self, kind, server, ours, self._fingerprints[kind[0]])
        server.make_worker(theirs)
        return worker

    def _check_silent(self) -> None:
        """Give up workers that do not confirm in time (suspended ones, for example). The gate admits only one worker."""
        self._timer = None
        now = time.monotonic()
        silent = [worker for worker in self._working if not worker.has_taken and _start_deadline(worker) <= now]
        for server in {worker.server for worker in silent if not worker.has_reported}:
            if server.last_worker_at + START_TIMEOUT_SECONDS <= now:
                server.kill()
        for worker in silent:
            worker.end()
        waiting = [_start_deadline(worker) for worker in self._working if not worker.has_taken]
        if waiting:
            self._timer = asyncio.get_running_loop().call_later(max(0.01, min(waiting) - now), self._check_silent)

    # ── messages of workers ──────────────────────────────────────────────────────────────────────

    def on_message(self, worker: WorkerHandle, message: bytes) -> None:
        word, name, facts = message.split(b"\t", 2)
        attempt = name.decode()
        if word == b"back":
            self._on_reclaimed(worker, facts.decode().split("\t"))
            return
        if word == b"imports":
            self._learn(worker, facts)
            return
        if attempt not in worker.given:
            return
        # The first message of a worker only means that it exists; any later one but an end means that the task takes long.
        worker.is_slow = worker.is_slow or (worker.has_reported and word not in ENDS)
        if not worker.has_reported:
            self._servers.has_served(worker.server)
        worker.has_taken = worker.has_reported = True
        if worker.is_slow:
            self._reclaim(worker)
        if word == b"took":
            pid, start_time = facts.split(b" ")
            self._listener.on_taken(attempt, int(pid), int(start_time))
        elif word == b"news":
            self._listener.on_status(attempt, facts or None)
        elif word in ENDS:
            self._note_seconds(worker, word)
            del self._busy[attempt]
            worker.done_with(attempt)
            if len(worker.given) > 1 and self._should_share(worker.kind):
                self._reclaim(worker)
            self._keep_if_free(worker)
            self._ends.add(attempt, facts or None)

    def _learn(self, worker: WorkerHandle, facts: bytes) -> None:
        """A task of the project imported these modules."""
        seen = json.loads(facts)
        group = PreloadGroup(worker.kind[0], seen["root"], tuple(seen["paths"]), tuple(sorted(seen["env"].items())))
        self._servers.preloads.learn(group, seen["names"])

    def _should_share(self, kind: Kind) -> bool:
        """True if the queued requests of a worker would finish sooner on other workers."""
        useful = self._useful_workers(kind)
        if useful is None or useful == 1 or kind[1] != Isolation.SHARED:
            return useful is None
        return useful > sum(one.kind == kind for one in self._working)

    def _note_seconds(self, worker: WorkerHandle, word: bytes) -> None:
        if worker.kind[1] == Isolation.SHARED:
            # A call that did not wait may have waited for a CPU, which more workers would not help.
            seconds = {b"light": _LIGHT, b"swift": _SWIFT}.get(word, worker.pace)
        else:
            seconds = worker.pace if word == b"swift" else _WAITED
        recent = self._recent.get(worker.kind)
        if recent is None:
            recent = self._recent[worker.kind] = _RecentDurations()
        recent.note(seconds)

    def on_messages_read(self, worker: WorkerHandle) -> None:
        """Report ends at once if the worker has nothing left to do; otherwise batch them."""
        if worker.attempt is None or self._ends.are_many:
            self._ends.flush()
        else:
            self._ends.flush_soon()

    def _reclaim(self, worker: WorkerHandle) -> None:
        """Ask the worker to return the requests that it has not begun. It gets no new ones until it has answered."""
        if len(worker.given) > 1 and not worker.is_reclaiming:
            worker.is_reclaiming = True
            worker.send(b"back")

    def _on_reclaimed(self, worker: WorkerHandle, begun: Collection[str]) -> None:
        """The worker has dropped all requests but those begun."""
        worker.is_reclaiming = False
        self._give_to_others(worker, worker.reclaim(begun))
        self._keep_if_free(worker)

    def _keep_if_free(self, worker: WorkerHandle) -> None:
        if not worker.given and not worker.is_reclaiming:
            self._working.pop(worker, None)
            self._keep(worker)

    def _give_to_others(self, worker: WorkerHandle, given: Mapping[str, bytes]) -> None:
        for attempt in given:
            del self._busy[attempt]
        for attempt, request in given.items():
            if not self._give(worker.kind, attempt, request):
                self._listener.on_returned(attempt)
        self.flush()

    def on_closed(self, worker: WorkerHandle) -> None:
        server, attempt = worker.server, worker.attempt
        if attempt is None:
            self._working.pop(worker, None)
            idle = self._idle.get(worker.kind, [])
            if worker in idle:
                idle.remove(worker)
            return
        del self._busy[attempt], self._working[worker]
        self._give_to_others(worker, worker.reclaim((attempt,)))
        self._ends.flush()
        if worker.has_taken:
            self._listener.on_end(attempt, None)
            return
        if not server.has_served:
            self._servers.has_failed(server)
        self._listener.on_returned(attempt)

    def _keep(self, worker: WorkerHandle) -> None:
        idle = self._idle.setdefault(worker.kind, [])
        if worker.fingerprint is not self._fingerprints.get(worker.kind[0]) or len(idle) >= _MAX_IDLE:
            worker.detach()
        else:
            idle.append(worker)


def _queue_length(worker: WorkerHandle) -> int:
    """Number of unfinished requests."""
    return len(worker.given)


def _start_deadline(worker: WorkerHandle) -> float:
    """When to give up an unconfirmed worker. One of thousands waits for those before it, while its server makes progress."""
    if worker.has_reported:
        return worker.begun_at + START_TIMEOUT_SECONDS
    most = worker.begun_at + MAX_START_TIMEOUT_SECONDS
    return min(most, max(worker.begun_at, worker.server.last_worker_at) + START_TIMEOUT_SECONDS)


BATCH_SECONDS = 0.002
MANY = 16  # a batch of this size is reported at once


class EndBatch:
    """Batches reports of ended attempts: a scheduler step costs as much for one end as for several. Calls `report` for each,
    with its final status if known, on `flush` or soon."""

    def __init__(self, report: Callable[[str, bytes | None], None]) -> None:
        self._report = report
        self._ends: deque[tuple[str, bytes | None]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, attempt: str, status: bytes | None) -> None:
        self._ends.append((attempt, status))

    def flush_soon(self) -> None:
        """Report all ends after a short delay, including those added until then."""
        if self._ends and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(BATCH_SECONDS, self.flush)

    @property
    def are_many(self) -> bool:
        return len(self._ends) >= MANY

    def flush(self) -> None:
        """Report all ends, in order."""
        self.cancel_timer()
        while self._ends:
            self._report(*self._ends.popleft())

    def cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
