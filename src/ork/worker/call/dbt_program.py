"""A dbt that stays: it has a project parsed, and forks a process for each dbt command of that project.

Runs in dbt's own interpreter, started by `ork.worker.supervise.dbt_server`. In: one message per command on a socket, with four
descriptors: a file with the order as JSON, and the command's standard streams. Out: on a pipe one line when the process of a
command has been forked, and one with its wait status when it has ended.

Only documented parts of dbt are used: `dbtRunner`, the command `parse`, and that a runner can be given a parsed manifest.
Whatever cannot be done that way is done by starting dbt anew in the forked process. So a command never fails because of this
program.
"""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from importlib import import_module

from ork.objects.json_text import own_json
from ork.system import system
from ork.worker.call import packages
from ork.worker.call.packages import PackageFingerprint
from ork.worker.call.surroundings import finish_as_the_interpreter_would, flush_streams, reseed, use_streams
from ork.worker.system.processes import AttemptTag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, NoReturn

# Modules that dbt imports with the first command. A version without them imports others then.
_LOADED_LATE = ("dbt.task.build", "dbt.task.run", "dbt.task.seed", "dbt.task.snapshot", "dbt.task.test")
BEGUN = b"begun\n"
_SOURCES = (".sql", ".yml", ".yaml", ".csv", ".py", ".md")
_SKIPPED_FOLDERS = frozenset({"target", "logs", "__pycache__", "node_modules"})
_OWN_VARIABLES = ("ORK_", "TRACEPARENT")  # differ for each attempt
# Messages of the parser are in the log of the first command; ordinary ones would be the same in each.
_QUIETLY = ("--no-use-colors", "--log-level", "warn", "--log-level-file", "none")


def start(orders: str, ends: str) -> int:
    """Serve until the socket is closed."""
    packages.use_packages()
    sys.path[:0] = [os.path.abspath(each) for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    sys.modules["__main__"].__dict__.pop("__file__", None)  # `multiprocessing` would load it again in its children
    use_streams()
    # dbt's locks need this process. Started here, it has neither the tag nor the streams of an attempt.
    from multiprocessing.resource_tracker import ensure_running

    ensure_running()
    gc.disable()  # loading dbt makes many objects that stay
    KeptDbt(int(orders), int(ends)).serve()
    return 0


class KeptDbt:
    """`why_not` is the reason why commands cannot be forked from this process; None if they can."""

    def __init__(self, orders: int, ends: int) -> None:
        import socket

        self._orders = socket.socket(fileno=orders)
        self._ends = ends
        self._pid = os.getpid()
        self._runner: Any = None  # the class
        self._manifest: Any = None
        self._parsed: object = None  # what the manifest was made from
        self._packages = PackageFingerprint()
        self._tag: AttemptTag | None = None
        self._is_outdated = False
        self.why_not: str | None = None
        try:
            self._tag = AttemptTag()
        except (OSError, ValueError) as error:
            self.why_not = f"the processes of this system cannot be marked ({error})"

    def serve(self) -> None:
        import socket

        for descriptor in (self._orders.fileno(), self._ends):
            os.set_inheritable(descriptor, False)
        while True:
            message, descriptors, *_ = socket.recv_fds(self._orders, 1, 4)
            if not message:
                return
            with open(descriptors[0], "rb") as file:
                order: dict[str, Any] = own_json(file.read())
            streams = descriptors[1:]
            self._prepare(order)
            pid = os.fork()
            if pid == 0:
                self._become(order, streams)
            for descriptor in streams:
                os.close(descriptor)
            os.write(self._ends, BEGUN)
            os.write(self._ends, b"%d\n" % os.waitpid(pid, 0)[1])
            if self._is_outdated:
                return

    def _prepare(self, order: dict[str, Any]) -> None:
        """Have dbt loaded and the project parsed. What dbt prints meanwhile goes to the log of this command."""
        if not self._packages.is_current():
            self.why_not, self._is_outdated = "its packages have changed", True
        if self.why_not is not None:
            return
        try:
            _use_variables(order["env"])
            if self._runner is None:
                self._load()
            self._parse(order)
        except BaseException as error:
            self.why_not = f"{type(error).__name__}: {error}"
            self._is_outdated = self._runner is not None  # another process may have more luck with the project
        flush_streams()
        if len(sys._current_frames()) > 1:
            self.why_not = self.why_not or "it has started a thread, which a fork would not copy"

    def _load(self) -> None:
        from dbt.cli.main import dbtRunner  # type: ignore[import-not-found]

        self._runner = dbtRunner
        for name in _LOADED_LATE:
            with suppress(ImportError):
                import_module(name)

    def _parse(self, order: dict[str, Any]) -> None:
        """Parse the project, unless nothing has changed that the manifest was made from."""
        os.chdir(order["folder"])
        files = list(_files(order["watched"]))
        if self._parsed == (order["parse"], self._variables(order), files):
            return
        gc.unfreeze()
        result = self._runner().invoke([*_QUIETLY, "parse", *order["parse"]])
        # Without a manifest the command parses by itself, and reports what is wrong.
        self._manifest = result.result if result.success else None
        self._parsed = (order["parse"], self._variables(order), files) if result.success else None
        # A collection in a forked process would copy the memory of all that is loaded here.
        gc.collect()
        gc.freeze()

    def _variables(self, order: dict[str, Any]) -> dict[str, str]:
        """The variables that the manifest may depend on."""
        used = getattr(self._manifest, "env_vars", {})
        variables: dict[str, str] = order["env"]
        return {name: value for name, value in variables.items() if name in used or not name.startswith(_OWN_VARIABLES)}

    def _become(self, order: dict[str, Any], streams: list[int]) -> NoReturn:
        """Perform the command in this process, which was just forked, and exit with the exit code of dbt."""
        code = 2
        try:
            code = self._perform(order, streams)
            finish_as_the_interpreter_would()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            flush_streams()
            os._exit(code)

    def _perform(self, order: dict[str, Any], streams: list[int]) -> int:
        import signal

        os.setpgid(0, 0)
        system.die_with_parent(self._pid)
        if self._tag is not None:
            self._tag.write(order["attempt"].encode())
        for wanted, given in enumerate(streams):
            os.dup2(given, wanted)
            os.close(given)
        self._orders.close()
        os.close(self._ends)
        os.chdir(order["folder"])
        argv: list[str] = order["argv"]
        if self.why_not is not None:
            os.write(2, f"[ork] dbt starts anew for this task: {self.why_not}\n".encode("utf-8", "replace"))
            os.execve(argv[0], argv, order["env"])
        reseed()
        gc.enable()
        sys.argv = argv
        # As if interrupted at a terminal: dbt then cancels the queries that it has sent.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        result = self._runner(manifest=self._manifest).invoke(argv[1:])
        if result.exception is not None and type(result.exception).__name__ == "DbtUsageException":
            print(f"Error: {result.exception}", file=sys.stderr)
        return 0 if result.success else 1 if result.exception is None else 2


def _use_variables(env: dict[str, str]) -> None:
    for name in os.environ.keys() - env.keys():
        del os.environ[name]
    os.environ.update(env)


def _files(watched: list[str]) -> Iterator[tuple[str, int, int]]:
    """The source files below folders, and other files, with their times and sizes."""
    for path in watched:
        if os.path.isfile(path):
            yield _facts(path)
        for folder, folders, names in os.walk(path):
            folders[:] = sorted(name for name in folders if name not in _SKIPPED_FOLDERS and not name.startswith("."))
            yield from (_facts(os.path.join(folder, name)) for name in sorted(names) if name.endswith(_SOURCES))


def _facts(path: str) -> tuple[str, int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return path, 0, -1
    return path, found.st_mtime_ns, found.st_size
