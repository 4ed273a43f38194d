"""Runs attempts as processes on this machine. Each has a worker in its own session that outlives this process.

Nothing here waits: attempts are given to a new process or to a pooled worker, whose messages and end wake the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
from collections.abc import Callable, Sequence
from functools import partial
from json.encoder import encode_basestring_ascii as quoted
from typing import Literal

from ork.errors import ObjectsError
from ork.executors import processes
from ork.executors.executor import Executor, ExecutorTraits, LaunchOrder, NotStarted, Presence, StatusCallback
from ork.executors.fork_server import SEVERAL
from ork.executors.fork_servers import ForkServers
from ork.executors.local_attempts import Gates, location_of, name_for
from ork.executors.local_worker import (
    ATTEMPT_VARIABLE,
    InheritedEnvironment,
    InterpreterError,
    Pythons,
    inherited,
    limit_message,
    raise_limit,
    restore_limit,
    spawn_worker,
)
from ork.executors.processes import Leader, ProcessTable
from ork.executors.status_socket import StatusSocket
from ork.executors.worker_pool import WorkerPool
from ork.model.ids import AttemptKey
from ork.model.record import Record
from ork.model.task import Attempt
from ork.model.workflow import Isolation
from ork.objects.attempt_documents import AttemptDocuments
from ork.system import inherited_variables, system
from ork.telemetry import FORK_SERVER, NEWS_SOCKET, WORKER_POOL

_TRY_LATER = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT})
_NO_DESCRIPTOR = frozenset({errno.EMFILE, errno.ENFILE})
_WATCH_AGAIN_SECONDS = 0.5


class _Pending(Record, frozen=False):
    """An attempt that was sent to a pooled worker and is not confirmed yet."""

    order: LaunchOrder
    on_status: StatusCallback
    stop: Literal["gently", "at once"] | None = None  # to be done as soon as the attempt is confirmed


class LocalExecutor(Executor):
    """`uses_project_python`: workers start in the project's own virtual environment if it has one.
    `isolation` is the default for orders without one; `servers` may be shared with other executors."""

    traits = ExecutorTraits(fences_itself=True)

    def __init__(
        self,
        name: str,
        documents: AttemptDocuments,
        *,
        socket_dir: str | None = None,
        uses_project_python: bool = True,
        isolation: Isolation = Isolation.INTERPRETER,
        servers: ForkServers | None = None,
        pass_env: Sequence[str] = (),
    ) -> None:
        self.name = name
        self._documents = documents
        self._gates = Gates(documents)
        self._pythons = Pythons(uses_project_python)
        self._servers = servers or ForkServers()
        self._fallbacks = self._servers.fallbacks
        self._status_socket = StatusSocket(socket_dir, partial(self._fallbacks.note, NEWS_SOCKET))
        self._listeners: dict[str, Callable[[bytes | None], None]] = {}
        self._isolation = isolation
        self._common = {each: _common_entries(documents.url, each) for each in Isolation}
        self._environment = InheritedEnvironment(pass_env)
        self._pool = WorkerPool(self, self._servers)
        self._pending: dict[str, _Pending] = {}
        self._taken: dict[str, tuple[int, int]] = {}  # by pooled workers: their pid and start time
        self._children: dict[AttemptKey, int] = {}  # child processes that have not ended
        self._twins: dict[AttemptKey, Attempt] = {}  # spawned, but a pooled worker may have taken it, too
        self._watched: dict[AttemptKey, int] = {}
        self._is_closed = False

    @property
    def status_address(self) -> str | None:
        """The socket to which workers report new statuses; None if it cannot be created."""
        return self._status_socket.address

    def name_for(self, attempt: AttemptKey) -> str:
        return name_for(attempt)

    def expect(self, root: str) -> None:
        """Prepare a worker for the project in this folder. Requires a running event loop."""
        if self._isolation is not Isolation.INTERPRETER and system.HAS_WORKER_POOL:
            self._servers.use_environment(self._environment.variables())
            with contextlib.suppress(InterpreterError):
                self._pool.expect(self._pythons.of_project(root), str(self._isolation))

    async def start(self, orders: Sequence[LaunchOrder], on_status: StatusCallback) -> Sequence[NotStarted]:
        raise_limit()
        self._status_socket.listen(self._listeners)
        self._servers.use_environment(self._environment.variables())
        self._pythons.look_again()
        self._servers.preloads.look_again()
        await self._gates.look_at([order.attempt for order in orders if _may_be_there(order)])
        problems = []
        for order in orders:
            problem = self._start_one(order, on_status)
            if problem is not None:
                problems.append(problem)
        self._pool.flush()
        return problems

    async def find(self, attempts: Sequence[Attempt]) -> Sequence[Presence]:
        await self._gates.look_at(attempts)  # before the processes, since a worker may win its gate at any time
        table = ProcessTable(ATTEMPT_VARIABLE)
        return [self._find_one(attempt, table) for attempt in attempts]

    async def watch(self, attempts: Sequence[Attempt], on_status: StatusCallback) -> None:
        self._status_socket.listen(self._listeners)
        await self._gates.look_at(attempts)
        table = ProcessTable(ATTEMPT_VARIABLE)
        for attempt in attempts:
            self._watch_one(attempt, on_status, table)

    async def stop(self, attempts: Sequence[Attempt], *, at_once: bool) -> None:
        await self._gates.look_at(attempts)
        table = ProcessTable(ATTEMPT_VARIABLE)
        for attempt in attempts:
            if location_of(attempt) is not Presence.RUNNING:
                continue
            pending = self._pending.get(str(attempt.key))
            # A worker that has won the gate without a confirmation is stuck, so waiting for it is useless.
            if pending is not None and not (at_once and self._shim(attempt) is not None):
                pending.stop = "at once" if at_once else pending.stop or "gently"
            elif at_once:
                self._end_at_once(attempt)
            else:
                self._ask_to_end(attempt, table)

    async def close(self) -> None:
        self._is_closed = True
        loop = asyncio.get_running_loop()
        for descriptor in self._watched.values():
            loop.remove_reader(descriptor)
            os.close(descriptor)
        self._pool.close()
        self._pending.clear()
        self._taken.clear()
        self._watched.clear()
        self._children.clear()
        self._twins.clear()
        self._listeners.clear()
        self._status_socket.close()

    def _start_one(self, order: LaunchOrder, on_status: StatusCallback) -> NotStarted | None:
        attempt = order.attempt
        name = str(attempt.key)
        if self._knows(attempt.key, name):
            return None
        try:
            is_there = _may_be_there(order) and self._gates.of(attempt) is not None
        except ObjectsError as error:
            return NotStarted(attempt.key, error.message, final=False)
        if is_there:
            self._watch_one(attempt, on_status, ProcessTable(ATTEMPT_VARIABLE))
            return None
        try:
            if not self._offer_to_pool(order, name, on_status):
                self._spawn_and_watch(order, on_status)
        except InterpreterError as error:
            return NotStarted(attempt.key, str(error), final=True)
        except OSError as error:
            why = limit_message() if error.errno in _NO_DESCRIPTOR else error.strerror
            message = f"no worker process could be started: {why}"
            return NotStarted(attempt.key, message, final=error.errno not in _TRY_LATER)
        return None

    def _knows(self, key: AttemptKey, name: str) -> bool:
        return name in self._taken or name in self._pending or key in self._children or key in self._watched

    def _offer_to_pool(self, order: LaunchOrder, name: str, on_status: StatusCallback) -> bool:
        isolation = order.isolation or self._isolation
        # Later tasks could read a pooled worker's memory, so secrets are never sent to it.
        if isolation is Isolation.INTERPRETER or order.secrets or not system.HAS_WORKER_POOL:
            return False
        # Formatted without `json`, since this is done for every attempt; only the name needs escaping.
        request = f'{{"attempt":{quoted(name)},"token":"{order.token}","position":{order.position},{self._common[isolation]}}}'
        interpreter = self._pythons.of(order)
        server = None if order.keeps else self._servers.preloads.server_for(interpreter, order)
        kind = interpreter, isolation._value_, server, order.keeps
        if not self._pool.ask(kind, name, request.encode(), order.spec):
            return False
        self._pending[name] = _Pending(order, on_status)
        self._listeners[name] = partial(on_status, order.attempt.key)
        return True

    def on_taken(self, attempt: str, pid: int, start_time: int) -> None:
        asked = self._pending.pop(attempt, None)
        if asked is not None:
            self._taken[attempt] = pid, start_time
            self._stop_as_asked(asked)

    def on_status(self, attempt: str, status: bytes | None) -> None:
        listener = self._listeners.get(attempt)
        if listener is not None:
            listener(status)

    def on_end(self, attempt: str, status: bytes | None) -> None:
        self._pending.pop(attempt, None)
        self._taken.pop(attempt, None)
        listener = self._listeners.pop(attempt, None)
        if listener is not None:
            listener(status)

    def on_returned(self, attempt: str) -> None:
        """Start the attempt as a new process. The pooled worker may still take it; the gate admits only one of them."""
        asked = self._pending.pop(attempt, None)
        if asked is None:
            return
        key = asked.order.attempt.key
        if asked.stop is None and not self._is_past_its_gate(asked.order.attempt):
            try:
                if FORK_SERVER not in self._fallbacks.reasons:  # already reported as that
                    self._fallbacks.note(WORKER_POOL, "a worker did not take its task, which got a new interpreter")
                self._twins[key] = asked.order.attempt
                self._spawn_and_watch(asked.order, asked.on_status)
                return
            except (InterpreterError, OSError):
                del self._twins[key]
        # Treated like a worker that ended before it reached its gate.
        asyncio.get_running_loop().call_soon(self._was_gone, key, asked.on_status)
        self._stop_as_asked(asked)

    def _stop_as_asked(self, asked: _Pending) -> None:
        if asked.stop == "at once":
            self._end_at_once(asked.order.attempt)
        elif asked.stop == "gently":
            self._ask_to_end(asked.order.attempt, ProcessTable(ATTEMPT_VARIABLE))

    def _spawn_and_watch(self, order: LaunchOrder, on_status: StatusCallback) -> None:
        key = order.attempt.key
        os.close(
            os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        )  # fails if there is no descriptor left to watch the process
        environ = inherited(os.environ, self._environment.pass_env) | inherited_variables()
        log = self._documents.open_log(str(key))
        try:
            pid = spawn_worker(self._pythons.of(order), self._documents.url, order, log.fileno(), environ)
        finally:
            log.close()
        restore_limit(pid)
        self._children[key] = pid
        self._listen_for(key, on_status)
        self._watch_process(key, pid, processes.process_start_time(pid), on_status)

    def _listen_for(self, key: AttemptKey, on_status: StatusCallback) -> None:
        self._listeners[str(key)] = partial(on_status, key)

    def _watch_process(self, key: AttemptKey, pid: int, start_time: int | None, on_status: StatusCallback) -> None:
        """Call `on_status` when the process is gone, also if it is gone already."""
        if self._is_closed:
            return
        loop = asyncio.get_running_loop()
        try:
            descriptor = None if start_time is None else processes.watch_end(pid, start_time)
        except OSError:
            # No descriptor is left: check again until the process is gone or can be watched.
            if start_time is not None and processes.is_alive(pid, start_time):
                loop.call_later(_WATCH_AGAIN_SECONDS, self._watch_process, key, pid, start_time, on_status)
                return
            descriptor = None
        if descriptor is None:
            loop.call_soon(self._ended, key, on_status)
            return
        self._watched[key] = descriptor
        loop.add_reader(descriptor, self._ended, key, on_status)

    def _was_gone(self, key: AttemptKey, on_status: StatusCallback) -> None:
        """Report the end, unless the attempt has been started again in the meantime."""
        if not self._knows(key, str(key)):
            self._ended(key, on_status)

    def _ended(self, key: AttemptKey, on_status: StatusCallback) -> None:
        if self._is_closed:
            return
        descriptor = self._watched.pop(key, None)
        if descriptor is not None:
            asyncio.get_running_loop().remove_reader(descriptor)
            os.close(descriptor)
        pid = self._children.pop(key, None)
        if pid is not None:
            processes.collect(pid)
        twin = self._twins.pop(key, None)
        if twin is not None and self._shim(twin) is not None:
            self._watch_one(twin, on_status, ProcessTable(ATTEMPT_VARIABLE))
        else:
            self._listeners.pop(str(key), None)
        on_status(key)

    def _watch_one(self, attempt: Attempt, on_status: StatusCallback, table: ProcessTable) -> None:
        key = attempt.key
        if self._knows(key, str(key)):
            return
        self._listen_for(key, on_status)
        shim = self._shim(attempt)
        if shim is None:
            marked = table.members(str(key))
            shim = Leader(marked[0].pid, marked[0].start_time) if marked else None
        if shim is None:
            asyncio.get_running_loop().call_soon(self._was_gone, key, on_status)
        else:
            self._watch_process(key, *shim, on_status)

    def _find_one(self, attempt: Attempt, table: ProcessTable) -> Presence:
        place = location_of(attempt)
        if place is not Presence.RUNNING:
            return place
        if str(attempt.key) in self._pending:
            return Presence.RUNNING
        worker, start_time = self._taken.get(str(attempt.key), (0, 0))
        if worker and processes.is_alive(worker, start_time):
            return Presence.RUNNING
        child = self._children.get(attempt.key)
        if child is not None and processes.process_start_time(child) is not None:
            return Presence.RUNNING
        if self._shim(attempt) is not None:
            return Presence.RUNNING
        if not table.members(str(attempt.key), self._leader(attempt)):
            return Presence.UNKNOWN if self._is_hidden(attempt) else Presence.GONE
        is_past_its_gate = self._is_past_its_gate(attempt)
        # In this order, since it may win its gate at any time.
        return Presence.ORPHANED if is_past_its_gate and self._shim(attempt) is None else Presence.RUNNING

    def _is_past_its_gate(self, attempt: Attempt) -> bool:
        try:
            return self._gates.of(attempt) is not None
        except ObjectsError:
            return False

    def _is_hidden(self, attempt: Attempt) -> bool:
        """True if its worker may be alive as a process of another user, which cannot be inspected."""
        gate = self._gates.of(attempt) or {}
        pid = gate.get("pid")
        is_ours = gate.get("state") == "started" and gate.get("boot_id") == processes.boot_id()
        return is_ours and isinstance(pid, int) and processes.is_hidden(pid)

    def _shim(self, attempt: Attempt, *, is_at_it: bool = False) -> Leader | None:
        """Pid and start time of the process that won the gate, if it is alive and still has this attempt, possibly together
        with others; with `is_at_it`, only this attempt."""
        try:
            gate = self._gates.of(attempt)
        except ObjectsError:
            return None
        if gate is None or gate.get("state") != "started" or gate.get("boot_id") != processes.boot_id():
            return None
        pid, start_time = gate.get("pid"), gate.get("start_time")
        if not isinstance(pid, int) or not isinstance(start_time, int):
            return None
        mark = processes.attempt_of(pid, ATTEMPT_VARIABLE)
        has_it = mark == str(attempt.key) or (mark == SEVERAL and not is_at_it)
        return Leader(pid, start_time) if has_it and processes.is_alive(pid, start_time) else None

    def _leader(self, attempt: Attempt) -> Leader | None:
        """The worker, if it is alive and has this attempt; without a pool also after its death, for what its session has left."""
        gate = None if system.HAS_WORKER_POOL else self._gates.of(attempt)
        if gate is None:
            return self._shim(attempt)
        pid, start_time = gate.get("pid"), gate.get("start_time")
        is_ours = gate.get("state") == "started" and gate.get("boot_id") == processes.boot_id()
        if not is_ours or not isinstance(pid, int) or not isinstance(start_time, int):
            return None
        return Leader(pid, start_time)

    def _ask_to_end(self, attempt: Attempt, table: ProcessTable) -> None:
        if self._pool.stop(str(attempt.key)):
            return
        shim = self._shim(attempt)  # read once: a later winner of the gate is handled below
        if shim is not None:
            # A pooled worker of another scheduler may have finished this attempt and started its next one.
            is_meant = lambda: self._shim(attempt, is_at_it=True) == shim  # noqa: E731
            if processes.send_signal_if(*shim, signal.SIGTERM, is_meant) or self._shim(attempt) == shim:
                return  # or it has several attempts, and reads the stop request
        if attempt.key in self._children:
            # Before the gate: it exits, or stops as soon as it can report that.
            pid = self._children[attempt.key]
            processes.send_signal(pid, processes.process_start_time(pid) or 0, signal.SIGTERM)
        elif table.members(str(attempt.key), self._leader(attempt)):
            # Its worker is dead, so nothing can end it gracefully.
            self._end_at_once(attempt)

    def _end_at_once(self, attempt: Attempt) -> None:
        """Kill all processes of the attempt. A worker with several attempts is killed, too: it did not react to the stop
        request, so it would not end the others either."""

        def look() -> list[processes.ProcessEntry]:
            return processes.family(
                processes.tagged_processes(ATTEMPT_VARIABLE), str(attempt.key), self._leader(attempt)
            )

        processes.kill_family(look)


def _may_be_there(order: LaunchOrder) -> bool:
    """True if the attempt's gate may have been won before this order."""
    return not (order.position or order.is_new)


def _common_entries(objects_url: str, isolation: Isolation) -> str:
    """Entries that all requests to pooled workers have in common, as JSON text."""
    return f'"objects":{quoted(objects_url)},"isolation":"{isolation}"'
