"""How long `GET /status` waits while a server answers what pages ask. Nothing else runs meanwhile: a browser would take
the processors away from both."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from ork.bench.pages.server import SECONDS, PageServer

if TYPE_CHECKING:
    import httpx2

PING_SECONDS = 0.002
TRIES = 3
QUIET_SECONDS = 2.0


class Delays(NamedTuple):
    """Seconds of the slowest `/status` beside the worst request, and of a usual one beside nothing."""

    worst: str
    busy: float
    quiet: float
    all: list[float]


def delays(server: PageServer, paths: Iterable[str]) -> Delays:
    """Asks each path several times; the quickest of the slowest responses counts, because a machine has its pauses."""
    with pinging(server) as quiet:
        time.sleep(QUIET_SECONDS)
    found: dict[str, float] = {}
    every: list[float] = []
    with _client(server) as client:
        for path in paths:
            slowest = []
            for _ in range(TRIES):
                with pinging(server) as pings:
                    client.get(server.url + path).raise_for_status()
                slowest.append(max(pings))
                every += pings
            found[path] = min(slowest)
    worst = max(found, key=lambda path: found[path])
    return Delays(worst, found[worst], median(quiet), every)


@contextmanager
def pinging(server: PageServer) -> Iterator[list[float]]:
    """The seconds of each `GET /status`, one after the other on one connection, until the end of the block. The first has
    been answered when the block begins."""
    seconds: list[float] = []
    begun, is_over = threading.Event(), threading.Event()
    thread = threading.Thread(target=_ping, args=(server, seconds, begun, is_over), daemon=True)
    thread.start()
    begun.wait(SECONDS)
    yield seconds
    is_over.set()
    thread.join()


def _ping(server: PageServer, seconds: list[float], begun: threading.Event, is_over: threading.Event) -> None:
    with _client(server) as client:
        client.get(f"{server.url}/api/v1/status")
        begun.set()
        while True:
            start = time.perf_counter()
            client.get(f"{server.url}/api/v1/status")
            seconds.append(time.perf_counter() - start)
            if is_over.wait(PING_SECONDS):
                return


def _client(server: PageServer) -> httpx2.Client:
    import httpx2

    headers = {"Authorization": f"Bearer {server.token}", "Accept-Encoding": "gzip"}
    return httpx2.Client(timeout=SECONDS, trust_env=False, headers=headers)
