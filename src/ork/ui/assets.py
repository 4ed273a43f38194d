"""Reads the built files of the web UI, and compresses each of them once."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ork import __version__

STATIC = Path(__file__).parent / "static"
PAGE, BUILD, ONE_FILE, LOADER = "index.html", "build.json", "snapshot.js", "loader.js"
LEAST_BYTES = 512
_BUILD_PATH = "/ui/assets/__BUILD__/"
_VERSION = re.compile(r'<meta name="ork-version"[^>]*>')
_BUILD_ID = re.compile(r"[0-9A-Za-z_-]{1,128}")
_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}
_COMPRESSED = (".png", ".ico", ".woff2")


class WebFile(NamedTuple):
    """`compressed` is None where gzip gains nothing."""

    kind: str
    body: bytes
    compressed: bytes | None


class WebFiles(NamedTuple):
    """One build: its page, and the files that the page loads, by their names."""

    build: str
    version: str
    page: WebFile
    assets: Mapping[str, WebFile]


def read_files(folder: Path = STATIC) -> WebFiles | None:
    """The files in the folder; None if there is no complete build."""
    try:
        build = json.loads((folder / BUILD).read_text("utf-8"))["build"]
        text = (folder / PAGE).read_text("utf-8")
        if _BUILD_ID.fullmatch(build) is None:
            return None
        assets = {name: _file(name, (folder / name).read_bytes()) for name in _names(folder)}
    except (OSError, ValueError, LookupError, TypeError):
        return None
    page = _VERSION.sub(f'<meta name="ork-version" content="{__version__}">', text)
    page = page.replace(_BUILD_PATH, f"/ui/assets/{build}/")
    return WebFiles(build, __version__, _file(PAGE, page.encode()), assets)


def _names(folder: Path) -> Iterator[str]:
    for where, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            path = (Path(where) / name).relative_to(folder).as_posix()
            if path not in (PAGE, BUILD, ONE_FILE, LOADER) and not name.startswith("."):
                yield path


def _file(name: str, body: bytes) -> WebFile:
    ending = os.path.splitext(name)[1].lower()
    is_worth_it = len(body) >= LEAST_BYTES and ending not in _COMPRESSED
    kind = _KINDS.get(ending, "application/octet-stream")
    return WebFile(kind, body, gzip.compress(body, 9, mtime=0) if is_worth_it else None)
