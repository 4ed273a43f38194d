"""Shows values that are not JSON: the preview of a table as columns of text, and what it is in one line."""

from __future__ import annotations

from typing import Any

from ork.cli.paint import Line, Span, line, visible
from ork.cli.tables import table
from ork.model.value_reference import bytes_in_words

BLOCKS = " ▁▂▃▄▅▆▇█"


def shown_value(description: dict[str, Any], preview: dict[str, Any] | None) -> list[Line]:
    """The preview, if there is one, and a line with type, size and hash."""
    kind = None if preview is None else preview.get("kind")
    lines: list[Line] = []
    if preview is not None and kind == "table":
        lines += _table(preview, description)
    elif preview is not None and kind == "array":
        lines.append(line(visible(", ".join(map(_cell, preview.get("first", []))) + ", …")))
    elif preview is not None and kind == "text":
        lines += [line(visible(each)) for each in str(preview.get("text", "")).splitlines()]
    elif preview is not None and kind == "folder":
        files = [(visible(str(each["name"])), bytes_in_words(int(each["size"]))) for each in preview.get("files", [])]
        lines += table(("file", "size"), files)
    return [*lines, line(Span(_summary(description), "dim"))]


def _table(preview: dict[str, Any], description: dict[str, Any]) -> list[Line]:
    columns = [each for each in preview.get("columns", []) if isinstance(each, dict)]
    titles = [visible(str(each.get("name"))) for each in columns]
    rows: list[list[Span | str]] = [[Span(visible(str(each.get("type"))), "dim") for each in columns]]
    bars = [Span(_bars(each.get("histogram")), "busy") for each in columns]
    if any(each.text for each in bars):
        rows.append([*bars])
    rows += [[visible(_cell(cell)) for cell in row] for row in preview.get("rows", []) if len(row) == len(columns)]
    found = table(titles, rows)
    left = int(description.get("rows", 0)) - len(preview.get("rows", []))
    return [*found, line(Span(f"… {left:,} more rows", "dim"))] if left > 0 else found


def _bars(histogram: Any) -> str:
    if not isinstance(histogram, dict):
        return ""
    counts = histogram.get("counts", [])
    most = max(counts, default=0) or 1
    return "".join(BLOCKS[-(-count * (len(BLOCKS) - 1) // most)] for count in counts)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _summary(description: dict[str, Any]) -> str:
    facts = [str(description.get("type"))]
    if "rows" in description:
        columns = description.get("column_count", len(description.get("columns", [])))
        facts.append(f"{description['rows']:,} rows × {columns:,} columns")
    if "shape" in description:
        facts.append(f"{' × '.join(map(str, description['shape']))} of {description.get('dtype')}")
    if "name" in description:
        facts.append(visible(str(description["name"])))
    if description.get("codec") == "folder":
        facts.append(f"{description['parts']:,} files")
    size, digest = int(description["size"]), str(description["sha256"])[:12]
    return " · ".join([*facts, visible(str(description["media_type"])), bytes_in_words(size), f"sha256 {digest}"])
