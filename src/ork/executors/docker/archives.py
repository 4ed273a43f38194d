"""Files in and out of containers, which the engine transfers as tar archives."""

from __future__ import annotations

import base64
import io
import json
import tarfile
from collections.abc import Iterable
from typing import NamedTuple

from ork.errors import EngineError

# Space for the headers and padding of an archive with one file.
HEADROOM = 1 << 16
# Go's file modes, as the engine reports them, of everything that is not a regular file.
_IS_FOLDER, _IS_LINK, _IS_SPECIAL = 1 << 31, 1 << 27, (1 << 26 | 1 << 25 | 1 << 24 | 1 << 21 | 1 << 19)


class Entry(NamedTuple):
    """A file, or a folder where there is no `data`. Paths are relative to the folder the archive is put into."""

    path: str
    data: bytes | None
    mode: int


class PathFacts(NamedTuple):
    """What exists at a path in a container. A symbolic link at its end is not followed."""

    size: int
    kind: str  # "file", "folder", "link" or "special"

    @classmethod
    def from_header(cls, text: str) -> PathFacts:
        try:
            facts = json.loads(base64.b64decode(text))
            return cls(int(facts["size"]), _kind(int(facts["mode"])))
        except (ValueError, KeyError, TypeError):
            raise EngineError("the engine's answer about a path cannot be understood") from None


def archive_of(entries: Iterable[Entry]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, data, mode in entries:
            member = tarfile.TarInfo(path)
            member.mode = mode
            if data is None:
                member.type = tarfile.DIRTYPE
                archive.addfile(member)
            else:
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def only_file(packed: bytes) -> bytes:
    """The content of the only file in the archive. ValueError if it contains anything else."""
    try:
        with tarfile.open(fileobj=io.BytesIO(packed), mode="r:") as archive:
            members = archive.getmembers()
            if len(members) != 1:
                raise ValueError(f"{len(members)} files instead of one")
            if not members[0].isreg():
                raise ValueError("not a plain file")
            content = archive.extractfile(members[0])
            assert content is not None  # it is a plain file
            return content.read()
    except (tarfile.TarError, EOFError) as error:
        raise ValueError(f"no whole archive: {error}") from None


def _kind(mode: int) -> str:
    if mode & _IS_FOLDER:
        return "folder"
    if mode & _IS_LINK:
        return "link"
    return "special" if mode & _IS_SPECIAL else "file"
