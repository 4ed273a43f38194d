"""What `ork bench` calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ork.bench.ground import Ground, server_of
from ork.bench.processes import MeasuredProcessError, compile_bytecode
from ork.bench.report import table
from ork.bench.scale import FULL, QUICK, Scale
from ork.bench.scenarios import SCENARIOS
from ork.errors import OrkError, UsageError

NAMES = ("quick", *SCENARIOS)


def bench_command(
    scenario: str, as_json: bool, emit: Callable[[str], None], store: str | None = None
) -> dict[str, Any]:
    """Measures on SQLite or on the server that `store` names, shows a table through `emit` unless `as_json`, and returns the result's JSON shape.

    The fields at the top are those of the scenario's main measurement (for `quick`, the Python fan-out);
    `parts` holds every measurement in the same shape.
    """
    if scenario not in NAMES:
        raise UsageError(f"no scenario is called `{scenario}`", hint=f"one of {', '.join(NAMES)}")
    parts = measured(scenario, server_of(store), emit if not as_json else silent)
    if not as_json:
        for line in table(parts):
            emit(line)
    return main_part(parts) | {"scenario": scenario, "parts": parts}


def measured(scenario: str, server: str | None, emit: Callable[[str], None]) -> list[dict[str, Any]]:
    compile_bytecode()
    names, scale = (tuple(SCENARIOS), QUICK) if scenario == "quick" else ((scenario,), FULL)
    parts: list[dict[str, Any]] = []
    for name in names:
        emit(f"measuring {name} …")
        parts += measured_alone(name, scale, server)
    emit("")
    return parts


def measured_alone(name: str, scale: Scale, server: str | None) -> list[dict[str, Any]]:
    with TemporaryDirectory(prefix="ork-bench-") as folder:
        try:
            return SCENARIOS[name](scale, Ground(Path(folder), server))
        except MeasuredProcessError as error:
            raise OrkError(f"{name} could not be measured: {error}") from error


def main_part(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return next((part for part in parts if part["scenario"] == "fanout"), parts[0])


def silent(line: str) -> None:
    """Nobody reads progress when the answer is for a program."""
