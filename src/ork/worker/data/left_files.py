"""The file or folder that a program leaves as its output (`output: {from_file: …}`)."""

from __future__ import annotations

import os

from ork.errors import DocumentError, ObjectsError
from ork.worker.call.results import ResultError, program_output, result_text
from ork.worker.data.encode import ValueWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ork.objects.attempt_documents import AttemptDocuments
    from ork.worker.supervise.task_user import Exchange


class LeftFileError(Exception):
    """Why it cannot be the output, as a sentence."""


def is_json_file(path: str) -> bool:
    """Whether a file is read as JSON; any other is stored as it is."""
    name = path.rpartition("/")[2]
    return name.endswith(".json") or "." not in name.strip(".")


def store_left_file(objects: AttemptDocuments, spec: dict[str, Any], path: str, exchange: Exchange | None = None) -> str:
    """The output as JSON text: the content of a JSON file, or a reference to the file, which is now stored."""
    name = spec["from_file"]
    if not os.path.exists(path):
        raise LeftFileError(f"it left no output: there is no file {name} in $ORK_OUTPUT_DIR")
    if exchange is not None:
        exchange.take_back(path)
    try:
        if is_json_file(name) and not os.path.isdir(path):
            return _json(path, spec["output_limit"])
        from ork.sdk.files import File

        writer = ValueWriter(objects, spec["attempt"])
        text = result_text(File(path, name=name.rpartition("/")[2]), spec["output_limit"], writer)
    except (ResultError, DocumentError, ObjectsError, OSError) as error:
        raise LeftFileError(f"{name} cannot be used as output: {error}") from None
    return text or "null"


def _json(path: str, limit: int) -> str:
    with open(path, "rb") as file:
        return program_output(file.read(limit + 1), limit)
