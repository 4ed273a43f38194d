"""The file or folder that a program leaves as its output (`output: {from_file: …}`)."""

from __future__ import annotations

import os

from ork.errors import DocumentError, ObjectsError
from ork.model.value_reference import is_json_file
from ork.worker.call.environment import OUTPUTS
from ork.worker.call.results import program_output, result_text
from ork.worker.data.encode import ValueWriter
from ork.worker.data.errors import NotStoredError, ResultError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ork.objects.attempt_documents import AttemptDocuments
    from ork.worker.supervise.task_user import Exchange


class LeftFileError(Exception):
    """Why it cannot be the output, as a sentence. `cause` is what went wrong with a file that is there; `may_be_repeated`: only the
    object store could not be used."""

    def __init__(self, words: str, cause: str | None = None, *, may_be_repeated: bool = False) -> None:
        super().__init__(words)
        self.cause = cause or words
        self.may_be_repeated = may_be_repeated


def store_left_file(
    objects: AttemptDocuments, spec: dict[str, Any], path: str, exchange: Exchange | None = None
) -> str:
    """The output as JSON text: the content of a JSON file, or a reference to the file, which is now stored."""
    name = spec["from_file"]
    if not os.path.lexists(path):
        raise LeftFileError(f"it left no output: there is no file {name} in $ORK_OUTPUT_DIR")
    if exchange is not None:
        return _of_another_user(objects, spec, f"{OUTPUTS}/{name}", exchange)
    try:
        if is_json_file(name) and not os.path.isdir(path):
            return _json(path, spec["output_limit"])
        from ork.sdk.files import File

        writer = ValueWriter(objects, spec["attempt"])
        text = result_text(File(path, name=name.rpartition("/")[2]), spec["output_limit"], writer)
    except (ResultError, DocumentError, ObjectsError, OSError) as error:
        may_be_repeated = isinstance(error, NotStoredError)
        words = f"{name} cannot be used as output: {error}"
        raise LeftFileError(words, str(error), may_be_repeated=may_be_repeated) from None
    return text or "null"


def _of_another_user(objects: AttemptDocuments, spec: dict[str, Any], inner: str, exchange: Exchange) -> str:
    """The same for a file that another user may change: it is opened once, without following links."""
    from ork.sdk.files import File

    name = spec["from_file"]
    try:
        with exchange.opened(inner) as file:
            if is_json_file(name):
                return program_output(file.read(spec["output_limit"] + 1), spec["output_limit"])
            writer = ValueWriter(objects, spec["attempt"])
            found = File(f"/proc/self/fd/{file.fileno()}", name=name.rpartition("/")[2])
            return result_text(found, spec["output_limit"], writer) or "null"
    except (ResultError, DocumentError, ObjectsError, OSError) as error:
        raise LeftFileError(f"{name} cannot be used as output: {error}") from None


def _json(path: str, limit: int) -> str:
    with open(path, "rb") as file:
        return program_output(file.read(limit + 1), limit)
