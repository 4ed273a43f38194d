"""Every object store, opened the same way. A new store joins both suites (test_objects.py and test_attempt_documents.py)
with one entry in `OBJECT_STORES`."""

from __future__ import annotations

import atexit
import functools
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TypeAlias

from ork.objects.buckets.address import read_address
from ork.objects.buckets.documents import BucketDocuments
from ork.objects.buckets.opening import client_of
from ork.objects.journaled import JournaledObjects
from ork.objects.keyed import KeyedDocuments
from ork.objects.local import LocalObjects
from ork.objects.memory import MemoryObjects
from ork.objects.served import ServedObjects
from tests.buckets import new_bucket
from tests.conformance.http_objects import HttpObjects, serve_objects
from tests.serving import scheduler_token, serving

# Opens the same store again and again, as each process does for itself.
Open: TypeAlias = Callable[[], KeyedDocuments]


@contextmanager
def files(folder: Path, durability: str = "normal") -> Iterator[Open]:
    yield lambda: LocalObjects(str(folder / "objects"), durability)


@contextmanager
def journal(folder: Path, durability: str = "normal") -> Iterator[Open]:
    yield lambda: JournaledObjects(str(folder / "objects"), durability)


@contextmanager
def memory(_folder: Path) -> Iterator[Open]:
    objects = MemoryObjects()
    yield lambda: objects


@contextmanager
def http(_folder: Path) -> Iterator[Open]:
    server, url = serve_objects()
    yield lambda: HttpObjects(url)
    server.shutdown()
    server.server_close()


@contextmanager
def bucket(service: str, *, forks: bool) -> Iterator[Open]:
    """`forks`: with the client of workers, which needs the standard library only; else with obstore."""
    address = read_address(new_bucket(service))
    yield lambda: BucketDocuments(address.url, client_of(address, forks=forks), address.prefix)


@contextmanager
def server(_folder: Path, objects: str = "journal:objects") -> Iterator[Open]:
    """Behind a real `ork serve`, which stays for the next test and is emptied for it."""
    url, token, folder = _served(objects)
    store = ServedObjects(url, token)
    for key in store.list(""):
        if "/" in key:
            store.delete(key.partition("/")[0])
        else:
            (folder / "objects" / key).unlink()
    yield lambda: ServedObjects(url, token)


@functools.cache
def _served(objects: str) -> tuple[str, str, Path]:
    """The URL of a server with such objects, the token of a scheduler, and the server's folder."""
    stack = ExitStack()
    atexit.register(stack.close)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ork-served-")))
    (folder / "ork.yaml").write_text(f"objects: {objects}\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ORK_")}
    served = stack.enter_context(serving(folder, environment))
    return served.url, scheduler_token(folder, environment), folder


# Each is given an empty folder, and closes what it started when the test is over.
OBJECT_STORES: dict[str, Callable[[Path], AbstractContextManager[Open]]] = {
    "files": files,
    "files, full": lambda folder: files(folder, "full"),
    "journal": journal,
    "journal, full": lambda folder: journal(folder, "full"),
    "memory": memory,
    "http": http,
    "gcs": lambda _folder: bucket("gs", forks=True),
    "s3": lambda _folder: bucket("s3", forks=True),
    "s3 by obstore": lambda _folder: bucket("s3", forks=False),
    "minio": lambda _folder: bucket("minio", forks=True),
    "minio by obstore": lambda _folder: bucket("minio", forks=False),
    "azure": lambda _folder: bucket("az", forks=True),
    "azure by obstore": lambda _folder: bucket("az", forks=False),
    "server": server,
    "server, files": lambda folder: server(folder, "file:objects"),
}
CLOUD = frozenset(name for name in OBJECT_STORES if name.startswith(("gcs", "s3", "minio", "azure")))
