"""Orders for a process that waits for a function to call: messages on a socket that keeps them apart.

The sender never waits: the process may be stuck, or dead.
"""

from __future__ import annotations

import marshal
import os
from _socket import AF_UNIX, SOCK_SEQPACKET, socketpair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LARGEST = 1 << 16


def make_orders() -> tuple[int, int]:
    """The end to receive orders from, and the one to send them to."""
    receiver, sender = socketpair(AF_UNIX, SOCK_SEQPACKET)
    sender.setblocking(False)
    return receiver.detach(), sender.detach()


def send(orders: int, document: dict[str, Any]) -> bool:
    """False if nobody will receive it, or if it is too large: then the function is called in a process of its own."""
    order = marshal.dumps(document, 0)
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
