"""The process a function is called in, seen from both sides: it is forked, waits for an order, and answers once.

It can be forked before there is an order, so that no attempt waits for the fork.
"""

from __future__ import annotations

import os

from ork.objects.documents import MAX_DEPTH, SPEC_LIMIT
from ork.objects.json_text import dumps, strict_json
from ork.objects.local import LocalObjects
from ork.worker.process import fork_into

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from ork.worker.mark import Mark

_MOST_ORDER = 2 * SPEC_LIMIT
_spare: Child | None = None


class Child:
    """OSError if no process can be made. Standard output and standard error are one pipe, `printed`; `source` is where
    the answer comes from."""

    def __init__(self, mark: Mark | None = None) -> None:
        orders, self._orders = os.pipe()
        self.source, answer = os.pipe()
        self.printed, speak = os.pipe()

        def body() -> NoReturn:
            for descriptor in (self._orders, self.source, self.printed):
                os.close(descriptor)
            os.dup2(speak, 1)
            os.dup2(speak, 2)
            _wait_and_call(orders, answer, mark)

        try:
            self.pid = fork_into(body)
        except OSError:
            for descriptor in (self._orders, self.source, self.printed):
                os.close(descriptor)
            raise
        finally:
            for descriptor in (orders, answer, speak):
                os.close(descriptor)

    def give(self, objects: LocalObjects, folder: str, spec: dict[str, Any]) -> bool:
        """Has the function called; False if the process had gone before it could begin."""
        rest = memoryview(dumps({"root": objects.root, "folder": folder, "spec": spec}).encode())
        try:
            while rest:
                rest = rest[os.write(self._orders, rest) :]
        except BrokenPipeError:
            return False
        os.close(self._orders)
        return True

    def dismiss(self) -> None:
        """One that was not needed: without an order it ends."""
        for descriptor in (self._orders, self.source, self.printed):
            os.close(descriptor)
        os.waitpid(self.pid, 0)


def keep_spare(mark: Mark) -> None:
    """The next function finds its process waiting. Nothing is said if there can be none: it is tried again then."""
    global _spare
    try:
        _spare = _spare or Child(mark)
    except OSError:
        return


def take_spare() -> Child | None:
    global _spare
    taken, _spare = _spare, None
    return taken


def dismiss_spare() -> None:
    spare = take_spare()
    if spare is not None:
        spare.dismiss()


def _wait_and_call(orders: int, answer: int, mark: Mark | None) -> NoReturn:
    from ork.worker.invoke import run_function, use_streams

    use_streams()
    data = _read_all(orders)
    os.close(orders)
    if not data:
        os._exit(0)
    order = strict_json(data, max_size=_MOST_ORDER, max_depth=MAX_DEPTH + 16)
    spec = order["spec"]
    if mark is not None:
        mark.write(spec["attempt"])
    objects = LocalObjects(order["root"], spec["durability"])
    python = spec.get("python")
    if python is not None:
        from ork.worker.elsewhere import become

        become(python, objects, order["folder"], spec, answer)
    run_function(objects, order["folder"], spec, answer)


def _read_all(source: int) -> bytes:
    parts = []
    while part := os.read(source, 1 << 16):
        parts.append(part)
    return b"".join(parts)
