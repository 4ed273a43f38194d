"""The files of the worker, which are brought into images that have python3 and not Ork."""

from __future__ import annotations

import os
from functools import cache

# The packages that a worker needs. They import only the standard library.
_PACKAGES = ("worker", "objects", "model", "sdk", "system")


@cache
def worker_files() -> dict[str, bytes]:
    """The source files of the worker, by their path below `ork/`."""
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    paths = ["__init__.py", "errors.py"]
    for package in _PACKAGES:
        for folder, _, names in sorted(os.walk(os.path.join(home, package))):
            inner = os.path.relpath(folder, home)
            paths += [f"{inner}/{name}" for name in sorted(names) if name.endswith(".py")]
    files = {}
    for path in paths:
        with open(os.path.join(home, path), "rb") as file:
            files[path] = file.read()
    return files
