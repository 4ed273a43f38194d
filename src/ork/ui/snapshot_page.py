"""The page of a snapshot: one file with scripts, styles and data inside, or a page that loads files beside it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Mapping
from pathlib import Path

from ork import __version__
from ork.errors import UsageError
from ork.ui.assets import BUILD, LOADER, ONE_FILE, PAGE, STATIC, read_files

_COMMON = (
    "default-src 'none'; {}; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types {}"
)
_FOLDER = (
    "script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; worker-src 'self'"
)
_POLICIES = {"folder": "ork", "file": "ork ork-loader"}  # of Trusted Types
_ASSETS = "/ui/assets/__BUILD__/"
_NEEDS_SERVER = (
    '<p class="noscript needs-server">A browser cannot load these pages from a disk. Serve the folder with any web server '
    "(<code>python3 -m http.server</code>), or export one file: <code>ork ui export FILE.html</code>.</p>"
)


def folder_files(folder: Path = STATIC) -> dict[str, bytes]:
    """The page and its files, by their paths relative to the exported folder."""
    files = read_files(folder)
    if files is None:
        raise _not_built()
    assets = f"assets/{files.build}/"
    text = _with_kind((folder / PAGE).read_text("utf-8"), "folder", _FOLDER).replace(_ASSETS, assets)
    text = text.replace('<div id="app"></div>', f'<div id="app"></div>\n{_NEEDS_SERVER}')
    return {**{assets + name: file.body for name, file in files.assets.items()}, PAGE: text.encode()}


def one_file(documents: Mapping[str, bytes], title: str, folder: Path = STATIC) -> bytes:
    """A page that needs nothing else, and sends no request. Its scripts and style may run, and nothing else: a small one
    that unpacks the others, which are compressed."""
    try:
        loader = (folder / LOADER).read_text("utf-8")
        script = (folder / ONE_FILE).read_text("utf-8")
        style = (folder / "app.css").read_text("utf-8")
        icon = (folder / "icon.svg").read_bytes()
        page = (folder / PAGE).read_text("utf-8")
    except OSError:
        raise _not_built() from None
    rules = f"script-src {_hash(loader)} {_hash(script)}; style-src {_hash(style)}; img-src data:; worker-src blob:"
    page = _with_kind(page, "file", rules)
    page = re.sub(r"<(link|script)\b[^>]*/ui/assets/[^>]*>(</script>)?\n", "", page)
    page = page.replace("<title>Ork</title>", f"<title>{_escaped(title)}</title>")
    icon_link = f'<link rel="icon" href="data:image/svg+xml;base64,{_base64(icon)}">'
    parts = {"style": _deflated(style.encode()), "pages": _deflated(script.encode()), "snapshot": packed(documents)}
    data = "\n".join(
        f'<script type="application/octet-stream" id="ork-{name}">{_base64(part)}</script>'
        for name, part in parts.items()
    )
    page = page.replace("</head>", f"{icon_link}\n</head>")
    return page.replace("</body>", f"{data}\n<script>{loader}</script>\n</body>").encode()


def packed(documents: Mapping[str, bytes]) -> bytes:
    """As `ui/src/data/documents.ts` reads it: deflated; the length of an index, the index, then the documents."""
    index = json.dumps([[name, len(data)] for name, data in documents.items()]).encode()
    return _deflated(b"".join([len(index).to_bytes(4, "big"), index, *documents.values()]))


def _deflated(data: bytes) -> bytes:
    return zlib.compress(data, 9)


def _with_kind(page: str, kind: str, rules: str) -> str:
    policy = f'<meta http-equiv="Content-Security-Policy" content="{_COMMON.format(rules, _POLICIES[kind])}">'
    page = page.replace('<html lang="en">', f'<html lang="en" data-snapshot="{kind}">')
    page = page.replace('<meta name="ork-version" content="">', f'<meta name="ork-version" content="{__version__}">')
    return page.replace('<meta charset="utf-8">', f'<meta charset="utf-8">\n{policy}')


def _hash(text: str) -> str:
    return f"'sha256-{_base64(hashlib.sha256(text.encode()).digest())}'"


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _escaped(text: str) -> str:
    from html import escape

    return escape(text)


def _not_built() -> UsageError:
    return UsageError("this installation was packaged without the web UI", hint=f"there is no {BUILD} beside it")
