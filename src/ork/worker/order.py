"""What a process that waits is given: the mark that it is to bear, a head with all that most tasks need, and the rest.

The head is flat text, which is read without making much of it; the rest is there for whoever needs more.
"""

from __future__ import annotations

import marshal
import os

from ork.worker.slots import EMPTY, NAMES, filled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WORDS_BYTES = 440  # with what stands around them they fit into a small object
SMALL_OUTPUT = 1024  # characters; a larger one may not fit where the head promises room
SIZE_BYTES = 4
AT_ONCE = 4096  # a pipe takes that much whole, or not at all
LARGEST = 1 << 16  # what a pipe holds, as a rule
_RARE = frozenset(("python", "input_type", "output_type"))


class Head:
    """What most tasks need, in front of an order. `slots`: what every task is told of itself; `words`: the same once more,
    with all other variables, the function and its file. Empty for a task that is not usual."""

    __slots__ = ("slots", "words")

    def __init__(self, slots: bytes = EMPTY, words: bytes = bytes(WORDS_BYTES)) -> None:
        self.slots = slots
        self.words = words


UNUSUAL = Head()


def send(orders: int, mark: bytes, head: Head, document: dict[str, Any]) -> bool:
    """`mark` in its whole length: whoever reads finds it and the head in one piece. False if there will be nobody, or if
    it would take somebody who reads: nobody waits here for a process that may be stuck, or dead."""
    rest = marshal.dumps(document)
    order = b"%b%b%b%b%b" % (mark, head.slots, head.words, len(rest).to_bytes(SIZE_BYTES, "little"), rest)
    if len(order) > LARGEST:
        return False
    try:
        while order:
            order = order[os.write(orders, order[:AT_ONCE]) :]
    except (BrokenPipeError, BlockingIOError):
        return False
    return True


def head_of(spec: dict[str, Any], variables: dict[str, str] | None) -> Head:
    """Of a task that is a function of a file, with nothing of its own. `variables` are those that are added to its
    environment; the first of them are those that have a slot."""
    if variables is None or spec["kind"] != "python" or spec["file"] is None or "." in spec["function"]:
        return UNUSUAL
    if spec["env"] or spec["inputs"] or not _RARE.isdisjoint(spec):
        return UNUSUAL
    if spec["inline_limit"] < SMALL_OUTPUT or spec["output_limit"] < SMALL_OUTPUT:
        return UNUSUAL
    values = [variables[name] for name in NAMES]
    slots, words = filled(values), values
    for name in variables:
        if name not in NAMES:
            words += name, variables[name]
    words += spec["function"], spec["file"]  # the last is never empty, and so they are told from what fills up the rest
    text = "\0".join(words)
    if slots is None or text.count("\0") != len(words) - 1 or not text.isascii() or len(text) >= WORDS_BYTES:
        return UNUSUAL
    return Head(slots, text.encode().ljust(WORDS_BYTES, b"\0"))
