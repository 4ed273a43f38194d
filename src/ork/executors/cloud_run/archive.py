"""The worker as one file, for images that have python3 and not Ork. Its name in the object store is the hash of its content."""

from __future__ import annotations

import io
import zipfile
from functools import cache

from ork.model.digest import sha256
from ork.objects.attempt_documents import AttemptDocuments
from ork.objects.worker_package import worker_files

_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the same files make the same archive, whenever they are packed


@cache
def worker_archive() -> tuple[str, bytes]:
    """Hash and content."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in sorted(worker_files().items()):
            archive.writestr(zipfile.ZipInfo(f"ork/{path}", _LONG_AGO), data, zipfile.ZIP_DEFLATED)
    data = made.getvalue()
    return sha256(data).hexdigest(), data


def upload_worker(objects: AttemptDocuments) -> str:
    """The hash of the archive, which is in the object store now, below `workers/`."""
    digest, data = worker_archive()
    key = f"workers/{digest}.zip"
    if not objects.has_value(key):
        objects.put_shared([(key, data)])
    return digest
