"""Reads the code of a project: walks its folders and hashes the files that are code."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ork.compile.content import make_version
from ork.model.code import Code, code_from_hashes
from ork.model.digest import sha256
from ork.model.record import replaced
from ork.model.workflow import CompiledWorkflow, Version
from ork.source_code.rules import (
    IGNORE_FILES,
    MARKS,
    MAX_FILE,
    SKIPPED_FOLDERS,
    Ignored,
    is_code_name,
    is_code_text,
    may_be_script,
)

MAX_ENTRIES = 20_000  # of all folders, about 20 ms
MAX_FILES = 5_000  # that are code, about 50 µs each
MAX_BYTES = 64 << 20


class CodeFolder(NamedTuple):
    """`prefix` stands before the names of its files: it does not change when the whole project moves."""

    path: str
    prefix: str = ""


class TooMuchCodeError(Exception):
    """The folders contain too many files to look at them before each run."""


def code_folders(root: str, workflow: CompiledWorkflow) -> list[CodeFolder]:
    """The project's folder, or the workflow's if it has no project, and the folders of `pythonpath` outside of it."""
    project = os.path.normpath(os.path.join(root, workflow.project or "."))
    folders = [CodeFolder(project)]
    for entry in workflow.pythonpath:
        path = os.path.normpath(os.path.join(project, entry))
        if not any(f"{path}/".startswith(f"{known.path.rstrip('/')}/") for known in folders):
            folders.append(CodeFolder(path, f"{entry.rstrip('/')}/"))
    return folders


def read_code(root: str, workflow: CompiledWorkflow) -> Code | None:
    """The code of a workflow in the folder `root` as it is now, with its commit. None if the folder is not on this machine or
    contains too many files."""
    if not os.path.isdir(root):
        return None
    from ork.source_code.git import GitStatus

    folders = code_folders(root, workflow)
    with GitStatus(folders) as status:  # works while the files are read
        try:
            hashes = file_hashes(folders)
        except TooMuchCodeError:
            return None
        code = code_from_hashes(combined_hash(hashes), hashes)
        commit, dirty = status.result(hashes)
    return replaced(code, commit=commit, dirty=dirty)


class CodeReader:
    """Reads the code of several workflows. Those of one project share one reading."""

    def __init__(self) -> None:
        self._known: dict[tuple[CodeFolder, ...], Code | None] = {}

    def code_of(self, root: str, workflow: CompiledWorkflow) -> Code | None:
        """As `read_code`."""
        folders = tuple(code_folders(root, workflow))
        if folders not in self._known:
            self._known[folders] = read_code(root, workflow)
        return self._known[folders]

    def version(self, workflow: CompiledWorkflow, root: str, source: str | None = None) -> Version:
        """The version of a workflow in the folder `root`, with its code as it is now."""
        return make_version(workflow, root, source, self.code_of(root, workflow))


def file_hashes(folders: Sequence[CodeFolder]) -> dict[str, str]:
    """The hash of each file that is code, by name. TooMuchCodeError."""
    budget = _Budget()
    # All names first: a folder with too many of them is left before a file is read.
    paths = {folder.prefix + name: path for folder in folders for name, path in _files(folder.path, budget)}
    hashes = ((name, _hash_of(path, budget)) for name, path in paths.items())
    return {name: digest for name, digest in hashes if digest is not None}


def combined_hash(hashes: dict[str, str]) -> str:
    lines = (f"{name}\0{hashes[name]}\n".encode("utf-8", "surrogateescape") for name in sorted(hashes))
    return sha256(b"".join(lines)).hexdigest()


def text_hash(name: str, text: bytes) -> str | None:
    """The hash of a file's text; None if that shows that it is no code."""
    return sha256(text).hexdigest() if is_code_text(name, text) else None


class _Budget:
    """What may be looked at."""

    def __init__(self) -> None:
        self._entries = MAX_ENTRIES
        self._files = MAX_FILES
        self._bytes = MAX_BYTES

    def use(self, entries: int = 0, files: int = 0, size: int = 0) -> None:
        self._entries -= entries
        self._files -= files
        self._bytes -= size
        if min(self._entries, self._files, self._bytes) < 0:
            raise TooMuchCodeError


def _files(top: str, budget: _Budget) -> Iterator[tuple[str, str]]:
    """Names relative to `top`, and paths. Links to folders are not followed."""
    ignored = Ignored(_texts(top))
    waiting = [""]
    while waiting:
        below = waiting.pop()
        entries = _entries(top + "/" + below)
        budget.use(len(entries))
        if below and any(entry.name in MARKS for entry in entries):
            continue
        for entry in entries:
            name = entry.name
            if name[0] == "." or name in SKIPPED_FOLDERS:
                continue
            if entry.is_dir(follow_symlinks=False):
                if not ignored.has(name, below + name):
                    waiting.append(f"{below}{name}/")
            elif (is_code_name(name) or _is_script(entry)) and not ignored.has(name, below + name):
                budget.use(files=1)
                yield below + name, entry.path


def _entries(path: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return list(entries)
    except OSError:
        return []


def _is_script(entry: os.DirEntry[str]) -> bool:
    """A file without a suffix that can be executed."""
    if not may_be_script(entry.name):
        return False
    try:
        return entry.is_file() and bool(entry.stat().st_mode & stat.S_IXUSR)
    except OSError:
        return False


def _texts(top: str) -> Iterator[str]:
    for name in IGNORE_FILES:
        try:
            with open(os.path.join(top, name), encoding="utf-8", errors="replace") as file:
                yield file.read(MAX_FILE)
        except OSError:
            continue


def _hash_of(path: str, budget: _Budget) -> str | None:
    """None for what is no code: large files, pipes, devices, and definitions of workflows."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return "unreadable"
    try:
        facts = os.fstat(number)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > MAX_FILE:
            return None
        text = os.read(number, MAX_FILE)
    except OSError:
        return "unreadable"
    finally:
        os.close(number)
    budget.use(size=len(text))
    return text_hash(os.path.basename(path), text)
