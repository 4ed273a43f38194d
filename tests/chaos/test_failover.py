"""The database fails over to its standby in the middle of work: it goes on, and nothing acknowledged is lost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.network import Network, network_or_skip
from tests.postgres import Server, server_or_skip

from .judge import eventually
from .team import TASKS, Size, Team, assembled, both_sizes

pytestmark = pytest.mark.slow


class Pair(NamedTuple):
    """A primary and its synchronous standby, on a network that can be cut, or on this machine's own."""

    primary: Server
    standby: Server
    network: Network | None

    def url(self, database: str) -> str:
        hosts = ",".join(f"{server.host}:{server.port}" for server in (self.primary, self.standby))
        return f"postgresql://ork@{hosts}/{database}?target_session_attrs=read-write"

    def lose_primary(self) -> None:
        """It is stopped at once, or nobody hears of it any more."""
        if self.network is None:
            self.primary.stop()
        else:
            self.network.cut("primary")


@pytest.fixture(params=["stopped", "silent"])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    found = server_or_skip()
    network = network_or_skip() if request.param == "silent" else None
    primary = Server(found.bin, **_place(network, "primary"))
    standby = Server(found.bin, **_place(network, "standby"), copy_of=primary)
    # Not before there is one: without its standby such a primary acknowledges nothing.
    primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
    primary.sql("SELECT pg_reload_conf()")
    eventually(lambda: primary.sql("SELECT sync_state FROM pg_stat_replication") == "sync")
    yield Pair(primary, standby, network)
    standby.remove()
    primary.remove()
    if network is not None:
        network.remove()


def _place(network: Network | None, party: str) -> dict[str, Any]:
    return {} if network is None else {"host": network.join(party), "inside": network.inside(party)}


@pytest.fixture
def team(tmp_path: Path, pair: Pair, size: Size) -> Iterator[Team]:
    inside = _place(pair.network, "team").get("inside", ())
    with assembled(tmp_path, pair.primary, size, url=pair.url, inside=inside) as team:
        yield team


@both_sizes
def test_after_a_failover_work_goes_on_and_nothing_acknowledged_is_lost(team: Team, pair: Pair, size: Size) -> None:
    """P1, P3, P4, P5, P6."""
    team.trigger(size.runs)
    for _ in range(3):
        team.start_scheduler()
    team.wait_for_starts(size.runs * len(TASKS) // 4)
    with ThreadPoolExecutor(1) as apart:
        asking = apart.submit(team.trigger_until_acknowledged, 5)
        eventually(lambda: len(team.ids) > size.runs)
        pair.lose_primary()
        lost = time.monotonic()
        pair.standby.promote()
        team.server = pair.standby
        ended = team.ended()
        eventually(lambda: team.ended() > ended, size.patience_seconds)
        print(f"work went on {time.monotonic() - lost:.1f} s after the primary was lost")
        asking.result()
    team.wait_until_done()
    team.judge()
