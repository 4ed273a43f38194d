"""Values that are not JSON, in and out of containers: streamed as archives, so that their size does not matter."""

from __future__ import annotations

import asyncio
import os
import shutil
import tarfile
from collections.abc import AsyncIterator, Iterable, Mapping
from posixpath import basename, dirname
from tempfile import mkdtemp
from typing import Any, NamedTuple

from ork.errors import DocumentError
from ork.executors.docker.container_documents import ContainerDocuments
from ork.executors.docker.engine import Engine
from ork.executors.docker.files import OBJECTS_FOLDER, OutputError, chain, existing_folder, join
from ork.model.value_reference import FILES_IN_IMAGE

_FOR_ALL, _FOLDER_FOR_ALL, _OPEN_FOLDER = 0o644, 0o755, 0o1777
_CHUNK = 4 << 20
_BLOCK = 512


class FileToBring(NamedTuple):
    """A file for a container: its path there, its size, and where its bytes are."""

    path: str
    size: int
    source: str | bytes


async def bring_worker_values(
    engine: Engine, container: str, documents: ContainerDocuments, spec: dict[str, Any], outputs: Iterable[bytes]
) -> None:
    """Copy the values that the worker in the container may read to its folder of objects."""
    needed: Mapping[str, int] = await documents.calls.call(documents.needed_values, spec, list(outputs))
    files = [FileToBring(reference, size, reference) for reference, size in needed.items()]
    if files:
        await _put(engine, container, OBJECTS_FOLDER, files, documents, mode=_OPEN_FOLDER)


async def bring_input_files(engine: Engine, container: str, documents: ContainerDocuments) -> None:
    """Copy the files that an image without a worker gets to /input."""
    files = await documents.calls.call(documents.input_files)
    if not files:
        return
    folder, missing = await existing_folder(engine, container, FILES_IN_IMAGE)
    found = [FileToBring(join(missing, path), size, source) for path, size, source in files]
    await _put(engine, container, folder, found, documents, mode=_FOLDER_FOR_ALL)


async def _put(
    engine: Engine,
    container: str,
    folder: str,
    files: list[FileToBring],
    documents: ContainerDocuments,
    *,
    mode: int,
) -> None:
    await engine.put_large_archive(
        container, folder, _archive(files, documents, mode), sum(each.size for each in files)
    )


async def _archive(files: list[FileToBring], documents: ContainerDocuments, mode: int) -> AsyncIterator[bytes]:
    for folder in sorted({name for each in files for name in chain(dirname(each.path))}):
        member = tarfile.TarInfo(folder)
        member.type, member.mode = tarfile.DIRTYPE, mode
        yield member.tobuf(tarfile.PAX_FORMAT)
    for path, size, source in files:
        member = tarfile.TarInfo(path)
        member.size, member.mode = size, _FOR_ALL
        yield member.tobuf(tarfile.PAX_FORMAT)
        place = 0
        while place < size:
            most = min(_CHUNK, size - place)
            if isinstance(source, bytes):
                data = source[place : place + most]
            else:
                data = await asyncio.to_thread(documents.read_value, source, place, most)
            if not data:
                raise DocumentError(f"the value {source!r} is no longer in the object store")
            place += len(data)
            yield data
        yield b"\0" * (-size % _BLOCK)
    yield b"\0" * (2 * _BLOCK)


async def take_worker_values(
    engine: Engine, container: str, documents: ContainerDocuments, status: bytes, output: bytes | None
) -> None:
    """Store the values that a worker in the container has written. DocumentError if one is missing, or another one."""
    for reference, digest in documents.written_values(status, output):
        folder = mkdtemp(prefix="ork-value-")
        try:
            path = await _taken(engine, container, f"{OBJECTS_FOLDER}/{reference}", folder)
            await asyncio.to_thread(documents.take_value, reference, digest, path)
        except OutputError as error:
            raise DocumentError(str(error)) from None
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, True)


async def take_output_file(engine: Engine, container: str, documents: ContainerDocuments, spec: dict[str, Any]) -> Any:
    """Store the file or folder that a container leaves as its output. Returns its place for the status."""
    folder = mkdtemp(prefix="ork-output-")
    try:
        path = await _taken(engine, container, spec["from_file"], folder)
        return await asyncio.to_thread(documents.store_file, path, spec)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, True)


async def _taken(engine: Engine, container: str, path: str, folder: str) -> str:
    """A copy of a file or folder of the container in this folder. OutputError if there is none."""
    facts = await engine.look_at(container, path)
    if facts is None:
        raise OutputError(f"it left no output: there is no file {path}")
    if facts.kind not in ("file", "folder"):
        raise OutputError(f"{path} is a {facts.kind}, neither a plain file nor a folder: it is not read as output")
    packed = f"{folder}/packed.tar"
    with open(packed, "wb") as file:
        async for part in engine.read_archive(container, path):
            await asyncio.to_thread(file.write, part)
    await asyncio.to_thread(_unpack, packed, f"{folder}/unpacked", path)
    return f"{folder}/unpacked/{basename(path)}"


def _unpack(packed: str, folder: str, path: str) -> None:
    """Regular files and folders only; names that lead out of the folder are refused."""
    os.makedirs(folder)
    try:
        with tarfile.open(packed, "r:") as archive:
            members = [each for each in archive if each.isreg() or each.isdir()]
            archive.extractall(folder, members, filter="data")
    except (tarfile.TarError, EOFError, OSError) as error:
        raise OutputError(f"{path} cannot be read as output: {error}") from None
    finally:
        os.unlink(packed)
