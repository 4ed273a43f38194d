"""Bars for the peers: logarithmic, because they are a thousand times apart."""

from __future__ import annotations

from html import escape
from math import ceil, floor, log10

WIDTH, LEFT, BAR, GAP, HEAD = 720, 110, 18, 8, 44
OURS, THEIRS = "#1f5fa8", "#9aa7b3"
PANELS = (
    ("chain", "ms_per_task", "Chain of 40: milliseconds for a task"),
    ("fanout", "tasks_per_second", "Fan-out: tasks per second"),
)


def draw(results: list[dict]) -> str:
    parts, top = [], 0
    for work, field, title in PANELS:
        rows = sorted((one[field], one["peer"]) for one in results if one["work"] == work)
        rows = rows if work == "chain" else rows[::-1]
        parts += panel(title, rows, top)
        top += HEAD + len(rows) * (BAR + GAP)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top + 8}" width="{WIDTH}" height="{top + 8}" '
    )
    return (
        "\n".join(
            [
                head + 'font-family="system-ui, sans-serif" font-size="12">',
                '<rect width="100%" height="100%" fill="white"/>',
                *parts,
                "</svg>",
            ]
        )
        + "\n"
    )


def panel(title: str, rows: list[tuple[float, str]], top: int) -> list[str]:
    drawn = [f'<text x="8" y="{top + 26}" font-size="14" font-weight="600">{escape(title)}</text>']
    low = floor(log10(min(value for value, _ in rows))) if rows else 0
    high = max(ceil(log10(max(value for value, _ in rows))), low + 1) if rows else 1
    for place, (value, peer) in enumerate(rows):
        y = top + HEAD - 4 + place * (BAR + GAP)
        length = max(2.0, (log10(value) - low) / (high - low) * (WIDTH - LEFT - 80))
        colour = OURS if peer == "ork" else THEIRS
        drawn.append(f'<text x="{LEFT - 8}" y="{y + 13}" text-anchor="end">{escape(peer)}</text>')
        drawn.append(f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{colour}"/>')
        drawn.append(f'<text x="{LEFT + length + 6:.1f}" y="{y + 13}" fill="#334">{value:,g}</text>')
    return drawn
