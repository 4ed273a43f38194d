"""Secrets that a command prints. It runs in a thread; its output is kept in memory for a short time."""

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
from ork.secrets.providers import LARGEST_BYTES, decoded

KEPT_SECONDS = 60.0
AGAIN_SECONDS = 5.0  # after a failure
GIVE_UP_SECONDS = 60.0  # of failures, after which those who ask are told that there is no value


class _Result(NamedTuple):
    value: str | None
    problem: str | None
    good_until: float


class _Running:
    """One run of a command that several may wait for."""

    def __init__(self, fails_since: float | None) -> None:
        self.is_done = threading.Event()
        self.result = _Result(None, None, 0.0)
        self.fails_since = fails_since  # the first of the failures before it, without a pause


_lock = threading.Lock()
_known: dict[tuple[str, tuple[str, ...]], _Running] = {}


def output_of(secret: SecretDeclaration, folder: str, environ: Mapping[str, str], patience: float) -> str:
    """What the command printed, at most a minute ago. SecretNotYetError if it still runs after `patience` seconds, or has
    failed: it is started again when somebody asks later. SecretError if that has been so for a minute."""
    running = _running(secret, folder, environ)
    if not running.is_done.wait(patience):
        raise SecretNotYetError(f"secret `{secret.name}`: its command {_shown(secret)} has not ended yet")
    value, problem, _ = running.result
    if value is None:
        fails_for = time.monotonic() - (running.fails_since or time.monotonic())
        error = SecretError if fails_for > GIVE_UP_SECONDS else SecretNotYetError
        raise error(f"secret `{secret.name}`: its command {_shown(secret)} {problem}")
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
    """Failures of long ago do not count."""
    if before is None or before.result.good_until < time.monotonic() - GIVE_UP_SECONDS:
        return None
    return before.fails_since


def _work(running: _Running, secret: SecretDeclaration, folder: str, environ: Mapping[str, str]) -> None:
    """Also forgets the value in time, whether or not anybody asks for it again."""
    try:
        value = _run(secret, folder, environ)
        running.result = _Result(value, None, time.monotonic() + KEPT_SECONDS)
        running.fails_since = None
    except SecretError as error:
        running.result = _Result(None, error.message, time.monotonic() + AGAIN_SECONDS)
        running.fails_since = running.fails_since or time.monotonic()
        running.is_done.set()
        return
    running.is_done.set()
    time.sleep(KEPT_SECONDS)
    running.result = _Result(None, "was run too long ago", 0.0)


def _run(secret: SecretDeclaration, folder: str, environ: Mapping[str, str]) -> str:
    """What it prints to standard error is dropped: that may hold the value, too."""
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
    watch = threading.Timer(secret.timeout, _end, (process,))
    watch.daemon = True
    watch.start()
    began = time.monotonic()
    with process:
        assert process.stdout is not None
        data = process.stdout.read(LARGEST_BYTES + 1)
        if len(data) > LARGEST_BYTES:
            _end(process)
        code = process.wait()
    watch.cancel()
    if code != 0 and time.monotonic() - began >= secret.timeout:
        raise SecretError(f"did not end within {secret.timeout:g} s")
    if code != 0 and len(data) <= LARGEST_BYTES:
        raise SecretError(f"ended with {code}; run it by hand to see why")
    value = decoded(data, "printed something that cannot be a value: it")
    if not value:
        raise SecretError("printed nothing")
    return value


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _shown(secret: SecretDeclaration) -> str:
    """Without its arguments: one of them may be a credential."""
    return f"`{os.path.basename(secret.argv[0])}`"
