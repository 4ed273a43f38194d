"""The entry point of `ork bench`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ork.bench.compare import Difference, differences, read_parts
from ork.bench.ground import Ground, server_of
from ork.bench.processes import MeasuredProcessError, compile_bytecode
from ork.bench.report import comparison, gates, table
from ork.bench.scale import FULL, HEAVY, QUICK, STANDARD, Scale
from ork.bench.scenarios import ON_THEIR_OWN, SCENARIOS
from ork.errors import OrkError, UsageError

SUITES = {"quick": QUICK, "standard": STANDARD, "heavy": HEAVY}
NAMES = (*SUITES, *SCENARIOS, *ON_THEIR_OWN)

Emit = Callable[[str], None]


def bench_command(
    scenario: str,
    as_json: bool,
    emit: Emit,
    store: str | None = None,
    compare: str | None = None,
) -> dict[str, Any]:
    """Measure on SQLite or on the server that `store` names, show a table through `emit` unless `as_json`, and return
    the result's JSON shape.

    The fields at the top are those of the scenario's main measurement (for several scenarios, the Python fan-out);
    `parts` has every measurement in the same shape, `worse` what became worse since the result in the file `compare`.
    """
    if scenario not in NAMES:
        raise UsageError(f"no scenario is called `{scenario}`", hint=f"one of {', '.join(NAMES)}")
    server, earlier = server_of(store), read_parts(Path(compare)) if compare else None
    parts = measured(scenario, server, emit)
    changes = differences(earlier, parts) if earlier is not None else []
    if not as_json:
        show(parts, changes if earlier is not None else None, emit)
    worse = [change.sentence for change in changes if change.is_worse]
    return main_part(parts) | {"scenario": scenario, "parts": parts, "worse": worse}


def measured(scenario: str, server: str | None, emit: Emit) -> list[dict[str, Any]]:
    compile_bytecode()
    names, scale = (tuple(SCENARIOS), SUITES[scenario]) if scenario in SUITES else ((scenario,), FULL)
    parts: list[dict[str, Any]] = []
    for name in names:
        emit(f"measuring {name} …")
        parts += measured_alone(name, scale, server)
    emit("")
    return parts


def measured_alone(name: str, scale: Scale, server: str | None) -> list[dict[str, Any]]:
    with TemporaryDirectory(prefix="ork-bench-") as folder:
        try:
            return (SCENARIOS | ON_THEIR_OWN)[name](scale, Ground(Path(folder), server))
        except MeasuredProcessError as error:
            raise OrkError(f"{name} could not be measured: {error}") from error


def show(parts: list[dict[str, Any]], changes: list[Difference] | None, emit: Emit) -> None:
    lines = table(parts)
    if any(len(part["gates"]) > 1 for part in parts):
        lines += ["", *gates(parts)]
    if changes is not None:
        lines += ["", *comparison(changes)]
    for line in lines:
        emit(line)


def main_part(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return next((part for part in parts if part["scenario"] == "fanout"), parts[0])
