"""Orders for a process that waits for a function to call: sent through a pipe, never waiting for the reader."""

from __future__ import annotations

import marshal
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SIZE_BYTES = 4
AT_ONCE = 4096  # a pipe takes that much whole, or not at all
LARGEST = 1 << 16  # what a pipe usually holds


def send(orders: int, document: dict[str, Any]) -> bool:
    """False if the order does not fit into the pipe, or if its reader is gone: the reader may be stuck, or dead."""
    data = marshal.dumps(document)
    order = len(data).to_bytes(SIZE_BYTES, "little") + data
    if len(order) > LARGEST:
        return False
    try:
        while order:
            order = order[os.write(orders, order[:AT_ONCE]) :]
    except (BrokenPipeError, BlockingIOError):
        return False
    return True


def receive(orders: int) -> dict[str, Any] | None:
    """Waits for one order; None if the sender closed its end before the order was complete."""
    data = os.read(orders, LARGEST)
    while len(data) < SIZE_BYTES or len(data) < SIZE_BYTES + int.from_bytes(data[:SIZE_BYTES], "little"):
        more = os.read(orders, LARGEST)
        if not more:
            return None
        data += more
    order: dict[str, Any] = marshal.loads(data[SIZE_BYTES:])
    return order
