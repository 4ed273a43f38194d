"""Opens the object store that a URL names. A new kind of store is a new scheme, in `open_objects` and `open_values`.

Whether a folder holds files or journals is a property of the folder, so that all processes agree on it.
"""

from __future__ import annotations

import os

from ork.errors import ObjectsError
from ork.objects.layout import IDENTITY_KEY, OWN, RUNS, attempt_of
from ork.objects.local import LocalObjects
from ork.system import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ork.objects.attempt_documents import AttemptDocuments
    from ork.objects.keyed import KeyedDocuments

FILE, JOURNAL = "file:", "journal:"
SERVER = ("https:", "http:")
_MARK = OWN + "journals"


def root_of_url(url: str) -> str:
    """The folder a `file:` or `journal:` URL names, taken as it is written: no escapes, so any path can be said."""
    for scheme in (FILE, JOURNAL):
        if url.startswith(scheme):
            path = url[len(scheme) :]
            return path[2:] if path.startswith("///") else path
    raise ObjectsError(
        f"not a local object store: {url[:200]!r}", hint="use file:/path/to/folder, gs://, s3://, az:// or https://"
    )


def of_spec_url(url: str) -> tuple[str, str]:
    """The object store and the attempt that a URL like file:/data/objects/runs/7f3k…/load.0.1.spec.json names."""
    place, _, query = url.partition("?")
    if f"/{RUNS}/" in query:  # a store's URL with a key behind it
        place, query = url, ""
    store, _, rest = place.rpartition(f"/{RUNS}/")
    attempt = attempt_of(f"{RUNS}/{rest}")
    if attempt is None:
        raise ObjectsError(f"not the URL of a spec: {url[:200]!r}")
    return store + (f"?{query}" if query else ""), attempt


def open_objects(
    url: str,
    durability: str = "normal",
    within: str = "",
    *,
    creates: bool = True,
    forks: bool = True,
    token: str | None = None,
) -> KeyedDocuments:
    """For schedulers, workers and readers. A relative path is below `within`. `journal:` makes a new folder one with journals
    if its disk supports that; `file:`, and any URL without `creates`, leaves the folder as it is. `forks`: this process, or
    one that is forked from it, may use the store. `token` is a scheduler's, for a store behind a server; workers sign in
    instead."""
    if url.startswith(SERVER):
        from ork.objects.served import ServedObjects

        return ServedObjects(url, token, is_patient=creates)
    if "://" in url and (bucket := _open_bucket(url, forks=forks)) is not None:
        return bucket
    root = os.path.join(within, root_of_url(url))
    may_create = creates and url.startswith(JOURNAL)
    if os.path.exists(f"{root}/{_MARK}") or (may_create and _may_become_journaled(root)):
        from ork.objects.journaled import JournaledObjects

        return JournaledObjects(root, durability)
    return LocalObjects(root, durability)


def open_values(url: str, durability: str, access: str = "") -> AttemptDocuments:
    """For the process of a task, which reads values and writes its output and touches no other document. `access` comes from
    `sign_in`."""
    if url.startswith(SERVER):
        from ork.objects.served import ServedObjects

        return ServedObjects(url, access=access)
    if "://" in url and (bucket := _open_bucket(url, forks=True)) is not None:
        return bucket
    return LocalObjects(root_of_url(url), durability)


def _open_bucket(url: str, *, forks: bool) -> KeyedDocuments | None:
    """The bucket that the URL names; None for other URLs. Sends no request."""
    from ork.objects.buckets.address import is_bucket

    if not is_bucket(url):
        return None
    from ork.objects.buckets.opening import open_bucket

    return open_bucket(url, forks=forks)


def undo_opening(objects: AttemptDocuments) -> None:
    """Undoes what `open_objects` did to a folder that another process made a folder of files at the same moment."""
    if objects.kind != "journal":
        return
    try:
        os.unlink(f"{root_of_url(objects.url)}/{_MARK}")
    except FileNotFoundError:
        return


def is_on_network_disk(objects: AttemptDocuments) -> bool:
    """Whether this is a folder with journals on a disk on which appending may not be atomic, such as NFS."""
    return objects.kind == "journal" and not system.appends_are_atomic(root_of_url(objects.url))


def _may_become_journaled(root: str) -> bool:
    """A folder that is in use keeps its kind: its users would not see each other's documents otherwise."""
    return not os.path.exists(f"{root}/{IDENTITY_KEY}") and _mark(root)


def _mark(root: str) -> bool:
    """False if this folder must keep to files, or cannot be written."""
    try:
        os.makedirs(root, mode=0o700, exist_ok=True)
        if not system.appends_are_atomic(root):
            return False
        os.close(os.open(f"{root}/{_MARK}", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError:
        return False
    return True
