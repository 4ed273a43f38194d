"""The process of one task, from inside: receive an order, call the function, reply, end."""

from __future__ import annotations

import os

from ork.objects.opening import open_values
from ork.worker.call.environment import inherited
from ork.worker.call.invoke import Call
from ork.worker.call.leaving import finish_as_the_interpreter_would, flush_streams
from ork.worker.call.orders import receive
from ork.worker.call.surroundings import use_packages, use_streams
from ork.worker.system.waits import times_waited

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from ork.objects.attempt_documents import AttemptDocuments
    from ork.worker.call.imports_ahead import Ahead
    from ork.worker.system.attempt_tag import AttemptTag

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
