"""A short process that asks one function of the project about an external job: is it done?

The request comes on standard input, the reply goes to standard output; what the function prints goes to standard error.
"""

from __future__ import annotations

import os
import sys

from ork.errors import ObjectsError
from ork.objects.json_text import dumps, strict_json
from ork.system import system
from ork.worker.call.environment import Bindings
from ork.worker.call.failure import describe
from ork.worker.call.invoke import call
from ork.worker.call.loading import LoadError, load_function
from ork.worker.call.results import result_text
from ork.worker.call.surroundings import settle_in
from ork.worker.data.errors import ResultError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from ork.objects.attempt_documents import AttemptDocuments

REQUEST_LIMIT = 64 << 20


def start(handed: str | None = None, reply: str | None = None) -> int:
    """{"spec", "objects", "call", "args"} → {"result": JSON text | null} or {"failure": {…}}.

    `handed` and `reply` are descriptors once this is the interpreter of the task's own environment.
    """
    if handed is not None and reply is not None:
        with open(int(handed), "rb") as file:
            request = strict_json(file.read(), max_size=REQUEST_LIMIT)
        return _reply(int(reply), _asked(request))
    request = strict_json(sys.stdin.buffer.read(), max_size=REQUEST_LIMIT)
    answer = os.dup(1)
    os.dup2(2, 1)
    failure = _prepare(request) or _become_task_user(request, answer)
    if failure is None and request["spec"].get("python") is not None:
        _move_to(request, answer)
    return _reply(answer, _asked(request) if failure is None else {"failure": failure})


def _asked(request: dict[str, Any]) -> dict[str, Any]:
    try:
        return _ask(request)
    finally:
        if "exchange" in request:
            import shutil

            os.chdir("/")
            shutil.rmtree(request["exchange"], ignore_errors=True)


def _become_task_user(request: dict[str, Any], answer: int) -> dict[str, Any] | None:
    """From here on this process is the task's user's, if that is another one; the failure, if that cannot be."""
    from ork.worker.supervise.confinement import TaskUserError

    try:
        from ork.worker.supervise.task_user import Exchange, user_of

        user = user_of(request["spec"])
        if user is not None:
            exchange = Exchange(user)
            request["objects"] = exchange.objects(_objects(request), request["spec"]).url
            exchange.hand_over()
            request["exchange"] = exchange.folder
            user.become([answer])
    except (TaskUserError, ObjectsError, OSError) as error:
        return {"kind": "start", "message": str(error), "detail": None}
    return None


def _reply(descriptor: int, answer: dict[str, Any]) -> int:
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(dumps(answer))
    return 0


def _prepare(request: dict[str, Any]) -> dict[str, Any] | None:
    """The task's own environment is there: as a rule since its attempt ran, else built now. The failure, if it cannot."""
    spec = request["spec"]
    if spec.get("environment") is None:
        return None
    from ork.worker.build.preparation import Preparation

    preparation = Preparation(_objects(request), spec)
    ending = preparation.look()
    if ending is None and not preparation.is_ready():
        ending = preparation.make_here()
    preparation.settle()
    return None if ending is None else ending.failure


def _move_to(request: dict[str, Any], answer: int) -> NoReturn:
    from ork.worker.call.other_interpreter import BOOTSTRAP

    handed = system.unnamed_file("request")
    with open(handed, "wb", closefd=False) as file:
        file.write(dumps(request).encode())
    os.lseek(handed, 0, os.SEEK_SET)
    os.set_inheritable(answer, True)
    python = request["spec"]["python"]
    os.execv(python, [python, "-S", "-E", BOOTSTRAP, __name__, str(handed), str(answer)])


def _objects(request: dict[str, Any]) -> AttemptDocuments:
    from ork.objects.opening import open_objects, open_values

    access = request["spec"].get("access")
    return open_values(request["objects"], "normal", access) if access else open_objects(request["objects"])


def _ask(request: dict[str, Any]) -> dict[str, Any]:
    spec = request["spec"]
    spec.setdefault("paths", [])  # older specs name none
    bindings = Bindings(_objects(request), spec["output_limit"], dict(os.environ))
    module, _, name = request["call"].partition(":")
    try:
        settle_in(spec, bindings)
        function = load_function(spec["root"], None, module, name)
        return {"result": result_text(call(function, [], request["args"]), spec["output_limit"])}
    except LoadError as error:
        return {"failure": {"kind": "start", "message": str(error), "detail": None}}
    except ResultError as error:
        return {"failure": {"kind": "output", "message": f"`{request['call']}` {error}", "detail": None}}
    except Exception as error:
        return {"failure": describe(error, spec["root"], {}, spec["paths"])}
