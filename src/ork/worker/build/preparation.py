"""Builds what a task needs before it can start (an environment, a compiled program), in a separate process.

The shim supervises that process like the task: heartbeats continue, its output goes to the log, and it can be stopped.
"""

from __future__ import annotations

import os
import time

from ork.errors import ObjectsError
from ork.worker.build.builds import prune
from ork.worker.call.environment import Bindings, task_environment
from ork.worker.call.results import storable
from ork.worker.data.errors import InputError
from ork.worker.supervise.confinement import TaskUserError
from ork.worker.supervise.log import Stream
from ork.worker.supervise.process import dismiss_waiting, fork_into, log_tail
from ork.worker.supervise.status import Ending, failed
from ork.worker.supervise.task_user import user_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn, Protocol

    from ork.objects.attempt_documents import AttemptDocuments
    from ork.worker.build.builds import Build
    from ork.worker.supervise.log import Log
    from ork.worker.supervise.task_user import TaskUser

    class Need(Protocol):
        """Something to build once per content."""

        build: Build
        title: str

        def make(self, tools: Tools, folder: str) -> None: ...

        def settle(self, spec: dict[str, Any]) -> None:
            """Set in the spec what the task is started with, once it is built."""
            ...


_REPLY_LIMIT = 1 << 16
_READ_BACK = 1 << 16


class PreparationError(Exception):
    """The reason why the task cannot be prepared, as a sentence. `is_final`: a retry cannot help."""

    def __init__(self, message: str, *, is_final: bool = False) -> None:
        super().__init__(message)
        self.is_final = is_final


class Preparation:
    is_started = is_over = leaves_nothing = False  # before its process exists
    reply, fork_server, main_status, is_swift = -1, 0, None, False

    def __init__(self, objects: AttemptDocuments, spec: dict[str, Any]) -> None:
        self._objects = objects
        self._spec = spec
        self._needs: list[Need] = []
        self._user: TaskUser | None = None
        self._source = -1
        self._reply = bytearray()
        self._printed: Stream | None = None
        self._log: Log | None = None

    def look(self) -> Ending | None:
        """Find out what has to be built. Returns the ending if that fails."""
        try:
            self._user = user_of(self._spec)
            if self._user is not None:
                self._spec["builds"] = self._user.builds()
            self._needs = _needs_of(self._spec)
        except TaskUserError as error:
            return _failed(str(error), None, True)
        except PreparationError as error:
            return _failed(str(error), None, error.is_final)
        except OSError as error:
            return _failed(f"cannot look at {error.filename}: {error.strerror}", None, False)
        return None

    def is_ready(self) -> bool:
        return all(need.build.is_ready() for need in self._needs)

    def settle(self) -> None:
        for need in self._needs:
            need.settle(self._spec)

    def release(self) -> None:
        """Close what is open, so that what was built may be pruned."""
        for need in self._needs:
            need.build.close()
        self._needs = []
        if self._source >= 0:
            self.clean()

    def start(self, log: Log) -> Ending | int:
        self._log = log
        self._source, answer = os.pipe()
        printed = self._printed_to(log)

        def body() -> NoReturn:
            os.close(self._source)
            os.dup2(log.opened() if printed is None else printed, 1)
            os.dup2(1, 2)
            if self._user is not None:
                self._user.become([answer, *(need.build.lock for need in self._needs)])
            os._exit(self._build(answer))

        dismiss_waiting()
        pid = fork_into(body)
        os.close(answer)
        if printed is not None:
            os.close(printed)
        os.set_blocking(self._source, False)
        return pid

    def _printed_to(self, log: Log) -> int | None:
        """The pipe for the output of tools; None if it goes directly to the log because no secrets have to be
        masked."""
        if log.mask is None:
            return None
        source, printed = os.pipe()
        self._printed = log.attach(Stream(source, log))
        return printed

    def make_here(self) -> Ending | None:
        """Build in this process everything that is missing. Returns the ending if that fails."""
        self._source, answer = os.pipe()
        code = self._build(answer) if self._user is None else self._built_by(self._user, answer)
        os.close(answer)
        self._read_reply()
        self.clean()
        return self.ending(code) if code else None

    def _built_by(self, user: TaskUser, answer: int) -> int:
        """Build in a process of that user. Returns its wait status."""
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                user.become([answer, *(need.build.lock for need in self._needs)])
                code = self._build(answer)
            finally:
                os._exit(code)
        return os.waitpid(pid, 0)[1]

    def pipes(self) -> dict[int, Callable[[], bool]]:
        pipes: dict[int, Callable[[], bool]] = {self._source: self._read_reply}
        return pipes if self._printed is None else pipes | {self._printed.source: self._printed.empty}

    def ending(self, wait_status: int) -> Ending:
        if wait_status == 0:
            return Ending("success", exit_code=0)
        is_final, _, message = self._reply.decode("utf-8", "replace").partition(":")
        tail = log_tail(self._objects, self._spec["attempt"], self._log)
        return _failed(message or "what the task needs could not be built", tail, is_final == "final")

    def clean(self) -> None:
        os.close(self._source)
        self._source = -1
        if self._printed is not None:
            os.close(self._printed.source)

    def _read_reply(self) -> bool:
        try:
            chunk = os.read(self._source, _REPLY_LIMIT)
        except BlockingIOError:
            return True
        self._reply += chunk
        return bool(chunk)

    def _build(self, answer: int) -> int:
        """Build everything that is missing, in the child. Returns the exit code."""
        try:
            inherited = dict(os.environ)
            bindings = Bindings(self._objects, self._spec["output_limit"], inherited)
            environment = task_environment(self._spec, inherited, bindings)
            for need in self._needs:
                tools = Tools(self._objects, self._spec["attempt"], environment, need.build.lock, self._spec["root"])
                need.build.make(lambda folder, need=need, tools=tools: _make(need, tools, folder))  # type: ignore[misc]
        except (PreparationError, InputError, ObjectsError) as error:
            is_final = getattr(error, "is_final", False)
            os.write(answer, f"{'final' if is_final else 'again'}:{storable(str(error))}".encode())
            return 1
        except OSError as error:
            os.write(answer, f"again:cannot build: {error.filename or ''} {error.strerror}".encode())
            return 1
        return 0


class Tools:
    """Runs build tools. Their output goes to the log, and they inherit the lock: if their parent is killed, the next
    builder waits for them."""

    def __init__(
        self, objects: AttemptDocuments, attempt: str, environment: dict[str, str], lock: int, working_folder: str
    ) -> None:
        self._objects = objects
        self._attempt = attempt
        self.environment = environment
        self._lock = lock
        self._working_folder = working_folder

    def find(self, program: str) -> str | None:
        import shutil

        return shutil.which(program, path=self.environment.get("PATH", os.defpath))

    def say(self, text: str) -> None:
        os.write(2, f"[ork] {text}\n".encode())

    def run(self, argv: Sequence[str], *, variables: dict[str, str] | None = None) -> tuple[str, str | None]:
        """The program's standard output and None; if it failed, an empty text and what it printed to the log."""
        import subprocess

        before = self._printed_bytes()
        done = subprocess.run(
            argv,
            cwd=self._working_folder,
            env={**self.environment, **(variables or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            pass_fds=(self._lock,),
            check=False,
        )
        if done.returncode == 0:
            return done.stdout.decode("utf-8", "replace"), None
        os.write(2, done.stdout)
        try:
            return "", self._objects.read_log(self._attempt, before, _READ_BACK).decode("utf-8", "replace")
        except (ObjectsError, OSError):  # the process of another user cannot read the log
            return "", ""

    def _printed_bytes(self) -> int:
        try:
            return self._objects.log_size(self._attempt) or 0
        except (ObjectsError, OSError):
            return 0


def _needs_of(spec: dict[str, Any]) -> list[Need]:
    needs: list[Need] = []
    if spec.get("environment") is not None:
        from ork.worker.build.environments import environment_need

        need = environment_need(spec)
        if need is not None:
            needs.append(need)
    if spec["kind"] == "rust":
        from ork.worker.build.rust import RustNeed

        needs.append(RustNeed(spec))
    return needs


def _make(need: Need, tools: Tools, folder: str) -> None:
    # A build takes long anyway, so unused folders are pruned here.
    prune(need.build.shelf, time.time())
    tools.say(f"building {need.title}")
    started = time.monotonic()
    need.make(tools, folder)
    tools.say(f"built in {time.monotonic() - started:.1f}s")


def _failed(message: str, tail: list[str] | None, is_final: bool) -> Ending:
    detail: dict[str, Any] = {"tail": tail} if tail else {}
    if is_final:
        detail["retry"] = False
    return failed("start", message, detail or None)
