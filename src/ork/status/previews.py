"""Previews of outputs: what kind of value it is, how large, and its first rows or keys. Reads only the beginning of a large one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, NamedTuple

from ork.errors import NotFoundError
from ork.model.ids import TaskKey
from ork.model.task import InlineOutput, StoredOutput, Task
from ork.model.value_reference import description_in
from ork.objects.attempt_documents import AttemptDocuments
from ork.objects.references import preview_reference
from ork.status.run_view import RunView, is_group
from ork.status.secret_masking import hidden_value, mask_value

PREVIEW_BYTES = 256 * 1024
READ_BYTES = 256 * 1024
"""How much of a large output is read."""
TEXT_SHOWN = 20_000
VALUE_SHOWN = 1000
MOST_COLUMNS = 200
_SPACE = " \t\r\n"
_decoder = json.JSONDecoder()


class OutputKind(StrEnum):
    TABLE = "table"  # a list of records
    NUMBERS = "numbers"  # a list of numbers
    TEXT = "text"
    OBJECT = "object"
    STORED = "stored"  # a value that is not JSON: a table, an array, bytes, a file or a folder
    OTHER = "other"  # another list, a single number, a truth value or null


class _Beginning(NamedTuple):
    """The value, or what was read of it: the first items of a list, the first members of an object, the start of a text.
    The value of the member `cut` was not read completely, and is None."""

    value: Any
    is_complete: bool
    cut: str | None = None


def preview_output(objects: AttemptDocuments, view: RunView, task: Task, most: int) -> dict[str, Any]:
    """The preview of a task's output; of a fan-out, of the list of its instances' outputs that `view` has."""
    if is_group(task):
        found, size = _of_instances(objects, view, task, most), None
    else:
        data, size = _read(objects, task)
        found = _beginning(data, len(data) == size, most)
    shape = _shape(found._replace(value=mask_value(hidden_value(view.hidden, found.value))), size, most)
    reference = description_in(found.value)
    if reference is not None:
        shape |= {"stored": reference, "preview": preview_of_value(objects, view, reference), "size": reference["size"]}
    return shape


def preview_of_value(objects: AttemptDocuments, view: RunView, description: dict[str, Any]) -> dict[str, Any] | None:
    """The preview that the worker wrote with a value (`ork.worker.data.previews`), masked; None if there is none. It is made by
    the task's process: whoever shows it takes nothing in it for granted."""
    if not description.get("has_preview"):
        return None
    data = objects.read_value(preview_reference(str(description["object"])), 0, PREVIEW_BYTES)
    try:
        found = json.loads(data)
    except ValueError:
        return None
    return mask_value(hidden_value(view.hidden, found)) if isinstance(found, dict) else None


def described_by(preview: str) -> dict[str, Any]:
    """As much of the description as `preview_of_value` needs, from the reference of a preview."""
    return {"object": preview.removesuffix("-preview"), "has_preview": True}


def _read(objects: AttemptDocuments, task: Task, most_bytes: int = READ_BYTES) -> tuple[bytes, int]:
    """The beginning of the output, and the size of the whole."""
    match task.output:
        case InlineOutput(text):
            data = text.encode("utf-8", "surrogatepass")
            return data, len(data)
        case StoredOutput(key, size):
            data = objects.read_value(key, 0, most_bytes)
            if not data and size:
                raise NotFoundError(f"the output of `{task.key}` is no longer in the object store")
            return data, size
        case None:
            return b"null", 4


def _of_instances(objects: AttemptDocuments, view: RunView, task: Task, most: int) -> _Beginning:
    """The outputs of the first instances, as far as they are known and small."""
    items: list[Any] = []
    budget, total = READ_BYTES, task.instances or 0
    for index in range(min(total, most)):
        instance = view.tasks.get(TaskKey(task.key.name, index))
        if instance is None or budget <= 0:
            break
        data, size = _read(objects, instance, budget)
        budget -= len(data)
        if len(data) < size:
            break
        items.append(json.loads(data))
    return _Beginning(items, len(items) == total)


def _beginning(data: bytes, is_whole: bool, most: int) -> _Beginning:
    if is_whole and len(data) <= READ_BYTES:
        return _Beginning(json.loads(data), True)
    text = data.decode("utf-8", "ignore").lstrip(_SPACE)
    if text.startswith("["):
        items = [item for _, item in zip(range(most), _items(text), strict=False)]
        return _Beginning(items, False)
    if text.startswith("{"):
        members, cut = _members(text, most)
        return _Beginning(members, False, cut)
    return _Beginning(_text(text) if text.startswith('"') else None, False)


def _items(text: str) -> Iterator[Any]:
    """The items of a list whose end is missing. An item counts only if something follows it."""
    place = 1
    while True:
        try:
            item, place = _decoder.raw_decode(text, _skip(text, place))
        except ValueError:
            return
        place = _skip(text, place)
        if text[place : place + 1] != ",":
            return
        yield item
        place += 1


def _members(text: str, most: int) -> tuple[dict[str, Any], str | None]:
    """The members of an object whose end is missing, and the name of the one whose value was cut."""
    found: dict[str, Any] = {}
    place = 1
    while len(found) < most:
        name = None
        try:
            name, place = _decoder.raw_decode(text, _skip(text, place))
            found[name] = None
            value, place = _decoder.raw_decode(text, _skip(text, _skip(text, place) + 1))
        except ValueError:
            return found, name
        place = _skip(text, place)
        if text[place : place + 1] != ",":
            return found, name
        found[name] = value
        place += 1
    return found, None


def _text(text: str) -> str | None:
    """The beginning of a string. An escape sequence may be cut in its middle, so a few characters are given up."""
    for cut in range(13):
        try:
            return str(json.loads(f'{text[: len(text) - cut]}"'))
        except ValueError:
            continue
    return None


def _skip(text: str, place: int) -> int:
    while place < len(text) and text[place] in _SPACE:
        place += 1
    return place


def _shape(found: _Beginning, size: int | None, most: int) -> dict[str, Any]:
    value = found.value
    is_list = isinstance(value, list)
    kind = _kind(value)
    known = len(value) if found.is_complete and isinstance(value, list | dict | str) else None
    return {
        "kind": kind.value,
        "size": size,
        "length": known,
        "is_complete": found.is_complete and (not isinstance(value, list | dict | str) or _fits(value, most)),
        "items": value[:most] if is_list else None,
        "columns": _columns(value[:most]) if kind is OutputKind.TABLE else None,
        "keys": _keys(value, most, found.cut) if kind is OutputKind.OBJECT else None,
        "text": value[:TEXT_SHOWN] if kind is OutputKind.TEXT else None,
        "value": value if kind is OutputKind.OTHER and not is_list else None,
        "stored": None,
        "preview": None,
    }


def _fits(value: list[Any] | dict[str, Any] | str, most: int) -> bool:
    return len(value) <= (TEXT_SHOWN if isinstance(value, str) else most)


def _kind(value: Any) -> OutputKind:
    if isinstance(value, str):
        return OutputKind.TEXT
    if description_in(value) is not None:
        return OutputKind.STORED
    if isinstance(value, dict):
        return OutputKind.OBJECT
    if isinstance(value, list) and value:
        if all(isinstance(item, dict) for item in value):
            return OutputKind.TABLE
        if all(isinstance(item, int | float) and not isinstance(item, bool) for item in value):
            return OutputKind.NUMBERS
    return OutputKind.OTHER


def _columns(rows: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))[:MOST_COLUMNS]


def _keys(value: dict[str, Any], most: int, cut: str | None) -> list[dict[str, Any]]:
    """The first keys, with the values that are short."""
    rows = []
    for name, member in list(value.items())[:most]:
        is_shown = name != cut and len(json.dumps(member)) <= VALUE_SHOWN
        rows.append({"name": name, "value": member if is_shown else None, "is_shown": is_shown})
    return rows
