"""The installed modules that a task imported, reported so that a fork server can import them for later tasks.

Installed means: of the standard library or in site-packages. Files of the project, editable installs and folders of PYTHONPATH
may change at any time, so they are always imported by the task itself.
"""

from __future__ import annotations

import os
import sys

from ork.objects.json_text import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

WORTH_SECONDS = 0.02  # of CPU time to load the task's file
WORTH_MODULES = 50
_MAX_BYTES = 24_000  # of all names together
_OWN = ("ork", "__main__")
_INSTALLED = ("site-packages", "dist-packages")


def seen_imports(folders: Sequence[str], known: int) -> list[str]:
    """The names of installed modules that were imported after the first `known` modules, except below the project's
    `folders`. If there are too many, only the outer packages are returned."""
    installed = tuple(
        f"{folder}/"
        for folder in (os.path.dirname(os.__file__), *sys.path)
        if folder not in folders and (folder.endswith(_INSTALLED) or folder == os.path.dirname(os.__file__))
    )
    names = []
    for name, module in list(sys.modules.items())[known:]:
        file = getattr(module, "__file__", None)
        if file is None or getattr(module, "__spec__", None) is None or name.partition(".")[0] in _OWN:
            continue
        # A private module is imported by the package it belongs to.
        if file.startswith(installed) and "._" not in f".{name}":
            names.append(name)
    for depth in (9, 2, 1, 0):
        if sum(map(len, names)) + 4 * len(names) <= _MAX_BYTES:
            break
        names = [name for name in names if name.count(".") < depth]
    return names


def imports_report(spec: dict[str, Any], names: list[str]) -> bytes | None:
    """The message to the executor: the names, and which tasks they are for. None if the task runs in another interpreter, or
    has variables that are no constants."""
    env = {name: bound.get("value") for name, bound in spec["env"].items()}
    if spec.get("environment") is not None or not all(isinstance(value, str) for value in env.values()):
        return None
    return dumps({"root": spec["root"], "paths": spec["paths"], "env": env, "names": names}).encode()
