"""Draws throughput and latency over size as an SVG: two panels with logarithmic axes.

ork bench wide --json > wide.json && python -m perf.plot wide.json > wide.svg
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from html import escape
from math import ceil, floor, log10
from pathlib import Path
from typing import Any, NamedTuple

WIDTH, PANEL_HEIGHT = 760, 300
LEFT, RIGHT, TOP, BOTTOM, LEGEND_LINE = 78, 24, 40, 46, 20
COLOURS = ("#1f5fa8", "#c2571a", "#2c7a3f", "#8a3fa0", "#b3263a", "#50606b", "#8a6d00", "#00798c", "#6b4a2b", "#d0608f")

Point = tuple[float, float]


class Line(NamedTuple):
    name: str
    colour: str
    points: list[Point]


class Axis(NamedTuple):
    """Powers of ten from `low` to `high`, drawn from one pixel to another."""

    low: int
    high: int
    begin: float
    end: float

    def place(self, value: float) -> float:
        share = (log10(value) - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)


def draw(parts: Sequence[dict[str, Any]]) -> str:
    """The whole picture; a measurement at a single size is a dot."""
    names = list(dict.fromkeys(part["scenario"] for part in parts if measures(part)))
    colours = {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(names)}
    legend = -(-len(names) // 4) * LEGEND_LINE
    height = 2 * PANEL_HEIGHT + legend + 16
    body = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="system-ui, sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        *panel(
            "Tasks per second, by the tasks of a run (history: by the finished runs beside it)",
            lines(parts, colours, tasks_per_second),
            0,
        ),
        *panel(
            "Milliseconds for a task (history: for a run), median", lines(parts, colours, milliseconds), PANEL_HEIGHT
        ),
        *legend_of(colours, 2 * PANEL_HEIGHT + LEGEND_LINE),
        "</svg>",
    ]
    return "\n".join(body) + "\n"


def measures(part: dict[str, Any]) -> bool:
    return tasks_per_second(part) is not None or milliseconds(part) is not None


def tasks_per_second(part: dict[str, Any]) -> float | None:
    value: float | None = part["tasks_per_second"]
    return value


def milliseconds(part: dict[str, Any]) -> float | None:
    """The latency where tasks were timed one by one, else the share of a task in the whole."""
    latency: float | None = part["latency_ms"]["p50"]
    if latency is not None or not part["tasks"] or not part["seconds"]:
        return latency
    return float(part["seconds"]) * 1000 / int(part["tasks"])


def lines(
    parts: Iterable[dict[str, Any]], colours: dict[str, str], value: Callable[[dict[str, Any]], float | None]
) -> list[Line]:
    found = {name: Line(name, colour, []) for name, colour in colours.items()}
    for part in parts:
        measured = value(part)
        if measured:
            # An empty history has no place on a logarithmic axis: it stands at one.
            found[part["scenario"]].points.append((max(1, part.get("size", part["tasks"])), measured))
    return [line for line in found.values() if line.points]


def panel(title: str, lines: Sequence[Line], top: int) -> list[str]:
    heading = f'<text x="{LEFT}" y="{top + TOP - 14}" font-size="14" font-weight="600">{escape(title)}</text>'
    if not lines:
        return [heading, f'<text x="{LEFT}" y="{top + TOP + 20}" fill="#667">nothing was measured</text>']
    xs = [x for line in lines for x, _ in line.points]
    ys = [y for line in lines for _, y in line.points]
    across = Axis(*decades(xs), LEFT, WIDTH - RIGHT)
    upward = Axis(*decades(ys), top + PANEL_HEIGHT - BOTTOM, top + TOP)
    drawn = [part for line in lines for part in curve(line, across, upward)]
    return [heading, *grid(across, upward), *drawn]


def decades(values: Sequence[float]) -> tuple[int, int]:
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    return low, max(high, low + 1)


def grid(across: Axis, upward: Axis) -> list[str]:
    drawn = []
    for power in range(across.low, across.high + 1):
        x = across.place(10.0**power)
        drawn.append(stroke(x, upward.begin, x, upward.end))
        drawn.append(label(x, upward.begin + 18, power, "middle"))
    for power in range(upward.low, upward.high + 1):
        y = upward.place(10.0**power)
        drawn.append(stroke(across.begin, y, across.end, y))
        drawn.append(label(across.begin - 8, y + 4, power, "end"))
    return drawn


def stroke(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#d9dee3"/>'


def label(x: float, y: float, power: int, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="#445">{10.0**power:,.12g}</text>'


def curve(line: Line, across: Axis, upward: Axis) -> list[str]:
    places = [(across.place(x), upward.place(y)) for x, y in sorted(line.points)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{line.colour}"/>' for x, y in places]
    return [f'<polyline points="{path}" fill="none" stroke="{line.colour}" stroke-width="2"/>', *dots]


def legend_of(colours: dict[str, str], top: int) -> list[str]:
    drawn, column = [], (WIDTH - LEFT) / 4
    for place, (name, colour) in enumerate(colours.items()):
        x, y = LEFT + place % 4 * column, top + place // 4 * LEGEND_LINE
        drawn.append(f'<circle cx="{x:.1f}" cy="{y - 4}" r="5" fill="{colour}"/>')
        drawn.append(f'<text x="{x + 10:.1f}" y="{y}">{escape(name)}</text>')
    return drawn


if __name__ == "__main__":
    print(draw(json.loads(Path(sys.argv[1]).read_text())["parts"]))
