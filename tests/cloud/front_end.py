"""A platform that starts `ork serve --on-request` when a request comes, and ends it when none is left: scale to zero."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from tests.cloud.cloud_tasks import QuietServer
from tests.cloud.preloaded import Preloaded, modules_of_a_ready_service
from tests.cloud.virtual_clock import VirtualClock

COLD_START = timedelta(seconds=2)


class StartError(Exception):
    """An instance ended before it was ready."""


def _start(folder: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "ork", "serve", "--on-request", "--port", "0"],
        cwd=folder, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


class Instance:
    """One `ork serve`, from its cold start to its end. `preloaded`: it is a fork of that process."""

    def __init__(self, folder: Path, environment: dict[str, str], preloaded: Preloaded | None = None) -> None:
        self.requests = 0
        self.process = _start(folder, environment) if preloaded is None else preloaded.start(folder, environment)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if "url=" not in line:
            raise StartError(f"ork serve did not start: {line}{self.process.communicate(timeout=60)[1]}")
        self.port = int(line.partition("url=")[2].split()[0].rpartition(":")[2])
        self.began_at = time.monotonic()  # its first request
        self.cpu_at_start = self.cpu_seconds()

    def cpu_seconds(self) -> float:
        """What the process has used so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> int:
        """The most bytes that the process has had in memory so far."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)  # 0: it was killed

    def end(self) -> str:
        self.process.terminate()
        return self.process.communicate(timeout=60)[1]


class FrontEnd:
    """The address of a service. `kills` says, for each call of a tick, after how many seconds its instance is killed."""

    def __init__(self, folder: Path, environment: dict[str, str], clock: VirtualClock) -> None:
        self.clock = clock
        self.environment = environment
        self.requests: list[tuple[str, Any]] = []  # path and (virtual) time
        self.kills: Callable[[], float | None] = lambda: None
        self.cuts_after: Callable[[], float] | None = None  # seconds until the platform kills the instance of a request
        self.cut = 0  # requests that were not answered by then
        self.answers: list[tuple[str, int, float, bytes]] = []  # path, status, (real) seconds and body of each request
        self.separates: Callable[[], bool] = lambda: False  # whether a request gets an instance of its own
        self.cold_starts = 0
        self.killed = 0  # instances, in the middle of a request
        self.working_seconds = 0.0  # of instances, from their first request to the end
        self.cpu_seconds = 0.0  # that they used meanwhile
        self.most_memory = 0  # that an instance had, in bytes
        self.said: list[str] = []
        self.failed_starts: list[str] = []
        self.preloads = False  # instances are forks of a process that has imported what a ready one has
        self._preloaded: Preloaded | None = None
        self._folder = folder
        self._lock = threading.Condition()
        self._shared: Instance | None = None
        self._warm: Instance | None = None  # started before the call that it is for
        self._alive: dict[int, Instance] = {}
        self._open = 0  # requests without an answer
        self._loads: list[float] = []
        self._server = QuietServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self.kill_instances()
        if self._warm is not None:
            self._warm.end()
        if self._preloaded is not None:
            self._preloaded.close()

    def _new_instance(self) -> Instance:
        if self.preloads and self._preloaded is None:
            modules = modules_of_a_ready_service(self._folder, self.environment)
            self._preloaded = Preloaded(modules, self.environment)
        return Instance(self._folder, self.environment, self._preloaded)

    @property
    def has_instances(self) -> bool:
        """Whether one has got a request and is alive. Does not wait for one that is being started."""
        return bool(self._alive)

    def kill_instances(self) -> bool:
        """Kills all that are alive, in the middle of whatever they do. False if there was none."""
        alive = [instance for instance in list(self._alive.values()) if instance.process.poll() is None]
        for instance in alive:
            instance.process.kill()
        return bool(alive)

    @property
    def awake_seconds(self) -> float:
        """How long instances were alive: a cold start has a fixed length, whatever it takes on this machine."""
        return self.cold_starts * COLD_START.total_seconds() + self.working_seconds

    @property
    def load(self) -> float:
        """How many processes wanted each processor of this machine, on average at the starts of instances; at least 1."""
        return max(1.0, sum(self._loads) / max(1, len(self._loads)))

    @property
    def is_idle(self) -> bool:
        with self._lock:
            return not self._alive and not self._open

    def warm_up(self) -> None:
        """Starts the instance of the next call. The clock then skips what this took, and adds COLD_START instead."""
        with suppress(StartError):  # then the call starts one
            self._warm = self._new_instance()

    # ── one request ──────────────────────────────────────────────────────────────────────────────

    def send(self, method: str, url: str, headers: dict[str, str], body: bytes, seconds: float) -> int:
        """The status of a call, or 0 without an answer; for services that call this one."""
        path = url.removeprefix(self.url)
        return self.forward(method, path, headers, body, seconds)[0]

    def forward(
        self, method: str, path: str, headers: dict[str, str], body: bytes, seconds: float = 300.0
    ) -> tuple[int, bytes]:
        with self._lock:
            self._open += 1
            self.requests.append((path, self.clock.now()))
        try:
            return self._answer(method, path, headers, body, seconds)
        finally:
            with self._lock:
                self._open -= 1

    def _answer(
        self, method: str, path: str, headers: dict[str, str], body: bytes, seconds: float
    ) -> tuple[int, bytes]:
        try:
            instance = self._acquire()
        except StartError as error:  # as a platform answers then; who called calls again
            self.failed_starts.append(str(error))
            print(f"{error}", file=sys.stderr, flush=True)
            return 503, b""
        cut = None if self.cuts_after is None else threading.Timer(self.cuts_after(), self._cut, [instance])
        try:
            after = self.kills() if path.endswith("/tick") else None
            if after is not None:
                threading.Timer(after, instance.process.kill).start()
            if cut is not None:
                cut.start()
            began = time.monotonic()
            answer = ask(
                instance.port, method, path, {**headers, "Host": self.url.removeprefix("http://")}, body, seconds
            )
            self.answers.append((path, answer[0], time.monotonic() - began, answer[1]))
            self.killed += answer[0] == 0
            return answer
        finally:
            if cut is not None:
                cut.cancel()
            self._release(instance)

    def _cut(self, instance: Instance) -> None:
        self.cut += 1
        instance.process.kill()

    def _acquire(self) -> Instance:
        with self._lock:
            # A dead one is replaced; its requests fail.
            if self._shared is not None and self._shared.process.poll() is not None:
                self._shared = None
            if self._shared is not None and not self.separates():
                self._shared.requests += 1
                return self._shared
            begin, (instance, self._warm) = self.clock.now(), (self._warm, None)
            if instance is None or self._alive:
                instance = instance or self._new_instance()
            else:  # nothing else is alive, so that a cold start takes the same time however busy this machine is
                self.clock.move_to(begin + COLD_START)
            instance.began_at = time.monotonic()
            self._loads.append(os.getloadavg()[0] / (os.cpu_count() or 1))
            self.cold_starts += 1
            instance.requests = 1
            self._alive[id(instance)] = instance
            if self._shared is None:
                self._shared = instance
            return instance

    def _release(self, instance: Instance) -> None:
        with self._lock:
            instance.requests -= 1
            if instance.requests:
                return
            if self._shared is instance:
                self._shared = None
        with suppress(OSError, IndexError):  # it was killed
            self.cpu_seconds += instance.cpu_seconds() - instance.cpu_at_start
            self.working_seconds += time.monotonic() - instance.began_at
            self.most_memory = max(self.most_memory, instance.memory())
        said = instance.end()
        with self._lock:
            self.said.append(said)
            self._alive.pop(id(instance), None)
            self._lock.notify_all()


def ask(port: int, method: str, path: str, headers: dict[str, str], body: bytes, seconds: float) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException):
        return 0, b""
    finally:
        connection.close()


def _handler(service: FrontEnd) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        wbufsize = -1

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            kept = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
            status, data = service.forward(self.command, self.path, kept, body)
            self.send_response(status or 503)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _answer  # noqa: N815 - the names of http.server

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler
