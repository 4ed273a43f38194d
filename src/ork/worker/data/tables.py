"""Tables: frames of pandas and polars, tables and record batches of pyarrow. Stored as Parquet.

pandas and pyarrow need the package `pyarrow` for that; polars needs nothing else.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PART_ROWS = 1 << 20
MOST_COLUMNS = 100  # in the description
_NAME_SHOWN = 200


class MissingPackageError(Exception):
    """The package that a conversion needs is not installed in the task's environment."""

    def __init__(self, package: str, what: str) -> None:
        super().__init__(f"{what} needs the package `{package}` in the task's environment (pip install {package})")


def library_of(value: Any) -> str | None:
    """The library whose table it is; None if it is no table. Only libraries that are loaded can have made it."""
    for library, names in (("pandas", ("DataFrame",)), ("polars", ("DataFrame", "LazyFrame"))):
        if _is_of(value, library, *names):
            return library
    return "pyarrow" if _is_of(value, "pyarrow", "Table", "RecordBatch") else None


def _is_of(value: Any, module: str, *names: str) -> bool:
    loaded = sys.modules.get(module)
    kinds = tuple(kind for name in names if isinstance(kind := getattr(loaded, name, None), type))
    return loaded is not None and isinstance(value, kinds)


def write(value: Any, library: str, sink: Any, part_rows: int) -> None:
    """Write the table as Parquet, in row groups of `part_rows`."""
    if library == "polars":
        _collected(value).write_parquet(sink, row_group_size=part_rows)
        return
    parquet = needed("pyarrow.parquet", "storing a table of pandas" if library == "pandas" else "storing a table")
    if library == "pandas":
        value.to_parquet(sink, engine="pyarrow", row_group_size=part_rows)
        return
    parquet.write_table(as_arrow(value), sink, row_group_size=part_rows)


def _collected(value: Any) -> Any:
    return value.collect() if hasattr(value, "collect") else value


def prepared(value: Any, library: str) -> Any:
    """The table itself: of a lazy frame of polars its rows."""
    return _collected(value) if library == "polars" else value


def as_arrow(value: Any) -> Any:
    """A table of pyarrow, from one or from a record batch."""
    pyarrow = sys.modules["pyarrow"]
    return pyarrow.Table.from_batches([value]) if isinstance(value, pyarrow.RecordBatch) else value


def describe(value: Any, library: str, part_rows: int) -> dict[str, Any]:
    """Rows, columns with their types, and the number of parts."""
    if library == "pandas":
        rows, found = (
            len(value),
            [(str(name), str(kind)) for name, kind in zip(value.columns, value.dtypes, strict=True)],
        )
    elif library == "polars":
        rows, found = value.height, [(name, str(kind)) for name, kind in value.schema.items()]
    else:
        rows, found = value.num_rows, [(field.name, str(field.type)) for field in value.schema]
    columns = [{"name": name[:_NAME_SHOWN], "type": kind[:_NAME_SHOWN]} for name, kind in found[:MOST_COLUMNS]]
    facts: dict[str, Any] = {"rows": rows, "columns": columns, "parts": -(-rows // part_rows), "part_rows": part_rows}
    if len(found) > MOST_COLUMNS:
        facts["column_count"] = len(found)
    return facts


def read(path: str, description: dict[str, Any], library: str, kind: str) -> Any:
    """The table, or its part, as `kind` of the library."""
    span = None
    if "part" in description and description["codec"] == "parquet":
        rows = description["part_rows"]
        span = description["part"] * rows, rows
    if library == "polars":
        return _read_polars(path, span, kind)
    parquet = needed("pyarrow.parquet", f"reading a table as {library}.{kind}")
    if library == "pandas":
        pandas = needed("pandas", "reading a table as pandas.DataFrame")
        if span is None:
            return pandas.read_parquet(path, engine="pyarrow")
        return _rows_of(parquet.ParquetFile(path), *span, use_pandas_metadata=True).to_pandas()
    table = parquet.read_table(path) if span is None else _rows_of(parquet.ParquetFile(path), *span)
    if kind == "RecordBatch":
        batches = table.combine_chunks().to_batches()
        return batches[0] if batches else table.schema.empty_table().to_batches()
    return table


def _read_polars(path: str, span: tuple[int, int] | None, kind: str) -> Any:
    polars = needed("polars", f"reading a table as polars.{kind}")
    if span is None and kind == "DataFrame":
        return polars.read_parquet(path)
    found = polars.scan_parquet(path)
    if span is not None:
        found = found.slice(*span)
    return found if kind == "LazyFrame" else found.collect()


def _rows_of(file: Any, start: int, count: int, **options: Any) -> Any:
    """Rows of a Parquet file, read from the row groups that have them."""
    groups, first, place = [], None, 0
    for number in range(file.metadata.num_row_groups):
        rows = file.metadata.row_group(number).num_rows
        if place < start + count and place + rows > start:
            groups.append(number)
            first = place if first is None else first
        place += rows
    return file.read_row_groups(groups, **options).slice(start - (first or 0), count)


def needed(module: str, what: str) -> Any:
    """The module. MissingPackageError names the package that has to be installed."""
    from importlib import import_module

    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ImportError as error:
        if getattr(error, "name", None) not in (package, module):
            raise
        raise MissingPackageError(package, what) from None
