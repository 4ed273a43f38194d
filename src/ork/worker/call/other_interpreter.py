"""Calls a function in the interpreter of the task's environment, by replacing this process with it."""

from __future__ import annotations

import os
import sys

from ork.objects.documents import MAX_DEPTH, SPEC_LIMIT
from ork.objects.json_text import dumps, strict_json
from ork.system import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from ork.objects.attempt_documents import AttemptDocuments

BOOTSTRAP = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + "/bootstrap.py"


def become(python: str, objects: AttemptDocuments, spec: dict[str, Any], answer: int) -> NoReturn:
    """Replace this process, a child of the shim, with the other interpreter. The spec is passed in memory, because it
    is already verified and other processes must not read it."""
    try:
        handed = system.unnamed_file("spec")
        with open(handed, "wb", closefd=False) as file:
            file.write(dumps(spec).encode())
        os.lseek(handed, 0, os.SEEK_SET)
        os.set_inheritable(answer, True)
        argv = [python, "-S", "-E", BOOTSTRAP, __name__]
        os.execve(python, [*argv, objects.url, str(handed), str(answer)], {**os.environ, **_credentials(objects.url)})
    except OSError as error:
        sys.stderr.write(f"cannot start {python}: {error.strerror}\n")
        os._exit(127)


def _credentials(objects_url: str) -> dict[str, str]:
    """The credentials of a bucket, which may have been removed from the environment already."""
    if "://" not in objects_url:
        return {}
    from ork.objects.buckets.environment import keep_passed

    return keep_passed()


def start(objects_url: str, handed: str, answer: str) -> int:
    """Call the function and exit. Runs in the other interpreter."""
    from ork.objects.opening import open_values
    from ork.worker.call.task_process import run_function

    with open(int(handed), "rb") as file:
        spec = strict_json(file.read(), max_size=SPEC_LIMIT, max_depth=MAX_DEPTH + 8)
    reply = int(answer)
    os.set_inheritable(reply, False)
    run_function(open_values(objects_url, spec["durability"], spec.get("access", "")), spec, reply)
