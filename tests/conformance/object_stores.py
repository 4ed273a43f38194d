"""Every object store, opened the same way. A new store joins both suites (test_objects.py and test_attempt_documents.py)
with one entry in `OBJECT_STORES`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeAlias

from ork.objects.journaled import JournaledObjects
from ork.objects.keyed import KeyedDocuments
from ork.objects.local import LocalObjects
from ork.objects.memory import MemoryObjects
from tests.conformance.http_objects import HttpObjects, serve_objects

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


# Each is given an empty folder, and closes what it started when the test is over.
OBJECT_STORES: dict[str, Callable[[Path], AbstractContextManager[Open]]] = {
    "files": files,
    "files, full": lambda folder: files(folder, "full"),
    "journal": journal,
    "journal, full": lambda folder: journal(folder, "full"),
    "memory": memory,
    "http": http,
}
