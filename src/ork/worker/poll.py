"""A short process that asks one function of the project about an external job: is it done?

The request comes on standard input, the reply goes to standard output; what the function prints goes to standard error.
"""

from __future__ import annotations

import os
import sys

from ork.objects.json_text import dumps, strict_json
from ork.worker.bound import Bindings
from ork.worker.failure import describe
from ork.worker.invoke import call, settle_in
from ork.worker.loading import LoadError, load_function
from ork.worker.results import ResultError, result_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

REQUEST_LIMIT = 64 << 20


def start() -> int:
    """{"spec", "objects", "call", "args"} → {"result": JSON text | null} or {"failure": {…}}."""
    request = strict_json(sys.stdin.buffer.read(), max_size=REQUEST_LIMIT)
    reply = os.dup(1)
    os.dup2(2, 1)
    text = dumps(_ask(request))
    with open(reply, "w", encoding="utf-8") as file:
        file.write(text)
    return 0


def _ask(request: dict[str, Any]) -> dict[str, Any]:
    spec = request["spec"]
    from ork.objects.local import LocalObjects, root_of_url

    bindings = Bindings(LocalObjects(root_of_url(request["objects"])), spec["output_limit"], dict(os.environ))
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
        return {"failure": describe(error, spec["root"], {})}
