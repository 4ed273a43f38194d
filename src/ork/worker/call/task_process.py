"""The process of one task, from inside: receive an order, call the function, reply, end.

Orders are messages on a socket that keeps them apart. Their sender never waits: the process may be stuck, or dead.
"""

from __future__ import annotations

import marshal
import os

from ork.objects.opening import open_values
from ork.worker.call.environment import inherited
from ork.worker.call.invoke import Call
from ork.worker.call.surroundings import finish_as_the_interpreter_would, flush_streams, use_packages, use_streams
from ork.worker.system.waits import times_waited

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from ork.objects.attempt_documents import AttemptDocuments
    from ork.worker.call.imports_ahead import Ahead
    from ork.worker.system.attempt_tag import AttemptTag

LARGEST = 1 << 16  # bytes of an order
_objects: dict[tuple[str, str], AttemptDocuments] = {}


def wait_and_call(orders: int, answer: int, tag: AttemptTag, ahead: Ahead | None) -> NoReturn:
    """In a process forked before its task is known: one order, one call. Without an order it ends quietly."""
    is_quiet = ahead is None or _import_ahead(ahead)
    order = receive(orders)
    if order is None:
        os._exit(0)
    os.close(orders)
    waited, spec = times_waited(), order["spec"]
    tag.write(spec["attempt"].encode())
    objects = objects_at(order["objects"], spec["durability"])
    if "python" in spec:
        _go_where_it_belongs(objects, spec, answer)
    call = Call(objects, spec, inherited())
    call.is_quiet = is_quiet
    _perform(call, answer, waited)


def call_here(objects: AttemptDocuments, spec: dict[str, Any], answer: int) -> NoReturn:
    """In a child of the shim, which is as the task's own interpreter would be, or becomes that."""
    use_streams()
    _go_where_it_belongs(objects, spec, answer)
    run_function(objects, spec, answer)


def run_function(objects: AttemptDocuments, spec: dict[str, Any], answer: int) -> NoReturn:
    """Ends the process. Whatever the user's code does, there is one reply or, if it ended the process itself, none."""
    _perform(Call(objects, spec, inherited()), answer)


def objects_at(url: str, durability: str) -> AttemptDocuments:
    """The same for whoever asks for the same, also after a fork."""
    if (url, durability) not in _objects:
        _objects[url, durability] = open_values(url, durability)
    return _objects[url, durability]


def _perform(call: Call, answer: int, waited: int | None = None) -> NoReturn:
    """`waited`: how often this process had waited when it was given its order, if that matters."""
    call.perform()
    finish_as_the_interpreter_would()
    flush_streams()
    call.is_swift = waited is not None and times_waited() == waited
    call.reply(answer)
    os._exit(call.exit_code)


def _go_where_it_belongs(objects: AttemptDocuments, spec: dict[str, Any], answer: int) -> None:
    python = spec.get("python")
    if python is not None:
        from ork.worker.call.other_interpreter import become

        become(python, objects, spec, answer)


def _import_ahead(ahead: Ahead) -> bool:
    """In the project's folder, and with its import path; whether that left the process quiet."""
    from ork.worker.call.imports_ahead import import_ahead

    try:
        os.chdir(ahead.root)
    except OSError:
        return True
    use_packages(ahead.root, ahead.paths)
    return import_ahead(ahead.names)


def make_orders() -> tuple[int, int]:
    """The end to receive orders from, and the one to send them to."""
    from _socket import AF_UNIX, SOCK_SEQPACKET, socketpair

    receiver, sender = socketpair(AF_UNIX, SOCK_SEQPACKET)
    sender.setblocking(False)
    return receiver.detach(), sender.detach()


def send(orders: int, document: dict[str, Any]) -> bool:
    """False if nobody will receive it, or if it is too large: then the function is called in a process of its own."""
    order = marshal.dumps(document)
    if len(order) > LARGEST:
        return False
    try:
        os.write(orders, order)
    except OSError:
        return False
    return True


def receive(orders: int) -> dict[str, Any] | None:
    """Waits for one order; None if there will be none."""
    order = os.read(orders, LARGEST)
    return marshal.loads(order) if order else None
