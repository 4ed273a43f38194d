"""How a local worker is started: with which interpreter, variables and limits, and as a new process in its own session.

Of the scheduler's environment, workers inherit a fixed list of variables and those named by `pass_env`. All others are
dropped, since a service's environment may hold credentials.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache

from ork.executors.executor import LaunchOrder
from ork.system import system

ATTEMPT_VARIABLE = "ORK_ATTEMPT_ID"


ORDINARY_SIGNALS = [signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGXFSZ]


OLDEST = (3, 11)
BOOTSTRAP = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "worker", "bootstrap.py")


class InterpreterError(Exception):
    """No interpreter can be used, and a retry does not help. The message is a sentence."""


def interpreter_for(order: LaunchOrder, uses_project_python: bool) -> str:
    """The order's interpreter, else that of the project's `.venv` if wanted and present, else the current one."""
    if order.interpreter is not None:
        if not os.access(order.interpreter, os.X_OK):
            raise InterpreterError(f"there is no Python at {order.interpreter}")
        return order.interpreter
    return project_python(order.root, *order.paths) if uses_project_python else sys.executable


class Pythons:
    """Caches `interpreter_for` until `look_again`."""

    def __init__(self, uses_project_python: bool) -> None:
        self._uses_project_python = uses_project_python
        self._known: dict[tuple[str, tuple[str, ...], str | None], str] = {}

    def of(self, order: LaunchOrder) -> str:
        key = order.root, order.paths, order.interpreter
        if key not in self._known:
            self._known[key] = interpreter_for(order, self._uses_project_python)
        return self._known[key]

    def of_project(self, root: str) -> str:
        return project_python(root) if self._uses_project_python else sys.executable

    def look_again(self) -> None:
        self._known.clear()


def project_python(*folders: str) -> str:
    """The Python of the `.venv` in one of these folders, else the current interpreter."""
    root = next((each for each in folders if os.access(os.path.join(each, ".venv/bin/python"), os.X_OK)), None)
    if root is None:
        return sys.executable
    own = os.path.join(root, ".venv", "bin", "python")
    version = _version(os.path.join(root, ".venv", "pyvenv.cfg"))
    if version is not None and version < OLDEST:
        shown = ".".join(map(str, version))
        raise InterpreterError(f"{root}/.venv has Python {shown}; tasks need 3.11 or later")
    return own


def _version(config: str) -> tuple[int, int] | None:
    """Read from `version` (venv) or `version_info` (virtualenv, uv); None if there is neither."""
    try:
        with open(config, encoding="utf-8", errors="replace") as file:
            for line in file:
                name, _, value = line.partition("=")
                if name.strip() in ("version", "version_info"):
                    major, minor = value.strip().split(".")[:2]
                    return int(major), int(minor)
    except (OSError, ValueError):
        pass
    return None


# Program paths, user, folders, language, time zone and trusted certificates.
NAMES = frozenset(
    {
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TMP", "TEMP",
        "TERM", "COLUMNS", "LINES", "NO_COLOR", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "CARGO_HOME", "RUSTUP_HOME",
        "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT",
    }
)  # fmt: skip
PREFIXES = ("LC_", "PYTHON")
OWN = "ORK_"
STORE = "ORK_STORE_"  # credentials of the object store, for workers: tasks do not see variables of Ork's own


def inherited(environ: Mapping[str, str], pass_env: Sequence[str] = ()) -> dict[str, str]:
    """The part of `environ` that workers inherit, and tasks from them. Ork's own variables are never passed, except for
    `ORK_STORE_X` in `pass_env`, which is the value of X for the worker alone."""
    names = NAMES.union(name for name in pass_env if not name.endswith("*"))
    prefixes = (*PREFIXES, *(name[:-1] for name in pass_env if name.endswith("*")))
    kept = {
        name: value
        for name, value in environ.items()
        if (name in names or name.startswith(prefixes)) and not name.startswith(OWN)
    }
    for name in pass_env:
        if name.startswith(STORE) and (value := environ.get(name[len(STORE) :])) is not None:
            kept[name] = value
    return kept


class InheritedEnvironment:
    """The inherited part of this process's environment; computed again only when it changes."""

    def __init__(self, pass_env: Sequence[str]) -> None:
        self.pass_env = pass_env
        self._seen: dict[bytes, bytes] | None = None
        self._inherited: dict[bytes, bytes] = {}

    def variables(self) -> Mapping[bytes, bytes]:
        # The undecoded variables: one dict that can be compared quickly.
        now: dict[bytes, bytes] = os.environ._data  # type: ignore[attr-defined]
        if now != self._seen:
            self._seen = dict(now)
            kept = inherited(os.environ, self.pass_env)
            self._inherited = {os.fsencode(name): os.fsencode(value) for name, value in kept.items()}
        return self._inherited


def spawn_worker(interpreter: str, documents: str, order: LaunchOrder, log: int, environ: Mapping[str, str]) -> int:
    """Start the worker with `environ` and the order's variables, and return its pid. `log` is a descriptor of the attempt's
    log. OSError if that fails."""
    env = {
        **environ,
        **dict(order.secrets),
        "ORK_TOKEN": order.token,
        ATTEMPT_VARIABLE: str(order.attempt.key),
    }
    return os.posix_spawn(
        interpreter,
        [interpreter, "-S", "-E", BOOTSTRAP, documents, str(order.attempt.key), str(order.position)],
        env,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            # Errors before the task begins go to the task's log.
            (os.POSIX_SPAWN_DUP2, log, 2),
        ],
        setsid=True,
        setsigmask=[],
        setsigdef=ORDINARY_SIGNALS,
    )


@cache
def raise_limit() -> tuple[int, int]:
    """Raise this process's limit as far as possible, once. Returns the old limits, for child processes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = system.MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, system.MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return soft, hard


def restore_limit(pid: int) -> None:
    """Give a child process the original limit, since programs may rely on a low one."""
    with suppress(OSError, ValueError):
        system.limit_files(pid, raise_limit())


def limit_message() -> str:
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        f"this process may have {most:,} files open: raise `ulimit -n`, or run fewer attempts at once (`max_workers`)"
    )
