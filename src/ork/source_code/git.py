"""Git, as far as the code of a project needs it: the commit of a work tree, the code of a commit, and a checkout of it.

Git is started as a program. Nothing is written to the repository: neither its index nor its list of work trees.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING

from ork.errors import RefusedError
from ork.source_code.rules import (
    IGNORE_FILES,
    MAX_FILE,
    SKIPPED_FOLDERS,
    Ignored,
    is_code_name,
    may_be_script,
)

if TYPE_CHECKING:
    from ork.source_code.read import CodeFolder

STATUS_SECONDS = (
    1.0  # a run does not wait longer for Git; after that, nobody knows whether the code is that of the commit
)
COMMAND_SECONDS = 120.0
_LINK = "120000"
_EXECUTABLE = "100755"
_SUBMODULE = "160000"


def work_tree_of(folder: str) -> str | None:
    """The top folder of the Git work tree that contains the folder."""
    folder = os.path.abspath(folder)
    while not os.path.lexists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    return folder


class GitStatus:
    """`git status` of the folders, started at once and read at the end. Without a work tree nothing is known."""

    def __init__(self, folders: Sequence[CodeFolder]) -> None:
        self._folders = folders
        self._top = work_tree_of(folders[0].path)
        self._process: subprocess.Popen[bytes] | None = None
        if self._top is None:
            return
        inside = [path for folder in folders if (path := _path_in(self._top, folder.path)) is not None]
        words = ["status", "--porcelain=v2", "--branch", "-z", "--untracked-files=normal", "--", *inside]
        with suppress(OSError):  # Git is not installed
            self._process = subprocess.Popen(
                [*_git(self._top), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )

    def __enter__(self) -> GitStatus:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def result(self, names: Collection[str]) -> tuple[str | None, bool | None]:
        """The commit, and whether one of these files differs from it, or a file of the commit is missing; None if Git did
        not answer in time."""
        if self._top is None:
            return None, None
        try:
            output, _ = (b"", b"") if self._process is None else self._process.communicate(timeout=STATUS_SECONDS)
        except subprocess.TimeoutExpired:
            output = b""
        commit, touched = _read_status(output)
        if commit is None or self._process is None or self._process.returncode:
            return _head_commit(self._top), None
        return commit, self._is_dirty(touched, names)

    def _is_dirty(self, touched: Sequence[str], names: Collection[str]) -> bool:
        assert self._top is not None
        for folder in self._folders:
            inside = _path_in(self._top, folder.path)
            if inside is None:
                continue
            below = "" if inside == "." else inside + "/"
            for path in touched:
                if path.endswith("/"):  # a folder that Git does not know
                    start = folder.prefix + path.removeprefix(below) if path.startswith(below) else folder.prefix
                    if (path.startswith(below) or below.startswith(path)) and any(n.startswith(start) for n in names):
                        return True
                elif path.startswith(below):
                    name = path.removeprefix(below)
                    if folder.prefix + name in names or (
                        not os.path.lexists(f"{folder.path}/{name}") and _is_code(name)
                    ):
                        return True
        return False


def _head_commit(top: str) -> str | None:
    """The commit of the work tree, from the files of the repository."""
    with suppress(OSError, ValueError):
        folder = os.path.join(top, ".git")
        if not os.path.isdir(folder):  # of a submodule, or of a further work tree
            folder = os.path.join(top, _text(folder).removeprefix("gitdir: "))
        head = _text(f"{folder}/HEAD")
        if not head.startswith("ref: "):
            return head if _is_commit(head) else None
        shared = f"{folder}/commondir"
        common = os.path.join(folder, _text(shared)) if os.path.exists(shared) else folder
        branch = head.removeprefix("ref: ")
        if os.path.exists(f"{common}/{branch}"):
            commit = _text(f"{common}/{branch}")
        else:
            packed = (line.partition(" ") for line in _text(f"{common}/packed-refs").splitlines())
            commit = next((name for name, _, ref in packed if ref == branch), "")
        return commit if _is_commit(commit) else None
    return None


def _text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read().strip()


def _is_commit(text: str) -> bool:
    return len(text) in (40, 64) and all(sign in "0123456789abcdef" for sign in text)


def _is_code(name: str) -> bool:
    return is_code_name(name.rpartition("/")[2]) and not _is_skipped(name)


def _is_skipped(name: str) -> bool:
    return any(part in SKIPPED_FOLDERS or part.startswith(".") for part in name.split("/"))


def _read_status(output: bytes) -> tuple[str | None, list[str]]:
    """The commit, and the paths that differ from it, relative to the top of the work tree. Folders end with a slash."""
    commit, touched = None, []
    parts = iter(os.fsdecode(output).split("\0"))
    for line in parts:
        kind, _, rest = line.partition(" ")
        if line.startswith("# branch.oid "):
            commit = line.removeprefix("# branch.oid ")
        elif kind == "1":
            touched.append(rest.split(" ", 7)[7])
        elif kind == "2":
            touched += [rest.split(" ", 8)[8], next(parts, "")]  # a new name, and the old one
        elif kind == "u":
            touched.append(rest.split(" ", 9)[9])
        elif kind == "?":
            touched.append(rest)
    return (None if commit in (None, "(initial)") else commit), touched


# ── commits ──────────────────────────────────────────────────────────────────────────────────────


def commits_of(top: str, folders: Sequence[CodeFolder], most: int) -> list[str]:
    """The newest commits of the current branch that changed something in the folders."""
    inside = [path for folder in folders if (path := _path_in(top, folder.path)) is not None]
    return _answer(top, "log", f"--max-count={most}", "--format=%H", "--", *inside).decode().split()


def hashes_at(top: str, commit: str, folders: Sequence[CodeFolder]) -> dict[str, str]:
    """The hash of each file that is code in this commit, by the rules and names of `ork.source_code.read`."""
    from ork.source_code.read import text_hash

    blobs: dict[str, str] = {}
    for folder in folders:
        inside = _path_in(top, folder.path)
        if inside is not None:
            files = _listed(top, commit, inside)
            blobs |= {folder.prefix + name: blob for name, blob in _code_blobs(top, files)}
    texts = _texts(top, list(dict.fromkeys(blobs.values())))
    found = {}
    for name, blob in blobs.items():
        digest = text_hash(name.rpartition("/")[2], texts[blob]) if len(texts[blob]) <= MAX_FILE else None
        if digest is not None:
            found[name] = digest
    return found


def check_out(top: str, commit: str, folders: Sequence[CodeFolder], target: str) -> None:
    """Writes the commit's files of these folders below `target`, at the same paths as in the work tree."""
    inside = [path for folder in folders if (path := _path_in(top, folder.path)) is not None]
    names = dict.fromkeys(name for path in inside for name in _full_names(top, commit, path))
    index = f"{target}.index"
    try:
        _answer(top, "read-tree", commit, index=index)
        listed = b"".join(os.fsencode(name) + b"\0" for name in names)
        _answer(top, "checkout-index", "-z", "--stdin", f"--prefix={target}/", text=listed, index=index)
    finally:
        for leftover in (index, f"{index}.lock"):
            if os.path.lexists(leftover):
                os.unlink(leftover)


def _full_names(top: str, commit: str, inside: str) -> Iterator[str]:
    below = "" if inside == "." else inside + "/"
    for name, (mode, _) in _listed(top, commit, inside).items():
        if mode != _SUBMODULE:
            yield below + name


def _listed(top: str, commit: str, inside: str) -> dict[str, tuple[str, str]]:
    """Mode and blob of each file of the commit, by its path from the folder `inside`."""
    words = ["ls-tree", "-r", "-z", "--full-tree", commit, "--", *([] if inside == "." else [inside + "/"])]
    below = "" if inside == "." else inside + "/"
    found = {}
    for line in os.fsdecode(_answer(top, *words)).split("\0"):
        facts, tab, path = line.partition("\t")
        if tab:
            mode, _, blob = facts.split(" ")
            found[path.removeprefix(below)] = (mode, blob)
    return found


def _code_blobs(top: str, files: dict[str, tuple[str, str]]) -> Iterator[tuple[str, str]]:
    texts = [_texts(top, [files[name][1]])[files[name][1]] for name in IGNORE_FILES if name in files]
    ignored = Ignored(text.decode("utf-8", "replace") for text in texts)
    for path, (mode, blob) in files.items():
        name = path.rpartition("/")[2]
        is_code = is_code_name(name) or (mode == _EXECUTABLE and may_be_script(name))
        if is_code and mode not in (_LINK, _SUBMODULE) and not _is_skipped(path) and not _is_ignored(ignored, path):
            yield path, blob


def _is_ignored(ignored: Ignored, path: str) -> bool:
    """The file or one of the folders it is in is ignored."""
    parts = path.split("/")
    return any(ignored.has(part, "/".join(parts[: place + 1])) for place, part in enumerate(parts))


def _texts(top: str, blobs: list[str]) -> dict[str, bytes]:
    """The contents of these blobs."""
    output = _answer(top, "cat-file", "--batch", text="".join(f"{blob}\n" for blob in blobs).encode())
    found, place = {}, 0
    for blob in blobs:
        end = output.index(b"\n", place)
        size = int(output[place:end].rpartition(b" ")[2])
        found[blob] = output[end + 1 : end + 1 + size]
        place = end + 1 + size + 1
    return found


def _answer(top: str, *words: str, text: bytes = b"", index: str | None = None) -> bytes:
    """What `git` prints. RefusedError with its own words if it fails."""
    try:
        done = subprocess.run(
            [*_git(top, index), *words], input=text, capture_output=True, timeout=COMMAND_SECONDS, check=False
        )  # fmt: skip
    except FileNotFoundError:
        raise RefusedError("`git` is not installed on this machine", hint="install it, and try again") from None
    except subprocess.TimeoutExpired:
        raise RefusedError(f"`git {words[0]}` took more than {COMMAND_SECONDS:g} seconds") from None
    if done.returncode:
        problem = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit code {done.returncode}"]
        raise RefusedError(f"`git {words[0]}` failed: {problem[-1]}", hint=f"look at the repository: {top}")
    return done.stdout


def _git(top: str, index: str | None = None) -> list[str]:
    """The start of a command. A Git hook that starts Ork has variables which name another repository or index."""
    clean = ["env", "-u", "GIT_DIR", "-u", "GIT_WORK_TREE", "-u", "GIT_INDEX_FILE"]
    own = [] if index is None else [f"GIT_INDEX_FILE={index}"]
    return [*clean, *own, "git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.quotepath=false", "-C", top]  # fmt: skip


def _path_in(top: str, folder: str) -> str | None:
    """The folder's path from the top of the work tree, `.` for the top itself; None if it is outside."""
    path = os.path.relpath(os.path.realpath(folder), os.path.realpath(top))
    return None if path == ".." or path.startswith("../") else path
