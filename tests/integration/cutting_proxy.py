"""A TCP proxy that cuts connections at chosen moments: the network between a client and its server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Literal

Where = Literal["before", "after"]


Choice = Callable[[bytes, int], Where | None]


class CuttingProxy:
    """Cuts at requests, counted over all connections from 1: once (`arm`), or again and again (`harass`).

    "before": the server never hears of it. "after": the server has answered, and the client never hears of that.
    """

    def __init__(self, target: int | str) -> None:
        self._target = target  # a port on this machine, or the path of a Unix socket
        self._server: asyncio.Server | None = None
        self._choose: Choice = _nothing
        self._connections = 0
        self._muted = 0  # those up to this number
        self.requests = 0
        self.cuts = 0

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

    @property
    def has_cut(self) -> bool:
        return self.cuts > 0

    def arm(self, chooses: Callable[[bytes, int], bool], where: Where) -> None:
        """`chooses(data, number)` says whether this request is the one."""
        self.harass(lambda data, number: where if not self.has_cut and chooses(data, number) else None)

    def harass(self, choose: Choice) -> None:
        """`choose(data, number)` says where to cut this request, if anywhere. Counting begins again."""
        self.requests, self.cuts = 0, 0
        self._choose = choose

    def mute(self) -> None:
        """What is connected now hears nothing any more, and is not told; new connections work."""
        self._muted = self._connections

    async def _serve(self, client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
        if isinstance(self._target, str):
            server, to_server = await asyncio.open_unix_connection(self._target)
        else:
            server, to_server = await asyncio.open_connection("127.0.0.1", self._target)
        self._connections += 1
        number = self._connections
        cut, answered = asyncio.Event(), asyncio.Event()
        answers = asyncio.ensure_future(_pump(server, to_client, cut, answered))
        try:
            while data := await client.read(1 << 16):
                if number <= self._muted:
                    continue
                self.requests += 1
                if (where := self._choose(data, self.requests)) is not None:
                    self.cuts += 1
                    if where == "after":
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


@contextmanager
def in_a_thread(proxy: CuttingProxy) -> Iterator[CuttingProxy]:
    """For tests that have no event loop of their own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(proxy.__aenter__(), loop).result()
        yield proxy
        asyncio.run_coroutine_threadsafe(proxy.__aexit__(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def _nothing(_data: bytes, _number: int) -> None:
    return None


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
