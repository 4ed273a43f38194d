"""Calls a polling function of the project in a short process of the project's Python."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO

from ork.errors import ExecutorError
from ork.executors.executor import LaunchOrder
from ork.executors.local_worker import BOOTSTRAP, InterpreterError, inherited, interpreter_for
from ork.objects.attempt_documents import LogSink
from ork.system import inherited_variables

POLL_SECONDS = 60.0


async def ask_process(
    order: LaunchOrder,
    request: bytes,
    secrets: Mapping[str, str],
    log: LogSink,
    seconds: float = POLL_SECONDS,
    pass_env: Sequence[str] = (),
) -> bytes:
    """The reply to the request. ExecutorError if there is none in time. Printed text goes to the log."""
    try:
        interpreter = interpreter_for(order, uses_project_python=True)
    except InterpreterError as error:
        raise ExecutorError(str(error)) from None
    # Printed text may contain secrets: it goes to a temporary file, and is masked before it is copied to the log.
    aside = tempfile.TemporaryFile() if secrets else None  # noqa: SIM115 (closed once it is copied)
    try:
        process = await asyncio.create_subprocess_exec(
            *(interpreter, "-S", "-E", BOOTSTRAP, "ork.worker.poll"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=aside or log.fileno(),
            env={**inherited(os.environ, pass_env), **inherited_variables(), **secrets},
            start_new_session=True,
        )
    except OSError as error:
        raise ExecutorError(f"no process could be started to ask: {error.strerror}") from None
    try:
        async with asyncio.timeout(seconds):
            reply, _ = await process.communicate(request)
    except TimeoutError:
        raise ExecutorError(f"no answer within {seconds:g} s") from None
    finally:
        _end(process)
        if aside is not None:
            await asyncio.to_thread(_copy_masked, aside, log, secrets)
    if not reply:
        raise ExecutorError(f"the process that asked ended with {process.returncode}; see the log")
    return reply


def _copy_masked(printed: IO[bytes], log: LogSink, secrets: Mapping[str, str]) -> None:
    from ork.model.masking import Mask, MaskedStream, values_to_mask

    stream = MaskedStream(Mask(values_to_mask(secrets)))
    with printed, contextlib.suppress(OSError), open(log.fileno(), "ab", closefd=False) as file:
        printed.seek(0)
        while data := printed.read(1 << 16):
            file.write(stream.feed(data))
        file.write(stream.flush())


def _end(process: asyncio.subprocess.Process) -> None:
    """Kill the process and everything that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
