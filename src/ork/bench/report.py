"""Results as a table for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

HEADINGS = (
    "scenario",
    "tasks",
    "took",
    "per second",
    "p50/p95/p99 ms",
    "cpu s",
    "MB",
    "statements",
    "floor",
    "ratio",
    "target",
)
WORDS = frozenset({"scenario", "p50/p95/p99 ms", "target"})


def table(results: Sequence[dict[str, Any]]) -> list[str]:
    """A heading and one line per result, then what each floor is."""
    cells = [row(result) for result in results]
    widths = [max(len(line[column]) for line in [HEADINGS, *cells]) for column in range(len(HEADINGS))]
    lines = [aligned(line, widths) for line in [HEADINGS, *cells]]
    notes = [f"  {result['scenario']}: floor is {result['floor']['what']}" for result in results]
    return [*lines, "", *notes]


def row(result: dict[str, Any]) -> tuple[str, ...]:
    return (
        result["scenario"],
        f"{result['tasks']:,}",
        duration(result["seconds"]),
        number(result["tasks_per_second"]),
        percentiles(result["latency_ms"]),
        number(result["cpu_s"], 2),
        number(result["rss_mb"]),
        number(result["statements"]),
        duration(result["floor"]["seconds"]),
        ratio(result),
        verdict(result),
    )


def aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    parts = [
        cell.ljust(width) if heading in WORDS else cell.rjust(width)
        for heading, cell, width in zip(HEADINGS, cells, widths, strict=True)
    ]
    return "  ".join(parts).rstrip()


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"


def number(value: float | None, digits: int = 0) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def percentiles(latency: dict[str, float | None]) -> str:
    values = [value for value in latency.values() if value is not None]
    return "/".join(f"{value:.1f}" for value in values) if values else "–"


def ratio(result: dict[str, Any]) -> str:
    if result["ratio"] is None:
        return "–"
    low, high = result["ratio_range"]
    if low == high:
        return f"{result['ratio']:.2f}"
    return f"{result['ratio']:.2f} ({low:.2f}–{high:.2f})"


def verdict(result: dict[str, Any]) -> str:
    if result["target"] is None:
        return "–"
    return f"{result['target']} {'✓ met' if result['target_met'] else '✗ missed'}"
