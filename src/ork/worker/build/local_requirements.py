"""Requirements that are paths: their content is part of the content that an environment is built from."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Created by tools, and different after every build or import of the same source.
_NOT_SOURCE = frozenset(
    {"__pycache__", ".git", ".hg", ".venv", "venv", ".tox", ".ork", "build", "dist", "node_modules"}
)
_BUILD_FILES = ("pyproject.toml", "setup.py", "setup.cfg")
_READ_BYTES = 1 << 20


def content_of(lines: Iterable[str], folders: Iterable[str]) -> Iterator[str | bytes]:
    """The names and content of the paths in the lines, looked for in each folder in turn.

    Of a project installed in place (`-e`) only the files that define its build count, because its code is used where it
    is.
    """
    places = list(folders)
    for line in lines:
        is_in_place, written = _path_in(line)
        path = next(
            (path for folder in places if written and os.path.exists(path := os.path.join(folder, written))), None
        )
        if path is None:
            continue
        if os.path.isfile(path):
            yield _digest(path)
        elif is_in_place:
            yield from _texts(path, [name for name in _BUILD_FILES if os.path.isfile(os.path.join(path, name))])
        else:
            yield from _texts(path, _source_files(path))


def _path_in(line: str) -> tuple[bool, str | None]:
    """Whether the line installs in place, and the path that it names."""
    text = line.partition(" #")[0].strip()
    is_in_place = False
    for option in ("-e", "--editable"):
        if text.startswith(option) and text[len(option) : len(option) + 1] in (" ", "=", "\t"):
            is_in_place, text = True, text[len(option) + 1 :].strip()
    text = text.partition(";")[0].strip()
    _, at, url = text.partition("@")
    if at and url.strip().startswith("file:"):
        text = url.strip()
    if text.startswith("file:"):
        from urllib.parse import unquote, urlsplit

        return is_in_place, unquote(urlsplit(text).path)
    text = text.partition("[")[0].strip()
    is_path = text.startswith((".", "/")) or os.sep in text or text.endswith((".whl", ".tar.gz", ".zip"))
    return is_in_place, text if is_path and not text.startswith("-") and "://" not in text else None


def _source_files(folder: str) -> list[str]:
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in _NOT_SOURCE and not name.endswith(".egg-info")]
        found += [os.path.relpath(os.path.join(place, name), folder) for name in files if not name.endswith(".pyc")]
    return sorted(found)


def _texts(folder: str, names: Iterable[str]) -> Iterator[str | bytes]:
    for name in names:
        yield name
        yield _digest(os.path.join(folder, name))


def _digest(path: str) -> bytes:
    """The digest of a file; a file that cannot be read counts as empty, because the installer will report it."""
    from hashlib import sha256

    whole = sha256()
    try:
        with open(path, "rb") as file:
            while chunk := file.read(_READ_BYTES):
                whole.update(chunk)
    except OSError:
        return b""
    return whole.digest()
