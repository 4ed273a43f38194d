"""A TCP proxy that cuts a connection at a chosen moment: the network between a client and its server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

Where = Literal["before", "after"]


class CuttingProxy:
    """Cuts once, at the request (counted over all connections, from 1) that `arm` names.

    "before": the server never hears of it. "after": the server has answered, and the client never hears of that.
    """

    def __init__(self, target: int | str) -> None:
        self._target = target  # a port on this machine, or the path of a Unix socket
        self._server: asyncio.Server | None = None
        self._chooses: Callable[[bytes, int], bool] | None = None
        self._where: Where = "before"
        self.requests = 0
        self.has_cut = False

    async def __aenter__(self) -> CuttingProxy:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    @property
    def port(self) -> int:
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    def arm(self, chooses: Callable[[bytes, int], bool], where: Where) -> None:
        """`chooses(data, number)` says whether this request is the one."""
        self.requests, self.has_cut = 0, False
        self._chooses, self._where = chooses, where

    async def _serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        if isinstance(self._target, str):
            server, to_server = await asyncio.open_unix_connection(self._target)
        else:
            server, to_server = await asyncio.open_connection("127.0.0.1", self._target)
        cut, answered = asyncio.Event(), asyncio.Event()
        answers = asyncio.ensure_future(_pump(server, to_client, cut, answered))
        try:
            while data := await client.read(1 << 16):
                self.requests += 1
                if self._chooses is not None and not self.has_cut and self._chooses(data, self.requests):
                    self.has_cut = True
                    if self._where == "after":
                        cut.set()
                        to_server.write(data)
                        await answered.wait()
                    return
                to_server.write(data)
                await to_server.drain()
        except OSError:
            pass
        finally:
            answers.cancel()
            for writer in (to_client, to_server):
                with suppress(OSError):
                    writer.transport.abort()


async def _pump(
    source: asyncio.StreamReader, sink: asyncio.StreamWriter, cut: asyncio.Event, answered: asyncio.Event
) -> None:
    """Passes answers on; the first one after the cut is noted and kept."""
    with suppress(OSError):
        while data := await source.read(1 << 16):
            if cut.is_set():
                answered.set()
                return
            sink.write(data)
            await sink.drain()
        answered.set()
        sink.close()
