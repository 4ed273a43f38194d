"""Results as a table for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ork.bench.compare import Difference

HEADINGS = (
    "scenario",
    "size",
    "tasks",
    "first",
    "took",
    "per second",
    "p50/p95/p99 ms",
    "cpu s",
    "MB",
    "KB each",
    "statements",
    "floor",
    "ratio",
    "target",
)
WORDS = frozenset({"scenario", "p50/p95/p99 ms", "target", "gate", "verdict", "what", ""})
NOTHING = "–"


def table(results: Sequence[dict[str, Any]]) -> list[str]:
    """A heading and one line per result, without empty columns, then a description of each floor."""
    lines = [HEADINGS, *(row(result) for result in results)]
    columns = [column for column in zip(*lines, strict=True) if set(column[1:]) != {NOTHING}]
    notes = {f"  {result['scenario']}: floor is {result['floor']['what']}": None for result in results}
    return [*aligned(columns), "", *notes]


def gates(results: Sequence[dict[str, Any]]) -> list[str]:
    """A line for each figure that has a gate, with the gate beside it, and then how many were missed."""
    rows = [
        (
            result["scenario"] if place == 0 else "",
            number(result.get("size")) if place == 0 else "",
            NOTHING if gate["value"] is None else f"{gate['value']:,.4g}",
            gate["gate"],
            "✓ met" if gate["is_met"] else "✗ missed",
            result.get("note", "") if place == 0 else "",
        )
        for result in results
        for place, gate in enumerate(result["gates"])
    ]
    missed = sum(not gate["is_met"] for result in results for gate in result["gates"])
    lines = aligned([*zip(("scenario", "size", "figure", "gate", "verdict", ""), *rows, strict=True)])
    return [*lines, "", f"{missed} of {len(rows)} gates were missed." if missed else f"All {len(rows)} gates were met."]


def comparison(changes: Sequence[Difference]) -> list[str]:
    """Measurements before and after, and which of them became worse."""
    if not changes:
        return ["Nothing of this was measured in the earlier result."]
    cells = [
        (
            change.scenario,
            number(change.size),
            change.field,
            f"{change.was:,g}",
            f"{change.now:,g}",
            "worse" if change.is_worse else "",
        )
        for change in changes
    ]
    worse = [change.sentence for change in changes if change.is_worse]
    verdict = [f"worse: {sentence}" for sentence in worse] or ["Nothing became worse."]
    return [*aligned([*zip(("scenario", "size", "what", "was", "is", ""), *cells, strict=True)]), "", *verdict]


def row(result: dict[str, Any]) -> tuple[str, ...]:
    return (
        result["scenario"],
        number(result.get("size")),
        f"{result['tasks']:,}",
        duration(result.get("first_s")),
        duration(result["seconds"]),
        number(result["tasks_per_second"]),
        percentiles(result["latency_ms"]),
        number(result["cpu_s"], 2),
        number(result["rss_mb"]),
        number(result.get("kb_each"), 2),
        number(result["statements"]),
        duration(result["floor"]["seconds"]),
        ratio(result),
        verdict(result),
    )


def aligned(columns: Sequence[Sequence[str]]) -> list[str]:
    """The table as lines; text columns are left-aligned, number columns right-aligned."""
    padded = []
    for column in columns:
        width = max(map(len, column))
        padded.append([cell.ljust(width) if column[0] in WORDS else cell.rjust(width) for cell in column])
    return ["  ".join(cells).rstrip() for cells in zip(*padded, strict=True)]


def duration(seconds: float | None) -> str:
    if seconds is None:
        return NOTHING
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"


def number(value: float | None, digits: int = 0) -> str:
    return NOTHING if value is None else f"{value:,.{digits}f}"


def percentiles(latency: dict[str, float | None]) -> str:
    values = [value for value in latency.values() if value is not None]
    return "/".join(f"{value:.1f}" for value in values) if values else NOTHING


def ratio(result: dict[str, Any]) -> str:
    if result["ratio"] is None:
        return NOTHING
    low, high = result["ratio_range"] or (None, None)
    if low == high:
        return f"{result['ratio']:.2f}"
    return f"{result['ratio']:.2f} ({low:.2f}–{high:.2f})"


def verdict(result: dict[str, Any]) -> str:
    if result["target"] is None:
        return NOTHING
    return f"{result['target']} {'✓ met' if result['target_met'] else '✗ missed'}"
