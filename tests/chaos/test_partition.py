"""A network that falls silent between a scheduler and its database: errors instead of hangs, and nothing twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.network import Network, network_or_skip
from tests.postgres import Server, server_or_skip

from .judge import eventually
from .team import TAKE_OVER_SECONDS, Size, Team, assembled, both_sizes, lose_the_owner_of_everything

pytestmark = pytest.mark.slow

# Either side gives up after 20 s of silence; what is on its way there may take some more.
SILENCE_SECONDS = 45.0


@pytest.fixture
def network() -> Iterator[Network]:
    network = network_or_skip()
    yield network
    network.remove()


@pytest.fixture
def server(network: Network) -> Iterator[Server]:
    found = server_or_skip()
    own = Server(found.bin, host=network.join("database"), inside=network.inside("database"))
    yield own
    own.remove()


@pytest.fixture
def team(tmp_path: Path, network: Network, server: Server, size: Size) -> Iterator[Team]:
    network.join("team")
    with assembled(tmp_path, server, size, inside=network.inside("team")) as team:
        yield team


@both_sizes
def test_a_scheduler_that_is_cut_off_says_so_is_taken_over_and_goes_on_when_the_network_is_back(
    team: Team, network: Network, server: Server, size: Size
) -> None:
    """P3, P4, P5, P6."""
    address = network.join("remote")
    team.trigger(size.runs)
    remote = team.start_scheduler(inside=network.inside("remote"), log="remote.log")
    said = team.court.folder / "remote.log"

    def give_up_and_heal() -> None:
        eventually(lambda: "store failed" in said.read_text(), SILENCE_SECONDS)
        looked = team.court.ork("runs", inside=network.inside("remote"))
        assert looked.returncode == 1
        assert "did not answer in time" in looked.stderr
        connections = f"SELECT count(*) FROM pg_stat_activity WHERE client_addr = '{address}'"
        eventually(lambda: server.sql(connections) == "0", SILENCE_SECONDS)
        network.heal("remote")

    outage = lose_the_owner_of_everything(
        team, remote, size.cut_seconds, begin=lambda: network.cut("remote"), end=give_up_and_heal
    )
    print(f"cut off: {outage}\n{said.read_text()}")
    assert outage.taken_over < outage.possible + TAKE_OVER_SECONDS
    assert "store works again" in said.read_text()
    assert "Traceback" not in said.read_text()
    team.judge()
