"""Values that are not JSON of an attempt that runs where the object store is not: in a container, or as another user.

What its input refers to is copied there before it starts; what its output refers to is copied back before its last status is stored.
"""

from __future__ import annotations

from ork.errors import DocumentError
from ork.model.value_reference import IN_TEXT, references_below
from ork.objects.json_text import stored_json
from ork.objects.references import attempt_of_value, file_reference, preview_reference, values_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ork.objects.attempt_documents import AttemptDocuments

_CHUNK = 4 << 20
_LIST_LIMIT = 256 << 20


def needed_values(documents: AttemptDocuments, spec: dict[str, Any], outputs: Iterable[bytes]) -> dict[str, int]:
    """The objects that the attempt may read, with their sizes. `outputs` are the JSON values that its spec points at."""
    found: dict[str, int] = {}
    texts = [data for data in outputs if IN_TEXT.encode() in data]
    described = [each for data in texts for each in references_below(stored_json(data, max_size=len(data)))]
    for description in [*values_in(spec), *described]:
        reference = description["object"]
        if description["codec"] != "folder":
            found[reference] = int(description["size"])
            continue
        listed = documents.read_value(reference)
        found[reference] = len(listed)
        for number, entry in enumerate(stored_json(listed, max_size=_LIST_LIMIT)["files"]):
            if description.get("part", number) == number:
                found[file_reference(reference, number)] = int(entry["size"])
    return found


def written_values(attempt: str, output: dict[str, Any] | None, stored: bytes | None) -> list[tuple[str, str | None]]:
    """The objects that an attempt has written for its output, and their hashes if its status has them. DocumentError if the
    output refers to a value of another attempt. `stored` is its JSON if that is an object of its own."""
    text = stored if stored is not None else str((output or {}).get("inline", "")).encode()
    if IN_TEXT.encode() not in text:
        return []
    found: list[tuple[str, str | None]] = []
    for description in references_below(stored_json(text, max_size=len(text))):
        reference = str(description.get("object"))
        if attempt_of_value(reference) != attempt:
            raise DocumentError(f"its output refers to {reference[:200]!r}, which it has not written")
        is_folder = description.get("codec") == "folder"
        found.append((reference, str(description.get("sha256"))))
        if is_folder:
            found += [(file_reference(reference, number), None) for number in range(int(description["parts"]))]
        if description.get("has_preview"):
            found.append((preview_reference(reference), None))
    return found


def copy_value(source: AttemptDocuments, reference: str, size: int, path: str) -> None:
    """Write a value to a new file. DocumentError if it is not in the store any more."""
    with open(path, "xb") as file:
        place = 0
        while place < size:
            data = source.read_value(reference, place, min(_CHUNK, size - place))
            if not data:
                raise DocumentError(f"the value {reference} is no longer in the object store")
            file.write(data)
            place += len(data)


class TakenValue:
    """Receives a value in pieces for the store. `finish` is a DocumentError if it is not what the status says."""

    def __init__(self, documents: AttemptDocuments, attempt: str, reference: str, digest: str | None) -> None:
        from ork.objects.layout import value_name

        self._sink = documents.open_value(attempt, value_name(reference) or "")
        self._reference, self._digest = reference, digest

    def write(self, data: Any) -> None:
        self._sink.write(data)

    def finish(self) -> None:
        _, digest = self._sink.finish()
        if self._digest not in (None, digest):
            raise DocumentError(f"the value {self._reference} is not the one that the task reported")

    def abandon(self) -> None:
        self._sink.abandon()
