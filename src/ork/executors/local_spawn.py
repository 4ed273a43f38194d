"""Starts a worker for one attempt as a new interpreter in its own session."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ork.executors.executor import LaunchOrder
from ork.executors.fork_server import ATTEMPT_VARIABLE, ORDINARY_SIGNALS
from ork.executors.local_python import BOOTSTRAP


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
