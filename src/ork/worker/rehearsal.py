"""A task that does nothing, called a few times before there is a real one.

What is done for the first time is slow, and leaves traces in memory: code that adapts to what it is used for, looked up
methods, names that were linked. In a forked process that would be so for every task anew, each time on pages that have
to be copied first; done before the fork, it is done.
"""

from __future__ import annotations

import os
import sys

from ork.worker.environment import additions, inherited
from ork.worker.invoke import Call, leave_packages, objects_at
from ork.worker.leaving import flush_streams
from ork.worker.loading import forget_ready, make_ready
from ork.worker.order import head_of, send
from ork.worker.plain import Inbox, Place, Ran, perform_plainly, take, tell, times_waited
from ork.worker.slots import make_slots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ork.worker.mark import Mark

TIMES = 12  # the interpreter adapts code that was called eight times, and its parts soon after
_ROOT = os.path.dirname(os.path.abspath(__file__))
_FILE = "nothing.py"
_LARGEST_REPLY = 1 << 12
SPEC: dict[str, Any] = {
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
    "paths": [],
    "inputs": None,
    "upstream": {},
    "params": {},
    "env": {},
    "inline_limit": 1 << 16,
    "output_limit": 1 << 20,
    "durability": "normal",
}
_TAKES_ONE = {**SPEC, "function": "same", "upstream": {"number": {"value": 1}}}


def rehearse(mark: Mark) -> list[bytes]:
    """Leaves the process as it was, but for what it has got used to. The last replies, one of each way: plain; not so plain
    after all, as the function takes something; and any other."""
    environ, modules, folder = dict(os.environ), set(sys.modules), os.getcwd()
    answers, answer = os.pipe()
    replies, slots = list[bytes](), make_slots()
    leave_packages(True)
    for _ in range(TIMES):
        replies = []
        for call, spec in ((_call_plainly, SPEC), (_go_on, _TAKES_ONE), (_call, SPEC)):
            call(_order(mark, slots, spec), answer)
            replies.append(os.read(answers, _LARGEST_REPLY))
    leave_packages(False)
    for descriptor in (answers, answer):
        os.close(descriptor)
    for name in set(sys.modules) - modules:
        del sys.modules[name]
    _restore(environ)
    os.chdir(folder)
    forget_ready()
    mark.write(b"")
    return replies


def _order(mark: Mark, slots: Any, spec: dict[str, Any]) -> Inbox:
    variables = additions(spec, inherited(), None)
    document = {"root": _ROOT, "stem": "runs", "spec": spec, "variables": variables}
    orders, give = os.pipe()
    send(give, mark.padded(b"rehearsal"), head_of(spec, variables), document)
    os.close(give)
    return Inbox(orders, mark, slots)


def _call_plainly(inbox: Inbox, answer: int) -> None:
    ready = make_ready(_ROOT, _FILE)
    assert take(inbox)
    assert ready is not None
    waited, output = times_waited(), perform_plainly(inbox, Place(_ROOT, (), []), ready)
    assert isinstance(output, str)
    tell(answer, output, waited)


def _go_on(inbox: Inbox, answer: int) -> None:
    ready = make_ready(_ROOT, _FILE)
    assert take(inbox)
    assert ready is not None
    ran = perform_plainly(inbox, Place(_ROOT, (), []), ready)
    assert isinstance(ran, Ran)
    _perform(inbox, answer, ran)


def _call(inbox: Inbox, answer: int) -> None:
    take(inbox)
    make_ready(_ROOT, _FILE)
    _perform(inbox, answer, None)


def _perform(inbox: Inbox, answer: int, ran: Ran | None) -> None:
    order = inbox.document()
    objects = objects_at(order["root"], order["spec"]["durability"])
    call = Call(objects, order["stem"], order["spec"], inherited(), order["variables"])
    call.is_swift, call.ran = True, ran
    call.perform()
    flush_streams()
    call.reply(answer)


def _restore(environ: dict[str, str]) -> None:
    for name in set(os.environ) - set(environ):
        del os.environ[name]
    for name, value in environ.items():
        if os.environ.get(name) != value:
            os.environ[name] = value
