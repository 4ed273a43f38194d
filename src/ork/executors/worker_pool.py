"""Workers that stay (see `ork.worker.pool.reusable_worker`), forked from a server of their interpreter: attempts out, news in.

Nothing here is needed: whatever cannot be done in this way, or is not answered, is handed back, to be done without it.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Collection, Mapping
from typing import Protocol

from ork.executors.end_batch import EndBatch
from ork.executors.fork_server import MAX_TAG_BYTES
from ork.executors.fork_servers import ForkServers
from ork.executors.worker_handle import ENDS, LARGEST_REQUEST, Kind, WorkerHandle, make_socket_pair
from ork.model.workflow import Isolation

START_TIMEOUT_SECONDS = 5.0
MAX_START_TIMEOUT_SECONDS = 60.0  # with one that is to be made after many others
_MAX_IDLE = 32
QUICK_SECONDS = 0.005
SWIFT_SECONDS = 0.05
_FEW = 5
_REMEMBERED = 20  # attempts, when it is said how long one takes
_LIGHT, _SWIFT = 0.0, 1e-9  # as good as nothing
_WAITED = float("inf")  # a task that waits for something: others get on meanwhile
_PROCESSORS = os.cpu_count() or 1


class _RecentDurations:
    """How long attempts of one kind took, of late; how many of those were not swift."""

    def __init__(self) -> None:
        self.seconds: deque[float] = deque(maxlen=_REMEMBERED)
        self.slow = 0

    def note(self, seconds: float) -> None:
        if len(self.seconds) == _REMEMBERED:
            self.slow -= self.seconds[0] >= SWIFT_SECONDS
        self.seconds.append(seconds)
        self.slow += seconds >= SWIFT_SECONDS


_NO_DURATIONS = _RecentDurations()


class Listener(Protocol):
    """Who is told what becomes of an attempt that was asked for."""

    def on_taken(self, attempt: str, pid: int, start_time: int) -> None:
        """A worker has it, and will say when it is over."""
        ...

    def on_status(self, attempt: str, status: bytes | None) -> None:
        """There is something to see, perhaps at hand."""
        ...

    def on_end(self, attempt: str, status: bytes | None) -> None:
        """Its worker is done with it, or gone."""
        ...

    def on_returned(self, attempt: str) -> None:
        """Nobody took it: start it in another way."""
        ...


class WorkerPool:
    """`servers` may make workers for others, too; whoever closes first closes them for all."""

    def __init__(self, listener: Listener, servers: ForkServers) -> None:
        self._listener = listener
        self._servers = servers
        self._idle: dict[Kind, list[WorkerHandle]] = {}
        self._busy: dict[str, WorkerHandle] = {}  # by attempt
        self._working: dict[WorkerHandle, None] = {}  # the same, each once
        self._recent: dict[Kind, _RecentDurations] = {}
        self._unsent: dict[WorkerHandle, None] = {}
        self._fingerprints: dict[str, object] = {}  # of the servers of now
        self._renewed: set[str] = set()  # interpreters, since the last flush
        self._timer: asyncio.TimerHandle | None = None
        self._ends = EndBatch(listener.on_end)

    def ask(self, kind: Kind, attempt: str, request: bytes, spec: bytes = b"") -> bool:
        """True if, after `flush`, a worker for the attempt is on its way, or it will be handed back. A small spec goes
        with the request."""
        if len(request) > LARGEST_REQUEST - 2 or len(attempt.encode()) > MAX_TAG_BYTES:
            return False
        has_capacity = len(request) + len(spec) <= LARGEST_REQUEST - 2
        data = b"%b\n%b\n" % (request, spec if has_capacity and b"\n" not in spec else b"")
        if kind[0] not in self._renewed:
            self._renew(kind[0])
        return self._give(kind, attempt, data)

    def flush(self) -> None:
        """Sends what was asked for: whatever is for the same worker wakes it once."""
        self._renewed.clear()
        unsent, self._unsent = self._unsent, {}
        for worker in unsent:
            worker.flush()

    def expect(self, interpreter: str, isolation: str) -> None:
        """Somebody will ask soon: a worker is on its way by then."""
        self._renew(interpreter)
        worker = self._new_worker((interpreter, isolation), is_ahead=True)
        if worker is not None:
            self._keep(worker)

    def stop(self, attempt: str) -> bool:
        """Asks whoever has the attempt to end it; False if nobody here has it."""
        worker = self._busy.get(attempt)
        if worker is not None:
            worker.send(b"stop " + attempt.encode())
        return worker is not None

    def close(self) -> None:
        """What was asked for is still done; nobody will hear of it here."""
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
        """One that will be done with all it has in a moment. As many as there are processors get on as fast as more, and
        whoever has the next task at hand waits for nobody."""
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
        """How many get on as fast as more of them; None if nothing is known of that."""
        recent = self._recent.get(kind, _NO_DURATIONS)
        seconds = recent.seconds
        if kind[1] == Isolation.SHARED:
            # Light ones cost a worker less than they cost us. The first ones may have waited for the worker itself.
            if len(seconds) < _FEW or seconds[-1] == _LIGHT:
                return 1
            return _PROCESSORS if seconds[-1] < QUICK_SECONDS or min(seconds) < QUICK_SECONDS else None
        # While a process is made for a task, or is ended after it, another one can work. Of many, one may have had to wait for
        # a busy disk, or for a processor.
        return 2 * _PROCESSORS if seconds and recent.slow * _REMEMBERED <= len(seconds) else None

    def _renew(self, interpreter: str) -> None:
        """Whoever is out of date takes nothing more."""
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
        server = self._servers.server(kind[0], is_ahead=is_ahead)
        if server is None:
            return None
        try:
            ours, theirs = make_socket_pair()
        except OSError:
            return None
        worker = WorkerHandle(self, kind, server, ours, self._fingerprints[kind[0]])
        server.make_worker(theirs)
        return worker

    def _check_silent(self) -> None:
        """One that says nothing for long (halted, perhaps) is done without: the gate lets only one worker through."""
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

    # ── what residents say ───────────────────────────────────────────────────────────────────────

    def on_message(self, worker: WorkerHandle, message: bytes) -> None:
        word, name, facts = message.split(b"\t", 2)
        attempt = name.decode()
        if word == b"back":
            self._on_reclaimed(worker, facts.decode().split("\t"))
            return
        if attempt not in worker.given:
            return
        # The first word of all only says that it is there; any but the last one, that this is not over in a moment.
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

    def _should_share(self, kind: Kind) -> bool:
        """Whether what a worker has at hand would be done sooner with the help of others."""
        useful = self._useful_workers(kind)
        if useful is None or useful == 1 or kind[1] != Isolation.SHARED:
            return useful is None
        return useful > sum(one.kind == kind for one in self._working)

    def _note_seconds(self, worker: WorkerHandle, word: bytes) -> None:
        if worker.kind[1] == Isolation.SHARED:
            # A call that waited for nothing may have waited for a processor: more workers than those would not help it.
            seconds = {b"light": _LIGHT, b"swift": _SWIFT}.get(word, worker.pace)
        else:
            seconds = worker.pace if word == b"swift" else _WAITED
        recent = self._recent.get(worker.kind)
        if recent is None:
            recent = self._recent[worker.kind] = _RecentDurations()
        recent.note(seconds)

    def on_messages_read(self, worker: WorkerHandle) -> None:
        """Whoever has nothing more to do waits for what the ends will bring; others have time."""
        if worker.attempt is None or self._ends.are_many:
            self._ends.flush()
        else:
            self._ends.flush_soon()

    def _reclaim(self, worker: WorkerHandle) -> None:
        """For what it has not begun, so that others can. Until it has answered it is given nothing."""
        if len(worker.given) > 1 and not worker.is_reclaiming:
            worker.is_reclaiming = True
            worker.send(b"back")

    def _on_reclaimed(self, worker: WorkerHandle, begun: Collection[str]) -> None:
        """It has forgotten all but what it had begun."""
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
    """It has to do."""
    return len(worker.given)


def _start_deadline(worker: WorkerHandle) -> float:
    """Of thousands that are asked for at once each waits for those before it, as long as its server makes some."""
    if worker.has_reported:
        return worker.begun_at + START_TIMEOUT_SECONDS
    most = worker.begun_at + MAX_START_TIMEOUT_SECONDS
    return min(most, max(worker.begun_at, worker.server.last_worker_at) + START_TIMEOUT_SECONDS)
