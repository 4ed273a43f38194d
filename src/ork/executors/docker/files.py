"""Copies input into containers before the start and output out of them after the end, for any image."""

from __future__ import annotations

from collections.abc import Mapping
from posixpath import basename, dirname

from ork.errors import DocumentError
from ork.executors.docker.archives import Entry, archive_of, only_file
from ork.executors.docker.engine import Engine
from ork.executors.docker.making import WORKER_HOME
from ork.objects.worker_package import worker_files

_FOR_ALL = 0o644
_FOLDER_FOR_ALL = 0o755
_OPEN_FOLDER = 0o1777  # writable by any user
OBJECTS_FOLDER = f"{WORKER_HOME}/objects"
BOOTSTRAP = f"{WORKER_HOME}/lib/ork/worker/bootstrap.py"


class OutputError(Exception):
    """There is no usable output. The message is a sentence."""


async def put_input(engine: Engine, container: str, path: str, data: bytes) -> None:
    """Write a file that any user can read, and create its parent folders."""
    folder, missing = await existing_folder(engine, container, dirname(path))
    entries = [Entry(name, None, _FOLDER_FOR_ALL) for name in chain(missing)]
    await engine.put_archive(
        container, folder, archive_of([*entries, Entry(join(missing, basename(path)), data, _FOR_ALL)])
    )


async def prepare_output(engine: Engine, container: str, path: str) -> None:
    """Create the folder of the output if it is missing, writable by any user."""
    folder, missing = await existing_folder(engine, container, dirname(path))
    entries = [Entry(name, None, _OPEN_FOLDER) for name in chain(missing)]
    if entries:
        await engine.put_archive(container, folder, archive_of(entries))


async def take_output(engine: Engine, container: str, path: str, limit: int) -> bytes:
    """The content of the output file. OutputError if it is not a regular file of at most `limit` bytes."""
    facts = await engine.look_at(container, path)
    if facts is None:
        raise OutputError(f"it left no output: there is no file {path}")
    if facts.kind != "file":
        raise OutputError(f"{path} is a {facts.kind}, not a plain file: it is not read as output")
    if facts.size > limit:
        raise OutputError(f"{path} has {facts.size:,} bytes, more than the {limit:,} allowed")
    packed = await engine.get_archive(container, path, limit)
    if packed is None:
        raise OutputError(f"it left no output: there is no file {path}")
    try:
        return only_file(packed)
    except ValueError as error:
        raise OutputError(f"{path} cannot be read as output: {error}") from None


async def put_worker(engine: Engine, container: str, objects: Mapping[str, bytes]) -> None:
    """Copy the worker and its documents into the container. The folders of documents are writable by any user."""
    folder, missing = await existing_folder(engine, container, WORKER_HOME)
    below = f"{missing}/" if missing else ""
    folders = {folder for key in objects for folder in chain(f"objects/{dirname(key)}")}
    entries = [Entry(missing, None, _FOLDER_FOR_ALL)] if missing else []
    entries += [Entry(below + folder, None, _OPEN_FOLDER) for folder in sorted(folders)]
    entries += [Entry(f"{below}objects/{key}", data, _FOR_ALL) for key, data in objects.items()]
    entries += [Entry(f"{below}lib/ork/{name}", data, _FOR_ALL) for name, data in worker_files().items()]
    await engine.put_archive(container, folder, archive_of(entries))


async def take_object(engine: Engine, container: str, key: str, limit: int) -> bytes | None:
    """A document that the worker in the container has written; None if there is none."""
    try:
        return await take_output(engine, container, f"{OBJECTS_FOLDER}/{key}", limit)
    except OutputError:
        return None


async def existing_folder(engine: Engine, container: str, folder: str) -> tuple[str, str]:
    """The nearest existing parent folder, and the missing part of the path below it."""
    missing = ""
    while folder != "/":
        facts = await engine.look_at(container, folder)
        if facts is not None:
            if facts.kind not in ("folder", "link"):
                raise DocumentError(f"{folder} in the image is a {facts.kind}, not a folder")
            break
        missing = join(basename(folder), missing)
        folder = dirname(folder)
    return folder, missing


def chain(path: str) -> list[str]:
    """The path's folders, outermost first: `a/b` gives `a` and `a/b`."""
    parts = [part for part in path.split("/") if part]
    return ["/".join(parts[: count + 1]) for count in range(len(parts))]


def join(above: str, below: str) -> str:
    return f"{above}/{below}" if above and below else above or below
