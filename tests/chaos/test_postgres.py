"""Three schedulers on a real Postgres, real processes, and an external ledger as the judge of what really ran."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from tests.integration.cutting_proxy import CuttingProxy, Where, in_a_thread
from tests.pgbouncer import bouncer_or_skip
from tests.postgres import Server, server_or_skip

from .judge import Court, eventually, kill
from .team import TAKE_OVER_SECONDS, TASKS, Size, Team, assembled, both_sizes, lose_the_owner_of_everything

pytestmark = pytest.mark.slow


@pytest.fixture
def server() -> Iterator[Server]:
    """Of its own: it is restarted in the middle of things."""
    own = Server(server_or_skip().bin)
    yield own
    own.remove()


@pytest.fixture
def team(tmp_path: Path, server: Server, size: Size) -> Iterator[Team]:
    with assembled(tmp_path, server, size) as team:
        yield team


@both_sizes
def test_killing_one_of_three_schedulers_again_and_again_starts_each_attempt_exactly_once(team: Team) -> None:
    """P3, P4, P5, P6."""
    kill_again_and_again(team)
    team.judge()


@both_sizes
def test_behind_pgbouncer_they_may_be_killed_as_well(tmp_path: Path, server: Server, size: Size) -> None:
    bouncer = bouncer_or_skip(server)
    try:
        with assembled(tmp_path, server, size, url=lambda name: f"{bouncer.url(name)}?pooler=transaction") as team:
            kill_again_and_again(team)
            team.judge()
    finally:
        bouncer.remove()


@both_sizes
def test_connections_that_are_cut_at_any_statement_double_and_lose_nothing(
    tmp_path: Path, server: Server, size: Size
) -> None:
    """Before the server heard of it, or after it answered: commits that nobody can say anything about are among them."""
    dice, places = random.Random(5), get_args(Where)
    with (
        in_a_thread(CuttingProxy(server.port)) as proxy,
        assembled(tmp_path, server, size, url=lambda name: server.url(name, port=proxy.port)) as team,
    ):
        proxy.harass(lambda _, __: dice.choice(places) if dice.random() < 0.02 else None)
        for _ in range(3):
            team.start_scheduler()
        team.trigger_until_acknowledged(size.runs)
        team.wait_until_done()
        print(f"{proxy.cuts} of {proxy.requests} requests were cut")
        assert proxy.cuts
        team.judge()


def kill_again_and_again(team: Team) -> None:
    size = team.size
    team.trigger(size.runs)
    dice, kills, began = random.Random(11), 0, time.monotonic()
    for _ in range(3):
        team.start_scheduler()
    while not team.is_done():
        assert time.monotonic() - began < size.patience_seconds
        kills += 1
        due = began + kills * size.kill_seconds
        eventually(lambda t=due: time.monotonic() > t or team.is_done())
        team.replace_scheduler(dice.randrange(3))
    print(f"{kills} kills in {time.monotonic() - began:.0f} s")
    assert kills


@both_sizes
def test_restarting_postgres_at_once_again_and_again_doubles_and_loses_nothing(
    team: Team, server: Server, size: Size
) -> None:
    team.trigger(size.runs)
    for _ in range(3):
        team.start_scheduler()
    for sixth in range(1, 6):
        team.wait_for_starts(sixth * size.runs * len(TASKS) // 6)
        server.restart_at_once()
    team.wait_until_done()
    team.judge()


@both_sizes
def test_a_scheduler_frozen_beyond_its_lease_is_taken_over_and_changes_nothing_when_it_wakes(
    team: Team, size: Size
) -> None:
    team.trigger(size.runs)
    sleeper = team.start_scheduler()
    outage = lose_the_owner_of_everything(
        team,
        sleeper,
        size.frozen_seconds,
        begin=lambda: sleeper.send_signal(signal.SIGSTOP),
        end=lambda: sleeper.send_signal(signal.SIGCONT),
    )
    print(f"frozen: {outage}")
    assert outage.taken_over < outage.possible + TAKE_OVER_SECONDS
    team.judge()


@pytest.mark.parametrize("service", ["scheduler", "serve"])
def test_a_service_that_is_started_before_its_database_says_so_and_waits_for_it(
    tmp_path: Path, server: Server, service: str
) -> None:
    court = Court(tmp_path, {"ORK_STORE": server.url(server.new_database())})
    log = tmp_path / "services.log"
    server.stop()
    waiting = court.start(service, *(["--port", "0"] if service == "serve" else []))
    try:
        eventually(lambda: "store failed" in log.read_text())
        server.start()
        eventually(lambda: "ready" in log.read_text())
    finally:
        kill(waiting)
