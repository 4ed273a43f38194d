"""References to values that are not JSON: tables, arrays, bytes and files. They stand in JSON in place of the value.

A reference is {"$ork": description}, a map with this one key. The description has
    object       where the value is (`ork.objects.layout.value_key`)
    codec        how its bytes are read: "parquet", "npy", "bytes", "file", "folder", or the name of a project's codec
    type         the Python type it was, such as "pandas.DataFrame"
    media_type   size   sha256
and what is known of its content: `rows`, `columns`, `shape`, `dtype`, `name`, `parts`, `has_preview`. A slice of a value that can
be split has `part`, its number. The worker reads this file: nothing is imported that a plain interpreter has not imported already.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MARK = "$ork"
IN_TEXT = '"$ork"'  # JSON text without this has no reference
FACTS = ("rows", "size", "sha256", "columns", "shape", "dtype", "name", "parts", "media_type", "type")
FILES_IN_IMAGE = "/input"  # where the files are that a plain image gets (`as: file`)
_KINDS = {"parquet": "table", "npy": "array", "bytes": "bytes", "file": "file", "folder": "file"}
CODECS = frozenset(_KINDS)
_IDENTITY = ("codec", "type", "sha256", "size", "name", "media_type", "part")


def description_in(value: Any) -> dict[str, Any] | None:
    """The description if the JSON value is a reference, else None."""
    if type(value) is dict and len(value) == 1 and MARK in value and isinstance(value[MARK], dict):
        return value[MARK]  # type: ignore[no-any-return]
    return None


def references_below(value: Any) -> Iterator[dict[str, Any]]:
    """The descriptions of all references in a JSON value."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            found = description_in(item)
            if found is not None:
                yield found
            else:
                waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)


def has_mark(value: Any) -> bool:
    """Whether a JSON value uses the key that references need, as a reference or otherwise."""
    if type(value) in (str, int, float, bool, type(None)):
        return False
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            if MARK in item:
                return True
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
    return False


def kind_of(description: dict[str, Any]) -> str:
    """The type of the value in `ork.model.types`: "table", "array", "bytes" or "file"; "any" for a project's codec."""
    return _KINDS.get(description.get("codec", ""), "any")


def fact(description: dict[str, Any], name: str | int) -> Any:
    """A fact of the description, for a path that goes on behind a reference: `tasks.clean.output.rows`. KeyError if there is
    none."""
    if name not in FACTS:
        raise KeyError(name)
    return description[str(name)]


def parts_of(description: dict[str, Any]) -> list[dict[str, Any]]:
    """A reference for each slice of the value: row groups of a table, files of a folder. ValueError if it has none."""
    count = description.get("parts")
    if not isinstance(count, int) or "part" in description:
        raise ValueError(f"a value of type {description.get('type')} has no parts")
    kept = {name: value for name, value in description.items() if name not in ("parts", "rows", "has_preview")}
    return [{MARK: {**kept, "part": number}} for number in range(count)]


def without_places(value: Any) -> Any:
    """The JSON value with each reference replaced by what identifies its content: equal for equal data, wherever it is stored."""
    found = description_in(value)
    if found is not None:
        return {MARK: {name: found[name] for name in _IDENTITY if name in found}}
    if isinstance(value, dict):
        return {name: without_places(member) for name, member in value.items()}
    return [without_places(item) for item in value] if isinstance(value, list) else value


def in_words(description: dict[str, Any]) -> str:
    """What a value is, for people: `a pandas.DataFrame of 3 rows`."""
    if description.get("codec") == "parquet":
        rows = "some rows of a" if "part" in description else "a"
        count = f" of {description['rows']:,} rows" if "rows" in description else ""
        return f"{rows} {description['type']}{count}"
    if description.get("codec") == "folder":
        return (
            f"a file of {description['name']}"
            if "part" in description
            else f"a folder of {description['parts']:,} files"
        )
    if "name" in description:
        return f"the file {description['name']}, {bytes_in_words(description['size'])}"
    shape = f" {tuple(description['shape'])}" if "shape" in description else ""
    return f"{description.get('type')}{shape}, {bytes_in_words(description.get('size', 0))}"


def bytes_in_words(size: int) -> str:
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= factor:
            return f"{size / factor:,.1f} {unit}"
    return f"{size} bytes"


def shortened(value: Any) -> Any:
    """The JSON value with each reference replaced by what it is in words."""
    found = description_in(value)
    if found is not None:
        return f"<{in_words(found)}>"
    if isinstance(value, dict):
        return {name: shortened(member) for name, member in value.items()}
    return [shortened(item) for item in value] if isinstance(value, list) else value


def is_json_file(path: str) -> bool:
    """Whether a file that a task leaves as its output is read as JSON; any other is stored as it is."""
    name = path.rpartition("/")[2]
    return name.endswith(".json") or "." not in name.strip(".")
