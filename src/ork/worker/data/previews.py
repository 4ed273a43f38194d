"""What people see of a value: first rows, types, and histograms of a sample. Made where the value is stored, because only the
task's process has its library; whoever shows it reads this JSON and never opens the value.

{"kind": "table", "columns": [{"name", "type", "nulls", "histogram"?}], "rows": [[cell…]], "sampled": rows looked at}
{"kind": "array", "first": [number…], "histogram"?}     {"kind": "text", "text"}     {"kind": "folder", "files": [{"name", "size"}]}
A histogram is {"low", "high", "counts": [ten numbers]}.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

FIRST_ROWS = 20
MOST_COLUMNS = 100
SAMPLED_ROWS = 10_000
CELL_CHARACTERS = 200
TEXT_CHARACTERS = 4000
MOST_FILES = 100
_BINS = 10


def of_table(table: Any, library: str) -> dict[str, Any]:
    """Of the first columns: types, nulls and histograms of a sample, and the first rows."""
    if library == "pandas":
        return _of_pandas(table.iloc[:, :MOST_COLUMNS])
    if library == "polars":
        names = table.columns[:MOST_COLUMNS]
        step = max(1, table.height // SAMPLED_ROWS)
        sample = table.select(names).gather_every(step)
        types = [str(kind) for kind in sample.dtypes]
        rows = table.select(names).head(FIRST_ROWS).rows()
        return _table(names, types, [sample.get_column(name).to_list() for name in names], rows)
    from ork.worker.data.tables import as_arrow

    whole = as_arrow(table)
    whole = whole.select(whole.column_names[:MOST_COLUMNS])
    step = max(1, whole.num_rows // SAMPLED_ROWS)
    sample = (
        whole.slice(0, min(whole.num_rows, SAMPLED_ROWS))
        if step == 1
        else whole.take([*range(0, whole.num_rows, step)])
    )
    first = whole.slice(0, FIRST_ROWS).to_pydict().values()
    rows = list(zip(*first, strict=True))
    columns = [column.to_pylist() for column in sample.columns]
    return _table(whole.column_names, [str(field.type) for field in whole.schema], columns, rows)


def _of_pandas(table: Any) -> dict[str, Any]:
    step = max(1, len(table) // SAMPLED_ROWS)
    sample, first = table.iloc[::step], table.iloc[:FIRST_ROWS]
    places = range(len(table.columns))
    types = [str(kind) for kind in table.dtypes]
    columns = [_without_missing(sample.iloc[:, place]) for place in places]
    cells = [_without_missing(first.iloc[:, place]) for place in places]
    return _table([str(name) for name in table.columns], types, columns, list(zip(*cells, strict=True)))


def _without_missing(column: Any) -> list[Any]:
    """The values of a column of pandas; None for what it calls missing."""
    missing = column.isna()
    return [None if is_missing else value for value, is_missing in zip(column.tolist(), missing.tolist(), strict=True)]


def _table(
    names: list[str], types: list[str], sample: list[list[Any]], rows: Iterable[Iterable[Any]]
) -> dict[str, Any]:
    columns = []
    for name, kind, values in zip(names, types, sample, strict=True):
        column: dict[str, Any] = {"name": name, "type": kind, "nulls": sum(value is None for value in values)}
        histogram = _histogram(values)
        columns.append(column if histogram is None else {**column, "histogram": histogram})
    shown = [[cell(value) for value in row] for row in rows]
    return {"kind": "table", "columns": columns, "rows": shown, "sampled": len(sample[0]) if sample else 0}


def of_array(array: Any, numpy: Any) -> dict[str, Any]:
    flat = array.reshape(-1) if array.flags.c_contiguous else numpy.ravel(array[:FIRST_ROWS])
    step = max(1, flat.size // SAMPLED_ROWS)
    found: dict[str, Any] = {"kind": "array", "first": [cell(value) for value in flat[:FIRST_ROWS].tolist()]}
    histogram = _histogram(flat[::step].tolist())
    return found if histogram is None else {**found, "histogram": histogram}


def of_bytes(start: bytes) -> dict[str, Any] | None:
    """The beginning, if it is text."""
    try:
        text = start.decode("utf-8", "strict")
    except UnicodeDecodeError as error:
        if error.start < len(start) - 4:  # else a character is cut
            return None
        text = start[: error.start].decode("utf-8")
    is_text = all(character.isprintable() or character in "\t\r\n" for character in text)
    return {"kind": "text", "text": text[:TEXT_CHARACTERS]} if text and is_text else None


def cell(value: Any) -> Any:
    """A value of a table as JSON: numbers and truth values as they are, else short text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) < 1 << 63:
        return value
    if isinstance(value, float) and value - value == 0:
        return value
    try:
        text = value if isinstance(value, str) else str(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    text = text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")
    return text if len(text) <= CELL_CHARACTERS else text[: CELL_CHARACTERS - 1] + "…"


def _histogram(values: list[Any]) -> dict[str, Any] | None:
    numbers = [value for value in values if type(value) in (int, float) and value - value == 0]
    if not numbers or len(numbers) < len([value for value in values if value is not None]):
        return None
    low, high = min(numbers), max(numbers)
    if abs(low) > 1e300 or abs(high) > 1e300:
        return None
    counts = [0] * _BINS
    width = (high - low) / _BINS or 1
    for number in numbers:
        counts[min(_BINS - 1, int((number - low) / width))] += 1
    return {"low": low, "high": high, "counts": counts}
