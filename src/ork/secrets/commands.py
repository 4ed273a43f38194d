"""Secrets that a command prints. The command runs in a thread; its output is cached in memory for a short time."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from typing import NamedTuple

from ork.errors import SecretError, SecretNotYetError
from ork.model.secret import SecretDeclaration
from ork.secrets.providers import MAX_BYTES, decoded

CACHE_SECONDS = 60.0
RETRY_SECONDS = 5.0  # after a failure
MAX_FAILING_SECONDS = 60.0  # after failing for this long, the secret counts as missing


class _Result(NamedTuple):
    value: str | None
    problem: str | None
    good_until: float


class _Running:
    """One run of a command; several callers may wait for it."""

    def __init__(self, fails_since: float | None) -> None:
        self.is_done = threading.Event()
        self.result = _Result(None, None, 0.0)
        self.fails_since = fails_since  # start of the uninterrupted failures before it


_lock = threading.Lock()
_known: dict[tuple[str, tuple[str, ...]], _Running] = {}


def output_of(secret: SecretDeclaration, folder: str, environ: Mapping[str, str], wait_seconds: float) -> str:
    """The output of the command, at most a minute old. SecretNotYetError if the command still runs after `wait_seconds`,
    or has failed: a later call starts it again. SecretError if it has failed for a minute."""
    running = _running(secret, folder, environ)
    if not running.is_done.wait(wait_seconds):
        raise SecretNotYetError(f"secret `{secret.name}`: its command {_command_name(secret)} has not ended yet")
    value, problem, _ = running.result
    if value is None:
        fails_for = time.monotonic() - (running.fails_since or time.monotonic())
        error = SecretError if fails_for > MAX_FAILING_SECONDS else SecretNotYetError
        raise error(f"secret `{secret.name}`: its command {_command_name(secret)} {problem}")
    return value


def _running(secret: SecretDeclaration, folder: str, environ: Mapping[str, str]) -> _Running:
    key = (folder, secret.argv)
    with _lock:
        running = _known.get(key)
        if running is None or (running.is_done.is_set() and time.monotonic() >= running.result.good_until):
            running = _known[key] = _Running(_fails_since(running))
            threading.Thread(target=_work, args=(running, secret, folder, environ), daemon=True).start()
        return running


def _fails_since(before: _Running | None) -> float | None:
    """The start of recent failures; old ones do not count."""
    if before is None or before.result.good_until < time.monotonic() - MAX_FAILING_SECONDS:
        return None
    return before.fails_since


def _work(running: _Running, secret: SecretDeclaration, folder: str, environ: Mapping[str, str]) -> None:
    """Runs the command, and discards the value when it expires."""
    try:
        value = _run(secret, folder, environ)
        running.result = _Result(value, None, time.monotonic() + CACHE_SECONDS)
        running.fails_since = None
    except SecretError as error:
        running.result = _Result(None, error.message, time.monotonic() + RETRY_SECONDS)
        running.fails_since = running.fails_since or time.monotonic()
        running.is_done.set()
        return
    running.is_done.set()
    time.sleep(CACHE_SECONDS)
    running.result = _Result(None, "was run too long ago", 0.0)


def _run(secret: SecretDeclaration, folder: str, environ: Mapping[str, str]) -> str:
    """The output of the command. Standard error is discarded, because it may contain the value."""
    try:
        process = subprocess.Popen(
            secret.argv,
            cwd=folder,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise SecretError(f"cannot be started: {error.strerror}") from None
    is_late = threading.Event()

    def give_up() -> None:
        is_late.set()
        _kill(process)

    watch = threading.Timer(secret.timeout, give_up)
    watch.daemon = True
    watch.start()
    with process:
        assert process.stdout is not None
        data = process.stdout.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            _kill(process)
        code = process.wait()
    watch.cancel()
    if code != 0 and is_late.is_set():
        raise SecretError(f"did not end within {secret.timeout:g} s")
    if code != 0 and len(data) <= MAX_BYTES:
        raise SecretError(f"ended with {code}; run it by hand to see why")
    value = decoded(data, "printed something that cannot be a value: it")
    if not value:
        raise SecretError("printed nothing")
    return value


def _kill(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _command_name(secret: SecretDeclaration) -> str:
    """The command without its arguments, which may contain credentials."""
    return f"`{os.path.basename(secret.argv[0])}`"
