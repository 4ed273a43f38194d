"""The usual task, performed in as few steps as it takes: a function of a file that was compiled before, called with
nothing.

A forked process pays for every page it writes to, and using an object is writing to it: so what most tasks need is done
here with few objects, that were made together. What is right is said by `ork.worker.invoke`: this does the same, and
leaves to it whatever is not usual.
"""

from __future__ import annotations

import marshal
import os
import sys
from os import O_CLOEXEC, O_RDONLY, chdir, close, environ, putenv, read, readv, unsetenv, write
from resource import RUSAGE_SELF, getrusage
from time import monotonic

from ork.objects.json_text import dumps
from ork.worker import system
from ork.worker.ahead import WORTH_SECONDS, imported
from ork.worker.leaving import finish_as_the_interpreter_would, flush_streams
from ork.worker.order import AT_ONCE, HEAD_BYTES, SIZE_BYTES, SMALL_OUTPUT
from ork.worker.results import to_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, NoReturn

    from ork.worker.loading import Ready
    from ork.worker.mark import Mark

_OPEN = O_RDONLY | O_CLOEXEC
_OF_ITS_OWN_KIND = 0x04 | 0x08 | 0x20 | 0x80 | 0x100 | 0x200  # takes anything, yields, or is to be awaited
_PLAIN = (int, str, float, bool, dict, list, type(None))
_FUNCTION = type(lambda: None)
_VOLUNTARY_SWITCHES = 14  # their place: a name would be looked up
_DONE = (0,)


class Inbox:
    """Where a process will find its order; made before it is forked, and so with the room that is needed."""

    __slots__ = ("_mark", "buffers", "head", "is_marked", "orders", "rest")

    def __init__(self, orders: int, mark: Mark) -> None:
        self.orders = orders
        self._mark = mark
        self.head, self.rest = bytearray(HEAD_BYTES), bytearray(AT_ONCE)
        # The mark is written by reading the order: no other way touches less.
        self.is_marked = mark.memory is not None
        self.buffers = [mark.memory if self.is_marked else bytearray(mark.room), self.head, self.rest]

    def take(self) -> bool:
        """Waits for the order, and bears its mark; False when there will be none. To be asked once."""
        size = readv(self.orders, self.buffers)
        if size >= AT_ONCE:
            self._read_on(size - self._mark.room - HEAD_BYTES)
        close(self.orders)
        if not self.is_marked:
            self._mark.write(bytes(self.buffers[0].rstrip(b"\0")))
        return size > 0

    def document(self) -> dict[str, Any]:
        """All of the order."""
        document: dict[str, Any] = marshal.loads(memoryview(self.rest)[SIZE_BYTES:])
        return document

    def _read_on(self, got: int) -> None:
        """Perhaps that was not all of it."""
        rest = self.rest
        whole = int.from_bytes(rest[:SIZE_BYTES], "little") + SIZE_BYTES
        del rest[got:]
        while len(rest) < whole:
            rest += read(self.orders, whole - len(rest))


class Ran:
    """How far the user's code has come: the module is loaded; then the function `is_called`; then its `result` is told as
    JSON, `text`. `error` is what was raised on the way."""

    __slots__ = ("error", "imports", "is_called", "is_told", "module", "result", "text")

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.imports: dict[str, Any] | None = None
        self.error: BaseException | None = None
        self.is_called = self.is_told = False
        self.result: Any = None
        self.text: str | None = None


class Place:
    """The project's folder, entered, with its import path; and the variables that its tasks do not see."""

    __slots__ = ("hidden", "root")

    def __init__(self, root: str, hidden: list[bytes]) -> None:
        self.root = root
        self.hidden = hidden


def answer_plainly(head: bytearray, answer: int, place: Place, ready: Ready, waited: int) -> Ran | None:
    """Ends the process, if the task is usual from the beginning to the end. Else how far it has come. `waited`: how often
    the process had done so before."""
    ran = perform(head, place, ready)
    if ran is not None and is_usual(ran):
        finish_as_the_interpreter_would()
        flush_streams()
        write(answer, reply_of(ran, times_waited() == waited))
        leave()
    return ran


def times_waited() -> int:
    """By this process, for anything."""
    return getrusage(RUSAGE_SELF)[_VOLUNTARY_SWITCHES]  # type: ignore[return-value]


def perform(head: bytearray, place: Place, ready: Ready) -> Ran | None:
    """None if nothing of the user's has been done, and the task is to be performed as any other."""
    words = bytes(head).rstrip(b"\0").split(b"\0")
    if words[-1] != ready.file:
        return None
    try:
        chdir(place.root)
        descriptor = os.open(ready.path, _OPEN)
        source = read(descriptor, len(ready.source) + 1)
        close(descriptor)
    except OSError:
        return None
    if source != ready.source or ready.module is None:
        return None
    _hide(place.hidden, words)
    _add(words)
    return _run(ready.module, ready, words[-2].decode(), place.root)


def _hide(names: list[bytes], words: list[bytes]) -> None:
    known = environ._data  # type: ignore[attr-defined]
    for name in names:
        if name not in words and name in known:
            unsetenv(name)
            del known[name]


def _add(words: list[bytes]) -> None:
    """The variables, to the environment, past the mapping that would encode them."""
    known, name = environ._data, None  # type: ignore[attr-defined]
    for word in words[:-2]:
        if name is None:
            name = word
        else:
            putenv(name, word)
            known[name] = word
            name = None


def _run(module: ModuleType, ready: Ready, name: str, root: str) -> Ran:
    ran, modules, begun = Ran(module), sys.modules, monotonic()
    known = len(modules)
    try:
        modules[ready.name] = module
        exec(ready.code, ready.globals)
        if monotonic() - begun > WORTH_SECONDS:
            ran.imports = imported(root, known)
        function: Any = ready.globals.get(name)
        if _takes_nothing(function):
            ran.is_called = True
            ran.result = result = function()
            if type(result) in _PLAIN and "ork.sdk.defer" not in modules:
                ran.text = to_text(result)
                ran.is_told = True
    except BaseException as error:
        ran.error = error
    return ran


def _takes_nothing(function: Any) -> bool:
    if type(function) is not _FUNCTION:
        return False
    code = function.__code__
    if code.co_argcount or code.co_kwonlyargcount or code.co_flags & _OF_ITS_OWN_KIND:
        return False
    return not hasattr(function, "__wrapped__")


def is_usual(ran: Ran) -> bool:
    return ran.is_told and ran.imports is None and (ran.text is None or len(ran.text) <= SMALL_OUTPUT)


def reply_of(ran: Ran, is_swift: bool) -> bytes:
    """As `Call.reply` would say it."""
    text = ran.text
    if text is None:
        output = "null"
    else:
        output = f'{{"inline":{dumps(text) if type(ran.result) is not int else chr(34) + text + chr(34)}}}'
    swift = ',"is_swift":true' if is_swift else ""
    return f'{{"exit_code":0,"output":{output},"is_quiet":true{swift}}}\n'.encode()


def leave() -> NoReturn:
    """At once, and with nothing looked up that no process before has looked up: nobody has called `os._exit` and is there
    to tell."""
    if _exit_at:
        _call(_exit_at, _DONE)
    os._exit(0)


_call, _exit_at = system.call_of("_exit")
