"""A task that does nothing, called a few times before there is a real one.

What is done for the first time is slow, and leaves traces in memory: code that adapts to what it is used for, looked up
methods, names that were linked. In a forked process that would be so for every task anew, each time on pages that have
to be copied first; done before the fork, it is done.
"""

from __future__ import annotations

import marshal
import os
import sys

from ork.worker.environment import additions, inherited
from ork.worker.invoke import SIZE_BYTES, Call, flush_streams, leave_packages, objects_at, read_order
from ork.worker.loading import forget_ready, make_ready

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ork.worker.mark import Mark

TIMES = 12  # the interpreter adapts code that was called eight times, and its parts soon after
_ROOT = os.path.dirname(os.path.abspath(__file__))
_FILE = "nothing.py"
_LARGEST_REPLY = 1 << 12
_SPEC: dict[str, Any] = {
    "attempt": "rehearsal/nothing/0/1",
    "run_id": "rehearsal",
    "workflow": "rehearsal",
    "task": "nothing",
    "index": None,
    "parallel_count": None,
    "number": 1,
    "scheduled_for": None,
    "kind": "python",
    "file": _FILE,
    "module": None,
    "function": "main",
    "root": _ROOT,
    "inputs": None,
    "upstream": {},
    "params": {},
    "env": {},
    "inline_limit": 1 << 16,
    "output_limit": 1 << 20,
    "durability": "normal",
}


def rehearse(mark: Mark) -> bytes:
    """Leaves the process as it was, but for what it has got used to. The last reply."""
    environ, modules, folder = dict(os.environ), set(sys.modules), os.getcwd()
    orders, give = os.pipe()
    answers, answer = os.pipe()
    order = marshal.dumps({"root": _ROOT, "stem": "runs", "spec": _SPEC, "variables": _variables()})
    reply = b""
    leave_packages(True)
    for _ in range(TIMES):
        os.write(give, len(order).to_bytes(SIZE_BYTES, "little") + order)
        _call(orders, answer, mark)
        reply = os.read(answers, _LARGEST_REPLY)
    leave_packages(False)
    for descriptor in (orders, give, answers, answer):
        os.close(descriptor)
    for name in set(sys.modules) - modules:
        del sys.modules[name]
    _restore(environ)
    os.chdir(folder)
    forget_ready()
    return reply


def _variables() -> dict[str, str]:
    return additions(_SPEC, inherited(), None)


def _call(orders: int, answer: int, mark: Mark) -> None:
    order = read_order(orders)
    assert order is not None
    mark.write(b"")
    make_ready(_ROOT, _FILE)
    objects = objects_at(order["root"], order["spec"]["durability"])
    call = Call(objects, order["stem"], order["spec"], inherited(), order["variables"])
    call.perform()
    flush_streams()
    call.reply(answer)


def _restore(environ: dict[str, str]) -> None:
    for name in set(os.environ) - set(environ):
        del os.environ[name]
    for name, value in environ.items():
        if os.environ.get(name) != value:
            os.environ[name] = value
