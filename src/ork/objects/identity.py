"""The identity of an object store: one document in the store itself, written once by the first process that opens it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ork.errors import DocumentError, ObjectsError
from ork.model.record import Record
from ork.objects import json_text
from ork.objects.layout import IDENTITY_KEY as KEY

if TYPE_CHECKING:
    from ork.objects.attempt_documents import AttemptDocuments

_LIMIT = 4096


class ObjectsIdentity(Record):
    """`kind` is how the store keeps its documents, which never changes. `host` created it."""

    id: str
    kind: str
    host: str


def read_identity(objects: AttemptDocuments) -> ObjectsIdentity | None:
    """The stored identity, or None."""
    data = objects.read_identity()
    if data is None:
        return None
    try:
        fields = json_text.strict_json(data, max_size=_LIMIT)
        return ObjectsIdentity(fields["id"], fields["kind"], fields["host"])
    except (DocumentError, KeyError, TypeError) as error:
        raise ObjectsError(
            f"{KEY} in the object store {objects.url} cannot be read: {error}",
            hint="bring the file back from a backup; it says which object store this is",
        ) from error


def make_identity(objects: AttemptDocuments, identity: ObjectsIdentity) -> ObjectsIdentity:
    """Write an identity if there is none. Returns the stored one: of several callers, one wins."""
    fields = {"id": identity.id, "kind": identity.kind, "host": identity.host}
    if objects.put_identity(json_text.dumps(fields).encode()):
        return identity
    found = read_identity(objects)
    if found is None:
        raise ObjectsError(
            f"{KEY} in the object store {objects.url} was deleted just now", hint="leave the folder alone and try again"
        )
    return found
