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
from ork.worker.ahead import WORTH_SECONDS, imported
from ork.worker.leaving import flush_streams
from ork.worker.order import AT_ONCE, SIZE_BYTES, SMALL_OUTPUT, WORDS_BYTES
from ork.worker.results import to_text
from ork.worker.slots import NAMES, SLOTS_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType
    from typing import Any

    from ork.worker.loading import Ready
    from ork.worker.mark import Mark

_OPEN = O_RDONLY | O_CLOEXEC
_OF_ITS_OWN_KIND = 0x04 | 0x08 | 0x20 | 0x80 | 0x100 | 0x200  # takes anything, yields, or is to be awaited
_PLAIN = (int, str, float, bool, dict, list, type(None))
_FUNCTION = type(lambda: None)
_MUCH = 1 << 53
_NAMES = tuple(name.encode() for name in NAMES)
_FEWEST = len(_NAMES) + 2  # words
_VOLUNTARY_SWITCHES = 14  # their place: a name would be looked up


class Inbox:
    """Where a process will find its order; made before it is forked, and so with the room that is needed."""

    __slots__ = ("buffers", "has_slots", "is_marked", "mark", "orders", "rest", "words")

    def __init__(self, orders: int, mark: Mark, slots: Any) -> None:
        self.orders = orders
        self.mark = mark
        self.words, self.rest = bytearray(WORDS_BYTES), bytearray(AT_ONCE)
        # The mark is written by reading the order, and so are variables: no other way touches less.
        self.is_marked, self.has_slots = mark.memory is not None, slots is not None
        marked, told = mark.memory if self.is_marked else bytearray(mark.room), slots or bytearray(SLOTS_BYTES)
        self.buffers = [marked, told, self.words, self.rest]

    def document(self) -> dict[str, Any]:
        """All of the order that was taken."""
        document: dict[str, Any] = marshal.loads(memoryview(self.rest)[SIZE_BYTES:])
        return document


class Place:
    """The workflow's folder, entered, with its import path (`folders`, of the project); and the variables that its tasks do
    not see."""

    __slots__ = ("folders", "hidden", "root")

    def __init__(self, root: str, paths: Sequence[str], hidden: list[bytes]) -> None:
        self.root = root
        self.folders = (root, *paths)
        self.hidden = hidden


class Ran:
    """How far the user's code has come: the module is loaded; then its function is `called`; then its `result` is there;
    then that is put into `text`. `error` is what was raised on the way."""

    __slots__ = ("called", "error", "imports", "module", "result", "text")

    def __init__(self, module: ModuleType, imports: dict[str, Any] | None, called: Any, result: Any) -> None:
        self.module = module
        self.imports = imports
        self.called = called
        self.result = result
        self.text: str | None = None
        self.error: BaseException | None = None


def take(inbox: Inbox) -> bool:
    """Waits for the order, and bears its mark; False when there will be none. To be asked once."""
    size = readv(inbox.orders, inbox.buffers)
    if size >= AT_ONCE:
        _read_on(inbox, size - inbox.mark.room - SLOTS_BYTES - WORDS_BYTES)
    close(inbox.orders)
    if not inbox.is_marked:
        inbox.mark.write(bytes(inbox.buffers[0].rstrip(b"\0")))
    return size > 0


def _read_on(inbox: Inbox, got: int) -> None:
    """Perhaps that was not all of it."""
    rest = inbox.rest
    whole = int.from_bytes(rest[:SIZE_BYTES], "little") + SIZE_BYTES
    del rest[got:]
    while len(rest) < whole:
        more = read(inbox.orders, whole - len(rest))
        if not more:
            os._exit(0)  # it was given to somebody else
        rest += more


def times_waited() -> int:
    """By this process, for anything."""
    return getrusage(RUSAGE_SELF)[_VOLUNTARY_SWITCHES]  # type: ignore[return-value]


def perform_plainly(inbox: Inbox, place: Place, ready: Ready) -> str | Ran | None:
    """The output, as it is told, if the task was usual from the beginning to the end. Else how far it has come; None if
    nothing of the user's has been done. In few and long functions: each is an object, too."""
    words = bytes(inbox.words).rstrip(b"\0").split(b"\0")
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
    known = environ._data  # type: ignore[attr-defined]
    for name in place.hidden:
        unsetenv(name)
        known.pop(name, None)
    for name, word in zip(_NAMES, words):  # noqa: B905 - it would take a dictionary to say so
        known[name] = word
    if len(words) > _FEWEST or not inbox.has_slots:
        _set(words, inbox.has_slots)
    return _run(ready, ready.module, words[-2].decode(), place.folders)


def _set(words: list[bytes], has_slots: bool) -> None:
    """The variables that have no slot."""
    first = len(_NAMES)
    for name, value in zip(words[first:-2:2], words[first + 1 : -2 : 2], strict=True):
        putenv(name, value)
        environ._data[name] = value  # type: ignore[attr-defined]
    if not has_slots:
        for name, value in zip(_NAMES, words, strict=False):
            putenv(name, value)


def _run(ready: Ready, module: ModuleType, name: str, folders: tuple[str, ...]) -> str | Ran:
    """The output as it is told, if the task is usual."""
    modules, called, imports, result, begun = sys.modules, None, None, None, monotonic()
    known = len(modules)
    try:
        modules[ready.name] = module
        exec(ready.code, ready.globals)
        if monotonic() - begun > WORTH_SECONDS:
            imports = imported(folders, known)
        function: Any = ready.globals.get(name)
        code = function.__code__ if type(function) is _FUNCTION else None
        if code is None or code.co_argcount or code.co_kwonlyargcount or code.co_flags & _OF_ITS_OWN_KIND:
            return Ran(module, imports, called, result)
        if hasattr(function, "__wrapped__"):
            return Ran(module, imports, called, result)
        called = function
        result = function()
        if type(result) is int and imports is None and -_MUCH < result < _MUCH:
            return f'{{"inline":"{result}"}}'
        return _told(Ran(module, imports, called, result))
    except BaseException as error:
        ran = Ran(module, imports, called, result)
        ran.error = error
        return ran


def tell(answer: int, output: str, waited: int) -> None:
    """As `Call.reply` would say it. `waited`: how often the process had done so when it began."""
    flush_streams()
    swift = ',"is_swift":true' if times_waited() == waited else ""
    write(answer, f'{{"exit_code":0,"output":{output},"is_quiet":true{swift}}}\n'.encode())


def _told(ran: Ran) -> str | Ran:
    if type(ran.result) not in _PLAIN or "ork.sdk.defer" in sys.modules:
        return ran
    ran.text = text = to_text(ran.result)
    if ran.imports is not None or (text is not None and len(text) > SMALL_OUTPUT):
        return ran
    return "null" if text is None else f'{{"inline":{dumps(text)}}}'
