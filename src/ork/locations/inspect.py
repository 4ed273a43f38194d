"""Inspects a Python file of the user in a child process: this process never runs user code.

Results are cached by content: the file, every project file it loaded, the interpreter and Ork's version.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Any, NamedTuple

from ork import __version__
from ork.errors import DocumentError
from ork.locations.inspection_cache import InspectionCache
from ork.objects.json_text import strict_json

WALL_SECONDS = 60.0
MAX_BYTES = 64 * 1024 * 1024
_SHOWN_LINES = 20
_SHOWN_BYTES = 8192
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_BOOTSTRAP = os.path.join(_PACKAGE, "worker", "bootstrap.py")
# The code that produces results; in a development tree it changes without a new version.
_INSPECTOR_FILES = (
    "worker/inspect.py",
    "worker/convert/annotations.py",
    "sdk/workflow.py",
    "sdk/parameters.py",
    "sdk/values.py",
)


class Inspected(NamedTuple):
    """`workflows` as documents with positions, `functions` by "<file>:<name>", and why the file could not be loaded.

    An error has `type`, `message` and the user's own `frames`, outermost first.
    """

    workflows: list[dict[str, Any]]
    functions: dict[str, dict[str, Any]]
    errors: list[dict[str, Any]]


def inspect_file(
    path: str, *, root: str, interpreter: str, cache_dir: str | None, paths: Sequence[str] = ()
) -> Inspected:
    """`path` is relative to `root`; `paths` are further folders to import from. Never raises because of the file's
    content."""
    root = os.path.abspath(root)
    file = os.path.normpath(os.path.relpath(os.path.join(root, path), root))
    answers = InspectionCache(cache_dir) if cache_dir is not None else None
    key = _key(root, file, interpreter, paths)
    answer = answers.find(key, root) if answers is not None else None
    if answer is None:
        answer = _ask_child(root, file, interpreter, paths)
        if answers is not None and not answer["errors"]:
            answers.keep(key, root, answer)
    return Inspected(answer["workflows"], answer["functions"], answer["errors"])


def _key(root: str, file: str, interpreter: str, paths: Sequence[str]) -> str:
    """A key of everything known before the child runs; the other files it loaded are checked with the result."""
    facts = [__version__, os.path.abspath(interpreter), root, file, *paths]
    config = os.path.join(os.path.dirname(interpreter), "..", "pyvenv.cfg")
    for source in (interpreter, config, *(os.path.join(_PACKAGE, maker) for maker in _INSPECTOR_FILES)):
        try:
            stat = os.stat(source)
            facts.append(f"{stat.st_size}:{stat.st_mtime_ns}")
        except OSError:
            facts.append("none")
    return hashlib.sha256("\0".join(facts).encode("utf-8", "surrogateescape")).hexdigest()


def _ask_child(root: str, file: str, interpreter: str, paths: Sequence[str]) -> dict[str, Any]:
    with tempfile.TemporaryFile() as printed:
        source, answer = os.pipe()
        try:
            child = _start(root, file, interpreter, paths, answer, printed)
        except OSError as error:
            os.close(source)
            return _failed("StartError", f"{interpreter} could not be started: {error.strerror}")
        finally:
            os.close(answer)
        data, in_time = b"", False
        try:
            data, in_time = _read(source, time.monotonic() + WALL_SECONDS)
        finally:
            os.close(source)
            _end(child, grace=1.0 if in_time else 0.0)
        if not in_time:
            return _failed("TimeoutError", f"loading {file} took more than {WALL_SECONDS:g} seconds")
        return _parse_output(data, child.returncode, file, printed)


def _start(
    root: str, file: str, interpreter: str, paths: Sequence[str], answer: int, printed: IO[bytes]
) -> subprocess.Popen[bytes]:
    # -S and -E as for any worker: user code must not see packages installed for Ork.
    arguments = ["ork.worker.inspect", str(os.getpid()), str(answer), root, file, *paths]
    return subprocess.Popen(
        [interpreter, "-S", "-E", _BOOTSTRAP, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=printed,
        stderr=printed,
        pass_fds=(answer,),
        start_new_session=True,
        cwd=root,
    )


def _read(source: int, deadline: float) -> tuple[bytes, bool]:
    """The child's output, and whether it came in time. It is one line: processes left running may hold the pipe open."""
    import select

    data = bytearray()
    while len(data) <= MAX_BYTES:
        ready, _, _ = select.select([source], [], [], max(deadline - time.monotonic(), 0))
        if not ready:
            return b"", False
        chunk = os.read(source, 1 << 16)
        if not chunk:
            break
        data += chunk
        if chunk.endswith(b"\n"):
            break
    return bytes(data), True


def _end(child: subprocess.Popen[bytes], grace: float) -> None:
    """End the child and all its processes."""
    with suppress(subprocess.TimeoutExpired):
        child.wait(timeout=grace)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _parse_output(data: bytes, code: int, file: str, printed: IO[bytes]) -> dict[str, Any]:
    if not data:
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        output = _last_lines(printed)
        return _failed("Ended", f"loading {file} ended {how} before it was done" + (f":\n{output}" if output else ""))
    try:
        answer = strict_json(data, max_size=MAX_BYTES)
        if not isinstance(answer, dict) or not {"workflows", "functions", "files", "errors"} <= answer.keys():
            raise DocumentError("not an answer")
    except DocumentError as error:
        return _failed("Unreadable", f"what {file} says of itself cannot be read: {error.message}")
    return answer


def _failed(kind: str, message: str) -> dict[str, Any]:
    error = {"type": kind, "message": message, "frames": []}
    return {"workflows": [], "functions": {}, "files": [], "errors": [error]}


def _last_lines(printed: IO[bytes]) -> str:
    size = printed.seek(0, os.SEEK_END)
    printed.seek(max(0, size - _SHOWN_BYTES))
    return "\n".join(printed.read().decode("utf-8", "replace").splitlines()[-_SHOWN_LINES:])
