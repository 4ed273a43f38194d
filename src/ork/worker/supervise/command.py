"""A task that is a program. It reads JSON from stdin or a file, and writes JSON to a file or as its last line."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import errno
import os
import time

from ork.errors import DocumentError, ObjectsError
from ork.objects.json_text import dumps
from ork.objects.references import needs_files
from ork.worker.call.environment import INPUTS, OUTPUTS, Bindings, inherited, remove_inputs, task_environment
from ork.worker.call.results import program_output, store_output
from ork.worker.data.errors import InputError
from ork.worker.supervise import no_input
from ork.worker.supervise.confinement import TaskUserError, confinement_of
from ork.worker.supervise.log import LastLine, Stream
from ork.worker.supervise.process import dismiss_waiting, ended_badly, fork_into, is_confined
from ork.worker.supervise.programs import ProgramError, add_import_paths, find_program
from ork.worker.supervise.status import Ending, failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from ork.objects.attempt_documents import AttemptDocuments
    from ork.worker.supervise.confinement import Confinement
    from ork.worker.supervise.job import Host
    from ork.worker.supervise.log import Log
    from ork.worker.supervise.task_user import Exchange

_INPUT_PATIENCE_SECONDS = 60.0
_OUTPUT = "output.json"
_FULL = (errno.ENOSPC, errno.EDQUOT)
_LARGEST_LAST_LINE = 8 << 20  # kept in memory
_ENDED_BY = (_signal.SIGPIPE, _signal.SIGXFSZ)  # Python ignores these; programs expect to be ended by them
_UNCHANGEABLE = (_signal.SIGKILL, _signal.SIGSTOP)
_usual: list[int] | None = None


class CommandJob:
    is_started = is_over = leaves_nothing = False
    reply, fork_server, is_swift = -1, 0, False
    main_status: int | None = None

    def __init__(self, objects: AttemptDocuments, spec: dict[str, Any], host: Host | None = None) -> None:
        self._host = host
        self._objects = objects
        self._spec = spec
        self._input_file: str | None = None
        self._output_file = objects.work_file(spec["attempt"], "written.json")
        self._has_written = True  # until it is checked
        self._stdin = -1
        self._ours: list[int] = []  # descriptors to close at the end
        self._said = self._complained = -1  # its standard output and standard error
        self._streams: list[Stream] = []  # of both, once there is output
        self._last: LastLine | None = None
        self._log: Log | None = None
        self._pid = 0
        self._output_dir: str | None = None
        self._confinement: Confinement | None = None
        self._exchange: Exchange | None = None  # of the confinement

    def start(self, log: Log) -> Ending | int:
        self._log = log
        spec = self._spec
        try:
            if is_confined(spec):
                self._confine()
            bindings = Bindings(self._objects, spec["output_limit"], self._inherited(), spec)
            if self._exchange is not None:
                bindings.folder = f"{self._exchange.folder}/{INPUTS}"
            env = task_environment(spec, bindings.environ, bindings)
            path = env.get("PATH", os.defpath)
            paths, words = spec["paths"], bindings.words(spec["argv"])
            argv = find_program(words, spec["root"], spec["script_dir"], path, spec.get("python"), paths)
            add_import_paths(env, words[0], paths)
            data = input_text(spec, bindings)
            if spec.get("input_type") is not None:
                self._check(data)
            if self._exchange is not None:
                self._output_file = f"{self._exchange.folder}/{_OUTPUT}"
            env["ORK_INPUT_FILE"] = self._open_input(data)
            env["ORK_OUTPUT_FILE"] = self._output_file
            if spec.get("from_file") is not None:
                env["ORK_OUTPUT_DIR"] = self._output_dir = self._make_output_dir()
        except (ProgramError, TaskUserError) as error:
            return failed("start", str(error))
        except (InputError, ObjectsError) as error:
            return failed("input", str(error))
        except OSError as error:
            return failed("start", f"the input could not be written: {error.strerror}")
        if self._exchange is not None:
            self._exchange.hand_over()
        return self._start_process(argv, env)

    def _confine(self) -> None:
        self._confinement = confinement_of(self._spec)
        if self._confinement is not None:
            self._exchange = self._confinement.exchange

    def _inherited(self) -> dict[str, str]:
        user = self._confinement.user if self._confinement is not None else None
        return inherited() if user is None else {**inherited(), **user.variables()}

    def _check(self, data: bytes) -> None:
        from ork.worker.call.declared import check_input

        check_input(data, self._spec)

    def _wrong_output(self, text: str | None) -> dict[str, Any] | None:
        from ork.worker.call.declared import wrong_output

        return wrong_output(text, self._spec)

    def pipes(self) -> dict[int, Callable[[], bool]]:
        return {self._said: lambda: self._hears(0), self._complained: lambda: self._hears(1)}

    def _hears(self, which: int) -> bool:
        """Start reading the pipes when there is output. Most commands print nothing."""
        if not self._streams:
            assert self._log is not None
            self._last = LastLine(min(self._spec["output_limit"], _LARGEST_LAST_LINE))
            # In this order: if both have data, the error was probably written last.
            said = Stream(self._said, self._log, last=self._last, keeps_lines=True)
            complained = Stream(self._complained, self._log, keeps_lines=True)
            self._streams = [self._log.attach(said), self._log.attach(complained)]
        return self._streams[which].empty()

    def ending(self, wait_status: int) -> Ending:
        ending = self._ending(wait_status)
        return ending if self._confinement is None else self._confinement.explain(ending, self._log)

    def _ending(self, wait_status: int) -> Ending:
        if wait_status != 0:
            return ended_badly(wait_status, self._objects, self._spec["attempt"], self._log)
        if self._output_dir is not None:
            return self._ending_with_file(self._output_dir)
        try:
            text = self._output_text()
        except (DocumentError, OSError) as error:
            return failed("output", f"the content of $ORK_OUTPUT_FILE is invalid: {error}", exit_code=0)
        if text is None and self._last is not None and self._last.is_too_large:
            most = f"the last line of standard output is JSON of more than {self._last.limit:,} bytes"
            return failed("output", f"{most}: write it to the file $ORK_OUTPUT_FILE instead", exit_code=0)
        wrong = None if self._spec.get("output_type") is None else self._wrong_output(text)
        if wrong is not None:
            return Ending("failed", exit_code=0, failure=wrong)
        if text is None:
            return Ending("success", exit_code=0)
        stored = store_output(self._objects, self._spec["attempt"], text, self._spec["inline_limit"])
        if stored is None:
            return failed("output", "the output could not be stored: the disk is full", exit_code=0)
        return Ending("success", exit_code=0, output=stored)

    def _make_output_dir(self) -> str:
        """An empty folder for the file that the task leaves as its output."""
        folder = self._objects.work_file(self._spec["attempt"], OUTPUTS)
        if self._exchange is not None:
            folder = f"{self._exchange.folder}/{OUTPUTS}"
        os.makedirs(folder, mode=0o700)
        return folder

    def _ending_with_file(self, folder: str) -> Ending:
        """The ending of a program whose output is a file."""
        from ork.worker.supervise.left_files import LeftFileError, store_left_file

        try:
            text = store_left_file(self._objects, self._spec, f"{folder}/{self._spec['from_file']}", self._exchange)
        except LeftFileError as error:
            return failed("output", str(error), exit_code=0)
        wrong = None if self._spec.get("output_type") is None else self._wrong_output(text)
        if wrong is not None:
            return Ending("failed", exit_code=0, failure=wrong)
        stored = store_output(self._objects, self._spec["attempt"], text, self._spec["inline_limit"])
        if stored is None:
            return failed("output", "the output could not be stored: the disk is full", exit_code=0)
        return Ending("success", exit_code=0, output=stored)

    def clean(self) -> None:
        for descriptor in self._ours:
            os.close(descriptor)
        if self._exchange is None:
            self._remove_folders()
        if self._confinement is not None:
            self._confinement.remove()
        if self._exchange is not None:
            return
        if self._has_written:
            _remove(self._output_file)
        if self._input_file is not None:
            _remove(self._input_file)

    def _remove_folders(self) -> None:
        """Remove the folders of files, of which most commands have none."""
        if self._output_dir is not None:
            _remove(self._output_dir)
        if needs_files(self._spec):
            remove_inputs(self._objects, self._spec["attempt"])

    def _open_input(self, data: bytes) -> str:
        """Open standard input. Returns a path at which any process of the task can read the same data."""
        if data == no_input.TEXT and self._exchange is None:
            # Most commands have no input, and files are a large part of the cost of a small task.
            try:
                self._stdin, path = no_input.opened()
                return path
            except OSError:
                pass  # then like any other input
        if self._exchange is None and any("secret" in bound for bound in (self._spec["inputs"] or {}).values()):
            return self._open_in_memory(data)
        self._input_file = self._objects.work_file(self._spec["attempt"], "input.json")
        if self._exchange is not None:
            self._input_file = f"{self._exchange.folder}/input.json"
        give_up_at = time.monotonic() + _INPUT_PATIENCE_SECONDS
        while True:
            try:
                if self._stdin < 0:
                    self._stdin = os.open(self._input_file, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
                    self._ours.append(self._stdin)
                self._write_input(data)
                return self._input_file
            except OSError as error:
                # A full disk may be freed before the task starts.
                if error.errno not in _FULL or time.monotonic() > give_up_at:
                    raise
            time.sleep(0.2)

    def _open_in_memory(self, data: bytes) -> str:
        """Keep an input with secrets in memory, so that no crash leaves them on the disk."""
        self._stdin = os.memfd_create("input")
        self._ours.append(self._stdin)
        self._write_input(data)
        return f"/proc/{os.getpid()}/fd/{self._stdin}"

    def _write_input(self, data: bytes) -> None:
        written = 0
        while written < len(data):  # without moving the position: it is read from the beginning
            written += os.pwrite(self._stdin, data[written:], written)

    def _start_process(self, argv: list[str], env: dict[str, str]) -> Ending | int:
        dismiss_waiting()  # during an attempt all our children must belong to it
        streams = self._make_streams()
        try:
            if self._confinement is not None:
                self._pid = _forked(argv, env, self._spec["root"], streams, self._confinement)
            else:
                start = _spawned if self._host is not None and self._host.is_guarded() else _forked
                self._pid = start(argv, env, self._spec["root"], streams)
        except OSError as error:
            why = error.strerror or error
            ending = failed("start", f"cannot run `{argv[0]}` in {self._spec['root']}: {why}")
            return ending if self._confinement is None else self._confinement.explain(ending, self._log)
        return self._pid

    def _make_streams(self) -> tuple[int, int, int]:
        """Standard input, and pipes for standard output and standard error."""
        # Both are pipes: a program that opens /dev/stderr for writing would otherwise truncate the log.
        # The write ends stay open here as well: the end of the process shows that there is no more output, so no further
        # wake-up is needed. Each command gets new pipes, because it may change their flags (such as O_NONBLOCK).
        self._said, stdout = os.pipe()
        self._ours += (stdout, self._said)
        self._complained, stderr = os.pipe()
        self._ours += (stderr, self._complained)
        return self._stdin, stdout, stderr

    def _output_text(self) -> str | None:
        """JSON: from the file if it was written, else from the last line if that is JSON, else None."""
        limit = self._spec["output_limit"]
        if self._exchange is not None:
            data = self._exchange.read(_OUTPUT, limit)
            return self._last_line() if data is None else program_output(data, limit)
        try:
            descriptor = os.open(self._output_file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            self._has_written = False
            return self._last_line()
        with open(descriptor, "rb") as file:
            data = file.read(limit + 1)
        return program_output(data, limit)

    def _last_line(self) -> str | None:
        line = None if self._last is None else self._last.line()
        if not line:
            return None
        try:
            return program_output(line, len(line))
        except DocumentError:
            return None


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError:
        # The task replaced the file by a folder.
        import shutil

        shutil.rmtree(path, ignore_errors=True)


def input_text(spec: dict[str, Any], bindings: Bindings) -> bytes:
    """The inputs if any are declared, else the item of the instance, else the only upstream output, else a map of the outputs."""
    inputs, upstream = spec["inputs"], spec["upstream"]
    if inputs is None and spec.get("item") is not None:
        return bindings.json_bytes(spec["item"])
    if inputs is None and len(upstream) == 1:
        return bindings.json_bytes(next(iter(upstream.values())))
    bounds = upstream if inputs is None else inputs
    members = [dumps(name).encode() + b":" + bindings.json_bytes(bound) for name, bound in bounds.items()]
    return b"{" + b",".join(members) + b"}"


def _spawned(argv: list[str], env: dict[str, str], folder: str, streams: tuple[int, int, int]) -> int:
    """Start a program with posix_spawn. OSError if it cannot be run. The guard ends it if we die."""
    os.chdir(folder)
    try:
        return _spawn(argv[0], argv, env, streams)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        return _spawn("/bin/sh", ["sh", *argv], env, streams)
    finally:
        os.chdir("/")  # the worker's own folder


def _spawn(program: str, argv: list[str], env: dict[str, str], streams: tuple[int, int, int]) -> int:
    stdin, stdout, stderr = streams
    return os.posix_spawn(
        program,
        argv,
        env,
        file_actions=(
            (os.POSIX_SPAWN_DUP2, stdin, 0),
            (os.POSIX_SPAWN_DUP2, stdout, 1),
            (os.POSIX_SPAWN_DUP2, stderr, 2),
        ),
        setpgroup=0,
        setsigmask=(),
        setsigdef=_usual_signals(),
    )


def _usual_signals() -> list[int]:
    """The signals to reset in a new process: all except those that our parent had ignored. A short list saves system calls."""
    global _usual
    if _usual is None:
        changeable = sorted(_signal.valid_signals() - set(_UNCHANGEABLE))
        _usual = [int(n) for n in changeable if n in _ENDED_BY or _signal.getsignal(n) != _signal.SIG_IGN]
    return _usual


def _forked(
    argv: list[str],
    env: dict[str, str],
    folder: str,
    streams: tuple[int, int, int],
    confinement: Confinement | None = None,
) -> int:
    """Start a program with fork and exec; the process itself ensures that it dies with us."""
    problem, report = os.pipe()
    given_input = os.dup(streams[0])  # the shared empty input must not be inherited

    def body() -> NoReturn:
        try:
            for wanted, given in enumerate((given_input, *streams[1:])):
                os.dup2(given, wanted)
            if confinement is not None:
                confinement.enter((report,), executes=True)
            os.chdir(folder)
            for number in _ENDED_BY:
                _signal.signal(number, _signal.SIG_DFL)
            _execute(argv, env)
        except OSError as error:
            os.write(report, str(error.errno).encode())
            os._exit(127)

    try:
        pid = fork_into(body)
    finally:
        os.close(given_input)
        os.close(report)
    # Closed by a successful exec; otherwise it contains the error.
    why = os.read(problem, 4096)
    os.close(problem)
    if why:
        os.waitpid(pid, 0)
        raise OSError(int(why), os.strerror(int(why)))
    return pid


def _execute(argv: list[str], env: dict[str, str]) -> NoReturn:
    try:
        os.execve(argv[0], argv, env)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        # An executable text without `#!` is run as a shell script, as shells do.
        os.execve("/bin/sh", ["sh", *argv], env)
