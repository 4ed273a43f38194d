"""Images with Ork in them, for tests of code locations."""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.docker import Daemon, python_image

PACKAGES = ("ork", "yaml", "cronsim")
_SITE = f"usr/local/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
_ORK_PARSE = b"#!/usr/local/bin/python3\nimport sys\nfrom ork.locations.parse import main\nsys.exit(main())\n"
_ORK_WORKER = b"#!/usr/local/bin/python3\nfrom ork.worker.main import main\nmain()\n"
_NO_PIP = b'#!/bin/sh\n[ "$*" = "install --no-cache-dir ork-orchestrator" ]\n'


def location_image(daemon: Daemon, name: str, files: Mapping[str, str], *changes: str) -> str:
    """Python, Ork, and these files in /app, which is where it begins."""
    base = ork_base(daemon)
    content = {f"app/{path}": text.encode() for path, text in files.items()} or {"app/.keep": b""}
    return python_image(daemon, name, content, "WORKDIR /app", *changes, base=base)


def liar_image(daemon: Daemon, name: str, script: str) -> str:
    """An image whose `ork-parse` is this shell script."""
    content = {"usr/local/bin/ork-parse": f"#!/bin/sh\n{script}\n".encode()}
    return python_image(daemon, name, content, "RUN chmod 755 /usr/local/bin/ork-parse")


@functools.cache
def ork_base(daemon: Daemon) -> str:
    """An image of Python and Ork, in which a `pip install` of Ork has nothing left to do."""
    programs = {
        "usr/local/bin/ork-parse": _ORK_PARSE,
        "usr/local/bin/ork-worker": _ORK_WORKER,
        "usr/local/bin/pip": _NO_PIP,
    }
    files: dict[str, bytes] = dict(programs)
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        folder = Path(spec.origin).parent
        for path in folder.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                files[f"{_SITE}/{package}/{path.relative_to(folder)}"] = path.read_bytes()
    return python_image(daemon, "ork-test-location", files, *(f"RUN chmod 755 /{path}" for path in programs))
