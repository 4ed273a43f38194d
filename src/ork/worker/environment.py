"""Builds the environment of tasks before there is an attempt: what reads a dbt project needs its dbt.

In: JSON on standard input: root, builds (the folder for what is built), environment as in a spec, and env, the variables of the
build. Out: one line of JSON, with the interpreter (`python`) or the reason why there is none (`problem`).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

from ork.objects.json_text import dumps, strict_json
from ork.worker.build.builds import prune
from ork.worker.build.environments import environment_need
from ork.worker.build.preparation import PreparationError, Tools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

MAX_REQUEST_BYTES = 1 << 20


def start() -> int:
    request: dict[str, Any] = strict_json(sys.stdin.buffer.read(), max_size=MAX_REQUEST_BYTES)
    answer: dict[str, str]
    try:
        answer = {"python": _built(request)}
    except PreparationError as error:
        answer = {"problem": str(error)}
    except OSError as error:
        answer = {"problem": f"cannot build the environment: {error.filename or ''} {error.strerror}"}
    os.write(1, f"{dumps(answer)}\n".encode())
    return 0


def _built(request: dict[str, Any]) -> str:
    """The interpreter of the environment, which is built if that has not been done."""
    need = environment_need(request)
    if need is None:
        return str(request["python"])
    if not need.build.is_ready():
        tools = _Tools(request["env"], request["root"], need.build.lock)

        def make(folder: str) -> None:
            prune(need.build.shelf, time.time())
            tools.say(f"building {need.title}, once")
            need.make(tools, folder)

        need.build.make(make)
    need.settle(request)
    return str(request["python"])


class _Tools(Tools):
    """Runs build tools without a log: their output is used only if they fail."""

    def __init__(self, variables: dict[str, str], working_folder: str, lock: int) -> None:
        self.environment = {**os.environ, **variables}
        self._working_folder = working_folder
        self._lock = lock

    def run(self, argv: Sequence[str], *, variables: dict[str, str] | None = None) -> tuple[str, str | None]:
        done = subprocess.run(
            argv,
            cwd=self._working_folder,
            env={**self.environment, **(variables or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(self._lock,),
            check=False,
        )
        return "", None if done.returncode == 0 else done.stdout.decode("utf-8", "replace")
