"""What a process that waits is given: the mark that it is to bear, a head with all that most tasks need, and the rest.

The head is flat text, which is read without making much of it; the rest is there for whoever needs more.
"""

from __future__ import annotations

import marshal
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HEAD_BYTES = 440  # with what stands around them they fit into a small object
SMALL_OUTPUT = 1024  # characters; a larger one may not fit where the head promises room
SIZE_BYTES = 4
AT_ONCE = 4096  # a pipe takes that much whole, or waits
_UNUSUAL = bytes(HEAD_BYTES)
_RARE = frozenset(("python", "input_type", "output_type"))
_ENCODING, _ERRORS = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()


def send(orders: int, mark: bytes, head: bytes, document: dict[str, Any]) -> None:
    """`mark` and `head` in their whole length: whoever reads finds them in one piece. BrokenPipeError if there will be
    nobody."""
    rest = marshal.dumps(document)
    order = b"%b%b%b%b" % (mark, head, len(rest).to_bytes(SIZE_BYTES, "little"), rest)
    while order:
        order = order[os.write(orders, order[:AT_ONCE]) :]


def head_of(spec: dict[str, Any], variables: dict[str, str] | None) -> bytes:
    """What a task needs that is a function of a file, with nothing of its own; empty for all others. `variables` are
    those that are added to its environment."""
    if variables is None or spec["kind"] != "python" or spec["file"] is None or "." in spec["function"]:
        return _UNUSUAL
    if spec["env"] or spec["inputs"] or not _RARE.isdisjoint(spec):
        return _UNUSUAL
    if spec["inline_limit"] < SMALL_OUTPUT or spec["output_limit"] < SMALL_OUTPUT:
        return _UNUSUAL
    text = ""
    for name, value in variables.items():
        text += f"{name}\0{value}\0"
    # The last word is never empty, and so they can be told from what fills up the rest.
    head = f"{text}{spec['function']}\0{spec['file']}".encode(_ENCODING, _ERRORS)
    if len(head) >= HEAD_BYTES or head.count(b"\0") != 2 * len(variables) + 1:
        return _UNUSUAL
    return head.ljust(HEAD_BYTES, b"\0")
