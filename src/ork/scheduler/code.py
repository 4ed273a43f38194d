"""What a task's code is, as a hash: its own file, and every Python file beside and below it that it might import."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ork.model.digest import sha256
from ork.model.trees import member_of
from ork.model.workflow import Command, Const, Custom, PythonCall, RustProgram, TaskSpec, Version

MOST_FILES = 5000


def code_hash(version: Version, spec: TaskSpec) -> str:
    digest = sha256()
    for path in sorted(set(_files(version.root, spec))):
        digest.update(os.path.relpath(path, version.root).encode() + b"\0")
        try:
            with open(path, "rb") as file:
                digest.update(sha256(file.read()).digest())
        except OSError:
            digest.update(b"-")
    return digest.hexdigest()


def _files(root: str, spec: TaskSpec) -> Iterator[str]:
    if spec.image is not None:
        return  # its code is in there
    if spec.environment is not None and spec.environment.requirements_file is not None:
        yield os.path.join(root, spec.environment.requirements_file)
    match spec.action:
        case PythonCall(file=file):
            if file is not None:
                yield os.path.join(root, file)
            yield from _below(root, ".py")
        case Command(argv):
            words = (os.path.join(root, str(word.value)) for word in argv if isinstance(word, Const))
            yield from (path for path in words if os.path.isfile(path))
        case Custom(task=task):
            yield from _below(root, ".py")
            named = member_of(task, "file")
            if named is not None and isinstance(named.get("const"), str):
                yield os.path.join(root, named["const"])
        case RustProgram(path):
            whole = os.path.join(root, path)
            yield from _below(whole, ".rs") if os.path.isdir(whole) else [whole]


def _below(folder: str, ending: str) -> Iterator[str]:
    found = 0
    for here, folders, files in os.walk(folder):
        folders[:] = [
            name for name in folders if not name.startswith(".") and name not in ("__pycache__", "node_modules")
        ]
        for name in files:
            if name.endswith(ending) and found < MOST_FILES:
                found += 1
                yield os.path.join(here, name)
