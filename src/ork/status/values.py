"""Values that are not JSON in the outputs of tasks: finds them, and reads their bytes in parts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ork.errors import NotFoundError, UsageError
from ork.model.task import InlineOutput, Task
from ork.model.value_reference import IN_TEXT, description_in
from ork.objects.attempt_documents import AttemptDocuments
from ork.objects.references import file_reference

PART = 4 << 20
_STEP = re.compile(r"\.?([^.\[\]\s]+)|\[(\d{1,9})\]")


def stored_value(task: Task) -> dict[str, Any] | None:
    """The description if the whole output is a value that is not JSON; else None."""
    if isinstance(task.output, InlineOutput) and IN_TEXT in task.output.json:
        return description_in(json.loads(task.output.json))
    return None


def value_at(value: Any, path: str) -> Any:
    """The part of an output at a path such as `frames[0]` or `report.table`."""
    place = 0
    while place < len(path):
        found = _STEP.match(path, place)
        if found is None:
            raise UsageError(f"not a path: {path[:100]!r}", hint="paths look like `rows[0].name`")
        step: str | int = found[1] if found[2] is None else int(found[2])
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            raise NotFoundError(f"there is no `{step}` in the output, at `{path[: found.end()]}`") from None
        place = found.end()
    return value


def value_bytes(objects: AttemptDocuments, reference: str, start: int, end: int) -> Iterator[bytes]:
    """The bytes of a value's object, in parts."""
    place = start
    while place < end:
        data = objects.read_value(reference, place, min(PART, end - place))
        if not data:
            raise NotFoundError(f"the value {reference} is no longer in the object store")
        place += len(data)
        yield data


def files_of(objects: AttemptDocuments, description: dict[str, Any]) -> Iterator[tuple[str, str, int]]:
    """Name, reference and size of each file of a folder. The list was written by a task's process: a name that leads out of the
    folder is an error."""
    data = objects.read_value(str(description["object"]))
    if not data:
        raise NotFoundError(f"the value {description['object']} is no longer in the object store")
    for number, entry in enumerate(json.loads(data)["files"]):
        name = str(entry["name"])
        if "\0" in name or any(part in ("", ".", "..") for part in name.split("/")):
            raise UsageError(f"the folder has a file outside of it: {name[:100]!r}")
        yield name, file_reference(str(description["object"]), number), int(entry["size"])
