"""Tests a fork server: starts one, lets it create a worker, and sends the worker an empty request."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping

from ork.executors.fork_server import ForkServer, spawned
from ork.executors.worker_handle import make_socket_pair

START_TIMEOUT_SECONDS = 20.0
_NOTHING = b"back"  # reclaims tasks that the worker has not begun


async def try_fork_server(interpreter: str, environ: Mapping[str, str]) -> str | None:
    """The reason why the fork server does not work, or None if it does."""
    try:
        server = ForkServer(interpreter, spawned(interpreter, dict(environ)), lambda _server: None)
        ours, theirs = make_socket_pair()
    except OSError as error:
        return error.strerror or str(error)
    try:
        server.make_worker(theirs)
        async with asyncio.timeout(START_TIMEOUT_SECONDS):
            return None if await _answers(ours) else server.last_error()
    except TimeoutError:
        return f"no worker came up within {START_TIMEOUT_SECONDS:g} s"
    finally:
        ours.close()
        server.detach()
        await asyncio.sleep(0.25)  # so that the loop collects it


async def _answers(control: socket.socket) -> bool:
    loop = asyncio.get_running_loop()
    try:
        await loop.sock_sendall(control, _NOTHING)
        return bool(await loop.sock_recv(control, 1 << 16))
    except OSError:
        return False
