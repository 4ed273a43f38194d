"""The process of one task: receives an order, calls the function, replies and ends.

Orders are sent over a socket that preserves message boundaries. The sender never waits, because the process may hang or
be dead.
"""

from __future__ import annotations

import marshal
import os

from ork.objects.opening import open_values
from ork.worker.call.environment import inherited
from ork.worker.call.invoke import Call
from ork.worker.call.surroundings import finish_as_the_interpreter_would, flush_streams, reseed, use_streams
from ork.worker.system.processes import times_waited

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from ork.objects.attempt_documents import AttemptDocuments
    from ork.worker.system.processes import AttemptTag

LARGEST = 1 << 16  # maximum size of an order in bytes
_objects: dict[tuple[str, str], AttemptDocuments] = {}


def wait_and_call(orders: int, answer: int, tag: AttemptTag) -> NoReturn:
    """Wait for one order and make one call, in a process forked before its task is known. Without an order it exits."""
    reseed()
    order = receive(orders)
    if order is None:
        os._exit(0)
    os.close(orders)
    waited, spec = times_waited(), order["spec"]
    tag.write(spec["attempt"].encode())
    objects = objects_at(order["objects"], spec["durability"])
    if "access" in spec:
        objects = open_values(order["objects"], spec["durability"], spec["access"])
    if "python" in spec:
        _use_own_interpreter(objects, spec, answer)
    _perform(Call(objects, spec, inherited()), answer, waited)


def call_here(objects: AttemptDocuments, spec: dict[str, Any], answer: int) -> NoReturn:
    """Call the function in a child of the shim, or in the task's own interpreter if it has one."""
    reseed()
    use_streams()
    _use_own_interpreter(objects, spec, answer)
    run_function(objects, spec, answer)


def run_function(objects: AttemptDocuments, spec: dict[str, Any], answer: int) -> NoReturn:
    """Call the function and exit. There is exactly one reply, or none if the user's code ended the process."""
    _perform(Call(objects, spec, inherited()), answer)


def objects_at(url: str, durability: str) -> AttemptDocuments:
    """The documents at this URL, opened once per process and shared with forks."""
    if (url, durability) not in _objects:
        _objects[url, durability] = open_values(url, durability)
    return _objects[url, durability]


def _perform(call: Call, answer: int, waited: int | None = None) -> NoReturn:
    """Make the call, reply and exit. `waited` is how often this process had waited when it got its order, if that
    matters."""
    call.perform()
    finish_as_the_interpreter_would()
    flush_streams()
    call.is_swift = waited is not None and times_waited() == waited
    call.reply(answer)
    os._exit(call.exit_code)


def _use_own_interpreter(objects: AttemptDocuments, spec: dict[str, Any], answer: int) -> None:
    python = spec.get("python")
    if python is not None:
        from ork.worker.call.other_interpreter import become

        become(python, objects, spec, answer)


def make_orders() -> tuple[int, int]:
    """The socket to receive orders from, and the one to send them to."""
    from _socket import AF_UNIX, SOCK_SEQPACKET, socketpair

    receiver, sender = socketpair(AF_UNIX, SOCK_SEQPACKET)
    sender.setblocking(False)
    return receiver.detach(), sender.detach()


def send(orders: int, document: dict[str, Any]) -> bool:
    """Send an order. False if the receiver is gone or the order is too large; the function is then called in a new
    process."""
    order = marshal.dumps(document)
    if len(order) > LARGEST:
        return False
    try:
        os.write(orders, order)
    except OSError:
        return False
    return True


def receive(orders: int) -> dict[str, Any] | None:
    """Wait for one order; None if the sender is gone."""
    order = os.read(orders, LARGEST)
    return marshal.loads(order) if order else None
