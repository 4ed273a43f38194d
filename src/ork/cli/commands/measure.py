"""`ork bench` and `ork sim`: measure, and simulate."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import click

from ork.cli.errors import DONE, FAILED
from ork.cli.session import json_option, print_json

# Imported by name, so that this package does not depend on these packages.
BENCH = "ork.bench.main"
SIMULATION = "ork.testing.simulate"


@click.command(name="bench")
@click.argument("scenario", default="quick")
@click.option("--store", metavar="URL", help="Measure in new databases of this Postgres (default: SQLite).")
@click.option("--compare", metavar="FILE", help="Earlier --json output: exit 1 if something became worse.")
@json_option
def bench_command(scenario: str, store: str | None, compare: str | None, as_json: bool) -> int:
    """Measure speed, compared with the limits of this machine.

    \b
    A little of everything:  quick (default), standard, heavy
    Tasks:                   chain, fanout, commands, shared; containers (needs an engine)
    The engine:              engine, latency, wide, deep, history
    Services and commands:   idle, memory, cold
    Pages of the web UI:     ui (needs playwright and Chromium)

    \b
    Example:  ork bench chain --json
              ork bench engine --store postgresql://user@host/postgres
              ork bench standard --compare before.json
    """
    bench = import_module(BENCH).bench_command
    result: dict[str, Any] = bench(scenario, as_json, _emitter(as_json), store, compare)
    if as_json:
        print_json(result)
    return FAILED if result["worse"] else DONE


@click.command(name="sim")
@click.option("--seed", type=int, help="Replay one seed.")
@click.option("--seconds", type=click.FloatRange(min=0), help="Try seeds for this long.")
@click.option("--seeds", type=click.IntRange(min=1), help="Try this many seeds.")
@click.option(
    "--store", type=click.Choice(["sqlite", "firestore"]), default="sqlite", help="The store whose code is simulated."
)
@json_option
def sim_command(seed: int | None, seconds: float | None, seeds: int | None, store: str, as_json: bool) -> int:
    """Simulate crashes, pauses and lost messages in virtual time and check all guarantees.

    \b
    Example:  ork sim --seconds 30
              ork sim --store firestore --seeds 50
    """
    simulate = import_module(SIMULATION).simulate_command
    report: dict[str, Any] = simulate(seed, seconds, seeds, _emitter(as_json), store)
    if as_json:
        print_json(report)
    return FAILED if report.get("violations") else DONE


def _emitter(as_json: bool) -> Any:
    def emit(text: str) -> None:
        print(text, file=sys.stderr if as_json else sys.stdout, flush=True)

    return emit
