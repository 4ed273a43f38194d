"""What `ork bench` calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ork.bench.processes import MeasuredProcessError, compile_bytecode
from ork.bench.report import table
from ork.bench.scenarios import FULL, QUICK, SCENARIOS, Scale
from ork.errors import OrkError, UsageError

NAMES = ("quick", *SCENARIOS)


def bench_command(scenario: str, as_json: bool, emit: Callable[[str], None]) -> dict[str, Any]:
    """Measures, shows a table through `emit` unless `as_json`, and returns the result's JSON shape.

    The fields at the top are those of the scenario's main measurement (for `quick`, the Python fan-out);
    `parts` holds every measurement in the same shape.
    """
    if scenario not in NAMES:
        raise UsageError(f"no scenario is called `{scenario}`", hint=f"one of {', '.join(NAMES)}")
    parts = measured(scenario, emit if not as_json else silent)
    if not as_json:
        for line in table(parts):
            emit(line)
    return main_part(parts) | {"scenario": scenario, "parts": parts}


def measured(scenario: str, emit: Callable[[str], None]) -> list[dict[str, Any]]:
    compile_bytecode()
    names, scale = (tuple(SCENARIOS), QUICK) if scenario == "quick" else ((scenario,), FULL)
    parts: list[dict[str, Any]] = []
    for name in names:
        emit(f"measuring {name} …")
        parts += measured_alone(name, scale)
    emit("")
    return parts


def measured_alone(name: str, scale: Scale) -> list[dict[str, Any]]:
    with TemporaryDirectory(prefix="ork-bench-") as folder:
        try:
            return SCENARIOS[name](scale, Path(folder))
        except MeasuredProcessError as error:
            raise OrkError(f"{name} could not be measured: {error}") from error


def main_part(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return next((part for part in parts if part["scenario"] == "fanout-python"), parts[0])


def silent(line: str) -> None:
    """Nobody reads progress when the answer is for a program."""
