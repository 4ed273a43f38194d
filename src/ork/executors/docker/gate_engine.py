"""Which engine an attempt was started on: no other one can tell what became of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ork.executors.docker.engine import Engine

NO_ENGINE = ""  # in place of an engine's identity: the gate was won to say that nothing will be started


def was_started(gate: Mapping[str, Any] | None) -> bool:
    """Whether a container was started, or will have been, on some engine."""
    return gate is not None and gate.get("state") == "started" and gate.get("engine") != NO_ENGINE


async def is_engine_of(engine: Engine, gate: Mapping[str, Any]) -> bool:
    """Whether this is the engine that the gate names. Gates of 0.1.0 name none: then a scheduler of this machine must
    have won it, which most likely asked the same engine."""
    if gate.get("engine") is None:
        return bool(gate.get("host") == os.uname().nodename)
    return bool(gate["engine"] == await engine.identity())
