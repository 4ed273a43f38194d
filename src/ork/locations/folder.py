"""A folder of this machine as a location."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from typing import Any

from ork.locations.document import MAX_BYTES, FoundWorkflow
from ork.locations.find import TooManyFilesError, files_below
from ork.locations.source import PARSE_SECONDS, TAIL_BYTES, ScanError, SourceReading
from ork.model.workflow import Version
from ork.source_code.read import CodeReader

_READ_WHOLE = 1 << 20
_CHUNK = 1 << 16


class FolderSource:
    """`project` is its ork.yaml, `environ` the environment of its parser, `user` the user that runs it, if not the
    current one. Another user has no access to the cache."""

    def __init__(
        self,
        path: str,
        *,
        project: str | None = None,
        cache_dir: str | None = None,
        environ: Mapping[str, str],
        user: str | None = None,
    ) -> None:
        self._path = path
        self._project = project
        self._cache_dir = cache_dir if user is None else None
        self._as = {} if user is None else _credentials(user)
        self._code = CodeReader()
        self._environ = {name: value for name, value in environ.items() if not name.startswith("ORK_")}

    async def digest(self) -> str:
        return await asyncio.to_thread(folder_digest, self._path)

    async def parse(self, digest: str) -> SourceReading:  # noqa: ARG002 (a folder has only its current content)
        self._code = CodeReader()
        words = [] if self._project is None else ["--project", self._project]
        words += [] if self._cache_dir is None else ["--cache", self._cache_dir]
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "ork.locations.parse", self._path, *words,
            stdin=asyncio.subprocess.DEVNULL, stdout=PIPE, stderr=PIPE, env=self._environ, start_new_session=True,
            **self._as,
        )  # fmt: skip
        try:
            async with asyncio.timeout(PARSE_SECONDS):
                return await _read_output(child)
        except TimeoutError:
            message = f"reading {self._path} took more than {PARSE_SECONDS:g} seconds"
            raise ScanError(message, is_lasting=True) from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            await child.wait()

    def version(self, found: FoundWorkflow, digest: str) -> Version:  # noqa: ARG002 (its files are read when tasks run)
        return self._code.version(found.workflow, found.root, found.file)


def _credentials(user: str) -> dict[str, Any]:
    """Arguments for a child process; empty for the current user. The user is known to exist."""
    import pwd

    known = pwd.getpwuid(int(user)) if user.isdecimal() else pwd.getpwnam(user)
    if known.pw_uid == os.getuid():
        return {}
    groups = os.getgrouplist(known.pw_name, known.pw_gid)
    return {"user": known.pw_uid, "group": known.pw_gid, "extra_groups": groups, "cwd": "/"}


def folder_digest(path: str) -> str:
    """A hash of the names and contents of its files; of large files, of size and modification time."""
    whole = hashlib.sha256()
    try:
        names = sorted(files_below(path))
    except TooManyFilesError as error:
        raise ScanError(str(error), code="ORK704") from None
    if not names and not os.path.isdir(path):
        raise ScanError(f"there is no folder {path}", code="ORK704")
    for name in names:
        whole.update(os.fsencode(name) + b"\0" + _file_digest(os.path.join(path, name)))
    return f"sha256:{whole.hexdigest()}"


def _file_digest(path: str) -> bytes:
    try:
        facts = os.stat(path)
        if facts.st_size > _READ_WHOLE or not os.path.isfile(path):
            return b"%d %d" % (facts.st_size, facts.st_mtime_ns)
        with open(path, "rb") as file:
            return hashlib.sha256(file.read(_READ_WHOLE)).digest()
    except OSError:
        return b"unreadable"


async def _read_output(child: Process) -> SourceReading:
    assert child.stdout is not None
    assert child.stderr is not None
    document, stderr = await asyncio.gather(_all(child.stdout), _end(child.stderr))
    code = await child.wait()
    if not document:
        raise ScanError(f"ork-parse ended with exit code {code} and printed nothing", output=stderr)
    return SourceReading(document, stderr)


async def _all(stream: asyncio.StreamReader) -> bytes:
    data = bytearray()
    while part := await stream.read(_CHUNK):
        data += part
        if len(data) > MAX_BYTES:
            raise ScanError(f"ork-parse printed more than {MAX_BYTES >> 20} MiB", is_lasting=True)
    return bytes(data)


async def _end(stream: asyncio.StreamReader) -> str:
    data = b""
    while part := await stream.read(_CHUNK):
        data = (data + part)[-TAIL_BYTES:]
    return data.decode("utf-8", "replace")
