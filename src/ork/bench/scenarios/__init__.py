"""The named scenarios. Each measures its floor next to every sample and returns its results as JSON data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ork.bench.ground import Ground
from ork.bench.scale import Scale
from ork.bench.scenarios.cold import cold
from ork.bench.scenarios.containers import containers
from ork.bench.scenarios.engine import engine
from ork.bench.scenarios.history import history
from ork.bench.scenarios.idle import idle
from ork.bench.scenarios.imports import IMPORTS
from ork.bench.scenarios.latency import latency
from ork.bench.scenarios.memory import memory
from ork.bench.scenarios.sizes import deep, wide
from ork.bench.scenarios.tasks import chain, commands, fanout, shared
from ork.bench.scenarios.ui import ui

Scenario = Callable[[Scale, Ground], list[dict[str, Any]]]

SCENARIOS: dict[str, Scenario] = {
    "chain": chain,
    "fanout": fanout,
    "commands": commands,
    "shared": shared,
    "engine": engine,
    "latency": latency,
    "cold": cold,
    "idle": idle,
    "memory": memory,
    "wide": wide,
    "deep": deep,
    "history": history,
}

# They need more than Python, so they are not part of a suite.
ON_THEIR_OWN: dict[str, Scenario] = {"containers": containers, "ui": ui, **IMPORTS}
