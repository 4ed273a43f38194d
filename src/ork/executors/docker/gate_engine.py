"""The engine that an attempt was started on, according to its gate. No other engine knows the attempt's container."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ork.executors.docker.engine import Engine

NO_ENGINE = ""  # instead of an engine's identity: the gate was won to prevent a start


def was_started(gate: Mapping[str, Any] | None) -> bool:
    """True if a container was or may be started on some engine."""
    return gate is not None and gate.get("state") == "started" and gate.get("engine") != NO_ENGINE


async def is_engine_of(engine: Engine, gate: Mapping[str, Any]) -> bool:
    """True if this is the engine that the gate names. Gates of 0.1.0 name none: then the gate must have been won on this
    machine, most likely with the same engine."""
    if gate.get("engine") is None:
        return bool(gate.get("host") == os.uname().nodename)
    return bool(gate["engine"] == await engine.identity())
